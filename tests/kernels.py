"""Compile all kernels once, a process for each kind of join, so that tests find them on disk: `python tests/kernels.py`.

What is missing here is compiled while the tests run, by two of them at once; `NUMBA_DEBUG_CACHE=1` shows what that is.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

import shedjoin as sj
from shedjoin.quality import LiveRecall, MultiRecall

FEW = {"key": [1, 2], "ts": [0, 1]}
#: More than any first array has room for.
MANY = 20_000


def rows(count: int) -> dict[str, Any]:
    """Keys that all differ but a few, one after another."""
    return {"key": np.maximum(np.arange(count), 50), "ts": np.arange(count)}


def two_streams() -> None:
    def decayed(half_life: float) -> sj.Additive:
        return sj.Additive(1.0, 1.0, 1.0, "always", sj.Decayed(half_life))

    spec = sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2), decayed(3.0))
    engine, live, batch = spec.build(), LiveRecall(spec), sj.Batch.of(FEW, FEW)
    live.follow(batch, engine.push(batch))
    live.estimate()
    LiveRecall.from_bytes(spec, live.to_bytes())
    spec.resume(engine.snapshot())
    engine.push(batch, clocks=(9, 9))
    engine.set_policy(decayed(5.0))
    sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2), sj.Prob(sj.Table({1: 0.5}, {1: 0.5}))).build()
    for budget, policy in ((None, None), (sj.Budget(tuples=MANY), sj.Life())):
        engine = sj.JoinSpec(sj.TimeWindow(MANY), budget, policy or sj.KeepAll()).build()
        engine.push(sj.Batch.of(rows(MANY), rows(MANY)))


def many_streams() -> None:
    def spec(**settings: Any) -> sj.MultiJoinSpec:
        return sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(MANY)), on="key", **settings)

    small = spec(budget=sj.Budget(tuples=9), policy=sj.Prob(sj.InWindow()))
    engine, live = small.build(), MultiRecall(small)
    batch = engine.batch(dict.fromkeys("abc", FEW))
    live.follow(batch, engine.push(batch))
    live.estimate()
    small.resume(engine.snapshot())
    engine.push(clocks={"a": 5})
    spec(budget=sj.Budget(tuples=9), policy=sj.Prob(sj.Table({1: 0.5}, {1: 0.5}, [{1: 0.5}]))).build()
    spec().build().push(dict.fromkeys("abc", rows(MANY)))


def predicates() -> None:
    window, few = sj.TimeWindow(MANY), {**FEW, "y": [[1], [2]]}
    many = {"ts": np.arange(3000), "key": np.arange(3000), "y": [[place, place + 1] for place in range(3000)]}
    for predicate in (sj.Equal("key"), sj.Overlap("y", at_least=1)):
        engine = sj.PredicateJoin(window, predicate, cpu=sj.Deadline(60.0), selective=sj.Selective(basic=10)).build()
        engine.push(left=few, right=few)
        engine.push(clocks=(3, 3))
        engine.set_fraction(0.5)
        engine.push(left={**many, "ts": many["ts"] + 5})
    dual = sj.DualJoin(sj.RowWindow(2), cpu=sj.VirtualCpu(capacity=1.0, probe=1.0, update=1.0), queue=3, period=5)
    dual.build().push(left=rows(400), right=rows(400))
    joins = [sj.PredicateJoin(window, sj.Equal("key"))] * 2
    sj.SharedQueue(joins, sj.VirtualCpu(capacity=50.0), sj.Queue(tuples=10)).push(left=FEW, right=FEW, flush=True)


KINDS = {kind.__name__: kind for kind in (two_streams, many_streams, predicates)}


def main(names: list[str]) -> int:
    for name in names:
        KINDS[name]()
    if names:
        return 0
    running = [subprocess.Popen([sys.executable, __file__, name]) for name in KINDS]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
