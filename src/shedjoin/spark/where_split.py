"""A condition split by where it is evaluated; Spark is asked what each piece means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shedjoin.engine.where import MOST_COLUMNS
from shedjoin.errors import SpecError
from shedjoin.spark.keys import NUMBERS, widened
from shedjoin.spark.where_text import COLUMN, Clause, read_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot.expressions import Expr
from shedjoin.spark.where import NUMBER, Operand, Split

#: Types besides those of keys whose values have an order that 64 bits keep.
_ORDERED = {*NUMBERS, "timestamp_ntz", "float", "double"}
#: Text is compared by as many bits of its SHA-256.
TEXT = ("string", "binary")
#: Whole digits that 64 bits hold.
MOST_DIGITS = 18
_COMPARES = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}


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
            said = str(reason).strip().splitlines()[0].split(" SQLSTATE:")[0]
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
