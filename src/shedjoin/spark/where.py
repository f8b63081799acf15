"""The argument `where`: an SQL condition over the columns of all streams, split by where it is evaluated.

- A conjunct over one stream is evaluated by Spark on its rows, before they are packed. A row for which it is not true meets
  nothing, as one with a null key.
- Comparisons of one stream with another, and formulas of them, are decided in the workers, on pairs of rows. Spark evaluates both
  sides of a comparison, and conditions on one stream inside a formula; the engine gets them as numbers (see `engine/where.py`).
- What is left, such as a function of both streams, is a filter behind the join.

sqlglot parses the text; Spark says what it means. Of each piece Spark is asked whether it still means the same, so that a
parser which reads something else than Spark changes no result: then the whole condition goes behind the join.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from shedjoin.batch import Checked
from shedjoin.engine.where import MOST_COLUMNS, parse_where
from shedjoin.errors import SpecError
from shedjoin.spark.keys import NUMBERS, quoted, widened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from sqlglot.expressions import Expr

#: What a column is called in the condition: its place in `Clause.columns`.
COLUMN = "_sj_c{}"
#: The field of a packed row that has what is compared, and of one number of it.
WHERE, NUMBER = "where", "w{}"
#: Types besides those of keys whose values have an order that 64 bits keep.
_ORDERED = {*NUMBERS, "timestamp_ntz", "float", "double"}
#: Text is compared by as many bits of its SHA-256.
TEXT = ("string", "binary")
#: Whole digits that 64 bits hold.
MOST_DIGITS = 18
_COMPARES = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
#: Functions that may give something else when they are asked again.
_UNSTABLE = {
    *("rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name"),
    *("current_timestamp", "now", "current_date", "curdate", "localtimestamp", "current_time", "unix_timestamp"),
}  # fmt: skip


class Source(NamedTuple):
    """A column of a stream."""

    stream: int
    name: str


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


# ---------------------------------------------------------------------------------------------------- reading the text


@dataclass(frozen=True)
class Clause:
    """A condition that is parsed. Its columns have the names of `COLUMN` in `sql`, whatever streams and users call them."""

    text: str
    sql: str
    columns: tuple[Source, ...]
    tree: Expr = field(compare=False, repr=False)

    def streams(self, node: Expr) -> set[int]:
        """The streams of a part."""
        from sqlglot import exp

        return {self.columns[_place(one)].stream for one in node.find_all(exp.Column)}

    def words(self, sql: str, names: Sequence[str]) -> str:
        """A part as its user wrote it, nearly."""
        for place, (stream, name) in reversed(list(enumerate(self.columns))):
            sql = sql.replace(COLUMN.format(place), f"{names[stream]}.{name if name.isidentifier() else quoted(name)}")
        return sql


def _place(column: Any) -> int:
    return int(column.parts[0].name.removeprefix(COLUMN.format("")))


def read_where(text: Any, names: Sequence[str], columns: Sequence[Sequence[str]] | None = None) -> Clause:
    """Parse a condition. Names without a stream are looked up in `columns`, those of each stream; None: these are not known yet.

    Examples
    --------
    >>> clause = read_where("left.bid < right.price AND right.country IN ('DE', 'FR')", ["left", "right"])
    >>> clause.columns[:2]
    (Source(stream=0, name='bid'), Source(stream=1, name='price'))
    """
    if not isinstance(text, str) or not text.strip():
        raise SpecError(f"where must be an SQL condition such as 'left.bid < right.price', not {text!r}")
    reader = _Reader(text, names, columns)
    sql = reader.named()
    tree = _parsed(sql, text)
    _check_tree(tree)
    if columns is not None:
        sql = reader.resolved(sql, tree)
        tree = _parsed(sql, text)
    return Clause(text, sql, tuple(reader.found), tree)


class _Reader:
    """Finds the columns in a text."""

    def __init__(self, text: str, names: Sequence[str], columns: Sequence[Sequence[str]] | None) -> None:
        self.text, self.names, self.columns = text, names, columns
        self.found: list[Source] = []

    def column(self, stream: int, name: str) -> str:
        """What a column is called from now on."""
        if self.columns is not None:
            name = self._there(stream, name)
        source = Source(stream, name)
        if source not in self.found:
            self.found.append(source)
        return COLUMN.format(self.found.index(source))

    def _there(self, stream: int, name: str) -> str:
        assert self.columns is not None
        there = self.columns[stream]
        same = [one for one in there if one == name] or [one for one in there if one.lower() == name.lower()]
        if len(same) != 1:
            what = "no column" if not same else f"{len(same)} columns named"
            raise SpecError(f"where: {self.names[stream]} has {what} {name!r}; it has {', '.join(there)}")
        return same[0]

    def named(self) -> str:
        """The text, in which columns with the name of a stream have names of their own."""
        import sqlglot
        from sqlglot import TokenType
        from sqlglot.errors import TokenError

        try:
            tokens = sqlglot.tokenize(self.text, read="spark")
        except TokenError as reason:
            raise SpecError(f"where cannot be read: {reason}") from None
        lower = [name.lower() for name in self.names]
        made, at = "", 0
        for place, token in enumerate(tokens[:-2]):
            follows = place > 0 and tokens[place - 1].token_type == TokenType.DOT
            if token.text.lower() in lower and tokens[place + 1].token_type == TokenType.DOT and not follows:
                last = tokens[place + 2]
                made += self.text[at : token.start] + self.column(lower.index(token.text.lower()), last.text)
                at = last.end + 1
        return made + self.text[at:]

    def resolved(self, sql: str, tree: Expr) -> str:
        """The text, in which columns without the name of a stream have such names too."""
        from sqlglot import exp

        own = COLUMN.format("")
        bare = [one.parts[0] for one in tree.find_all(exp.Column) if not one.parts[0].name.startswith(own)]
        for first in sorted(bare, key=lambda one: -int(one.meta.get("start", -1))):
            name = first.name
            if not isinstance(first.meta.get("start"), int):
                raise SpecError(f"where: say of which stream {name!r} is, such as {self.names[0]}.{name}")
            column = self.column(self._stream_of(name), name)
            sql = sql[: first.meta["start"]] + column + sql[first.meta["end"] + 1 :]
        return sql

    def _stream_of(self, name: str) -> int:
        assert self.columns is not None
        having = [stream for stream, there in enumerate(self.columns) if name.lower() in map(str.lower, there)]
        if len(having) == 1:
            return having[0]
        if having:
            ways = " or ".join(f"{self.names[stream]}.{name}" for stream in having)
            raise SpecError(
                f"where: {' and '.join(self.names[one] for one in having)} have a column {name!r}: say {ways}"
            )
        there = ", ".join(f"{side} has {', '.join(mine)}" for side, mine in zip(self.names, self.columns, strict=True))
        raise SpecError(f"where: there is no column {name!r}; {there}")


def _parsed(sql: str, text: str) -> Expr:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError

    try:
        trees = sqlglot.parse(sql, read="spark")
    except ParseError as reason:
        near = reason.errors[0].get("highlight") if reason.errors else None
        place = f" at {near!r}" if near else ""
        raise SpecError(f"where cannot be read as SQL{place}: {text!r}") from None
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Alias | exp.Command):
        raise SpecError(f"where must be one SQL condition, not {text!r}")
    return trees[0]


def _check_tree(tree: Expr) -> None:
    """Refuse what no condition of a join has."""
    from sqlglot import exp

    if tree.find(exp.Query) is not None:
        raise SpecError("where has a subquery, which a join cannot ask for each pair: join with that table as well")
    if tree.find(exp.Window) is not None:
        raise SpecError("where has a window function, but it looks at one row of each stream: work it out beforehand")
    if (found := tree.find(exp.AggFunc)) is not None:
        raise SpecError(
            f"where has the aggregate {found.sql_name().lower()}, but it looks at one row of each stream: aggregate beforehand, "
            "or what comes of the join"
        )
    for one in tree.find_all(exp.Func):
        if (name := one.name if isinstance(one, exp.Anonymous) else one.sql_name()).lower() in _UNSTABLE:
            raise SpecError(
                f"where calls {name.lower()}, which may answer otherwise when a batch is repeated or refined: make it a column "
                "of an input"
            )


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


def split_where(text: Any, frames: Sequence[DataFrame], names: Sequence[str]) -> Split | None:
    """Check a condition against its inputs, and split it."""
    if text is None:
        return None
    clause = read_where(text, names, [frame.columns for frame in frames])
    types = [frames[one.stream].schema[one.name].dataType for one in clause.columns]
    spark = Meaning(frames[0], clause, types)
    spark.check()
    found = Splitter(clause, names, spark).split()
    if not spark.same(clause.sql, _sql(clause.tree)):
        why = "Spark reads it in another way than the parser"
        found = Split(clause, ((),) * len(names), behind=((clause.sql, why),), names=tuple(names))
    return replace(found, types=tuple(kind.simpleString() for kind in types))


class Meaning:
    """What Spark says of conditions, on rows that it need not have."""

    def __init__(self, frame: DataFrame, clause: Clause, types: Sequence[Any]) -> None:
        from pyspark.sql.types import StructField, StructType

        fields = [StructField(COLUMN.format(place), kind) for place, kind in enumerate(types)]
        self.frame, self.clause = frame, clause
        self.nothing = frame.sparkSession.createDataFrame([], StructType(fields))

    def check(self) -> None:
        """Refuse what Spark cannot evaluate, or is no condition."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as fn

        try:
            kind = self.kinds(self.clause.sql)[0]
            if kind.simpleString() != "boolean":
                raise SpecError(
                    f"where must be true or false, but {self.clause.text!r} is of type {kind.simpleString()}"
                )
            self.nothing.where(fn.expr(self.clause.sql)).schema  # noqa: B018
        except PySparkException as reason:
            said = str(reason).strip().splitlines()[0]
            for place, (_, name) in reversed(list(enumerate(self.clause.columns))):
                said = said.replace(COLUMN.format(place), name)
            raise SpecError(f"where cannot be evaluated: {said}") from None

    def kinds(self, *sqls: str) -> list[Any]:
        """The types of expressions."""
        from pyspark.sql import functions as fn

        made = self.nothing.select(*(fn.expr(sql).alias(f"e{place}") for place, sql in enumerate(sqls)))
        return [one.dataType for one in made.schema]

    def same(self, one: str, other: str) -> bool:
        """Whether two conditions are the same to Spark."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as fn

        if one == other:
            return True
        try:
            return bool(self.nothing.where(fn.expr(one)).sameSemantics(self.nothing.where(fn.expr(other))))
        except PySparkException:
            return False


class _Opaque(Exception):
    """A part that workers cannot decide, and why."""


class Splitter:
    """Goes through a condition. Without Spark no types are known: then comparisons count as those of numbers."""

    def __init__(self, clause: Clause, names: Sequence[str], spark: Meaning | None = None) -> None:
        self.clause, self.names, self.spark = clause, tuple(names), spark
        self.operands: list[dict[str, Operand]] = [{} for _ in names]
        self.counts = [0] * len(names)

    def split(self) -> Split:
        own: list[list[str]] = [[] for _ in self.names]
        engine, compared, behind = [], [], []
        for node in _conjuncts(self.clause.tree):
            streams, sql = self.clause.streams(node), _sql(node)
            if len(streams) < 2:
                own[min(streams, default=0)].append(sql)
                continue
            kept = [dict(one) for one in self.operands], list(self.counts)
            try:
                engine.append(f"({self.formula(node)})")
                if any(count > MOST_COLUMNS for count in self.counts):
                    raise _Opaque("workers compare that many numbers of a row at most")
                compared.append(sql)
            except _Opaque as reason:
                del engine[len(compared) :]
                self.operands, self.counts = kept
                behind.append((sql, str(reason)))
        return Split(
            self.clause,
            tuple(map(tuple, own)),
            tuple(tuple(one.values()) for one in self.operands),
            " AND ".join(engine) or None,
            tuple(compared),
            tuple(behind),
            self.names,
        )

    def formula(self, node: Expr) -> str:
        """A part as the engine writes it."""
        from sqlglot import exp

        streams = self.clause.streams(node)
        if len(streams) < 2 and not isinstance(node, exp.Boolean | exp.Null):
            return self._flag(node, min(streams, default=0))
        match node:
            case exp.Boolean() | exp.Null():
                return _sql(node)
            case exp.Paren():
                return self.formula(node.this)
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                return f"({self.formula(node.this)} {word} {self.formula(node.expression)})"
            case exp.Not():
                return f"NOT ({self.formula(node.this)})"
            case exp.Between() if not node.args.get("symmetric"):
                low, high = node.args["low"], node.args["high"]
                return f"({self._compared('>=', node.this, low)} AND {self._compared('<=', node.this, high)})"
            case exp.Is() if isinstance(node.expression, exp.Boolean | exp.Null):
                return f"({self.formula(node.this)}) IS {_sql(node.expression)}"
            case exp.NullSafeNEQ():
                return f"NOT ({self._compared('<=>', node.this, node.expression)})"
            case exp.Case() if node.this is None:
                return self._chosen(
                    [(one.this, one.args["true"]) for one in node.args["ifs"]], node.args.get("default")
                )
            case exp.If():
                return self._chosen([(node.this, node.args["true"])], node.args.get("false"))
            case exp.Coalesce():
                return self._first([node.this, *node.expressions])
        if (sign := _COMPARES.get(type(node).__name__)) is not None:
            return self._compared(sign, node.this, node.expression)
        raise _Opaque("workers know no such function of several streams")

    def _chosen(self, cases: Sequence[tuple[Expr, Expr]], otherwise: Expr | None) -> str:
        """CASE WHEN ... as a formula: the first branch whose condition is true."""
        made = "NULL" if otherwise is None else self.formula(otherwise)
        for condition, branch in reversed(cases):
            holds = f"({self.formula(condition)}) IS TRUE"
            made = f"(({holds}) AND ({self.formula(branch)}) OR NOT ({holds}) AND ({made}))"
        return made

    def _first(self, parts: Sequence[Expr]) -> str:
        """COALESCE of conditions: the first that is not null."""
        made = self.formula(parts[-1])
        for part in reversed(parts[:-1]):
            one = self.formula(part)
            made = f"(({one}) IS TRUE OR ({one}) IS NULL AND ({made}))"
        return made

    # ----------------------------------------------------------------------------------------------------------- leaves

    def _flag(self, node: Expr, stream: int) -> str:
        """A condition on one stream."""
        return self._named(stream, _sql(node), 1)[0]

    def _named(self, stream: int, sql: str, numbers: int) -> list[str]:
        """The numbers of an operand, in the engine's words."""
        mine = self.operands[stream]
        if sql not in mine:
            first = self.counts[stream]
            mine[sql] = Operand(tuple(NUMBER.format(first + n) for n in range(numbers)), sql)
            self.counts[stream] += numbers
        return [f"{self.names[stream]}.{name}" for name in mine[sql].numbers]

    def _compared(self, sign: str, left: Expr, right: Expr) -> str:
        streams = [self.clause.streams(one) for one in (left, right)]
        if len(streams[0] | streams[1]) < 2:
            (stream,) = streams[0] | streams[1] or {0}
            return self._named(stream, f"({_sql(left)}) {sign} ({_sql(right)})", 1)[0]
        if len(streams[0]) != 1 or len(streams[1]) != 1:
            raise _Opaque("one side of a comparison is of several streams")
        kind, sqls = self._common(sign, _sql(left), _sql(right))
        if kind in TEXT:
            if sign not in ("=", "!=", "<=>"):
                raise _Opaque(f"workers know no order of {kind}")
            sqls = [f"unhex(sha2({sql}, 256))" for sql in sqls]
        many = 2 if kind in TEXT else 1
        sides = [self._named(min(of), sql, many) for of, sql in zip(streams, sqls, strict=True)]
        pairs = zip(*sides, strict=True)
        if sign == "!=" and many > 1:
            return "NOT (" + " AND ".join(f"{one} = {two}" for one, two in pairs) + ")"
        return "(" + " AND ".join(f"{one} {sign} {two}" for one, two in pairs) + ")"

    def _common(self, sign: str, left: str, right: str) -> tuple[str, list[str]]:
        """The type in which two expressions are compared, and both in it."""
        if self.spark is None:
            return "bigint", [left, right]
        kinds = self.spark.kinds(left, right)
        written = [one.simpleString() for one in kinds]
        if written[0] == written[1]:
            common = written[0]
        else:
            if "string" in written:
                raise _Opaque(f"{written[0]} is compared with {written[1]}")
            try:
                common = widened(self.spark.frame, kinds, [left, right])
            except SpecError:
                raise _Opaque(f"{written[0]} is compared with {written[1]}") from None
        if common not in TEXT and not _fits(common):
            raise _Opaque(f"workers do not compare {common}")
        sqls = [
            sql if kind == common else f"CAST({sql} AS {common})"
            for sql, kind in zip((left, right), written, strict=True)
        ]
        if not all(map(_is_exact, written)) and not self.spark.same(
            f"({left}) {sign} ({right})", f"({sqls[0]}) {sign} ({sqls[1]})"
        ):
            raise _Opaque(f"{written[0]} is compared with {written[1]}")
        return common, sqls


def _is_exact(kind: str) -> bool:
    """Whether values of a type compare as numbers do, however they are cast to a type that holds them all."""
    return kind in ("tinyint", "smallint", "int", "bigint") or kind.startswith("decimal(")


def _fits(kind: str) -> bool:
    """Whether values of a type keep their order as whole numbers of 64 bits.

    Examples
    --------
    >>> _fits("double"), _fits("decimal(18,2)"), _fits("decimal(19,2)"), _fits("string")
    (True, True, False, False)
    """
    if kind.startswith("decimal("):
        return int(kind.removeprefix("decimal(").partition(",")[0]) <= MOST_DIGITS
    return kind in _ORDERED


def _sql(node: Expr) -> str:
    """A part as Spark reads it."""
    return str(node.transform(_as_written).sql(dialect="spark", comments=False))


def _as_written(node: Expr) -> Expr:
    """sqlglot writes NOT ... IS NULL, which is the same, but no longer the same to Spark."""
    from sqlglot import exp

    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        return exp.Is(this=node.this.this, expression=exp.Var(this="NOT NULL"))
    return node


def _conjuncts(node: Expr) -> Iterator[Expr]:
    """What must all be true."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node
