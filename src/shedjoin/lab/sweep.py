"""Sweeps as Spark jobs: one row of parameters, one task, one simulation, rows back."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shedjoin
from shedjoin.errors import EnvironmentProblem
from shedjoin.lab.experiment import Figure, Params
from shedjoin.lab.progress import progress_bar
from shedjoin.lab.run import Outcome
from shedjoin.spark.java import check_java
from shedjoin.spark.master import check_master, get_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: A sweep is cut into jobs of about this length; after each, what is done is stored.
JOB_SECONDS = 20.0
#: Tasks a job has for each core: several simulations a task, because a task costs Spark up to half a second of its own.
TASKS_A_CORE = 4
#: Where workers find shedjoin when it is not installed but run from a source tree.
SOURCE = str(Path(shedjoin.__file__).parent.parent)
_POLL_SECONDS = 0.2
#: Spark 4 warns of pandas 3 whatever it is asked to do; no pandas is used here.
_PANDAS_WARNING = "PySpark does not yet fully support pandas"
_QUIET = """\
status = error
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


class SparkSweep:
    """A runner (see `shedjoin.lab.run`) that simulates on Spark; a context manager that holds the session.

    Parameters
    ----------
    master
        Spark's master. Local mode needs nothing more; on a cluster shedjoin must be installed on the workers.
    """

    def __init__(self, master: str = "local[*]") -> None:
        self._master = master
        self._spark: SparkSession | None = None
        self._owned = False

    def __enter__(self) -> SparkSweep:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._spark is not None and self._owned:
            self._spark.stop()
        self._spark = None

    def __call__(self, figure: Figure, missing: list[Params], data: Path | None) -> Iterator[list[Outcome]]:
        with progress_bar(f"{figure.paper} {figure.name}", len(missing)) as advance:
            if not missing:
                return
            spark = self._session()
            each_job = TASKS_A_CORE * cores(spark)
            start, size = 0, each_job
            while start < len(missing):
                chunk = missing[start : start + size]
                begin = time.monotonic()
                yield _run_job(spark, figure, chunk, each_job, data, advance)
                start += len(chunk)
                each = (time.monotonic() - begin) / len(chunk)
                size = max(each_job // TASKS_A_CORE, round(JOB_SECONDS / max(each, 0.001)))

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark, self._owned = session(self._master)
        return self._spark


def session(master: str) -> tuple[SparkSession, bool]:
    """The session in use, or a new quiet one; and whether it is ours to stop."""
    check_master(master)
    check_java()
    try:
        with _without_pandas_warning():
            from pyspark.sql import SparkSession
    except ImportError:
        raise EnvironmentProblem(
            "sweeps on Spark need pyspark: pip install 'shedjoin[lab]', or run with --no-spark"
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    # A virtualenv that is not activated would otherwise give the workers the system's Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName("shedjoin lab").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if "PYTHONWARNINGS" not in os.environ:
        builder = builder.config("spark.executorEnv.PYTHONWARNINGS", f"ignore:{_PANDAS_WARNING}:FutureWarning")
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    with _without_pandas_warning(), tempfile.TemporaryDirectory() as folder:  # read once, while Java starts
        quiet = Path(folder, "log4j2.properties")
        quiet.write_text(_QUIET)
        builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
        return get_session(builder, master), True


def cores(spark: SparkSession) -> int:
    """How many tasks run at once, as far as is known."""
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    return int(context.defaultParallelism) if context is not None else (os.cpu_count() or 1)


def _run_job(
    spark: SparkSession,
    figure: Figure,
    chunk: list[Params],
    tasks: int,
    data: Path | None,
    advance: Callable[[int], None],
) -> list[Outcome]:
    work = _worker(
        figure.paper, figure.name, [json.dumps(params) for params in chunk], str(data.absolute()) if data else None
    )
    tasks = min(tasks, len(chunk))
    collected = collect(spark, work, "place long, rows string, error string", len(chunk), tasks, advance)
    return [
        Outcome(chunk[row["place"]], json.loads(row["rows"]), row["error"])
        for row in sorted(collected, key=lambda row: int(row["place"]))
    ]


def collect(
    spark: SparkSession,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str,
    rows: int,
    tasks: int,
    advance: Callable[[int], None] = lambda finished: None,
) -> list[Any]:
    """What comes of some work on the rows 0, 1, 2, ..., shared out to so many tasks; `advance` hears of finished ones."""
    from pyspark.errors import PySparkException

    try:
        with _without_pandas_warning(), _Watched(spark, rows, tasks, advance):
            return list(spark.range(0, rows, 1, tasks).mapInArrow(work, schema).collect())
    except PySparkException as reason:
        raise EnvironmentProblem(f"Spark could not run the sweep: {str(reason).strip().splitlines()[-1]}") from reason


def _worker(
    paper: str, name: str, texts: list[str], folder: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does. Made here, so that it travels by value and can find shedjoin before it imports it.

    Parameters and rows travel as JSON: figures have different columns, a Spark job has one schema.
    """
    source = SOURCE

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import sys
        from pathlib import Path

        import pyarrow as pa

        if source not in sys.path:
            sys.path.append(source)
        from shedjoin.lab.catalogue import find
        from shedjoin.lab.run import measure_one

        figure = find(paper, name)
        for batch in batches:
            places = batch.column(0).to_pylist()
            outcomes = [
                measure_one(figure, json.loads(texts[place]), Path(folder) if folder else None) for place in places
            ]
            rows = [json.dumps(outcome.rows) for outcome in outcomes]
            errors = pa.array([outcome.error for outcome in outcomes], pa.string())
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(rows), errors], ["place", "rows", "error"])

    return work


@contextmanager
def _without_pandas_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _PANDAS_WARNING, FutureWarning)
        yield


class _Watched:
    """While a job runs, tell the progress bar of finished tasks; afterwards of the rest. Cancels the job on Ctrl-C."""

    def __init__(self, spark: SparkSession, rows: int, tasks: int, advance: Callable[[int], None]) -> None:
        self._context: Any = getattr(spark, "sparkContext", None)
        self._group = f"shedjoin-lab-{uuid.uuid4().hex}"
        self._rows = rows
        self._tasks = tasks
        self._advance = advance
        self._told = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._context is not None:
            self._context.setJobGroup(self._group, "shedjoin lab")
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self._over.set()
        if self._context is not None:
            self._thread.join()
            if kind is not None:
                self._context.cancelJobGroup(self._group)
            for name in ("spark.jobGroup.id", "spark.job.description"):
                self._context.setLocalProperty(name, None)
        if kind is None:
            self._tell(self._tasks)

    def _watch(self) -> None:
        tracker = self._context.statusTracker()
        while not self._over.wait(_POLL_SECONDS):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            self._tell(sum(stage.numCompletedTasks for stage in stages if stage is not None))

    def _tell(self, finished_tasks: int) -> None:
        finished = self._rows * finished_tasks // self._tasks
        self._advance(finished - self._told)
        self._told = finished
