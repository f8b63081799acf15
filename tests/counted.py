"""Random rows that are split over several engines by their keys, with their numbers in the whole streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj

NAMES = ("x", "y", "z")
Found = list[tuple[int, ...]]


class Case(NamedTuple):
    """Pushes of rows, and which engine each row goes to."""

    spec: sj.JoinSpec
    pushes: list[sj.Batch]
    owners: list[NDArray[np.int64]]
    engines: int


def spec_of(windows: tuple[Any, ...], **more: Any) -> sj.JoinSpec:
    return sj.JoinSpec(windows if len(windows) == 2 else dict(zip(NAMES, windows, strict=True)), **more)


def drawn(draw: np.random.Generator, windows: tuple[Any, ...], *, in_order: bool, **more: Any) -> Case:
    """Ties of time, nulls, and rows out of order: in order inside a push, so that some come late, or never by more than the
    lateness."""
    streams, engines = len(windows), int(draw.integers(2, 5))
    skew = [None, 4][int(draw.integers(2))] if in_order else None
    lateness = int(draw.integers(0, 4)) if in_order else 30
    spec = spec_of(windows, lateness=lateness, max_skew=skew, **more)
    home = draw.integers(0, engines, 8)
    pushes, owners, clock = [], [], 0
    for _ in range(int(draw.integers(1, 6))):
        size = int(draw.integers(0, 14))
        ts = clock + np.cumsum(draw.integers(0, 3, size)) - draw.choice([0, 0, 0, 1, 5], size)
        clock += int(draw.integers(0, 8))
        ts = np.sort(ts) if in_order else ts
        key = draw.choice([0, 0, 0, 1, 1, 2, 3, 4], size)
        table = {"stream": draw.integers(0, streams, size), "ts": ts}
        table["key"] = [None if one == 4 else int(one) for one in key]
        table["importance"] = draw.choice([1.0, 2.0, 3.0], size)
        columns = dict.fromkeys(spec.names, ("key",))
        pushes.append(sj.Batch.rows(table, columns))
        rows = pushes[-1]
        owners.append(np.where(rows.null, draw.integers(0, engines, size), home[rows.key]))
    return Case(spec, pushes, owners, engines)


def clocks_of(batch: sj.Batch, streams: int) -> list[int | None]:
    """What one shard is told at the end of a push: the newest time of each stream in it."""
    return [int(batch.ts[batch.stream == one].max()) if (batch.stream == one).any() else None for one in range(streams)]


def parts(case: Case) -> Iterator[tuple[list[sj.Batch], list[int | None], list[int]]]:
    """Of each push, the rows of each engine, the clocks that all are told, and the rows that came anywhere."""
    streams = len(case.spec.names)
    start = [0] * streams
    for batch, owner in zip(case.pushes, case.owners, strict=True):
        whole = batch.numbered(start)
        start = [count + int((batch.stream == one).sum()) for one, count in enumerate(start)]
        mine = [whole.take(np.flatnonzero(owner == engine)) for engine in range(case.engines)]
        yield mine, clocks_of(batch, streams), start


def one_engine(case: Case) -> tuple[Found, sj.Engine]:
    engine, found = case.spec.build(seed=3), []
    for batch in case.pushes:
        found += [tuple(row) for row in engine.push(batch).rows.tolist()]
    return sorted(found), engine
