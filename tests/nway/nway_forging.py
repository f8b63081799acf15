"""Forged snapshots of n-way joins: one number of an honest one is changed, the checksum is right again.

Run as a program with the JIT off, where a place outside of an array is an error and not a crash. Each forgery must be
refused, or do no harm in what follows.
"""

from __future__ import annotations

import signal
import sys
from random import Random

import numpy as np
from shedjoin.engine.nway.plan import NPlan

import shedjoin as sj
from shedjoin.engine import snapshot
from shedjoin.errors import ShedjoinError

NUMBERS = (-(2**62), -1025, -2, -1, 0, 1, 2, 7, 1023, 1024, 2**31 - 1, 2**53, 2**62)
WINDOWS = {"a": sj.TimeWindow(12), "b": sj.RowWindow(9), "c": sj.TimeWindow(15)}
GRAPH = ("a.x = b.x", "b.y = c.y")
POLICIES: dict[str, dict] = {
    "exact": {},
    "lazy": {"evaluate_every": 4},
    "rand": {"policy": sj.Rand()},
    "simp_prob": {"policy": sj.SimpProb(sj.InMemory())},
    "prob": {"policy": sj.Prob(sj.InWindow())},
    "dimp_prob": {"policy": sj.DimpProb(sj.History())},
    "life": {"policy": sj.Life(sj.CountMin(4, 2))},
    "dgl": {"policy": sj.Dgl(estimator=sj.Decayed(5.0))},
}
#: What follows a forgery may not take for ever.
SECONDS = 20


def spec_of(name: str) -> sj.MultiJoinSpec:
    settings = POLICIES[name]
    budget = sj.Budget(tuples=18, allocation="variable") if "policy" in settings else None
    return sj.MultiJoinSpec(windows=WINDOWS, on=GRAPH, lateness=2, budget=budget, order=tuple("abc"), **settings)


def rows(random: Random, engine: sj.MultiEngine, start: int, size: int) -> sj.MultiBatch:
    lines = range(size)
    return engine.rows(
        {
            "stream": [random.randrange(3) for _ in lines],
            "ts": [start + line // 3 - random.choice((0, 0, 1)) for line in lines],
            "x": [random.randrange(4) for _ in lines],
            "y": [random.randrange(4) for _ in lines],
            "importance": [random.choice((1.0, 2.0)) for _ in lines],
        }
    )


def forge(random: Random, engine: sj.MultiEngine) -> str:
    """Change one number that is in use; returns where."""
    st = engine._state
    names = [name for name in st.record.dtype.names or () if not name.endswith(("_at", "_room"))]
    arrays = [name for name, array in st.arrays.items() if array.size]
    if random.random() < 0.3:
        name = random.choice(names)
        field = st.record[name]
        field.reshape(-1)[random.randrange(min(field.size, 3))] = (
            random.choice(NUMBERS) % 2**63 if name == "random" else random.choice(NUMBERS)
        )
        return name
    name = random.choice(arrays)
    array = st.arrays[name].reshape(-1)
    place = random.randrange(min(array.size, 60))
    column = random.choice(array.dtype.names) if array.dtype.names else None
    target = array[column] if column else array
    value = random.choice(NUMBERS)
    if target.dtype.kind == "i":
        value = int(np.clip(value, np.iinfo(target.dtype).min, np.iinfo(target.dtype).max))
    target[place] = value
    return f"{name}[{place}] {column}"


def main(name: str, count: int) -> None:
    refused = harmless = 0
    spec = spec_of(name)
    random = Random(name)
    honest = spec.build(seed=1)
    honest.push(rows(random, honest, 0, 60))
    saved = honest.snapshot()
    plan: NPlan = spec.plan()
    for _ in range(count):
        engine = spec.resume(saved)
        where = forge(random, engine)
        extra = {"pending": [], "orders": [list(o) for o in engine._orders], "statistics": engine._statistics.saved()}
        forged = snapshot.encode(engine._state, plan.signature(), extra)
        signal.alarm(SECONDS)
        try:
            again = spec.resume(forged)
            again.push(rows(random, again, 21, 24))
            again.flush()
            harmless += 1
        except ShedjoinError:
            refused += 1
        except Exception as reason:
            raise AssertionError(f"{name}: {where} did harm: {reason!r}") from reason
        signal.alarm(0)
    print(name, refused, harmless)


if __name__ == "__main__":
    for policy in POLICIES:
        main(policy, int(sys.argv[1]))
