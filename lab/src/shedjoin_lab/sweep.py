"""Sweeps as Spark jobs: one row of parameters, one task, one simulation, rows back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from shedjoin.spark.sweep import collect, cores, sweep_session
from shedjoin_lab.experiment import Figure, Params
from shedjoin_lab.import_paths import IMPORT_PATHS
from shedjoin_lab.progress import progress_bar
from shedjoin_lab.run import Outcome

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: A sweep is cut into jobs of about this length; after each, what is done is stored.
JOB_SECONDS = 20.0
#: Tasks a job has for each core: several simulations a task, because a task costs Spark up to half a second of its own.
TASKS_A_CORE = 4


class SparkSweep:
    """A runner (see `shedjoin_lab.run`) that simulates on Spark; a context manager that holds the session.

    Parameters
    ----------
    master
        Spark's master. Local mode needs nothing more; on a cluster shedjoin-lab must be installed on the workers.
    """

    def __init__(self, master: str = "local[*]") -> None:
        self._master = master
        self._spark: SparkSession | None = None
        self._open = ExitStack()

    def __enter__(self) -> SparkSweep:
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()
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
            self._spark = self._open.enter_context(sweep_session(self._master, "shedjoin lab"))
        return self._spark


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


def _worker(
    paper: str, name: str, texts: list[str], folder: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does. Made here, so that it travels by value and can find the lab before it imports it.

    Parameters and rows travel as JSON: figures have different columns, a Spark job has one schema.
    """
    paths = IMPORT_PATHS

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import sys
        from pathlib import Path

        import pyarrow as pa

        sys.path.extend(path for path in paths if path not in sys.path)
        from shedjoin_lab.catalogue import find
        from shedjoin_lab.run import measure_one

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
