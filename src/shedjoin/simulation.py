"""Run whole streams through a join. It counts results instead of storing them, so that long runs need little memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST, STREAMS, Batch, TableLike
from shedjoin.engine.output import LeftOutLog, Output, ShedLog
from shedjoin.engine.records import NEVER
from shedjoin.errors import InputError, SpecError
from shedjoin.spec import JoinSpec, check_pair, check_seed, check_warmup

LATE = ("refuse", "log")


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of a simulation.

    Attributes
    ----------
    matches, importance
        Results produced at or after the warm-up, and their summed importance.
    results
        All results, including those of the warm-up.
    shed, left_out
        The shed log, and the log of skipped comparisons.
    peak_tuples
        The most tuples stored between two instants.
    trace
        (ts, stored left, stored right), noted at intervals.
    seconds
        Wall-clock time in the loop.
    batch, seed, warmup
        The input: the interleaved rows, the seed, and the time from which results count.
    orders
        The join orders of three streams and more.
    """

    spec: JoinSpec
    matches: int
    importance: float
    results: int
    shed: ShedLog
    left_out: LeftOutLog
    peak_tuples: int
    counters: dict[str, int]
    trace: NDArray[np.int64]
    seconds: float
    batch: Batch = field(repr=False)
    seed: int
    warmup: int
    orders: dict[str, tuple[str, ...]]

    def output(self) -> Output:
        """The counted results by row numbers, with weights if the policy is `Sample`. Runs again: the same seed gives the same
        output."""
        engine = self.spec.engine(self.seed, warmup=self.warmup)
        return Output.joined([engine.push(self.batch), engine.end()])

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row numbers (left, right) of the counted results; -1 where a row has no partner. Runs again, as `output` does."""
        out = self.output()
        return out.left, out.right


def simulate(
    spec: JoinSpec,
    left: TableLike,
    right: TableLike,
    *,
    warmup: int | None = None,
    seed: int = 0,
    late: str = "refuse",
    trace: int = 0,
) -> Run:
    """Run two whole streams through a join.

    Parameters
    ----------
    spec
        The join.
    left, right
        Arrow tables, DataFrames or dicts of arrays with columns `key`, `ts` (default 0, 1, 2, ...), `importance`
        (default 1), `bytes`.
    warmup
        Leave results produced before this time out of `matches` and `importance`. None: count all.
    seed
        The seed of random policies.
    late
        What to do with rows that lag behind their stream by more than the lateness: ``"refuse"`` (an error, before anything
        runs) or ``"log"`` (they are joined with stored rows, and logged, as in `Engine.push`).
    trace
        Record the number of stored tuples every `trace` instants; 0: never.

    Examples
    --------
    >>> left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    >>> from shedjoin.window import TimeWindow
    >>> simulate(JoinSpec(window=TimeWindow(3)), left, right).matches
    7
    """
    check_pair("simulate", spec)
    if late not in LATE:
        raise SpecError(f"late must be one of {', '.join(LATE)}, not {late!r}")
    check_warmup(warmup)
    if isinstance(trace, bool) or not isinstance(trace, int | np.integer) or not 0 <= trace <= LATEST:
        raise SpecError(f"trace must be 0 (never) or a whole number of instants up to 2**53, not {trace!r}")
    check_seed(seed)
    if left is None and right is None:
        raise InputError("left and right are both None: give at least one stream (an empty table is allowed)")
    batch = Batch.of_streams(
        {"left": left, "right": right}, dict.fromkeys(STREAMS, ("key",)), checked=spec.plan().checked
    )
    if late == "refuse":
        _refuse_late(spec, batch)
    return _run(spec, batch, warmup, seed, int(trace))


#: What `simulate_multi` returns.
MultiRun = Run


def simulate_multi(
    spec: JoinSpec, tables: Mapping[str, TableLike], *, warmup: int | None = None, seed: int = 0
) -> MultiRun:
    """Run n whole streams through a join. Late rows go to the shed log.

    Examples
    --------
    >>> from shedjoin.window import TimeWindow
    >>> spec = JoinSpec({"a": TimeWindow(3), "b": TimeWindow(3), "c": TimeWindow(3)})
    >>> simulate_multi(spec, dict.fromkeys("abc", {"key": [1, 2, 1, 1]})).matches
    16
    """
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    check_warmup(warmup)
    return _run(spec, spec.engine(seed).batch(tables), warmup, seed)


def _run(spec: JoinSpec, batch: Batch, warmup: int | None, seed: int, trace: int = 0) -> Run:
    since = NEVER if warmup is None else int(warmup)
    engine = spec.engine(seed, warmup=since, trace_every=trace, emit=False)
    begin = time.perf_counter()
    out = Output.joined([engine.push(batch), engine.end()])
    seconds = time.perf_counter() - begin
    counters = engine.counters
    return Run(
        spec=spec,
        matches=counters["matches"],
        importance=engine.matched_importance,
        results=counters["results"],
        shed=out.shed,
        left_out=out.left_out,
        peak_tuples=counters["peak_tuples"],
        counters=counters,
        trace=engine.trace,
        seconds=seconds,
        batch=batch,
        seed=seed,
        warmup=since,
        orders=engine.orders,
    )


def _refuse_late(spec: JoinSpec, batch: Batch) -> None:
    for stream, name in enumerate(STREAMS):
        ts: NDArray[Any] = batch.ts[batch.stream == stream]
        lag = np.maximum.accumulate(ts) - ts
        if (lag > spec.lateness).any():
            row = int(np.argmax(lag > spec.lateness))
            raise InputError(
                f"{name}.ts is out of order beyond the lateness of {spec.lateness}: row {row} has {ts[row]}, "
                f"{lag[row]} behind an earlier row. Sort it, raise JoinSpec.lateness, or pass late='log'."
            )
