"""Which results are missing, as a Spark job over the archive: the rule of docs/semantics.md, "The shed log".

A shed row x of one stream lost the partners y of the other that its window still allows and that came after it had left
(or all of them, if x was late). These are ranges of times and row numbers. A range condition alone would make Spark
compare every x with every y of its key, in one task; so the axis is cut into buckets as wide as the window, x is sent to
the two or three buckets it can reach, and the join is an equality on (shard, key, bucket). A key with half of all rows is
then spread over as many tasks as there are windows in the data, and what is left of skew Spark's adaptive execution splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from shedjoin.spark.archive import Archive
from shedjoin.window import RowWindow, TimeWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Totals = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a growing archive to look at.

    Parameters
    ----------
    after
        Batches up to this one are done: only pairs whose later batch is beyond it are wanted. None: all pairs.
    arrived
        Rows of each stream that had arrived by then, of each shard.

    Notes
    -----
    With row windows rows are numbered over all shards.
    """

    after: int | None = None
    arrived: Totals | None = None


def missing_pairs(archive: Archive, span: Span | None = None) -> DataFrame:
    """Every missing pair once: `_sj_shard`, row numbers `_sj_seq_left`, `_sj_seq_right`, times `_sj_ts_left`, `_sj_ts_right`, and
    the two rows as structs `left`, `right`.

    A pair belongs to the later of its rows' batches: what made it missing is known by then, so that the pairs of batches 0
    to 4 and those of 5 to 9 are those of 0 to 9.
    """
    span = span or Span()
    counts = arrivals(archive, span)
    found = [
        part
        for stream in (0, 1)
        for part in _meetings(archive, stream, span, _shed_rows(archive, stream, counts), counts)
    ]
    return reduce(lambda one, two: one.unionByName(two), found)


def _meetings(
    archive: Archive, stream: int, span: Span, gone: DataFrame, counts: DataFrame | None
) -> Iterator[DataFrame]:
    """Pairs of shed rows of one stream with rows of the other: new partners of any, and old partners of new late rows."""
    from pyspark.sql import functions as F

    own, other = archive.windows[stream], archive.windows[1 - stream]
    partners = _partners(archive, 1 - stream, counts)
    cases = list(_cases(own, other))
    if span.after is None:
        parts = [(case, gone, partners) for case in cases]
    else:
        new, old = partners.where(F.col("y_batch") > span.after), partners.where(F.col("y_batch") <= span.after)
        late = gone.where(F.col("x_late") & (F.col("x_batch") > span.after))
        parts = [(case, gone, new) for case in cases]
        parts += [(case, late, old) for case in cases if case.backward]
    for case, ours, theirs in parts:
        # A pair of two late rows is put down to the left one.
        lost = F.col("x_late") & (F.lit(stream == 0) | ~F.col("y_late")) | ~F.col("x_late") & ~F.col("y_late")
        met = case.join(ours, theirs).where((F.col("y_seq") >= F.col("x_seen")) & lost)
        left, right = ("x", "y") if stream == 0 else ("y", "x")
        yield met.select(
            F.col("shard").alias("_sj_shard"),
            F.col(f"{left}_seq").alias("_sj_seq_left"),
            F.col(f"{right}_seq").alias("_sj_seq_right"),
            F.col(f"{left}_ts").alias("_sj_ts_left"),
            F.col(f"{right}_ts").alias("_sj_ts_right"),
            F.col(f"{left}_row").alias("left"),
            F.col(f"{right}_row").alias("right"),
        )


def _shed_rows(archive: Archive, stream: int, counts: DataFrame | None) -> DataFrame:
    """The shed rows of a stream, from the archive: `x_...`."""
    from pyspark.sql import functions as F

    late = F.col("why") == "late"
    seen = F.col("seen_left" if stream else "seen_right")
    records = archive.shed.where(F.col("stream") == stream).select(
        F.col("shard").alias("_sj_shard"),
        F.col("seq").alias("_sj_seq"),
        late.alias("x_late"),
        F.when(late, 0).otherwise(seen).alias("x_seen"),
    )
    rows = with_keys(archive, stream).join(records, ["_sj_shard", "_sj_seq"])
    return _columns(rows, "x", stream, counts, "x_late", "x_seen")


def _partners(archive: Archive, stream: int, counts: DataFrame | None) -> DataFrame:
    """The rows of a stream, with whether they were late: `y_...`."""
    from pyspark.sql import functions as F

    late = archive.shed.where((F.col("stream") == stream) & (F.col("why") == "late")).select(
        F.col("shard").alias("_sj_shard"), F.col("seq").alias("_sj_seq"), F.lit(True).alias("y_late")
    )
    rows = with_keys(archive, stream).join(late, ["_sj_shard", "_sj_seq"], "left")
    return _columns(rows.withColumn("y_late", F.coalesce("y_late", F.lit(False))), "y", stream, counts, "y_late")


def with_keys(archive: Archive, stream: int) -> DataFrame:
    """The rows that can have partners; the user's columns, whatever their names, in one struct."""
    from pyspark.sql import functions as F

    rows = archive.side(stream)
    own = archive.row_columns
    payload = [F.col(f"`{name.replace('`', '``')}`") for name in rows.columns if name not in own]
    return rows.where(F.col("_sj_key").isNotNull()).select(*own, F.struct(*payload).alias("_sj_row"))


def _columns(rows: DataFrame, prefix: str, stream: int, counts: DataFrame | None, *more: str) -> DataFrame:
    from pyspark.sql import functions as F

    if counts is None:
        arrived: list[Column] = []
    else:
        # Rows of batches that were done before have no count. They are older than any new row: 0 says that.
        rows = rows.join(counts, ["sj_batch", "_sj_ts"], "left")
        other = "left" if stream else "right"
        arrived = [F.coalesce(f"_{when}_{other}", F.lit(0)).alias(f"{prefix}_{when}") for when in ("before", "after")]
    return called(rows, prefix, *arrived, *more)


def called(rows: DataFrame, prefix: str, *more: Column | str) -> DataFrame:
    """Archived rows, with their numbers under names that begin with a prefix."""
    from pyspark.sql import functions as F

    numbers = (("_sj_seq", "seq"), ("_sj_ts", "ts"), ("sj_batch", "batch"), ("_sj_row", "row"))
    return rows.select(
        F.col("_sj_shard").alias("shard"),
        F.col("_sj_key").alias("key"),
        *(F.col(there).alias(f"{prefix}_{name}") for there, name in numbers),
        *more,
    )


def arrivals(archive: Archive, span: Span) -> DataFrame | None:
    """How many rows of each stream had arrived before and after each instant of the new batches; None: no window asks for it.

    An instant is the rows of one batch and time, of all shards: with row windows rows are numbered over all of them. Instants
    follow one another by (batch, time). Batches are few: of each the first numbers are worked out, and then all are counted.
    """
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F

    if not any(isinstance(window, RowWindow) for window in archive.windows):
        return None
    keys, sides = ["sj_batch", "_sj_ts"], archive.names
    rows = reduce(
        lambda one, two: one.unionByName(two, allowMissingColumns=True),
        (archive.side(stream).select(*keys, F.col("_sj_seq").alias(name)) for stream, name in enumerate(sides)),
    )
    totals = dict.fromkeys(sides, 0)
    if span.after is not None:
        rows = rows.where(F.col("sj_batch") > span.after)
        for stream, name in enumerate(sides):
            totals[name] = sum(counts[stream] for counts in (span.arrived or {}).values())
    instants = rows.groupBy(*keys).agg(*[F.max(name).alias(name) for name in sides])

    def reached(frame: Any, name: str, first: Any) -> Column:
        return F.coalesce(F.max(name).over(frame) + 1, first)

    batches = Over.orderBy("sj_batch").rowsBetween(Over.unboundedPreceding, -1)
    begun = (
        rows.groupBy("sj_batch")
        .agg(*[F.max(name).alias(name) for name in sides])
        .select("sj_batch", *(reached(batches, name, F.lit(totals[name])).alias(f"_first_{name}") for name in sides))
    )
    order = Over.partitionBy("sj_batch").orderBy("_sj_ts")
    until = order.rowsBetween(Over.unboundedPreceding, Over.currentRow)
    earlier = order.rowsBetween(Over.unboundedPreceding, -1)
    return instants.join(F.broadcast(begun), "sj_batch").select(
        *keys,
        *[
            reached(frame, name, F.col(f"_first_{name}")).alias(f"_{when}_{name}")
            for when, frame in (("before", earlier), ("after", until))
            for name in sides
        ],
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """One way in which a shed row x and a partner y lie to one another, as an equi-join.

    `place` is where y lies on an axis, `low` and `high` (both included) what x reaches there, `width` the axis' buckets.
    Without an axis the join is by `equal` alone.
    """

    backward: bool  # y may have come before x: only late rows have lost such partners
    chosen: Column | None = None  # which x
    equal: tuple[str, ...] = ()
    axis: tuple[Column, Column, Column, int] | None = None
    fits: Column | None = None

    def join(self, ours: DataFrame, theirs: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        if self.chosen is not None:
            ours = ours.where(self.chosen)
        keys = ["shard", "key"]
        for name in self.equal:
            ours, theirs = ours.withColumn(name, F.col(f"x_{name}")), theirs.withColumn(name, F.col(f"y_{name}"))
            keys.append(name)
        if self.axis is not None:
            place, low, high, width = self.axis
            buckets = F.sequence(bucket(low, width), bucket(high, width), F.lit(width))
            ours = ours.where(low <= high).withColumn("bucket", F.explode(buckets))
            theirs = theirs.withColumn("bucket", bucket(place, width))
            keys.append("bucket")
        met = ours.join(theirs, keys)
        if self.axis is not None:
            met = met.where(place.between(low, high))
        return met if self.fits is None else met.where(self.fits)


def bucket(place: Column, width: int) -> Column:
    """Where the bucket begins in which a place lies."""
    from pyspark.sql import functions as F

    return place - F.pmod(place, F.lit(width))


def _cases(own: Window, other: Window) -> Iterator[_Case]:
    """The cases for two windows, that of x's stream and that of y's. They do not overlap."""
    from pyspark.sql import functions as F

    x_ts, y_ts, x_seq, y_seq = (F.col(name) for name in ("x_ts", "y_ts", "x_seq", "y_seq"))
    if isinstance(own, TimeWindow) and isinstance(other, TimeWindow):
        reach = (y_ts, x_ts - (other.length - 1), x_ts + (own.length - 1), max(own.length, other.length))
        yield _Case(backward=True, axis=reach)
        return
    x_before, x_after, y_after = F.col("x_before"), F.col("x_after"), F.col("y_after")
    in_time = F.lit(True)
    if isinstance(own, TimeWindow):
        in_time = y_ts < x_ts + own.length
    if isinstance(other, TimeWindow):
        in_time = y_ts > x_ts - other.length
    if isinstance(own, RowWindow):  # y_after: rows of x's stream by the time of y
        rows = (y_after, x_seq + 1, x_seq + own.rows, own.rows)
        yield _Case(backward=False, axis=rows, fits=(y_seq >= x_after) & in_time)
    else:
        yield _Case(backward=False, fits=(y_seq >= x_after) & in_time)
    late = F.col("x_late")
    yield _Case(backward=False, chosen=late, equal=("batch", "ts"), fits=in_time)
    if isinstance(other, RowWindow):
        rows = (y_seq, x_after - other.rows, x_before - 1, other.rows)
        yield _Case(backward=True, chosen=late, axis=rows, fits=in_time)
    else:
        yield _Case(backward=True, chosen=late, fits=(y_seq < x_before) & in_time)
