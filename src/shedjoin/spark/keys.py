"""What the join looks at, as columns: a hash of the keys, the time, the importance; and which columns the result has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SIDES = ("left", "right")
KEY, TS, IMPORTANCE = "_sj_key", "_sj_ts", "_sj_imp"
#: Types that hold whole numbers, by their names in Spark's schemas.
WHOLE = ("byte", "short", "integer", "long")


@dataclass(frozen=True, slots=True)
class OutColumn:
    """A column of the result: its name, and which column of which side it is."""

    name: str
    side: int
    source: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The key columns of each side, one pair a key."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, on: Any, left: DataFrame, right: DataFrame) -> Keys:
        """From what a user gives: a name, a pair of names (left, right), or a list of names and pairs."""
        parts = on if isinstance(on, list) else [on]
        pairs = [(part, part) if isinstance(part, str) else part for part in parts]
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
                raise SpecError(
                    f"on must be a column name, a pair (left name, right name), or a list of these, not {on!r}"
                )
        if not pairs:
            raise SpecError("on must name at least one key column, not an empty list")
        for side, frame in enumerate((left, right)):
            for pair in pairs:
                check_column("on", pair[side], frame, side)
        return cls(tuple(pairs))

    def names(self, side: int) -> list[str]:
        return [pair[side] for pair in self.pairs]

    @property
    def shared(self) -> list[str]:
        """Keys of one name on both sides: one column in the result, as in Spark's own joins."""
        return [first for first, second in self.pairs if first == second]


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def check_column(argument: str, name: str, frame: DataFrame, side: int) -> None:
    """A clear word when a side has no such column, or more than one."""
    found = frame.columns.count(name)
    if found != 1:
        what = "no column" if found == 0 else f"{found} columns named"
        raise SpecError(f"{argument}: {SIDES[side]} has {what} {name!r}; it has {', '.join(frame.columns)}")


def sides_of(argument: str, value: Any) -> tuple[Any, Any]:
    """One value for both sides, or a pair."""
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise SpecError(f"{argument} must be one for both sides, or a pair (left, right), not {value!r}")
        return value[0], value[1]
    return value, value


def _type_name(frame: DataFrame, name: str) -> str:
    return str(frame.schema[name].dataType.typeName())


def time_kind(left: DataFrame, right: DataFrame, names: tuple[str, str]) -> str:
    """Whether times are timestamps ("time") or plain whole numbers ("number")."""
    kinds = []
    for side, (frame, name) in enumerate(zip((left, right), names, strict=True)):
        if not isinstance(name, str):
            raise SpecError(f"time must be a column name, or a pair of them (left, right), not {name!r}")
        check_column("time", name, frame, side)
        kind = _type_name(frame, name)
        if kind not in ("timestamp", "timestamp_ntz", *WHOLE):
            raise SpecError(
                f"time: {SIDES[side]}.{name} is of type {kind}: it must be a timestamp or a whole number, so cast it first"
            )
        kinds.append("number" if kind in WHOLE else kind)
    if kinds[0] != kinds[1]:
        raise SpecError(
            f"time: left.{names[0]} is a {kinds[0]} and right.{names[1]} a {kinds[1]}: both must be of one kind, so cast one"
        )
    return "number" if kinds[0] == "number" else "time"


def common_types(left: DataFrame, right: DataFrame, keys: Keys) -> list[str]:
    """The type in which the two sides of each key are compared, as Spark itself widens them."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructField, StructType

    types = []
    for first, second in keys.pairs:
        mine, theirs = left.schema[first].dataType, right.schema[second].dataType
        if mine != theirs and ("string" in (mine.typeName(), theirs.typeName())):
            raise SpecError(
                f"on: left.{first} is {mine.simpleString()} and right.{second} is {theirs.simpleString()}: "
                "text and other types are not compared, so cast one of them"
            )
        for name, kind in (("left." + first, mine), ("right." + second, theirs)):
            if "map<" in kind.simpleString() or kind.typeName() in ("variant", "void"):
                raise SpecError(f"on: {name} is of type {kind.simpleString()}, which Spark cannot compare")
            if "collate" in kind.simpleString():
                raise SpecError(
                    f"on: {name} is {kind.simpleString()}: keys are hashed by their bytes, so bring them to one spelling first, "
                    "such as lower(...), without a collation"
                )
        if mine == theirs:
            types.append(mine.simpleString())
            continue
        fields = StructType([StructField("a", mine), StructField("b", theirs)])
        nothing = left.sparkSession.createDataFrame([], fields)
        try:
            types.append(nothing.select(fn.coalesce("a", "b").alias("c")).schema["c"].dataType.simpleString())
        except Exception as reason:
            raise SpecError(
                f"on: left.{first} ({mine.simpleString()}) and right.{second} ({theirs.simpleString()}) cannot be compared: "
                "cast one of them"
            ) from reason
    return types


def key_hash(frame: DataFrame, names: Sequence[str], types: Sequence[str]) -> Column:
    """64 bits of the key; null if any part is. Spark's hash makes no difference between 0.0 and -0.0, nor between NaNs."""
    from pyspark.sql import functions as fn

    parts = []
    for name, kind in zip(names, types, strict=True):
        column = fn.col(quoted(name))
        mine = frame.schema[name].dataType
        if mine.simpleString() != kind:
            column = column.cast(kind)
        parts.append(column)
    some_null = parts[0].isNull()
    for part in parts[1:]:
        some_null = some_null | part.isNull()
    return fn.when(~some_null, fn.xxhash64(*parts))


def out_columns(
    left: DataFrame, right: DataFrame, keys: Keys, select: Any, suffixes: tuple[str, str] | None
) -> list[OutColumn]:
    """The columns of the result, in order."""
    everything = _all_columns(left, right, keys, suffixes)
    if select is None:
        clashes = [name for name, count in Counter(column.name for column in everything).items() if count > 1]
        if clashes:
            raise SpecError(
                f"both sides have a column {clashes[0]!r}: choose with select=[...] ('left.{clashes[0]}', 'right.{clashes[0]}', "
                "or a dict from new names to these), or tell them apart with suffixes=('_left', '_right'), or rename one"
            )
        return everything
    wanted = _wanted(select)
    columns = [_resolve(name, source, left, right, everything) for name, source in wanted]
    twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if twice:
        raise SpecError(f"select would give two columns {twice[0]!r}: use a dict from new names to columns")
    return columns


def _all_columns(left: DataFrame, right: DataFrame, keys: Keys, suffixes: Any) -> list[OutColumn]:
    """As Spark's joins: shared keys once and first, then what else is left's, then right's."""
    if suffixes is not None and not (
        isinstance(suffixes, tuple) and len(suffixes) == 2 and all(isinstance(one, str) for one in suffixes)
    ):
        raise SpecError(f"suffixes must be a pair of texts such as ('_left', '_right'), not {suffixes!r}")
    shared = keys.shared
    rest = [[name for name in frame.columns if name not in shared] for frame in (left, right)]
    both = set(rest[0]) & set(rest[1])
    columns = [OutColumn(name, 0, name) for name in shared]
    for side in (0, 1):
        for name in rest[side]:
            ending = suffixes[side] if suffixes is not None and name in both else ""
            columns.append(OutColumn(name + ending, side, name))
    return columns


def _wanted(select: Any) -> list[tuple[str | None, str]]:
    if isinstance(select, Mapping):
        wanted = list(select.items())
    elif isinstance(select, list | tuple):
        wanted = [(None, source) for source in select]
    else:
        wanted = []
    if not wanted or not all(isinstance(source, str) and isinstance(name, str | None) for name, source in wanted):
        raise SpecError(
            f"select must be a list of column names, or a dict from new names to column names, not {select!r}"
        )
    return wanted


def _resolve(
    name: str | None, source: str, left: DataFrame, right: DataFrame, everything: Sequence[OutColumn]
) -> OutColumn:
    found = [column for column in everything if column.name == source]
    if len(found) == 1:
        return OutColumn(name or source, found[0].side, found[0].source)
    for side, frame in enumerate((left, right)):
        prefix = SIDES[side] + "."
        if source.startswith(prefix) and frame.columns.count(source.removeprefix(prefix)) == 1:
            return OutColumn(name or source.removeprefix(prefix), side, source.removeprefix(prefix))
    if found:
        raise SpecError(f"select: both sides have a column {source!r}: say 'left.{source}' or 'right.{source}'")
    raise SpecError(
        f"select: there is no column {source!r}; left has {', '.join(left.columns)}, right has {', '.join(right.columns)}"
    )
