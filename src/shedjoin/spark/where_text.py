"""The text of `where`: parsed by sqlglot, its columns found in the streams, and refused where a join cannot decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from shedjoin.errors import SpecError
from shedjoin.spark.keys import quoted

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


#: What a column is called in the condition: its place in `Clause.columns`.
COLUMN = "_sj_c{}"
#: Functions that may give something else when they are asked again.
_UNSTABLE = {
    *("rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name"),
    *("current_timestamp", "now", "current_date", "curdate", "localtimestamp", "current_time", "unix_timestamp"),
}  # fmt: skip


class Source(NamedTuple):
    """A column of a stream."""

    stream: int
    name: str


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
        bare = [one for one in tree.find_all(exp.Column) if not one.parts[0].name.startswith(own)]
        for one in sorted(bare, key=lambda one: -int(one.parts[0].meta.get("start", -1))):
            first = one.parts[0]
            name = first.name
            if not isinstance(first.meta.get("start"), int):
                raise SpecError(f"where: say of which stream {name!r} is, such as {self.names[0]}.{name}")
            column = self.column(self._stream_of(name, is_prefix=len(one.parts) > 1), name)
            sql = sql[: first.meta["start"]] + column + sql[first.meta["end"] + 1 :]
        return sql

    def _stream_of(self, name: str, *, is_prefix: bool) -> int:
        """The stream that has a column. `is_prefix`: something follows, as a column does the name of a stream."""
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
        if is_prefix:
            raise SpecError(
                f"where: there is no stream or column {name!r}; the streams are {' and '.join(self.names)}, and {there}"
            )
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
        raise SpecError("where has a subquery, which cannot be evaluated for each pair: join with that table as well")
    if tree.find(exp.Window) is not None:
        raise SpecError(
            "where has a window function, but it looks at one row of each stream: compute it before the join"
        )
    if (found := tree.find(exp.AggFunc)) is not None:
        raise SpecError(
            f"where has the aggregate {found.sql_name().lower()}, but it looks at one row of each stream: aggregate beforehand, "
            "or what comes of the join"
        )
    for one in tree.find_all(exp.Func):
        if (name := one.name if isinstance(one, exp.Anonymous) else one.sql_name()).lower() in _UNSTABLE:
            raise SpecError(
                f"where calls {name.lower()}, whose value may differ when a batch is repeated or refined: make it a column "
                "of an input"
            )
