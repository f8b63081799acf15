"""The archive of a join: all inputs with their row numbers, the shed log, and the log of skipped comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shedjoin.engine.graph import Graph
from shedjoin.errors import InputError
from shedjoin.join_type import TYPES, JoinType
from shedjoin.predicates import Predicate
from shedjoin.spark.keys import SIDES, quoted
from shedjoin.spark.where import Filter
from shedjoin.window import RowWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: What the join adds to each archived row.
ROW_COLUMNS = ("_sj_shard", "_sj_seq", "_sj_key", "_sj_ts", "_sj_imp", "sj_batch")
#: And to those of a join graph: the row's number in its micro-batch and stream, the same in all shards it went to.
ID = "_sj_id"
_SHED = {
    "shard": "int",
    "stream": "int",
    "seq": "bigint",
    "ts": "bigint",
    "key": "bigint",
    "left_at": "bigint",
    "why": "string",
}
_LEFT_OUT = {
    "shard": "int",
    "stream": "int",
    "seq": "bigint",
    "other": "int",
    "lo_ts": "bigint",
    "lo_seq": "bigint",
    "hi_ts": "bigint",
    "hi_seq": "bigint",
    "batch": "bigint",
}
#: What a line of the table of stretches that were not compared has; and the same with types, for Spark.
LEFT_OUT_COLUMNS = tuple(_LEFT_OUT)
LEFT_OUT_DDL = ", ".join(f"{name} {kind}" for name, kind in _LEFT_OUT.items())


def shed_columns(names: Sequence[str]) -> tuple[str, ...]:
    """What a record of the shed log has, of streams of these names."""
    return (*_SHED, *(f"{what}_{name}" for what in ("seen", "expired") for name in names), "batch")


def shed_ddl(names: Sequence[str], keys: Sequence[tuple[str, str]] = ()) -> str:
    """The same with types, for Spark, and with key columns (name, type)."""
    fixed = [(column, _SHED.get(column, "bigint")) for column in shed_columns(names)]
    return ", ".join(f"{quoted(column)} {kind}" for column, kind in [*fixed, *keys])


@dataclass(frozen=True, slots=True)
class Layout:
    """How a result is made of rows, one of each stream.

    Parameters
    ----------
    keys
        Key columns, one a stream, compared once more: two keys of one hash make no result.
    columns
        Of the result, in order: (its name, the stream (0 for left, 1 for right, ...), the column there).
    names
        Of the streams.
    equal
        Of a join graph: pairs of (stream, column) that are compared once more.
    alone
        Whether some results have no row of some stream. A key of one name is then that of the row that is there.
    """

    keys: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, int, str], ...]
    names: tuple[str, ...] = SIDES
    equal: tuple[tuple[tuple[int, str], tuple[int, str]], ...] = ()
    alone: bool = False

    @classmethod
    def plain(cls, left: DataFrame, right: DataFrame, keys: tuple[tuple[str, str], ...] = ()) -> Layout:
        """All columns of left, then those of right; a key of one name on both sides once, and first."""
        shared = [one for one, other in keys if one == other]
        sides = [[name for name in frame.columns if name not in ROW_COLUMNS] for frame in (left, right)]
        columns = [(name, 0, name) for name in shared]
        columns += [(name, side, name) for side in (0, 1) for name in sides[side] if name not in shared]
        names = [name for name, _, _ in columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(f"both sides have a column {twice[0]!r}: describe the result columns in a Layout")
        return cls(keys, tuple(columns))

    def results(self, pairs: DataFrame, *more: str) -> DataFrame:
        """The results of rows that belong together, a struct for each stream; and more columns of theirs."""
        from pyspark.sql import functions as F

        sides = [F.col(name) for name in self.names]
        for first, *others in self.keys:
            for side, other in enumerate(others, start=1):
                pairs = pairs.where(_same(sides[0][first], sides[side][other]))
        for (one, first), (two, second) in self.equal:
            pairs = pairs.where(_same(sides[one][first], sides[two][second]))
        shared = {key[0] for key in self.keys if len(set(key)) == 1} if self.alone else set()

        def column(side: int, source: str) -> Column:
            return (
                F.coalesce(*(one[source] for one in sides)) if side == 0 and source in shared else sides[side][source]
            )

        return pairs.select(*(column(side, source).alias(name) for name, side, source in self.columns), *more)


def _same(one: Column, other: Column) -> Column:
    """Whether keys are equal; a row without a partner has no other key to compare. (Null keys match nothing.)"""
    from pyspark.sql import functions as F

    return F.coalesce(one == other, F.lit(True))


@dataclass(frozen=True, slots=True)
class Move:
    """Another number of shards, and the new numbers of the rows that were stored then (see `moved_state`).

    `first` and `start` are of each stream: stored rows got numbers from `first` on, and rows that came later from `start` on.
    """

    after: int  # the last batch before
    shards: int  # that there were
    first: tuple[int, ...]
    start: tuple[int, ...]

    @property
    def renumbers(self) -> bool:
        """Or rows are numbered over all shards and keep their numbers."""
        return self.first != self.start


@dataclass(frozen=True, slots=True)
class Archive:
    """All inputs and the shed log of one join, as batch DataFrames.

    Parameters
    ----------
    left, right
        The user's columns and those of `ROW_COLUMNS`.
    shed
        The records, with the columns of `shed_columns`.
    windows
        The window of each stream.
    layout
        How results are made; of two streams all columns by default.
    more
        The third stream and those after it, as left and right.
    graph
        For a join graph: its predicates. A row is then archived in every shard that it went to, its key is a list of
        attributes, and `_sj_id` identifies it.
    left_out
        The skipped comparisons of a join with a deadline, with the columns of `LEFT_OUT_COLUMNS`. None: nothing.
    predicate
        For a join on a predicate with rows that probe all shards: a row is archived in the shard that stores it, and its key
        is the value that the predicate compares. Rows are numbered over all shards.
    where
        A further condition on the rows of a result.
    moves
        The changes of the number of shards: a row that was stored then has another shard and number in later logs.
    how, lateness, max_skew
        The join type, and the settings that determine when windows end: then rows without a partner are resolved.
    copied
        For a join on a predicate: each shard stores all rows of one stream, as a shard of a join graph does.
    waits
        Whether rows are processed after the batch of their arrival: the logs of later batches then have their records.
    """

    left: DataFrame
    right: DataFrame
    shed: DataFrame
    windows: tuple[Window, ...]
    layout: Layout | None = None
    more: tuple[DataFrame, ...] = ()
    graph: Graph | None = None
    left_out: DataFrame | None = None
    predicate: Predicate | None = None
    where: Filter | None = None
    moves: tuple[Move, ...] = ()
    how: JoinType = TYPES["inner"]
    lateness: int = 0
    max_skew: int | None = None
    waits: bool = False
    copied: bool = False

    def __post_init__(self) -> None:
        if self.layout is None and self.more:
            raise InputError("layout must say what the results of three and more streams are made of: give a Layout")
        if self.layout is None:
            object.__setattr__(self, "layout", Layout.plain(self.left, self.right))
        if not len(self.windows) == len(self.sides) == len(self.names):
            raise InputError(
                f"the archive has {len(self.sides)} streams, but {len(self.windows)} windows and {len(self.names)} names"
            )
        given = [(name, side, self.row_columns) for name, side in zip(self.names, self.sides, strict=True)]
        given.append(("shed", self.shed, shed_columns(self.names)))
        if self.left_out is not None:
            given.append(("left_out", self.left_out, LEFT_OUT_COLUMNS))
        for name, frame, columns in given:
            absent = [column for column in columns if column not in frame.columns]
            if absent:
                raise InputError(f"{name} has no column {absent[0]!r}: give the archive that the join wrote")

    @property
    def names(self) -> tuple[str, ...]:
        assert self.layout is not None  # __post_init__ fills it in
        return self.layout.names

    @property
    def row_columns(self) -> tuple[str, ...]:
        """What the join added to each row."""
        return (*ROW_COLUMNS, ID) if self.has_copies else ROW_COLUMNS

    @property
    def has_copies(self) -> bool:
        """Whether a row may be archived in several shards; `_sj_id` names it then."""
        return self.graph is not None or self.copied

    @property
    def spread(self) -> bool:
        """Whether rows probe all shards."""
        return self.predicate is not None and not self.copied

    @property
    def keyed(self) -> bool:
        """Whether all streams share a key."""
        return self.graph is None and self.predicate is None

    @property
    def counts_over_all(self) -> bool:
        """Whether rows are numbered over all shards, not in each."""
        return self.spread or any(isinstance(window, RowWindow) for window in self.windows)

    @property
    def sides(self) -> tuple[DataFrame, ...]:
        return self.left, self.right, *self.more

    @property
    def known_by(self) -> tuple[str, ...]:
        """What a result has of each of its rows, so that they are known."""
        if self.has_copies:
            return ("seq", "ts", "batch", "id")
        return ("seq", "ts", "shard") if self.moves else ("seq", "ts")

    @property
    def known_in_log(self) -> list[str]:
        """What names a row in the logs. Rows that are numbered over all shards may have been in several, one after the other."""
        return ["_sj_seq"] if self.moves and self.counts_over_all else ["_sj_shard", "_sj_seq"]

    def logged(self, stream: int, why: Sequence[str]) -> DataFrame:
        """The records of a stream's rows for some reasons, by the shard and the number that a row was archived by, before the
        number of shards changed."""
        from pyspark.sql import functions as F

        mine = self.shed.where((F.col("stream") == stream) & F.col("why").isin(*why))
        moves = [move for move in reversed(self.moves) if move.renumbers]
        if not moves:
            return mine.withColumns({"_sj_shard": F.col("shard"), "_sj_seq": F.col("seq")})
        known = F.array(
            *(
                F.struct(
                    F.lit(move.after).cast("bigint").alias("after"),
                    F.lit(move.shards).alias("shards"),
                    F.lit(move.first[stream]).cast("bigint").alias("first"),
                    F.lit(move.start[stream]).cast("bigint").alias("start"),
                )
                for move in moves
            )
        )

        def before(row: Column, move: Column) -> Column:
            """The shard and the number of a row before a move. A fold: written out, the expression would double with each."""
            seq, place = row["seq"], row["seq"] - move["first"]
            moved = (F.col("batch") > move["after"]) & (place >= 0) & (seq < move["start"])
            shard = F.when(moved, place % move["shards"]).otherwise(row["shard"])
            return F.struct(
                shard.cast("int").alias("shard"),
                F.when(moved, F.floor(place / move["shards"])).otherwise(seq).cast("bigint").alias("seq"),
            )

        archived = F.aggregate(known, F.struct(F.col("shard"), F.col("seq")), before)
        return (
            mine.withColumn("_sj_at", archived)
            .withColumns({"_sj_shard": F.col("_sj_at.shard"), "_sj_seq": F.col("_sj_at.seq")})
            .drop("_sj_at")
        )

    def side(self, stream: int) -> DataFrame:
        return self.sides[stream]

    def only(self, sides: Sequence[DataFrame], shed: DataFrame, left_out: DataFrame | None) -> Archive:
        """The same join with fewer rows of each stream, and fewer records."""
        left, right, *more = sides
        return replace(self, left=left, right=right, more=tuple(more), shed=shed, left_out=left_out)

    def upto(self, batch: int) -> Archive:
        """Without what came after a batch."""
        from pyspark.sql import functions as F

        sides = [frame.where(F.col("sj_batch") <= batch) for frame in self.sides]
        if self.waits:
            return self.only(sides, self.shed, self.left_out)
        left_out = None if self.left_out is None else self.left_out.where(F.col("batch") <= batch)
        return self.only(sides, self.shed.where(F.col("batch") <= batch), left_out)
