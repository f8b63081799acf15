"""The join graph: which attributes of which streams must be equal, and what else must hold between pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shedjoin.errors import SpecError

# Predicates between an attribute of the tuple looked at and one of a tuple that is bound.
EQUAL, LESS, AT_MOST, MORE, AT_LEAST, UNEQUAL, BAND = range(7)
# Tests of conditions alone: farther apart than a band; some, or none, of the bits of a number.
APART, SET, UNSET = range(7, 10)
OPS = {
    "=": EQUAL,
    "==": EQUAL,
    "<": LESS,
    "<=": AT_MOST,
    ">": MORE,
    ">=": AT_LEAST,
    "!=": UNEQUAL,
}
#: The same test, read from the other side.
FLIPPED = {
    EQUAL: EQUAL,
    LESS: MORE,
    AT_MOST: AT_LEAST,
    MORE: LESS,
    AT_LEAST: AT_MOST,
    UNEQUAL: UNEQUAL,
    BAND: BAND,
    APART: APART,
}
_SIMPLE = re.compile(r"^\s*(\w+)\.(\w+)\s*(==|=|<=|>=|!=|<|>)\s*(\w+)\.(\w+)\s*$")
_BAND = re.compile(r"^\s*\|\s*(\w+)\.(\w+)\s*-\s*(\w+)\.(\w+)\s*\|\s*<=\s*(\d+)\s*$")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition between an attribute of one stream and one of another."""

    left: int
    left_attr: int
    op: int
    right: int
    right_attr: int
    band: int = 0

    def seen_from(self, stream: int) -> tuple[int, int, int, int]:
        """(op, own attribute, other stream, other attribute) as a tuple of `stream` sees it."""
        if stream == self.left:
            return self.op, self.left_attr, self.right, self.right_attr
        return FLIPPED[self.op], self.right_attr, self.left, self.left_attr


@dataclass(frozen=True)
class Graph:
    """All predicates of a join.

    Attributes
    ----------
    columns
        For each stream, the names of the attributes that predicates speak of.
    parts
        Sets of attributes that must all be equal: for each, the (first) attribute of each stream in it.
    equalities
        Every pair of attributes that must be equal, those that follow from others included.
    thetas
        The other predicates.
    """

    columns: tuple[tuple[str, ...], ...]
    parts: tuple[dict[int, int], ...]
    equalities: tuple[Predicate, ...]
    thetas: tuple[Predicate, ...]

    def factors(self, stream: int) -> int:
        """How many weights make the matches of a tuple."""
        return sum(len(part) - 1 for part in self.parts if stream in part)

    def equated(self, stream: int) -> tuple[int, ...]:
        """The attributes of a stream that are equated with another's, in order."""
        found = {one.seen_from(stream)[1] for one in self.equalities if stream in (one.left, one.right)}
        return tuple(sorted(found))


def is_predicate(text: object) -> bool:
    """Whether a text reads as a predicate between two streams, not as the name of a column.

    Examples
    --------
    >>> is_predicate("a.x <= b.y"), is_predicate("|a.x - b.x| <= 5"), is_predicate("x=y")
    (True, True, False)
    """
    return isinstance(text, str) and (_SIMPLE.match(text) is not None or _BAND.match(text) is not None)


def parse(on: str | Sequence[str], names: Sequence[str]) -> Graph:
    """The graph of a common attribute (its name) or of predicates such as ``"a.x = b.y"`` or ``"|a.x - b.x| <= 5"``.

    Examples
    --------
    >>> graph = parse(["a.x = b.x", "b.x = c.z", "a.t < c.t"], ["a", "b", "c"])
    >>> graph.columns, len(graph.equalities), graph.parts
    ((('x', 't'), ('x',), ('z', 't')), 3, ({0: 0, 1: 0, 2: 0},))
    """
    if isinstance(on, str) and re.fullmatch(r"\w+", on):
        on = [f"{names[0]}.{on} = {name}.{on}" for name in names[1:]]
    texts = [on] if isinstance(on, str) else list(on)
    columns: list[list[str]] = [[] for _ in names]
    predicates = [_predicate(text, list(names), columns) for text in texts]
    linked = _linked(len(names), predicates)
    if len(linked) != len(names):
        alone = next(name for number, name in enumerate(names) if number not in linked)
        raise SpecError(f"on must link every stream with the others, but no predicate leads to {alone!r}")
    parts = _parts([one for one in predicates if one.op == EQUAL])
    return Graph(
        columns=tuple(map(tuple, columns)),
        parts=tuple(_first_attrs(part) for part in parts),
        equalities=tuple(_closed(parts)),
        thetas=tuple(one for one in predicates if one.op != EQUAL),
    )


def of_columns(left: str, right: str, *, equal: bool) -> Graph:
    """The graph of a predicate between a column of each of two streams."""
    equality = Predicate(0, 0, EQUAL, 1, 0)
    return Graph(
        columns=((left,), (right,)),
        parts=({0: 0, 1: 0},) if equal else (),
        equalities=(equality,) if equal else (),
        thetas=(),
    )


def _predicate(text: object, names: list[str], columns: list[list[str]]) -> Predicate:
    if not isinstance(text, str):
        raise SpecError(f"on must be a column or predicates such as 'a.x = b.x', not {text!r}")
    band, simple = _BAND.match(text), _SIMPLE.match(text)
    if band:
        left, left_attr, right, right_attr, width = band.groups()
        op, within = BAND, int(width)
    elif simple:
        left, left_attr, sign, right, right_attr = simple.groups()
        op, within = OPS[sign], 0
    else:
        raise SpecError(
            f"on cannot read the predicate {text!r}: write 'a.x = b.x' (or < <= > >= !=) or '|a.x - b.x| <= 5'"
        )
    for name in (left, right):
        if name not in names:
            raise SpecError(f"on speaks of a stream {name!r} in {text!r}; the streams are {', '.join(names)}")
    if left == right:
        raise SpecError(f"on compares the stream {left!r} with itself in {text!r}: filter it beforehand")
    if within >= 2**62:
        raise SpecError(f"on has a band of {within} in {text!r}: it must be below 2**62")
    ends = []
    for name, attr in ((left, left_attr), (right, right_attr)):
        known = columns[names.index(name)]
        if attr not in known:
            known.append(attr)
        ends += [names.index(name), known.index(attr)]
    return Predicate(ends[0], ends[1], op, ends[2], ends[3], within)


def _linked(many: int, predicates: list[Predicate]) -> set[int]:
    reached = {0}
    for _ in range(many):
        for one in predicates:
            if one.left in reached or one.right in reached:
                reached |= {one.left, one.right}
    return reached


def _parts(equalities: list[Predicate]) -> list[set[tuple[int, int]]]:
    """Sets of (stream, attribute) that must all be equal."""
    parts: list[set[tuple[int, int]]] = []
    for one in equalities:
        ends = {(one.left, one.left_attr), (one.right, one.right_attr)}
        touching = [part for part in parts if part & ends]
        parts = [part for part in parts if not part & ends]
        parts.append(ends.union(*touching))
    return sorted(parts, key=sorted)


def _first_attrs(part: set[tuple[int, int]]) -> dict[int, int]:
    first: dict[int, int] = {}
    for stream, attr in sorted(part):
        first.setdefault(stream, attr)
    return first


def _closed(parts: list[set[tuple[int, int]]]) -> list[Predicate]:
    return [
        Predicate(stream, attr, EQUAL, other, other_attr)
        for part in parts
        for stream, attr in sorted(part)
        for other, other_attr in sorted(part)
        if stream < other
    ]
