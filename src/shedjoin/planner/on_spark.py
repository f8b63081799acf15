"""The tasks of a plan as Spark jobs: one task a row, several rows a Spark task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from shedjoin.planner.tasks import Done, Solve, TaskSetup, Trial, run_task
from shedjoin.spark.sweep import SOURCE, collect, cores

#: Spark tasks for each core: a task costs Spark up to half a second of its own.
TASKS_A_CORE = 2


class SparkRunner:
    """Runs each round of tasks as one job.

    Parameters
    ----------
    spark
        A session, classic or Connect; its workers need shedjoin (and pylmcf for optima).
    check
        Called before each job; raises KeyboardInterrupt to stop.
    """

    def __init__(self, spark: Any, setup: TaskSetup, check: Callable[[], None]) -> None:
        self._spark = spark
        self._check = check
        self._setup = pickle.dumps(setup)

    def __call__(self, tasks: list[Trial | Solve]) -> Iterator[Done]:
        self._check()
        job = _worker(self._setup, [pickle.dumps(task) for task in tasks])
        slots = min(len(tasks), TASKS_A_CORE * cores(self._spark))
        rows = collect(self._spark, job, "place long, done binary", len(tasks), slots)
        for row in sorted(rows, key=lambda row: int(row["place"])):
            yield tasks[row["place"]], pickle.loads(row["done"])


def _worker(setup: bytes, tasks: list[bytes]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does. Made here, so that it travels by value and can find shedjoin before it imports it."""
    source = SOURCE

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import pyarrow as pa

        if source not in sys.path:
            sys.path.append(source)
        from shedjoin.planner.on_spark import done_on_worker

        for batch in batches:
            done = done_on_worker(setup, [tasks[place] for place in batch.column(0).to_pylist()])
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(done, pa.binary())], ["place", "done"])

    return work


def done_on_worker(setup: bytes, tasks: list[bytes]) -> list[bytes]:
    """Some tasks, from bytes to bytes."""
    made: TaskSetup = pickle.loads(setup)
    work: list[Trial | Solve] = [pickle.loads(task) for task in tasks]
    solver = made.solver() if any(isinstance(task, Solve) for task in work) else None
    return [pickle.dumps(run_task(task, made, solver)[1]) for task in work]
