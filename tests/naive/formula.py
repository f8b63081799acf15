"""The condition `where` in three truth values: a tree of tuples, what it says of rows, and its text.

A tree is ("and" | "or", tree, ...), ("not", tree), ("is", tree, value), ("flag", column), (sign, column, column) with the signs
of comparisons and "<=>", ("band", column, column, number), or ("constant", value). A column is (stream, name).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from naive.conditions import SIGNS, Condition, Histogram, Value, Weigh
from naive.rows import Row

Tree = tuple[Any, ...]
Truth = bool | None
COMPARISONS = (*SIGNS, "<=>")
TRUTHS = (True, False, None)


def truth(tree: Tree, rows: Sequence[Row]) -> Truth:
    """True, false or null of one row of each stream."""

    def value(column: tuple[int, str]) -> int | None:
        stream, name = column
        return rows[stream].more[name]  # type: ignore[no-any-return]

    kind, *parts = tree
    match kind:
        case "constant":
            return parts[0]  # type: ignore[no-any-return]
        case "and" | "or":
            found = [truth(part, rows) for part in parts]
            last = kind == "or"
            return last if last in found else None if None in found else not last
        case "not":
            inner = truth(parts[0], rows)
            return None if inner is None else not inner
        case "is":
            return truth(parts[0], rows) is parts[1]
        case "flag":
            flag = value(parts[0])
            return None if flag is None else flag != 0
    left, right = value(parts[0]), value(parts[1])
    if kind == "<=>":
        return left == right
    if left is None or right is None:
        return None
    return abs(left - right) <= parts[2] if kind == "band" else bool(SIGNS[kind](left, right))


def text(tree: Tree, names: Sequence[str]) -> str:
    """As users write it."""

    def column(one: tuple[int, str]) -> str:
        return f"{names[one[0]]}.{one[1]}"

    kind, *parts = tree
    match kind:
        case "constant":
            return {True: "TRUE", False: "FALSE", None: "NULL"}[parts[0]]
        case "and" | "or":
            return f" {kind} ".join(f"({text(part, names)})" for part in parts)
        case "not":
            return f"NOT ({text(parts[0], names)})"
        case "is":
            return f"({text(parts[0], names)}) IS {'NULL' if parts[1] is None else str(parts[1]).upper()}"
        case "flag":
            return column(parts[0])
        case "band":
            return f"|{column(parts[0])} - {column(parts[1])}| <= {parts[2]}"
    return f"{column(parts[0])} {kind} {column(parts[1])}"


def conjuncts(tree: Tree) -> list[Tree]:
    return [one for part in tree[1:] for one in conjuncts(part)] if tree[0] == "and" else [tree]


def draw_tree(random: Random, streams: int, columns: Sequence[str], depth: int = 3) -> Tree:
    """A random condition."""
    kind = random.choice(("and", "and", "or", "or", "not", "is", "leaf", "leaf")) if depth else "leaf"
    if kind in ("and", "or"):
        return (kind, *(draw_tree(random, streams, columns, depth - 1) for _ in range(random.choice((2, 2, 3)))))
    if kind == "not":
        return ("not", draw_tree(random, streams, columns, depth - 1))
    if kind == "is":
        return ("is", draw_tree(random, streams, columns, depth - 1), random.choice(TRUTHS))
    one, other = ((stream, random.choice(columns)) for stream in random.sample(range(streams), 2))
    sign = random.choice((*COMPARISONS, "band", "flag", "flag"))
    if sign == "flag":
        return ("constant", random.choice(TRUTHS)) if random.random() < 0.1 else ("flag", one)
    return ("band", one, other, random.randrange(2)) if sign == "band" else (sign, one, other)


@dataclass(frozen=True)
class Conditional(Condition):
    """A condition, and what else must be true of the rows of a result."""

    inner: Condition
    tree: Tree

    @property
    def streams(self) -> int:  # type: ignore[override]
        return self.inner.streams

    @property
    def alone(self) -> bool:  # type: ignore[override]
        return self.inner.alone

    def is_null(self, row: Row) -> bool:
        """A row also meets nothing if a comparison that is a conjunct by itself has a null in it."""
        alone = [one for one in conjuncts(self.tree) if one[0] == "flag" or one[0] in SIGNS or one[0] == "band"]
        columns = [part for one in alone for part in one[1:] if isinstance(part, tuple)]
        return self.inner.is_null(row) or any(
            row.more[name] is None for stream, name in columns if stream == row.stream
        )

    def holds(self, x: Row, y: Row) -> bool:
        return self.inner.holds(x, y)

    def passes(self, rows: Sequence[Row]) -> bool:
        return truth(self.tree, rows) is True

    def values(self, row: Row) -> list[Value]:
        return self.inner.values(row)

    def chance(self, row: Row, weigh: Weigh, histogram: Histogram | None) -> float:
        return self.inner.chance(row, weigh, histogram)

    def factors(self, stream: int) -> int:
        return self.inner.factors(stream)

    def speaks_of(self, key: int, value: Value) -> bool:
        return self.inner.speaks_of(key, value)

    def looked(self, row: Row, others: Sequence[Row]) -> tuple[int, int]:
        return self.inner.looked(row, others)
