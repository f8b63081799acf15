"""Compile all kernels, so that they are on disk before they are needed.

What is missing here is compiled when it is first used; `NUMBA_DEBUG_CACHE=1` shows what that is.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import shedjoin as sj
from shedjoin.engine.jit import cache_folders
from shedjoin.errors import EnvironmentProblem
from shedjoin.recall import LiveRecall, MultiRecall

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
    def spec(**settings: Any) -> sj.JoinSpec:
        return sj.JoinSpec(dict.fromkeys("abc", sj.TimeWindow(MANY)), **settings)

    small = spec(budget=sj.Budget(tuples=9), policy=sj.Prob(sj.InWindow()))
    engine, live = small.build(), MultiRecall(small)
    batch = engine.batch(dict.fromkeys("abc", FEW))
    live.follow(batch, engine.push(batch))
    live.estimate()
    small.resume(engine.snapshot())
    engine.push(clocks={"a": 5})
    spec(budget=sj.Budget(tuples=9), policy=sj.Prob(sj.Table({1: 0.5}, {1: 0.5}, [{1: 0.5}]))).build()
    spec().build().push(dict.fromkeys("abc", rows(MANY)))


def items_and_deadlines() -> None:
    """Kernels that are compiled apart: an engine links them when it is made."""
    ways = sj.Selective(basic=10)
    sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=9), on=sj.Overlap("y", at_least=1), selective=ways).build()
    sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=9), sj.Prospect(), index="scan").build()


def waiting_rows() -> None:
    """As above."""
    sj.JoinSpec(sj.TimeWindow(9), cpu=sj.VirtualCpu(capacity=1.0)).build()


KINDS = {
    "two streams": two_streams,
    "more streams": many_streams,
    "predicates and deadlines": items_and_deadlines,
    "rows that wait": waiting_rows,
}


def warm() -> Iterator[tuple[str, float]]:
    """Compile or load the kernels, a process for each kind of join; gives each kind and its seconds when it is done."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", "import sys; from shedjoin.warm import KINDS; KINDS[sys.argv[1]]()"]
    running = {
        kind: subprocess.Popen([*command, kind], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for kind in KINDS
    }
    try:
        while running:
            for kind, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[kind]
                said = process.communicate()[1].strip()
                if process.returncode:
                    raise EnvironmentProblem(
                        f"kernels ({kind}) cannot be compiled: {said.splitlines()[-1] if said else ''}"
                    )
                yield kind, time.perf_counter() - begin
            time.sleep(0.05)
    finally:
        for process in running.values():
            process.kill()


def kept_in() -> list[str]:
    """The directories where compiled kernels are kept."""
    import shedjoin.engine.engine
    import shedjoin.recall.many  # noqa: F401 - all that have kernels

    return cache_folders()
