"""Joins of n streams by their names: a `JoinSpec` with a mapping for its windows, under the names of golab2003's lab."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shedjoin.batch import Table
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import NEVER
from shedjoin.errors import SpecError
from shedjoin.spec import JoinSpec, check_warmup
from shedjoin.window import Window


def MultiJoinSpec(windows: Mapping[str, Window], on: str | tuple[str, ...], **settings: Any) -> JoinSpec:  # noqa: N802
    """A join of the streams that `windows` names, in their order: `JoinSpec(window=windows, on=on, ...)`."""
    if not isinstance(windows, Mapping):
        raise SpecError(f"MultiJoinSpec.windows must map 2 to 16 streams to their windows, not {windows!r}")
    return JoinSpec(window=windows, on=on, **settings)


@dataclass(frozen=True, slots=True)
class MultiRun:
    """What came of a simulation: counts after the warm-up, the shed log, the engine's counters."""

    spec: JoinSpec
    matches: int
    importance: float
    results: int
    shed: ShedLog
    peak_tuples: int
    counters: dict[str, int]
    orders: dict[str, tuple[str, ...]]
    seconds: float


def simulate_multi(
    spec: JoinSpec, tables: Mapping[str, Table], *, warmup: int | None = None, seed: int = 0
) -> MultiRun:
    """Run n whole streams through a join and count.

    Examples
    --------
    >>> from shedjoin.window import TimeWindow
    >>> spec = MultiJoinSpec(windows={"a": TimeWindow(3), "b": TimeWindow(3), "c": TimeWindow(3)}, on="key")
    >>> simulate_multi(spec, dict.fromkeys("abc", {"key": [1, 2, 1, 1]})).matches
    16
    """
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    check_warmup(warmup)
    engine = spec.engine(seed, warmup=NEVER if warmup is None else int(warmup), emit=False)
    batch = engine.batch(tables)
    begin = time.perf_counter()
    shed = Output.joined([engine.push(batch), engine.flush()]).shed
    seconds = time.perf_counter() - begin
    counters = engine.counters
    return MultiRun(
        spec=spec,
        matches=counters["matches"],
        importance=engine.matched_importance,
        results=counters["results"],
        shed=shed,
        peak_tuples=counters["peak_tuples"],
        counters=counters,
        orders=engine.orders,
        seconds=seconds,
    )
