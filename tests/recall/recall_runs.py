"""Runs of an engine for the tests of live recall: its pushes, their output, and the missing results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin import quality
from shedjoin.engine.codes import IMPORTANCE, LATE
from shedjoin.recall.pairs import PairRecall

INTERPRETED = bool(numba.config.DISABLE_JIT)
OUTPUT = {"min": min, "max": max, "sum": float.__add__, "product": float.__mul__, "mean": lambda a, b: (a + b) / 2}

WINDOW = st.one_of(st.builds(sj.TimeWindow, st.integers(1, 9)), st.builds(sj.RowWindow, st.integers(1, 6)))
BUDGET = st.builds(sj.Budget, tuples=st.integers(2, 6), allocation=st.sampled_from(("fixed", "variable")))
SPEC = st.builds(
    sj.JoinSpec,
    window=st.tuples(WINDOW, WINDOW),
    budget=BUDGET,
    policy=st.sampled_from((sj.Rand(), sj.Prob(), sj.Life(), sj.Simp(), sj.DimpProb())),
    importance=st.sampled_from(tuple(IMPORTANCE)),
    lateness=st.sampled_from((0, 0, 2)),
    max_skew=st.sampled_from((None, None, 3)),
)


@st.composite
def rows(draw: Any, most: int) -> list[dict[str, Any]]:
    """Rows in order of arrival: some late, some with null keys, sometimes with one stream ahead of the other."""
    clock, table = [0, draw(st.sampled_from((0, 0, 6)))], []
    for step, lag, stream, key, importance in draw(
        st.lists(
            st.tuples(
                st.integers(0, 2),
                st.sampled_from((0, 0, 0, 1, 2, 6)),
                st.integers(0, 1),
                st.sampled_from((1, 1, 2, 3, None)),
                st.sampled_from((1.0, 2.0, 0.5)),
            ),
            max_size=most,
        )
    ):
        clock[stream] += step
        table.append({"stream": stream, "key": key, "ts": clock[stream] - lag, "importance": importance})
    return table


def batch_of(table: list[dict[str, Any]]) -> sj.Batch:
    names = ("stream", "key", "ts", "importance")
    return sj.Batch.rows({name: [row[name] for row in table] for name in names}) if table else sj.Batch.of()


def cut_at_instants(batch: sj.Batch, cuts: list[int]) -> list[sj.Batch]:
    """Split a batch into parts, at borders of instants only."""
    borders = [i for i in range(1, len(batch)) if batch.ts[i] != batch.ts[i - 1]]
    places = sorted({borders[cut % len(borders)] for cut in cuts}) if borders else []
    return [batch.take(slice(a, b)) for a, b in zip([0, *places], [*places, len(batch)], strict=True)]


@dataclass
class Pushed:
    """All pushes of an engine, with their output."""

    pushes: list[tuple[sj.Batch, sj.Output]] = field(default_factory=list)

    def push(self, engine: sj.Engine, batch: sj.Batch) -> None:
        self.pushes.append((batch, engine.push(batch)))

    def truth(self, spec: sj.JoinSpec) -> tuple[int, float]:
        """What memory for all rows would have found besides, and its importance: nothing that had expired before a late row."""
        log = sj.ShedLog([out.shed.records() for _, out in self.pushes])
        late = sj.ShedLog([log.records()[log.why == LATE]])
        batches = [batch for batch, _ in self.pushes]
        whole = sj.Batch(*(np.concatenate(column) for column in zip(*(b.fields() for b in batches), strict=True)))
        importance = [whole.importance[whole.stream == side] for side in (0, 1)]
        count, total = 0, 0.0
        arrivals = quality.Arrivals.pushed(batches)
        missed, expired = (zip(*quality.missing.missing_rows(one, arrivals, spec), strict=True) for one in (log, late))
        for left, right in set(missed) - set(expired):
            count += 1
            total += OUTPUT[spec.importance](float(importance[0][left]), float(importance[1][right]))
        return count, total


def run(spec: sj.JoinSpec, parts: list[sj.Batch], seed: int = 0) -> Pushed:
    pushed, engine = Pushed(), spec.build(seed=seed)
    for part in parts:
        pushed.push(engine, part)
    return pushed


def followed(pushed: Pushed, spec: sj.JoinSpec, **settings: Any) -> PairRecall:
    live = PairRecall(spec, **settings)
    for batch, out in pushed.pushes:
        live.follow(batch, out)
    return live


BUSY = sj.JoinSpec(window=sj.TimeWindow(300), budget=sj.Budget(tuples=100), policy=sj.Prob())


def zipf(size: int, seed: int, skew: float = 1.0, keys: int = 300) -> sj.Batch:
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, keys + 1) ** -skew
    sides = [
        {"key": rng.choice(keys, size, p=popularity / popularity.sum()), "importance": rng.uniform(1, 10, size)}
        for _ in (0, 1)
    ]
    return sj.Batch.of(*sides)


def run_busy() -> Pushed:
    """Zipf keys within a small budget; long enough that a small sample is thinned out."""
    return run(BUSY, cut_at_instants(zipf(1500 if INTERPRETED else 20_000, seed=5), []))
