"""Sweeps: independent runs as the tasks of Spark jobs, for the planner and the lab."""

from __future__ import annotations

import os
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shedjoin
from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.java import check_java
from shedjoin.spark.master import check_master, get_session
from shedjoin.spark.session import LOGGING, PANDAS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: Where workers find shedjoin when it is not installed but run from a source tree.
SOURCE = str(Path(shedjoin.__file__).parent.parent)
_POLL_SECONDS = 0.2


@contextmanager
def sweep_session(master: str, name: str) -> Iterator[SparkSession]:
    """The session in use, which goes on; or a new quiet one of this name, stopped at the end."""
    check_master(master)
    check_java()
    try:
        with _without_pandas_warning():
            from pyspark.sql import SparkSession
    except ImportError:
        raise EnvironmentProblem("sweeps on Spark need pyspark: pip install 'shedjoin[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # A virtualenv that is not activated would otherwise give the workers the system's Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName(name).config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if "PYTHONWARNINGS" not in os.environ:
        builder = builder.config("spark.executorEnv.PYTHONWARNINGS", f"ignore:{PANDAS}:FutureWarning")
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={LOGGING.as_uri()}")
    with _without_pandas_warning():
        made = get_session(builder, master)
    try:
        yield made
    finally:
        made.stop()


def cores(spark: SparkSession) -> int:
    """How many tasks run at once, as far as is known."""
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    return int(context.defaultParallelism) if context is not None else (os.cpu_count() or 1)


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


@contextmanager
def _without_pandas_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", PANDAS, FutureWarning)
        yield


class _Watched:
    """While a job runs, tell the progress bar of finished tasks; afterwards of the rest. Cancels the job on Ctrl-C."""

    def __init__(self, spark: SparkSession, rows: int, tasks: int, advance: Callable[[int], None]) -> None:
        self._context: Any = getattr(spark, "sparkContext", None)
        self._group = f"shedjoin-sweep-{uuid.uuid4().hex}"
        self._rows = rows
        self._tasks = tasks
        self._advance = advance
        self._told = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._context is not None:
            self._context.setJobGroup(self._group, "shedjoin sweep")
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
