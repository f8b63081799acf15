"""The condition `where`: what must hold between the rows of a result besides their key. SQL's logic, with nulls.

A condition is parsed into a tree. SQL has three truth values, so each part of the tree has two formulas: when it is true, and
when it is false. Both are made of tests that are either true or false: comparisons, and bits that say which columns are null. So
kernels know no nulls: they run a list of tests, each of which says where to go on (`program`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shedjoin.batch import Checked
from shedjoin.engine.graph import (
    APART,
    AT_LEAST,
    AT_MOST,
    BAND,
    EQUAL,
    LESS,
    MORE,
    OPS,
    SET,
    UNEQUAL,
    UNSET,
)
from shedjoin.errors import SpecError

#: The opposite of each test.
OPPOSITE = {
    EQUAL: UNEQUAL,
    LESS: AT_LEAST,
    MORE: AT_MOST,
    BAND: APART,
    SET: UNSET,
    UNEQUAL: EQUAL,
    AT_LEAST: LESS,
    AT_MOST: MORE,
    APART: BAND,
    UNSET: SET,
}
#: Nulls of a stream are bits of one number.
MOST_COLUMNS = 62
#: How deeply a condition may be nested.
MOST_NESTED = 100
#: Where a list of tests ends.
FAILED, PASSED = -1, -2
EVERY_BIT = -1


class Column(NamedTuple):
    """A column of a stream."""

    stream: int
    name: str


# ----------------------------------------------------------------------------------------------- formulas of two values


class Test(NamedTuple):
    """A comparison of two columns, or a look at the bits of one: `number` is a band, or which bits.

    `attr` of a column is its place among those of its stream; -1: the bits that say which of them are null.
    """

    op: int
    left: int
    attr: int
    right: int
    other_attr: int
    number: int = 0


class Every(NamedTuple):
    """True if all parts are."""

    parts: tuple[Formula, ...]


class Some(NamedTuple):
    """True if one part is."""

    parts: tuple[Formula, ...]


Formula = Test | Every | Some
TRUE, FALSE = Every(()), Some(())
NULLS = -1


def opposite(formula: Formula) -> Formula:
    """True where a formula is false."""
    match formula:
        case Test():
            return formula._replace(op=OPPOSITE[formula.op])
        case Every(parts):
            return Some(tuple(map(opposite, parts)))
        case Some(parts):
            return Every(tuple(map(opposite, parts)))


def streams_of(formula: Formula) -> set[int]:
    """The streams whose columns are looked at."""
    if isinstance(formula, Test):
        return {formula.left, formula.right}
    return {stream for part in formula.parts for stream in streams_of(part)}


class Jump(NamedTuple):
    """A test, and where to go on if it holds and if not."""

    test: Test
    yes: int
    no: int


def program(formulas: Sequence[Formula], tests: list[Jump]) -> int:
    """Add what decides whether all formulas hold to a list of tests; returns where that begins."""
    return _jumps(Every(tuple(formulas)), PASSED, FAILED, tests)


def _jumps(formula: Formula, yes: int, no: int, tests: list[Jump]) -> int:
    """Where to begin so that one arrives at `yes` if a formula holds, else at `no`."""
    match formula:
        case Test():
            tests.append(Jump(formula, yes, no))
            return len(tests) - 1
        case Every(parts):
            for part in reversed(parts):
                yes = _jumps(part, yes, no, tests)
            return yes
        case Some(parts):
            for part in reversed(parts):
                no = _jumps(part, yes, no, tests)
            return no


# -------------------------------------------------------------------------------------------------- the tree of the text


class Node(ABC):
    """A part of a condition: true, false, or null."""

    @abstractmethod
    def when(self, truth: bool, known: Known) -> Formula:
        """When it is true, or when it is false."""

    @abstractmethod
    def columns(self) -> Iterator[Column]:
        """The columns that it speaks of."""


@dataclass(frozen=True)
class Known:
    """The places of columns, and which of them may be null in a row that meets something."""

    places: tuple[tuple[str, ...], ...]
    nullable: frozenset[Column]

    def there(self, *columns: Column) -> tuple[Formula, ...]:
        """True if none of some columns is null."""
        return tuple(
            Test(UNSET, one.stream, NULLS, one.stream, NULLS, 1 << self.place(one))
            for one in dict.fromkeys(columns)
            if one in self.nullable
        )

    def place(self, column: Column) -> int:
        return self.places[column.stream].index(column.name)


@dataclass(frozen=True)
class Compare(Node):
    """A comparison of two columns."""

    op: int
    left: Column
    right: Column
    band: int = 0

    def when(self, truth: bool, known: Known) -> Formula:
        op = self.op if truth else OPPOSITE[self.op]
        (left, right), place = (self.left, self.right), known.place
        test = Test(op, left.stream, place(left), right.stream, place(right), self.band)
        return Every((*known.there(left, right), test))

    def columns(self) -> Iterator[Column]:
        yield from (self.left, self.right)


@dataclass(frozen=True)
class Flag(Node):
    """A column that is true where it is not 0."""

    column: Column

    def when(self, truth: bool, known: Known) -> Formula:
        stream, place = self.column.stream, known.place(self.column)
        test = Test(SET if truth else UNSET, stream, place, stream, place, EVERY_BIT)
        return Every((*known.there(self.column), test))

    def columns(self) -> Iterator[Column]:
        yield self.column


@dataclass(frozen=True)
class Constant(Node):
    """True, false or null."""

    value: bool | None

    def when(self, truth: bool, known: Known) -> Formula:
        return TRUE if self.value is truth else FALSE

    def columns(self) -> Iterator[Column]:
        yield from ()


@dataclass(frozen=True)
class Not(Node):
    part: Node

    def when(self, truth: bool, known: Known) -> Formula:
        return self.part.when(not truth, known)

    def columns(self) -> Iterator[Column]:
        return self.part.columns()


@dataclass(frozen=True)
class Both(Node):
    """All parts, joined by AND; or with `some` by OR."""

    parts: tuple[Node, ...]
    some: bool = False

    def when(self, truth: bool, known: Known) -> Formula:
        made = tuple(part.when(truth, known) for part in self.parts)
        return Every(made) if truth is not self.some else Some(made)

    def columns(self) -> Iterator[Column]:
        for part in self.parts:
            yield from part.columns()


@dataclass(frozen=True)
class Is(Node):
    """IS TRUE, IS FALSE, and with None IS NULL: never null itself."""

    part: Node
    value: bool | None

    def when(self, truth: bool, known: Known) -> Formula:
        if self.value is None:
            found: Formula = Every(tuple(opposite(self.part.when(one, known)) for one in (True, False)))
        else:
            found = self.part.when(self.value, known)
        return found if truth else opposite(found)

    def columns(self) -> Iterator[Column]:
        return self.part.columns()


# ------------------------------------------------------------------------------------------------------ the condition


@dataclass(frozen=True)
class Where:
    """A condition, and the columns of each stream that it looks at.

    Attributes
    ----------
    text
        As it was given.
    conjuncts
        What must all be true.
    columns
        The columns of each stream, in the order in which the text names them.
    strict
        Columns of a comparison, or of a flag, that is a conjunct by itself: a row in which one of them is null meets nothing.
    """

    text: str
    conjuncts: tuple[Node, ...]
    columns: tuple[tuple[str, ...], ...]
    strict: frozenset[Column] = field(default_factory=frozenset)

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        """When the conjuncts are true."""
        every = {Column(stream, name) for stream, names in enumerate(self.columns) for name in names}
        known = Known(self.columns, frozenset(every - self.strict))
        return tuple(one.when(True, known) for one in self.conjuncts)

    @property
    def width(self) -> int:
        """How many numbers of a row are kept for it."""
        return max(len(names) + self.has_nulls(stream) for stream, names in enumerate(self.columns))

    def has_nulls(self, stream: int) -> bool:
        """Whether a number of the stream's rows says which columns are null."""
        return any((stream, name) not in self.strict for name in self.columns[stream])

    def checked(self, first: int) -> tuple[Checked, ...]:
        """How rows of each stream are read, if this many attributes come before."""
        return tuple(
            Checked(
                names,
                tuple((stream, name) in self.strict for name in names),
                first,
                first + self.width,
                self.has_nulls(stream),
            )
            for stream, names in enumerate(self.columns)
        )

    def attribute(self, stream: int, attr: int) -> int:
        """The place of a number among those that are kept for the condition."""
        return len(self.columns[stream]) if attr == NULLS else attr


def parse_where(text: object, names: Sequence[str]) -> Where:
    """A condition such as ``"a.x < b.y AND (a.flag OR NOT |a.z - b.z| <= 5)"`` over columns of whole numbers.

    Examples
    --------
    >>> parse_where("a.x < b.y and (a.z or b.y != a.w)", ["a", "b"]).columns
    (('x', 'z', 'w'), ('y',))
    """
    if not isinstance(text, str) or not text.strip():
        raise SpecError(f"where must be a condition such as 'left.x < right.y', not {text!r}")
    root = _Parser(text, list(names)).whole()
    conjuncts = tuple(_conjuncts(root))
    strict = {column for one in conjuncts if isinstance(one, Compare | Flag) for column in one.columns()}
    columns: list[list[str]] = [[] for _ in names]
    for column in root.columns():
        if column.name not in columns[column.stream]:
            columns[column.stream].append(column.name)
    for name, mine in zip(names, columns, strict=True):
        if len(mine) > MOST_COLUMNS:
            raise SpecError(
                f"where looks at {len(mine)} columns of {name}: it may look at {MOST_COLUMNS} of each stream"
            )
    return Where(text, conjuncts, tuple(map(tuple, columns)), frozenset(strict))


def _conjuncts(node: Node) -> Iterator[Node]:
    if isinstance(node, Both) and not node.some:
        for part in node.parts:
            yield from _conjuncts(part)
    else:
        yield node


_TOKEN = re.compile(r"\s*(?:(\w+)\s*\.\s*(\w+)|(\w+)|(<=>|<=|>=|==|!=|<>|[=<>()|-]))")
_SIGNS = {**OPS, "<>": UNEQUAL}
_VALUES = {"TRUE": True, "FALSE": False, "NULL": None, "UNKNOWN": None}


class _Token(NamedTuple):
    """A column, a word (in capitals), or a sign; and where it begins."""

    column: tuple[str, str] | None
    word: str
    at: int


class _Parser:
    """A parser by descent: OR, AND, NOT, IS, comparisons."""

    def __init__(self, text: str, names: list[str]) -> None:
        self.text, self.names = text, names
        self.tokens = list(self._tokens())
        self.at = self.depth = 0

    def _tokens(self) -> Iterator[_Token]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.unreadable(at)
            stream, column, word, sign = found.groups()
            yield _Token((stream, column) if stream else None, (word or sign or "").upper(), found.start())
            at = found.end()

    def unreadable(self, at: int) -> SpecError:
        return SpecError(
            f"where cannot be read from {self.text[at:].strip()[:40]!r} on: write comparisons such as 'a.x < b.y' or "
            "'|a.x - b.y| <= 5', columns that are true or false, AND, OR, NOT, IS NULL, IS TRUE and parentheses"
        )

    def error(self) -> SpecError:
        here = self.tokens[self.at].at if self.at < len(self.tokens) else len(self.text)
        if here >= len(self.text):
            return SpecError(f"where ends too early: {self.text!r}")
        return self.unreadable(here)

    def taken(self, *words: str) -> str | None:
        """The next word, if it is one of these."""
        if self.at < len(self.tokens) and (token := self.tokens[self.at]).column is None and token.word in words:
            self.at += 1
            return token.word
        return None

    def take(self, *words: str) -> str:
        found = self.taken(*words)
        if found is None:
            raise self.error()
        return found

    def whole(self) -> Node:
        made = self.either()
        if self.at < len(self.tokens):
            raise self.error()
        return made

    def either(self) -> Node:
        return self._joined("OR", lambda: self._joined("AND", self.negated))

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.taken(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Both(tuple(parts), some=word == "OR")

    def negated(self) -> Node:
        odd = False
        while self.taken("NOT"):
            odd = not odd
        made = self.asked()
        return Not(made) if odd else made

    def asked(self) -> Node:
        made = self.primary()
        while self.taken("IS"):
            negated = self.taken("NOT") is not None
            made = Is(made, _VALUES[self.take(*_VALUES)])
            made = Not(made) if negated else made
        return made

    def primary(self) -> Node:
        if self.taken("("):
            self.depth += 1
            if self.depth > MOST_NESTED:
                raise SpecError(f"where is nested more than {MOST_NESTED} times")
            made = self.either()
            self.take(")")
            self.depth -= 1
            return made
        if (value := self.taken(*_VALUES)) is not None:
            return Constant(_VALUES[value])
        if self.taken("|"):
            return self._band()
        left = self.column()
        sign = self.taken(*_SIGNS, "<=>")
        if sign is None:
            return Flag(left)
        right = self.column()
        return _same(left, right) if sign == "<=>" else Compare(_SIGNS[sign], left, right)

    def _band(self) -> Node:
        left = self.column()
        self.take("-")
        right = self.column()
        self.take("|")
        self.take("<=")
        number = self.tokens[self.at].word if self.at < len(self.tokens) else ""
        if not number.isdecimal():
            raise self.error()
        self.at += 1
        if int(number) >= 2**62:
            raise SpecError(f"where has a band of {number}: it must be below 2**62")
        return Compare(BAND, left, right, int(number))

    def column(self) -> Column:
        if self.at >= len(self.tokens) or (token := self.tokens[self.at]).column is None:
            raise self.error()
        name, column = token.column
        if name not in self.names:
            raise SpecError(f"where speaks of a stream {name!r}; the streams are {', '.join(self.names)}")
        self.at += 1
        return Column(self.names.index(name), column)


def _same(left: Column, right: Column) -> Node:
    """Equal, or both null: `IS NOT DISTINCT FROM`."""
    equal = Is(Compare(EQUAL, left, right), True)
    null = Both((Is(Flag(left), None), Is(Flag(right), None)))
    return Both((equal, null), some=True)
