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


class Shedder:
    """A join of n streams within a budget, step by step, with scans for everything."""

    def __init__(self, spec: sj.MultiJoinSpec, parts: list[dict[int, str]]) -> None:
        self.spec, self.parts = spec, parts
        self.many = len(spec.names)
        self.windows = list(spec.windows.values())
        self.clock: list[int | None] = [None] * self.many
        self.arrived = [0] * self.many
        self.arrivals = 0
        self.instants = 0
        self.stored: list[Came] = []
        self.seen: list[tuple[Came, int]] = []  # rows that the estimator saw, with their stamps
        self.fixed: dict[int, float] = {}
        self.results: Counter[Result] = Counter()
        self.shed: list[tuple[int, int]] = []

    def effective(self) -> list[int | None]:
        known = [clock for clock in self.clock if clock is not None]
        if not known or self.spec.max_skew is None:
            return list(self.clock)
        floor = max(known) - self.spec.max_skew
        return [floor if clock is None else max(clock, floor) for clock in self.clock]

    def horizon(self, stream: int) -> int | None:
        others = [clock for number, clock in enumerate(self.effective()) if number != stream]
        return None if None in others else min(others) - self.spec.lateness

    def base(self, stream: int) -> int:
        if isinstance(self.windows[stream], sj.RowWindow):
            return self.arrived[stream]
        line = self.horizon(stream)
        return self.clock[stream] if line is None else line

    def end(self, x: Came) -> int:
        window = self.windows[x.row.stream]
        return x.seq + window.rows + 1 if isinstance(window, sj.RowWindow) else x.row.ts + window.length

    def expire(self) -> None:
        def over(x: Came) -> bool:
            window = self.windows[x.row.stream]
            if isinstance(window, sj.RowWindow):
                return x.seq < self.arrived[x.row.stream] - window.rows
            line = self.horizon(x.row.stream)
            return line is not None and x.row.ts + window.length <= line

        self.stored = [x for x in self.stored if not over(x)]

    def weight(self, stream: int, column: str, value: int) -> float:
        estimator = self.spec.policy.estimator
        if isinstance(estimator, sj.Table):
            table = [estimator.left, estimator.right, *estimator.more][stream]
            return table.get(value, 0.0)
        if isinstance(estimator, sj.InMemory):
            rows = [x for x in self.stored if x.row.stream == stream]
        else:
            rows = [x for x, stamp in self.seen if x.row.stream == stream and self._counts(x, stamp)]
        return float(sum(x.row.values[column] == value for x in rows))

    def _counts(self, x: Came, stamp: int) -> bool:
        if isinstance(self.spec.policy.estimator, sj.History):
            return True
        window = self.windows[x.row.stream]
        if isinstance(window, sj.RowWindow):
            return x.seq >= self.arrived[x.row.stream] - window.rows
        return self.clock[x.row.stream] < stamp + window.length

    def matches(self, x: Came) -> float:
        product = 1.0
        for part in self.parts:
            if x.row.stream in part:
                for other, column in sorted(part.items()):
                    if other != x.row.stream:
                        product *= self.weight(other, column, x.row.values[part[x.row.stream]])
        return product

    def priority(self, x: Came) -> tuple[float, float]:
        """(priority, rank)."""
        policy, worth = self.spec.policy, x.row.importance
        if isinstance(policy, sj.Prob):
            return self.matches(x), 0.0
        if isinstance(policy, sj.Life):
            return self.matches(x) * (self.end(x) - self.base(x.row.stream)), float(self.end(x))
        if isinstance(policy, sj.DimpProb):
            return worth * self.matches(x), worth
        return self.fixed[x.arrival], worth

    def lowest(self, streams: Sequence[int]) -> Came:
        offers = []
        for stream in streams:
            mine = [(*self.priority(x), x.arrival, x) for x in self.stored if x.row.stream == stream]
            if mine:
                offers.append(min(mine, key=lambda offer: offer[:3]))
        return min(offers, key=lambda offer: (offer[0], offer[2]))[3]

    def push(self, rows: Sequence[NRow]) -> None:
        for instant in canonical(rows):
            self.instant(instant)

    def instant(self, rows: list[NRow]) -> None:
        oldest = [None if clock is None else clock - self.spec.lateness for clock in self.effective()]
        came = []
        for row in rows:
            late = oldest[row.stream] is not None and row.ts < oldest[row.stream]
            came.append(Came(row, self.arrived[row.stream], self.arrivals, self.instants, late))
            self.arrived[row.stream] += 1
            self.arrivals += 1
            if not late:
                own = self.clock[row.stream]
                self.clock[row.stream] = row.ts if own is None else max(own, row.ts)
        self.expire()
        self.shed += [(x.row.stream, x.seq) for x in came if x.late]
        fresh = [x for x in came if usable(self.spec, x)]
        open_rows = [[0] * self.many] * (self.instants + 1)  # what is stored is within its row window
        for x in fresh:
            sides = [[y for y in self.stored if y.row.stream == s] for s in range(self.many)]
            sides[x.row.stream] = [x]
            for chosen in combinations(self.spec, sides, open_rows):
                self.results[tuple(one.seq for one in chosen)] += 1
            self.stored.append(x)
        self.seen += [(x, self.clock[x.row.stream]) for x in fresh]
        for x in fresh:
            worth = x.row.importance
            simple = isinstance(self.spec.policy, sj.Simp)
            self.fixed[x.arrival] = worth if simple else worth * self.matches(x) if self._weighs() else worth
        self.expire()
        self.compete()
        self.instants += 1

    def _weighs(self) -> bool:
        return self.spec.policy.estimator is not None

    def compete(self) -> None:
        budget = self.spec.budget
        caps = budget.caps(self.many, sj.ROW_BYTES)
        groups = [[s] for s in range(self.many)] if budget.allocation == "fixed" else [list(range(self.many))]
        for group, cap in zip(groups, caps, strict=True):
            while True:
                held = [x for x in self.stored if x.row.stream in group]
                if (len(held) if budget.unit == "tuples" else sum(x.row.bytes for x in held)) <= cap:
                    break
                x = self.lowest(group)
                self.stored.remove(x)
                self.shed.append((x.row.stream, x.seq))
