"""The slow, obvious twin of n-way joins: every combination of rows is looked at."""

from __future__ import annotations

import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import shedjoin as sj

Result = tuple[int, ...]
SIGNS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}


class NRow(NamedTuple):
    """What arrives: values are by column."""

    stream: int
    ts: int
    values: dict[str, int | None]
    importance: float = 1.0
    bytes: int = sj.ROW_BYTES


@dataclass(eq=False)
class Came:
    """A row with its numbers."""

    row: NRow
    seq: int
    arrival: int
    instant: int
    late: bool = False


def canonical(rows: Sequence[NRow]) -> list[list[NRow]]:
    """The instants of one push."""
    return [sorted(run, key=lambda row: row.stream) for _, run in itertools.groupby(rows, key=lambda row: row.ts)]


def pair_holds(text: str, names: Sequence[str], chosen: Sequence[NRow]) -> bool:
    """A predicate such as "a.x = b.y" on one row of each stream."""
    band = re.match(r"\|(\w+)\.(\w+) - (\w+)\.(\w+)\| <= (\d+)", text)
    if band:
        a, x, b, y, width = band.groups()
        return abs(chosen[names.index(a)].values[x] - chosen[names.index(b)].values[y]) <= int(width)
    left, sign, right = text.split()
    (a, x), (b, y) = left.split("."), right.split(".")
    return SIGNS[sign](chosen[names.index(a)].values[x], chosen[names.index(b)].values[y])


def predicates(spec: sj.MultiJoinSpec) -> list[str]:
    if isinstance(spec.on, str):
        return [f"{a}.{spec.on} = {b}.{spec.on}" for a, b in itertools.pairwise(spec.names)]
    return list(spec.on)


def used_columns(spec: sj.MultiJoinSpec, stream: int) -> set[str]:
    if isinstance(spec.on, str):
        return {spec.on}
    return set(re.findall(rf"\b{spec.names[stream]}\.(\w+)", " ".join(spec.on)))


def numbered(spec: sj.MultiJoinSpec, pushes: Sequence[Sequence[NRow]]) -> tuple[list[Came], list[list[int]]]:
    """All rows with their numbers, and how many of each stream had arrived after each instant."""
    many = len(spec.names)
    clock: list[int | None] = [None] * many
    arrived = [0] * many
    came: list[Came] = []
    after: list[list[int]] = []
    for push in pushes:
        for instant in canonical(push):
            known = [c for c in clock if c is not None]
            floor = max(known) - spec.max_skew if known and spec.max_skew is not None else None
            effective = [c if floor is None else max(floor, c if c is not None else floor) for c in clock]
            for row in instant:
                mine = effective[row.stream]
                late = mine is not None and row.ts < mine - spec.lateness
                came.append(Came(row, arrived[row.stream], len(came), len(after), late))
                arrived[row.stream] += 1
                if not late:
                    own = clock[row.stream]
                    clock[row.stream] = row.ts if own is None else max(own, row.ts)
            after.append(list(arrived))
    return came, after


def usable(spec: sj.MultiJoinSpec, one: Came) -> bool:
    return not one.late and all(one.row.values[c] is not None for c in used_columns(spec, one.row.stream))


def in_windows(spec: sj.MultiJoinSpec, chosen: Sequence[Came], after: list[list[int]]) -> bool:
    """Whether all were in their windows when the last came."""
    newest = max(one.row.ts for one in chosen)
    last = max(chosen, key=lambda one: one.arrival)
    for one, window in zip(chosen, spec.windows.values(), strict=True):
        if isinstance(window, sj.TimeWindow):
            if newest - one.row.ts >= window.length:
                return False
        elif one.instant != last.instant and one.seq < after[last.instant][one.row.stream] - window.rows:
            return False
    return True


def combinations(
    spec: sj.MultiJoinSpec, sides: Sequence[Sequence[Came]], after: list[list[int]]
) -> Iterator[tuple[Came, ...]]:
    """All combinations of one row of each stream that make a result."""
    texts = predicates(spec)
    for chosen in itertools.product(*sides):
        rows = [one.row for one in chosen]
        if all(pair_holds(text, spec.names, rows) for text in texts) and in_windows(spec, chosen, after):
            yield chosen


def exact(spec: sj.MultiJoinSpec, pushes: Sequence[Sequence[NRow]]) -> Counter[Result]:
    """The whole join, as row numbers."""
    came, after = numbered(spec, pushes)
    sides = [[one for one in came if one.row.stream == s and usable(spec, one)] for s in range(len(spec.names))]
    return Counter(tuple(one.seq for one in chosen) for chosen in combinations(spec, sides, after))


def table_of(rows: Sequence[NRow]) -> dict[str, list]:
    columns = sorted({column for row in rows for column in row.values})
    return {
        "stream": [row.stream for row in rows],
        "ts": [row.ts for row in rows],
        "importance": [row.importance for row in rows],
        "bytes": [row.bytes for row in rows],
        **{column: [row.values.get(column) for row in rows] for column in columns},
    }
