"""The runs of a plan as Spark jobs: one run a row, several a task."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.batch import COLUMNS, Batch
from shedjoin.offline.curve import Solved
from shedjoin.offline.tolls import Tangent
from shedjoin.plain import make_policy, plain
from shedjoin.planner.candidates import Candidate
from shedjoin.planner.stretch import Stretch
from shedjoin.planner.work import Bench, Done, Outcome, Solve, Trial, do
from shedjoin.spark.sweep import SOURCE, collect, cores
from shedjoin.spec import JoinSpec

#: Tasks a job has for each core: a task costs Spark up to half a second of its own.
TASKS_A_CORE = 2


class OnSpark:
    """A runner that does each round of work as one job.

    Parameters
    ----------
    spark
        A session, classic or Connect; its workers need shedjoin (and pylmcf for optima).
    check
        Called before each job; raises KeyboardInterrupt to stop.
    """

    def __init__(self, spark: Any, bench: Bench, check: Callable[[], None]) -> None:
        self._spark = spark
        self._check = check
        self._bench = _packed_bench(bench)
        self._columns = _packed(bench.stretch.batch)

    def __call__(self, work: list[Trial | Solve]) -> Iterator[Done]:
        self._check()
        tasks = min(len(work), TASKS_A_CORE * cores(self._spark))
        job = _worker(self._bench, self._columns, [json.dumps(_packed_work(one)) for one in work])
        rows = collect(self._spark, job, "place long, outcome string", len(work), tasks)
        for row in sorted(rows, key=lambda row: int(row["place"])):
            yield _unpacked_done(work[row["place"]], json.loads(row["outcome"]))


def _worker(
    bench: str, columns: bytes, texts: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does. Made here, so that it travels by value and can find shedjoin before it imports it."""
    source = SOURCE

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import pyarrow as pa

        if source not in sys.path:
            sys.path.append(source)
        from shedjoin.planner.on_spark import done_on_worker

        for batch in batches:
            done = done_on_worker(bench, columns, [texts[place] for place in batch.column(0).to_pylist()])
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(done, pa.string())], ["place", "outcome"])

    return work


def done_on_worker(bench: str, columns: bytes, texts: list[str]) -> list[str]:
    """Some runs, from text to text."""
    made = _unpacked_bench(json.loads(bench), columns)
    work = [_unpacked_work(json.loads(text)) for text in texts]
    landscape = made.landscape() if any(isinstance(one, Solve) for one in work) else None
    return [json.dumps(_packed_done(do(one, made, landscape)[1])) for one in work]


def _packed(batch: Batch) -> bytes:
    """The rows as Arrow IPC bytes."""
    table = pa.table(dict(zip(COLUMNS, batch.fields(), strict=True)))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _packed_bench(bench: Bench) -> str:
    stretch = bench.stretch
    return json.dumps(
        {
            "spec": bench.spec.to_dict(),
            "stretch": {"warmup": stretch.warmup, "cuts": stretch.cuts, "windows": stretch.windows},
            "options": {"objective": bench.objective, "seed": bench.seed, "within": bench.within},
        }
    )


def _unpacked_bench(data: dict[str, Any], columns: bytes) -> Bench:
    table = pa.ipc.open_stream(columns).read_all().combine_chunks()
    batch = Batch(*(table.column(name).to_numpy() for name in COLUMNS))
    stretch = Stretch(batch, **{**data["stretch"], "cuts": tuple(data["stretch"]["cuts"])})
    return Bench(JoinSpec.from_dict(data["spec"]), stretch, **data["options"])


def _packed_work(work: Trial | Solve) -> dict[str, Any]:
    if isinstance(work, Solve):
        return {"group": work.group, "memory": work.memory}
    name, policy = work.candidate.name, plain(work.candidate.policy)
    return {"name": name, "policy": policy, "allocation": work.allocation, "memory": work.memory}


def _unpacked_work(data: dict[str, Any]) -> Trial | Solve:
    if "group" in data:
        return Solve(tuple(data["group"]), data["memory"])
    return Trial(Candidate(data["name"], make_policy(data["policy"])), data["allocation"], data["memory"])


def _packed_done(done: Outcome | Solved) -> dict[str, Any]:
    if isinstance(done, Outcome):
        return asdict(done)
    tangent = done.tangent
    where = np.flatnonzero(tangent.toll)  # few borders have one
    return {
        "solved": {"memory": done.memory, "value": done.value, "complete": done.complete},
        "tangent": {"base": tangent.base, "slope": tangent.slope},
        "toll": {"borders": tangent.toll.size, "where": where.tolist(), "toll": tangent.toll[where].tolist()},
    }


def _unpacked_done(work: Trial | Solve, data: dict[str, Any]) -> Done:
    if isinstance(work, Solve):
        toll = np.zeros(data["toll"]["borders"])
        toll[data["toll"]["where"]] = data["toll"]["toll"]
        return work, Solved(**data["solved"], tangent=Tangent(**data["tangent"], toll=toll))
    return work, Outcome(**{**data, "blocks": tuple(data["blocks"])})
