"""Recall with the memory split over 1, 2, 4 and 8 shards: adaptive shares (shedjoin.spark.budget_split) against equal ones.

The shards are engines that are driven directly, in micro-batches, through the code that they run on Spark: two tasks a
stream count their rows, every shard follows the same split and takes its part.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.spark.budget_split import BudgetSplit, Counter, Counts, share_of
from shedjoin.spark.hashing import spread
from shedjoin.workloads import zipf

TASKS = 2
LIMIT = 1 << 16


def shard_of(hashes: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
    return ((hashes >> np.uint64(32)) % np.uint64(shards)).astype(np.int64)


class Run:
    """All shards of a join, in step: results, evictions, how often memory moved, the most that was stored after a batch."""

    def __init__(
        self, spec: sj.JoinSpec, batch: sj.Batch, shards: int, each: int, *, adaptive: bool = True, seed: int = 0
    ) -> None:
        assert spec.budget is not None
        parts = [share_of(spec.budget, shard, shards) for shard in range(shards)]
        engines = [spec.with_budget(part).build(seed=seed + shard) for shard, part in enumerate(parts)]
        split = BudgetSplit.new(shards)
        hashes = spread(batch.key)
        owner = shard_of(hashes, shards)
        self.moves = 0
        self.peak = 0
        for start in range(0, len(batch), each):
            rows = np.arange(start, min(start + each, len(batch)))
            clocks = [_newest(batch, rows, stream) for stream in (0, 1)]
            if adaptive and shards > 1:
                before = split.parts
                split = split.follow(list(_told(batch, owner, rows, shards)), clocks, spec)
                self.moves += before not in ((), split.parts)
                for shard, engine in enumerate(engines):
                    if engine.budget != split.part(shard):
                        engine.set_budget(split.part(shard))
            for shard, engine in enumerate(engines):
                mine = batch.take(rows[owner[rows] == shard])
                for _ in engine.chunks(mine, limit=LIMIT, clocks=clocks, emit=False):
                    pass
            self.peak = max(self.peak, sum(sum(engine.used) for engine in engines))
        self.matches = sum(engine.counters["results"] for engine in engines)
        self.evicted = sum(engine.counters["evicted"] for engine in engines)


def _newest(batch: sj.Batch, rows: NDArray[np.int64], stream: int) -> int | None:
    ts = batch.ts[rows][batch.stream[rows] == stream]
    return int(ts.max()) if ts.size else None


def _told(batch: sj.Batch, owner: NDArray[np.int64], rows: NDArray[np.int64], shards: int) -> Iterator[list[Counts]]:
    for stream in (0, 1):
        mine = rows[batch.stream[rows] == stream]
        tasks = []
        for some in np.array_split(mine, TASKS):
            counter = Counter(shards)
            counter.add(owner[some], [0], batch.ts[some], batch.key[some], batch.bytes[some])
            tasks.append(counter.counts())
        yield tasks


def results(spec: sj.JoinSpec, batch: sj.Batch) -> int:
    """How many there are when nothing is shed."""
    engine = sj.JoinSpec(spec.window).build()
    for _ in engine.chunks(batch, limit=LIMIT, emit=False):
        pass
    return engine.counters["results"]


def streams(rows: int, domain: int, ranks: str, seed: int) -> sj.Batch:
    """Zipf 1."""
    made = zipf(rows, seed=seed, domain=domain, skew=1.0, ranks=ranks)
    return sj.Batch.of(made.left, made.right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="of each stream")
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=10_000, help="rows of a micro-batch, of both streams")
    parser.add_argument("--seeds", type=int, default=3, help="runs of which the mean is told")
    given = parser.parse_args()
    policies: tuple[sj.Policy, ...] = (sj.Prob(), sj.Life(), sj.Rand())
    counts = (1, 2, 4, 8)
    print(
        f"| keys | memory | policy | {' | '.join(f'{count}' for count in counts)} | 8 to 1 | 8, equal | 8 to 1 | moves |"
    )
    print("| --- | --- | --- |" + " ---: |" * (len(counts) + 4))
    for ranks in ("correlated", "uncorrelated"):
        batches = [streams(given.rows, given.keys, ranks, seed) for seed in range(given.seeds)]
        whole = sum(results(sj.JoinSpec(sj.TimeWindow(given.window)), batch) for batch in batches)
        for part, policy, allocation in product((4, 2), policies, ("fixed", "variable")):
            budget = sj.Budget(tuples=2 * given.window // part, allocation=allocation)
            spec = sj.JoinSpec(sj.TimeWindow(given.window), budget, policy)
            runs = {
                (count, adaptive): [
                    Run(spec, batch, count, given.batch, adaptive=adaptive, seed=1000 * seed)
                    for seed, batch in enumerate(batches)
                ]
                for count, adaptive in (*((count, True) for count in counts), (8, False))
            }
            recall = {case: sum(run.matches for run in some) / whole for case, some in runs.items()}
            row = [f"{recall[count, True]:.3f}" for count in counts]
            row += [f"{recall[8, True] / recall[1, True]:.3f}", f"{recall[8, False]:.3f}"]
            row += [f"{recall[8, False] / recall[1, True]:.3f}", f"{np.mean([run.moves for run in runs[8, True]]):.0f}"]
            name = f"{policy.name.upper()}, {allocation}"
            print(f"| {ranks} | 1/{part} | {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
