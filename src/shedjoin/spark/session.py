"""A Spark session for shedjoin: adds the necessary settings, and keeps those of the user."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.master import check_places, get_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: Set unless the user has set it.
SETTINGS = {
    # The only state store that Spark's arbitrary state works with.
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # A commit then writes what changed, and not whole files.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Rows go to Python in batches of this many; with the default of 10,000 each batch costs as much as its rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
PARTITIONS = "spark.sql.shuffle.partitions"
#: For `spark.python.daemon.module`, if the workers' Python certainly has shedjoin: new workers do not import it again.
DAEMON = "shedjoin.spark.daemon"
#: For a separate process: little memory, and workers that start at once.
LEAN = {
    "spark.python.daemon.module": DAEMON,
    # Spark's stateful operator does not know this setting: with it on, its workers would come of a second daemon.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
#: Each task that sorts begins with a page as large as this, 64 MB if nobody says otherwise, and writes all over it: for the
#: few rows that shards are sent. A row that is larger gets a page of its own size.
PAGES = {"spark.buffer.pageSize": "2m"}
#: The collector for a JVM that mostly passes bytes on: with Java's own choice the heap grows to twice what it has to be. The
#: heap begins small, has little room to spare and shrinks at once. (With 15 to 30% small micro-batches took longer, in one run.)
COLLECTOR = "-XX:+UseSerialGC -Xms64m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 -XX:-ShrinkHeapInSteps"
#: Java's optimising compiler is for what runs once a row. By its own thresholds, a tenth of these, it also takes all that Spark
#: does once a micro-batch, and for some minutes is as busy as the query.
COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
JAVA = ("spark.driver.defaultJavaOptions", f"{COLLECTOR} {COMPILER}")
#: Where the user may have chosen a collector: Java does not start with two.
ELSEWHERE = (
    "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME",
    "SPARK_SUBMIT_OPTS",
)  # fmt: skip
#: For a process that runs one job on this machine: not reachable from outside, and it logs only errors.
ALONE = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}

#: Spark in a user's process says errors only; without this file, Java would say which file it does without.
LOGGING = Path(__file__).with_name("log4j2.properties")
#: Spark always warns about pandas 3.
PANDAS = "PySpark does not yet fully support pandas"


def session(builder: Any = None, *, settings: Mapping[str, str] | None = None, check: bool = True) -> SparkSession:
    """A session that is ready for `shed_join`.

    Parameters
    ----------
    builder
        A `SparkSession.builder` with your own settings; default: Spark in this process, on all cores, which logs only errors
        and draws no progress bars (`settings={"spark.log.level": "WARN"}` logs more).
    settings
        More settings of Spark, by their full names.
    check
        Run a tiny job that checks whether workers can import shedjoin.
    """
    # With a virtualenv that is not activated, workers would take the system's Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise EnvironmentProblem("shedjoin.spark needs pyspark: pip install 'shedjoin[spark]'") from None
    settings = settings or {}
    where = check_places(settings)
    warnings.filterwarnings("ignore", message=PANDAS)
    if builder is None:
        builder = SparkSession.builder
        settings = settings if SparkSession.getActiveSession() is not None else {**quiet(settings), **settings}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return prepare(get_session(builder, where), check=check)


def quiet(settings: Mapping[str, str]) -> dict[str, str]:
    """The additional settings with which Spark logs only errors.

    Examples
    --------
    >>> quiet({"spark.remote": "sc://host:15002"})
    {}
    >>> quiet({"spark.driver.extraJavaOptions": "-XX:+UseZGC"})
    {'spark.ui.showConsoleProgress': 'false', 'spark.log.level': 'ERROR'}
    """
    if "spark.remote" in settings or "SPARK_REMOTE" in os.environ:
        return {}
    less = {"spark.ui.showConsoleProgress": "false"}
    if _java_chosen(settings) or not LOGGING.is_file():
        return {**less, "spark.log.level": ALONE["spark.log.level"]}
    return {**less, JAVA[0]: f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"}


def _java_chosen(settings: Mapping[str, str]) -> bool:
    """Whether options of Java are among the settings or in the environment."""
    return any("JavaOptions" in name for name in settings) or any(name in os.environ for name in ELSEWHERE)


@contextmanager
def own_session(settings: Mapping[str, str], *, check: bool = True) -> Iterator[SparkSession]:
    """A session for one task, stopped at its end; or the existing one of this process, which stays."""
    from pyspark.sql import SparkSession

    before = SparkSession.getActiveSession()
    spark = session(settings=alone(settings) if before is None else settings, check=check)
    try:
        yield spark
    finally:
        if before is None:
            spark.stop()


def alone(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings for a separate process: on a cluster, or through Connect, they are unchanged."""
    if "spark.remote" in settings:
        return dict(settings)
    if not settings.get("spark.master", "local").startswith("local"):
        return {"spark.log.level": ALONE["spark.log.level"], **settings}
    return {**ALONE, **lean(settings), **settings}


def lean(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings with which a query in local mode needs little memory, and its workers start at once.

    Set them before you create the session. Java's collector, heap and compiler are not changed if your `settings` or the
    environment have Java options.

    Examples
    --------
    >>> "spark.driver.defaultJavaOptions" in lean({"spark.driver.extraJavaOptions": "-XX:+UseZGC"})
    False
    """
    # Another Python may not have shedjoin, and must run to report this.
    same = os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable
    return {**(LEAN if same else {}), **PAGES, **({} if _java_chosen(settings or {}) else dict([JAVA]))}


def prepare(spark: SparkSession, *, check: bool = True) -> SparkSession:
    """Add the settings that `shed_join` needs to a session, unless the user has set them; returns the session."""
    mine = _set_by_user(spark)
    for name, value in SETTINGS.items():
        if name not in mine:
            spark.conf.set(name, value)
    if PARTITIONS not in mine:
        # Each shuffle partition is a task and a state store of its own in every micro-batch: 200 are too many for a few cores.
        spark.conf.set(PARTITIONS, str(_parallelism(spark)))
    if check:
        check_workers(spark)
    return spark


def _set_by_user(spark: SparkSession) -> dict[str, str]:
    found: Any = spark.conf.getAll
    return dict(found() if callable(found) else found)


def _parallelism(spark: SparkSession) -> int:
    """The number of tasks that run at once, as Spark reports it."""
    return max(1, spark.range(0, 1).sparkSession.range(0, 1 << 20).mapInArrow(_count, "n long").count())


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row a task."""
    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"n": pa.array([1], pa.int64())})


def check_workers(spark: SparkSession) -> None:
    """See that workers have the same shedjoin; a clear word if not."""
    import shedjoin

    mine = shedjoin.__version__

    def version(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import pyarrow as pa

        for _ in batches:
            try:
                import shedjoin

                found = shedjoin.__version__
            except ImportError as reason:
                found = f"{sys.executable}: {reason}"
            yield pa.RecordBatch.from_pydict({"found": [found]})

    theirs = spark.range(0, 1, 1, 1).mapInArrow(version, "found string").collect()[0]["found"]
    if theirs != mine:
        raise EnvironmentProblem(
            f"Spark's workers cannot use this shedjoin ({mine}): {theirs}. Install shedjoin for the workers' Python, or set "
            "PYSPARK_PYTHON to a Python that has it before the session is made"
        )
