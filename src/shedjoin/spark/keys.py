"""The columns that the join needs: a hash of the keys, the time, the importance; and the columns of the result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

SIDES = ("left", "right")
KEY, TS, IMPORTANCE, KIND = "_sj_key", "_sj_ts", "_sj_imp", "_sj_kind"
#: Types that hold whole numbers, by their names in Spark's schemas.
WHOLE = ("byte", "short", "integer", "long")


@dataclass(frozen=True, slots=True)
class OutColumn:
    """A column of the result: its name, its side, and its column there."""

    name: str
    side: int
    source: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The key columns, for each key one name a stream."""

    pairs: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, on: Any, *frames: DataFrame, sides: Sequence[str] = SIDES) -> Keys:
        """From what a user gives, if the streams have these columns."""
        pairs = key_pairs(on, sides)
        _no_predicate(pairs, frames, sides)
        for side, frame in enumerate(frames):
            for pair in pairs:
                check_column("on", pair[side], frame, sides[side])
        return cls(pairs)

    def names(self, side: int) -> list[str]:
        return [pair[side] for pair in self.pairs]

    @property
    def shared(self) -> list[str]:
        """Keys of one name on all sides: one column in the result, as in Spark's own joins."""
        return [pair[0] for pair in self.pairs if len(set(pair)) == 1]

    def repeats(self, side: int, name: str) -> bool:
        """Whether a column is a key that an earlier stream has under the same name: it is in the result already."""
        return any(pair[side] == name and name in pair[:side] for pair in self.pairs)


def key_pairs(on: Any, sides: Sequence[str] = SIDES) -> tuple[tuple[str, ...], ...]:
    """The key columns, from a name, a name for each stream, or a list of these."""
    parts = on if isinstance(on, list) else [on]
    pairs = []
    for part in parts:
        fits = not isinstance(part, list | tuple) or len(part) == len(sides)
        pair = per_stream("on", part, sides) if fits else ()
        if not pair or not all(isinstance(name, str) and name for name in pair):
            names = ", ".join(f"{side} name" for side in sides)
            what = "a pair" if len(sides) == 2 else "a tuple of one name a stream"
            raise SpecError(f"on must be a column name, {what} ({names}), or a list of these, not {on!r}")
        pairs.append(pair)
    if not pairs:
        raise SpecError("on must name at least one key column, not an empty list")
    return tuple(pairs)


_COMPARES = re.compile(r"[=<>|]")


def _no_predicate(pairs: Sequence[tuple[str, ...]], frames: Sequence[DataFrame], sides: Sequence[str]) -> None:
    """A clear word where a name looks like a predicate that cannot be read."""
    for name in {name for pair in pairs for name in pair}:
        if _COMPARES.search(name) and not any(name in frame.columns for frame in frames):
            first, second = sides[:2]
            raise SpecError(
                f"on: {name!r} is neither a column nor a predicate between two of {', '.join(sides)}: write "
                f"'{first}.x = {second}.x' (or < <= > >= !=) or '|{first}.x - {second}.x| <= 5', several as a list, with columns "
                "named by simple words"
            )


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def check_column(argument: str, name: str, frame: DataFrame, side: str) -> None:
    """A clear word when a side has no such column, or more than one."""
    found = frame.columns.count(name)
    if found != 1:
        what = "no column" if found == 0 else f"{found} columns named"
        raise SpecError(f"{argument}: {side} has {what} {name!r}; it has {', '.join(frame.columns)}")


def by_stream(argument: str, value: Any, sides: Sequence[str] = SIDES) -> Any:
    """A dict by the streams' names as a tuple; other values, among them dicts that are windows, as they are."""
    if not isinstance(value, Mapping) or not set(value) & set(sides):
        return value
    unknown = [name for name in value if name not in sides]
    if unknown:
        raise SpecError(f"{argument}: there is no stream {unknown[0]!r}; there are {', '.join(sides)}")
    return tuple(value.get(side) for side in sides)


def per_stream(argument: str, value: Any, sides: Sequence[str] = SIDES) -> tuple[Any, ...]:
    """One value for each stream: from one for all, one each, or a dict by their names."""
    value = by_stream(argument, value, sides)
    if isinstance(value, list | tuple):
        if len(value) != len(sides):
            each = "both sides, or a pair" if len(sides) == 2 else "all streams, or one each"
            raise SpecError(f"{argument} must be one for {each} ({', '.join(sides)}), not {value!r}")
        return tuple(value)
    return (value,) * len(sides)


def column_names(argument: str, value: Any, sides: Sequence[str] = SIDES, *, optional: bool = False) -> tuple[Any, ...]:
    """A column of each stream; None where there is none, if that may be."""
    names = per_stream(argument, value, sides)
    if not all((isinstance(name, str) and name) or (optional and name is None) for name in names):
        what = "a pair of them" if len(sides) == 2 else "one each"
        raise SpecError(f"{argument} must be a column name, or {what} ({', '.join(sides)}), not {value!r}")
    return names


def _type_name(frame: DataFrame, name: str) -> str:
    return str(frame.schema[name].dataType.typeName())


def time_kind(frames: Sequence[DataFrame], names: Sequence[Any], sides: Sequence[str] = SIDES) -> str:
    """Whether times are timestamps ("time") or plain whole numbers ("number")."""
    kinds = []
    for side, frame, name in zip(sides, frames, names, strict=True):
        check_column("time", name, frame, side)
        kind = _type_name(frame, name)
        if kind not in ("timestamp", "timestamp_ntz", *WHOLE):
            raise SpecError(
                f"time: {side}.{name} is of type {kind}: it must be a timestamp or a whole number, so cast it first"
            )
        kinds.append("number" if kind in WHOLE else kind)
    for place in range(1, len(kinds)):
        if kinds[place] != kinds[0]:
            raise SpecError(
                f"time: {sides[0]}.{names[0]} is a {kinds[0]} and {sides[place]}.{names[place]} a {kinds[place]}: "
                f"{'both' if len(sides) == 2 else 'all'} must be of one kind, so cast one"
            )
    return "number" if kinds[0] == "number" else "time"


def check_types(frames: Sequence[DataFrame], names: Sequence[str | None], sides: Sequence[str]) -> None:
    """A clear word where the types of rows are not numbered."""
    for side, frame, name in zip(sides, frames, names, strict=True):
        if name is not None and (found := _type_name(frame, name)) not in WHOLE:
            raise SpecError(f"kind: {side}.{name} is of type {found}: number the types of rows from 0 on")


def common_types(frames: Sequence[DataFrame], keys: Keys, sides: Sequence[str] = SIDES) -> list[str]:
    """The type in which the columns of each key are compared, as Spark itself widens them."""
    types = []
    for pair in keys.pairs:
        kinds = [frame.schema[name].dataType for frame, name in zip(frames, pair, strict=True)]
        called = [f"{side}.{name}" for side, name in zip(sides, pair, strict=True)]
        check_comparable(kinds, called)
        types.append(widened(frames[0], kinds, called))
    return types


def check_comparable(kinds: Sequence[DataType], called: Sequence[str]) -> None:
    """A clear word where columns of these types cannot be equal."""
    for name, kind in zip(called[1:], kinds[1:], strict=True):
        if kind != kinds[0] and "string" in (kinds[0].typeName(), kind.typeName()):
            raise SpecError(
                f"on: {called[0]} is {kinds[0].simpleString()} and {name} is {kind.simpleString()}: "
                "text and other types are not compared, so cast one of them"
            )
    for name, kind in zip(called, kinds, strict=True):
        if "map<" in kind.simpleString() or kind.typeName() in ("variant", "void"):
            raise SpecError(f"on: {name} is of type {kind.simpleString()}, which Spark cannot compare")
        if "collate" in kind.simpleString():
            raise SpecError(
                f"on: {name} is {kind.simpleString()}: keys are hashed by their bytes, so bring them to one spelling first, "
                "such as lower(...), without a collation"
            )


def widened(frame: DataFrame, kinds: Sequence[DataType], called: Sequence[str]) -> str:
    """The type in which columns of these types are compared."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructField, StructType

    if all(kind == kinds[0] for kind in kinds):
        return str(kinds[0].simpleString())
    names = [f"c{place}" for place in range(len(kinds))]
    fields = StructType([StructField(name, kind) for name, kind in zip(names, kinds, strict=True)])
    nothing = frame.sparkSession.createDataFrame([], fields)
    try:
        return str(nothing.select(fn.coalesce(*names).alias("c")).schema["c"].dataType.simpleString())
    except Exception as reason:
        what = " and ".join(f"{name} ({kind.simpleString()})" for name, kind in zip(called, kinds, strict=True))
        raise SpecError(f"on: {what} cannot be compared: cast one of them") from reason


#: Types whose values are numbers of at most 64 bits.
NUMBERS = {"boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp"}


def is_number(types: Sequence[str]) -> bool:
    """Whether keys are numbers already. Others are hashed to 64 bits, and two different ones may have one hash.

    Examples
    --------
    >>> is_number(["bigint"]), is_number(["string"]), is_number(["int", "int"])
    (True, False, False)
    """
    return len(types) == 1 and types[0] in NUMBERS


def key_number(frame: DataFrame, names: Sequence[str], types: Sequence[str]) -> Column:
    """The key as 64 bits, by which it is joined; null if any part is.

    Numbers, dates and times stay as they are, so that policies see their order. Spark's hash of others makes no difference
    between 0.0 and -0.0, nor between NaNs.
    """
    from pyspark.sql import functions as fn

    parts = []
    for name, kind in zip(names, types, strict=True):
        column = fn.col(quoted(name))
        parts.append(column if frame.schema[name].dataType.simpleString() == kind else column.cast(kind))
    if is_number(types):
        return _as_number(parts[0], types[0]).cast("bigint")
    some_null = parts[0].isNull()
    for part in parts[1:]:
        some_null = some_null | part.isNull()
    return fn.when(~some_null, fn.xxhash64(*parts))


def _as_number(key: Column, kind: str) -> Column:
    from pyspark.sql import functions as fn

    if kind == "date":
        return fn.unix_date(key)
    return fn.unix_micros(key) if kind == "timestamp" else key.cast("int") if kind == "boolean" else key


def key_value(number: Column, kind: str) -> Column:
    """The value of a key that is a number."""
    from pyspark.sql import functions as fn

    if kind == "date":
        return fn.date_from_unix_date(number.cast("int"))
    return fn.timestamp_micros(number) if kind == "timestamp" else number.cast(kind)


def out_columns(
    frames: Sequence[DataFrame],
    keys: Keys,
    select: Any,
    suffixes: Any,
    sides: Sequence[str] = SIDES,
    how: str = "inner",
) -> list[OutColumn]:
    """The columns of the result, in order. Semi and anti joins have those of the first stream."""
    everything = _all_columns(frames, keys, suffixes, sides)
    if how in ("left_semi", "left_anti"):
        if select is None:
            return [OutColumn(name, 0, name) for name in frames[0].columns]
        others = [source for name, source in selected(select) if _resolve(name, source, frames, everything, sides).side]
        if others:
            raise SpecError(f"select: a {how} join gives columns of {sides[0]} alone, so it has no {others[0]!r}")
    if select is None:
        clashes = [name for name, count in Counter(column.name for column in everything).items() if count > 1]
        if clashes:
            name = clashes[0]
            endings = tuple(f"_{side}" for side in sides)
            where = _qualified(name, everything, sides)
            raise SpecError(
                f"{_several(name, everything, sides)} a column {name!r}: choose with select=[...] ({where}, "
                f"or a dict from new names to these), or tell them apart with suffixes={endings}, or rename one"
            )
        return everything
    columns = [_resolve(name, source, frames, everything, sides) for name, source in selected(select)]
    twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if twice:
        raise SpecError(f"select would give two columns {twice[0]!r}: use a dict from new names to columns")
    return columns


def _several(name: str, everything: Sequence[OutColumn], sides: Sequence[str]) -> str:
    having = [sides[column.side] for column in everything if column.name == name]
    return "both sides have" if len(sides) == 2 else f"{' and '.join(having)} have"


def _qualified(name: str, everything: Sequence[OutColumn], sides: Sequence[str], between: str = ", ") -> str:
    return between.join(f"'{sides[one.side]}.{one.source}'" for one in everything if one.name == name)


def check_suffixes(suffixes: Any, sides: Sequence[str] = SIDES) -> None:
    pair = isinstance(suffixes, list | tuple) and len(suffixes) == len(sides)
    if suffixes is not None and not (pair and all(isinstance(one, str) for one in suffixes)):
        what = "a pair of texts" if len(sides) == 2 else "a tuple of one text a stream"
        raise SpecError(f"suffixes must be {what} such as {tuple(f'_{side}' for side in sides)}, not {suffixes!r}")


def _all_columns(frames: Sequence[DataFrame], keys: Keys, suffixes: Any, sides: Sequence[str]) -> list[OutColumn]:
    """As in Spark's own joins: shared keys first, then the columns of each stream. A key is there once under each name."""
    shared = keys.shared
    rest = [
        [name for name in frame.columns if name not in shared and not keys.repeats(side, name)]
        for side, frame in enumerate(frames)
    ]
    several = {name for name, count in Counter(name for names in rest for name in set(names)).items() if count > 1}
    columns = [OutColumn(name, 0, name) for name in shared]
    for side, names in enumerate(rest):
        for name in names:
            ending = suffixes[side] if suffixes is not None and name in several else ""
            columns.append(OutColumn(name + ending, side, name))
    return columns


def selected(select: Any) -> list[tuple[str | None, str]]:
    """The selected names and columns."""
    if isinstance(select, Mapping):
        wanted = list(select.items())
    elif isinstance(select, list | tuple):
        wanted = [(None, source) for source in select]
    else:
        wanted = []
    if not wanted or not all(
        isinstance(source, str) and source and isinstance(name, str | None) for name, source in wanted
    ):
        raise SpecError(
            f"select must be a list of column names, or a dict from new names to column names, not {select!r}"
        )
    return wanted


def _resolve(
    name: str | None,
    source: str,
    frames: Sequence[DataFrame],
    everything: Sequence[OutColumn],
    sides: Sequence[str],
) -> OutColumn:
    found = [column for column in everything if column.name == source]
    if len(found) == 1:
        return OutColumn(name or source, found[0].side, found[0].source)
    for side, frame in enumerate(frames):
        prefix = sides[side] + "."
        if source.startswith(prefix) and frame.columns.count(source.removeprefix(prefix)) == 1:
            return OutColumn(name or source.removeprefix(prefix), side, source.removeprefix(prefix))
    if found:
        where = _qualified(source, everything, sides, " or ")
        raise SpecError(f"select: {_several(source, everything, sides)} a column {source!r}: say {where}")
    there = ", ".join(f"{side} has {', '.join(frame.columns)}" for side, frame in zip(sides, frames, strict=True))
    raise SpecError(f"select: there is no column {source!r}; {there}")
