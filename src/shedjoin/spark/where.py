"""The argument `where`: an SQL condition over the columns of all streams, split by where it is evaluated.

- Spark evaluates a conjunct over one stream on its rows, before they are packed. If it is not true, the row joins nothing, like
  a row with a null key.
- Workers evaluate comparisons between streams, and formulas of them, on pairs of rows. Spark evaluates both sides of a
  comparison, and conditions on one stream inside a formula; the engine gets them as numbers (see `engine/where.py`).
- All other conditions, such as a function of both streams, are a filter after the join.

sqlglot parses the text, and Spark defines its meaning. For each piece, Spark checks that the parsed form is equivalent. If it is
not, the whole condition is applied after the join, so a difference between the parsers never changes a result.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from shedjoin.batch import Checked
from shedjoin.engine.where import parse_where
from shedjoin.spark.keys import quoted
from shedjoin.spark.where_text import COLUMN, Clause

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The field of a packed row that has what is compared, and of one number of it.
WHERE, NUMBER = "where", "w{}"


class Filter(NamedTuple):
    """A condition in SQL, and for each column in it (its name there, the stream, the column, its type)."""

    sql: str
    columns: tuple[tuple[str, int, str, str], ...]

    def of(self, stream: int) -> dict[str, str]:
        """The columns of a stream, and their types."""
        return {column: kind for _, one, column, kind in self.columns if one == stream}


def filter_of(plain: Mapping[str, Any] | None) -> Filter | None:
    """The condition that `Split.plain` gave."""
    if plain is None:
        return None
    columns = (
        (COLUMN.format(place), int(stream), str(name), str(kind))
        for place, (stream, name, kind) in enumerate(plain["columns"])
    )
    return Filter(str(plain["sql"]), tuple(columns))


class Operand(NamedTuple):
    """What Spark evaluates on the rows of a stream, and the numbers that it makes."""

    numbers: tuple[str, ...]
    sql: str


# ------------------------------------------------------------------------------------------------------------ the split


@dataclass(frozen=True)
class Split:
    """Which part of a condition is evaluated where.

    Attributes
    ----------
    clause
        The whole of it.
    own
        For each stream, conditions that Spark evaluates on its rows.
    operands
        For each stream, what Spark evaluates for the engine.
    engine
        What is decided in the workers, as `JoinSpec.where` has it.
    behind
        What is a filter behind the join, and why.
    """

    clause: Clause
    own: tuple[tuple[str, ...], ...]
    operands: tuple[tuple[Operand, ...], ...] = ()
    engine: str | None = None
    compared: tuple[str, ...] = ()  # what is decided in the workers, in SQL
    behind: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()  # of the columns

    def plain(self) -> dict[str, Any]:
        """As plain data, for `refine`: the whole condition, and the columns that it names."""
        columns = [[*one, kind] for one, kind in zip(self.clause.columns, self.types, strict=True)]
        return {"sql": self.clause.sql, "columns": columns}

    def needed(self, side: int) -> list[str]:
        """The columns of a stream that the filter behind the join looks at."""
        found = (self.clause.columns[place] for sql, _ in self.behind for place in _places(sql))
        return list(dict.fromkeys(one.name for one in found if one.stream == side))

    def named(self, known: Mapping[tuple[int, str], str]) -> tuple[tuple[str, str], ...]:
        """(column, what conditions call it) of those that are known by something."""
        there = (
            (known.get((stream, name)), COLUMN.format(at)) for at, (stream, name) in enumerate(self.clause.columns)
        )
        return tuple((column, name) for column, name in there if column is not None)

    @cached_property
    def _checked(self) -> tuple[Checked, ...]:
        return () if self.engine is None else parse_where(self.engine, self.names).checked(0)

    def checked(self, side: int) -> Checked | None:
        """How the engine takes the numbers of a stream."""
        return self._checked[side] if self._checked else None

    def with_columns(self, frame: DataFrame, side: int) -> DataFrame:
        """The rows of a stream, with columns as conditions call them."""
        from pyspark.sql import functions as fn

        return frame.withColumns(
            {
                COLUMN.format(place): fn.col(quoted(one.name))
                for place, one in enumerate(self.clause.columns)
                if one.stream == side
            }
        )

    def numbers(self, side: int) -> Column | None:
        """What the engine compares of a row; null of a row that meets nothing."""
        from pyspark.sql import functions as fn

        if self.engine is None or not self.operands[side]:
            return None
        made = fn.struct(*(fn.expr(one.sql).alias(one.numbers[0]) for one in self.operands[side]))
        return fn.when(self._own(side), made) if self.own[side] else made

    def meets(self, side: int, key: Column) -> Column:
        """The key of a row, null if the row meets nothing whatever the others are."""
        from pyspark.sql import functions as fn

        checked, numbers = self.checked(side), self.numbers(side)
        asked = [self._own(side)] if self.own[side] else []
        if checked is not None and numbers is not None:
            strict = {name for name, must in zip(checked.names, checked.strict, strict=True) if must}
            asked += [numbers[one.numbers[0]].isNotNull() for one in self.operands[side] if strict & {*one.numbers}]
        return fn.when(reduce(operator.and_, asked), key) if asked else key

    def _own(self, side: int) -> Column:
        from pyspark.sql import functions as fn

        return reduce(operator.and_, (fn.expr(sql) for sql in self.own[side]))

    def explained(self) -> Iterator[tuple[str, str]]:
        """Where each part is evaluated: (where, what)."""
        for where, some in (
            ("before the join", [sql for mine in self.own for sql in mine]),
            ("in the workers", self.compared),
        ):
            if some:
                each = [f"({sql})" if len(some) > 1 and " OR " in sql else sql for sql in some]
                yield where, self.clause.words(" AND ".join(each), self.names)
        for sql, why in self.behind:
            yield "behind the join", f"{self.clause.words(sql, self.names)} ({why})"


def _places(sql: str) -> list[int]:
    """The columns that a piece of SQL names."""
    return [int(found) for found in re.findall(COLUMN.format(r"(\d+)") + r"\b", sql)]


def filtered(rows: DataFrame, conditions: Sequence[str], columns: Mapping[str, Column]) -> DataFrame:
    """The rows for which conditions are true, whose columns are given by the names that conditions have for them."""
    from pyspark.sql import functions as fn

    if not conditions:
        return rows
    found = rows.withColumns(dict(columns))
    for sql in conditions:
        found = found.where(fn.expr(sql))
    return found.drop(*columns)
