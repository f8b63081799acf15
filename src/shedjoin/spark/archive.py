"""The archive of a join: both inputs with their numbers, and the log of what was shed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shedjoin.errors import InputError
from shedjoin.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What the join adds to each archived row.
ROW_COLUMNS = ("_sj_shard", "_sj_seq", "_sj_key", "_sj_ts", "_sj_imp", "sj_batch")
#: What a record of the shed log has.
SHED_COLUMNS = (
    "shard",
    "stream",
    "seq",
    "ts",
    "key",
    "left_at",
    "why",
    "seen_left",
    "seen_right",
    "batch",
)
SHED_DDL = (
    "shard int, stream int, seq bigint, ts bigint, key bigint, left_at bigint, why string, "
    "seen_left bigint, seen_right bigint, batch bigint"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a result is made of two rows.

    Parameters
    ----------
    keys
        Pairs of key columns (left, right), compared once more: two keys of one hash make no result.
    columns
        Of the result, in order: (its name, 0 for left or 1 for right, the column there).
    """

    keys: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, int, str], ...]

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
            raise InputError(f"both sides have a column {twice[0]!r}: say in a Layout what the results' columns are")
        return cls(keys, tuple(columns))

    def results(self, pairs: DataFrame, *more: str) -> DataFrame:
        """The results of pairs of rows, structs `left` and `right`; and more columns of the pairs."""
        from pyspark.sql import functions as F

        for left, right in self.keys:
            pairs = pairs.where(F.col("left")[left] == F.col("right")[right])
        sides = (F.col("left"), F.col("right"))
        return pairs.select(*(sides[side][source].alias(name) for name, side, source in self.columns), *more)


@dataclass(frozen=True, slots=True)
class Archive:
    """Both inputs and the shed log of one join, as batch DataFrames.

    Parameters
    ----------
    left, right
        The user's columns and those of `ROW_COLUMNS`.
    shed
        The records, with the columns of `SHED_COLUMNS`.
    windows
        The window of each stream.
    layout
        How results are made; all columns by default.
    """

    left: DataFrame
    right: DataFrame
    shed: DataFrame
    windows: tuple[Window, Window]
    layout: Layout | None = None

    def __post_init__(self) -> None:
        for name, columns in (("left", ROW_COLUMNS), ("right", ROW_COLUMNS), ("shed", SHED_COLUMNS)):
            there = getattr(self, name).columns
            absent = [column for column in columns if column not in there]
            if absent:
                raise InputError(f"{name} has no column {absent[0]!r}: give the archive that the join wrote")
        if self.layout is None:
            object.__setattr__(self, "layout", Layout.plain(self.left, self.right))

    def side(self, stream: int) -> DataFrame:
        return self.right if stream else self.left

    def upto(self, batch: int) -> Archive:
        """Without what came after a batch."""
        from pyspark.sql import functions as F

        left, right = (frame.where(F.col("sj_batch") <= batch) for frame in (self.left, self.right))
        return replace(self, left=left, right=right, shed=self.shed.where(F.col("batch") <= batch))
