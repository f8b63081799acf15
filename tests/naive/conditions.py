"""Conditions: which tuples go together, by which values estimators count a tuple, and how many partners it can expect."""

from __future__ import annotations

import itertools
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import shedjoin as sj
from naive.arithmetic import added, at_least, product
from naive.rows import Row

T = TypeVar("T")
#: What estimators count: a key, (set of equal attributes, value), an item, a bucket of numbers.
Value = Hashable
#: How much a stream is expected to bring of a value.
Weigh = Callable[[int, Value], float]
#: A value that every row has.
ROWS = "rows"
SIGNS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
MOST_BUCKETS = 64
LARGEST_BUCKET = 2.0**62


class Condition(ABC):
    """What a join asks of its tuples."""

    streams: int = 2
    #: Whether each tuple is a group of its own. Otherwise tuples of a stream with the same values are one.
    alone: bool = False

    def is_null(self, row: Row) -> bool:
        return row.value is None

    @abstractmethod
    def holds(self, x: Row, y: Row) -> bool:
        """Whether two rows go together; x is of the stream with the lower number."""

    def passes(self, rows: Sequence[Row]) -> bool:
        """Whether the rows of a result, one of each stream, fulfil `where`."""
        return True

    @abstractmethod
    def values(self, row: Row) -> list[Value]:
        """The values by which estimators count a row."""

    @abstractmethod
    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        """The partners that a tuple can expect."""

    def factors(self, stream: int) -> int:
        """How many weights are multiplied in the chance of a stream's tuples."""
        return 1

    def speaks_of(self, key: int, value: Value) -> bool:
        """Whether an entry of a `Table` is about a value."""
        return key == value

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        """How many of these rows of another stream an index looks at, and how many lists it looks up."""
        return sum(self.values(row) == self.values(other) for other in others), 1


@dataclass(frozen=True)
class Key(Condition):
    """One key that all streams have."""

    streams: int = 2

    def holds(self, x: Row, y: Row) -> bool:
        return bool(x.value == y.value)

    def values(self, row: Row) -> list[Value]:
        return [row.value]

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        return product(weigh(other, row.value) for other in range(self.streams) if other != row.stream)

    def factors(self, stream: int) -> int:
        return self.streams - 1


class Term(NamedTuple):
    """A predicate between an attribute of one stream and one of another."""

    left: int
    left_column: str
    sign: str
    right: int
    right_column: str
    band: int = 0

    def holds(self, x: Row, y: Row) -> bool:
        of = {x.stream: x.value, y.stream: y.value}
        mine, theirs = of[self.left][self.left_column], of[self.right][self.right_column]
        return abs(mine - theirs) <= self.band if self.sign == "band" else bool(SIGNS[self.sign](mine, theirs))


class Graph(Condition):
    """Predicates between pairs of streams, such as "a.x = b.x", "a.y < c.y" or "|b.z - c.z| <= 5"."""

    def __init__(self, names: Sequence[str], predicates: Sequence[str]) -> None:
        self.streams = len(names)
        self.terms = [_term(text, list(names)) for text in predicates]
        #: The attributes of each stream, in the order in which predicates name them.
        self.columns: list[list[str]] = [[] for _ in names]
        for term in self.terms:
            for stream, column in ((term.left, term.left_column), (term.right, term.right_column)):
                if column not in self.columns[stream]:
                    self.columns[stream].append(column)
        self.parts = self._parts()

    def _parts(self) -> list[dict[int, str]]:
        """Sets of attributes that must all be equal: for each, the first attribute of each stream in it."""
        parts: list[set[tuple[int, int]]] = []
        for term in self.terms:
            if term.sign == "=":
                ends = {
                    (term.left, self.columns[term.left].index(term.left_column)),
                    (term.right, self.columns[term.right].index(term.right_column)),
                }
                ends = ends.union(*(part for part in parts if part & ends))
                parts = [part for part in parts if not part & ends] + [ends]
        return [
            {stream: self.columns[stream][place] for stream, place in sorted(part, reverse=True)}
            for part in sorted(parts, key=sorted)
        ]

    def is_null(self, row: Row) -> bool:
        return any(row.value[column] is None for column in self.columns[row.stream])

    def holds(self, x: Row, y: Row) -> bool:
        return all(term.holds(x, y) for term in self.terms if {term.left, term.right} == {x.stream, y.stream})

    def values(self, row: Row) -> list[Value]:
        return [(n, row.value[part[row.stream]]) for n, part in enumerate(self.parts) if row.stream in part]

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        return product(
            weigh(other, (n, row.value[part[row.stream]]))
            for n, part in enumerate(self.parts)
            if row.stream in part
            for other in sorted(part)
            if other != row.stream
        )

    def factors(self, stream: int) -> int:
        return sum(len(part) - 1 for part in self.parts if stream in part)

    def speaks_of(self, key: int, value: Value) -> bool:
        assert isinstance(value, tuple)
        return bool(key == value[1])

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        for part in self.parts:
            if others and row.stream in part and others[0].stream in part:
                mine, theirs = part[row.stream], part[others[0].stream]
                return sum(row.value[mine] == other.value[theirs] for other in others), 1
        return len(others), 0


def _term(text: str, names: list[str]) -> Term:
    band = re.fullmatch(r"\|\s*(\w+)\.(\w+)\s*-\s*(\w+)\.(\w+)\s*\|\s*<=\s*(\d+)", text.strip())
    if band:
        a, x, b, y, width = band.groups()
        return Term(names.index(a), x, "band", names.index(b), y, int(width))
    left, sign, right = text.split()
    (a, x), (b, y) = left.split("."), right.split(".")
    return Term(names.index(a), x, "=" if sign == "==" else sign, names.index(b), y)


@dataclass(frozen=True)
class OnPredicate(Condition):
    """A predicate on one column of two streams."""

    predicate: sj.Predicate

    def holds(self, x: Row, y: Row) -> bool:
        return fits(self.predicate, x.value, y.value)


class OnValue(OnPredicate):
    """Equal values, or equal sets: tuples of one value are a group, as for keys."""

    def values(self, row: Row) -> list[Value]:
        return [row.value if isinstance(self.predicate, sj.Equal) else frozenset(row.value)]

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        return weigh(1 - row.stream, self.values(row)[0])


class OnBand(OnPredicate):
    """Numbers are counted by buckets as wide as the band, which covers its bucket and half of each neighbour on average."""

    alone = True

    def bucket(self, number: float) -> int:
        assert isinstance(self.predicate, sj.Band)
        place = number / (self.predicate.within or 1.0)
        return math.floor(min(max(place, -LARGEST_BUCKET), LARGEST_BUCKET))

    def values(self, row: Row) -> list[Value]:
        return [self.bucket(row.value)]

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        bucket, other = self.bucket(row.value), 1 - row.stream
        return weigh(other, bucket) + (weigh(other, bucket - 1) + weigh(other, bucket + 1)) / 2

    def speaks_of(self, key: int, value: Value) -> bool:
        return self.bucket(key) == value

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        return sum(abs(self.bucket(row.value) - self.bucket(other.value)) <= 1 for other in others), 3


class Histogram:
    """The numbers of both streams in at most 64 buckets. The width is a power of two, and doubles when one does not fit."""

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf
        #: None while all numbers are the same.
        self.width: float | None = None

    def bucket(self, number: float) -> float:
        return number if self.width is None else math.floor(number / self.width)

    def buckets(self) -> Sequence[float]:
        if self.width is None:
            return [self.low] if self.low <= self.high else []
        return range(math.floor(self.low / self.width), math.floor(self.low / self.width) + MOST_BUCKETS)

    def widen(self, number: float, rename: Callable[[Callable[[Any], Any]], None]) -> None:
        """Make room for a number; `rename` gives what was counted by bucket its new bucket."""
        self.low, self.high = min(self.low, number), max(self.high, number)
        if self.low == self.high:
            return
        if self.width is None:
            self.width = 2.0 ** math.frexp((self.high - self.low) / (MOST_BUCKETS - 1))[1]
            rename(self.bucket)
        while self.high >= (self.buckets()[-1] + 1) * self.width:
            self.width *= 2
            rename(lambda bucket: bucket // 2)


class OnTheta(OnPredicate):
    """A comparison of two numbers: partners lie in the buckets on the right side, and in half of the own one."""

    alone = True

    def values(self, row: Row) -> list[Value]:
        return [row.value]

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        assert isinstance(self.predicate, sj.Theta)
        assert histogram is not None
        sign, offset = self.predicate.operator, self.predicate.offset
        own = histogram.bucket(row.value - offset if row.stream == 0 else row.value + offset)
        above = sign[0] == ("<" if row.stream == 0 else ">")

        def is_right(bucket: float) -> bool:
            return bucket != own if sign == "!=" else bucket > own if above else bucket < own

        other = 1 - row.stream
        whole = added(weigh(other, bucket) for bucket in histogram.buckets() if is_right(bucket))
        return whole + weigh(other, own) / 2

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        return len(others), 0


class OnItems(OnPredicate):
    """Sets that share items. Each tuple is a group of its own: hardly two have the same items."""

    alone = True

    def values(self, row: Row) -> list[Value]:
        return [*sorted(row.value), ROWS]

    def is_inside(self, row: Row) -> bool:
        """Whether partners must have all items of the row."""
        kind = sj.Subset if row.stream == 0 else sj.Superset
        return isinstance(self.predicate, kind)

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        other = 1 - row.stream
        rows = weigh(other, ROWS)
        if rows <= 0.0:
            return 0.0
        share = {item: weigh(other, item) / rows for item in sorted(row.value)}
        match self.predicate:
            case sj.Overlap(at_least=k):
                return rows * at_least(k, added(share.values()))
            case sj.InnerProduct():
                return rows * max(0.0, added(share[item] * row.value[item] for item in share))
        return rows * (product(share.values()) if self.is_inside(row) else added(share.values()))

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        lists = [sum(item in other.value for other in others) for item in row.value]
        if self.is_inside(row):
            return min(lists, default=len(others)), len(lists)
        return sum(lists), len(lists)


def on(predicate: sj.Predicate) -> OnPredicate:
    """The condition of a predicate."""
    kinds: dict[type[sj.Predicate], type[OnPredicate]] = {
        sj.Equal: OnValue,
        sj.SameSet: OnValue,
        sj.Band: OnBand,
        sj.Theta: OnTheta,
    }
    return kinds.get(type(predicate), OnItems)(predicate)


def fits(predicate: sj.Predicate, left: Any, right: Any) -> bool:
    """Whether a pair of values (a number, a value, a set, or a dict of weights) fulfils a predicate."""
    if left is None or right is None:
        return False
    match predicate:
        case sj.Equal():
            return bool(left == right)
        case sj.Band():
            return bool(abs(left - right) <= predicate.within)
        case sj.Theta():
            return bool(SIGNS[predicate.operator](left, right + predicate.offset))
        case sj.SameSet():
            return set(left) == set(right)
        case sj.Subset():
            return set(left) <= set(right)
        case sj.Superset():
            return set(left) >= set(right)
        case sj.Overlap():
            return len(set(left) & set(right)) >= predicate.at_least
        case sj.InnerProduct():
            # In the order of the items, as the engine adds.
            return added(left[item] * right[item] for item in sorted(set(left) & set(right))) >= predicate.at_least
    raise AssertionError(predicate)


def one_of_each(sides: Sequence[Sequence[T]], goes: Callable[[T, T], bool]) -> Iterator[tuple[T, ...]]:
    """All ways to take one of each side so that any two go together."""

    def extended(chosen: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
        if len(chosen) == len(sides):
            yield chosen
            return
        for y in sides[len(chosen)]:
            if all(goes(x, y) for x in chosen):
                yield from extended((*chosen, y))

    return extended(())


def common_column(names: Sequence[str], column: str) -> Graph:
    """A column that must be equal in all streams."""
    return Graph(names, [f"{a}.{column} = {b}.{column}" for a, b in itertools.pairwise(names)])
