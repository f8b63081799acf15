"""Rows without a partner, from the archive: which of those that were shed or unknown have none, and which have one after all.

A row is *settled* in the batch in which its window ends, or in which it is logged, if that is later: all its partners have come
by then. What a late row would have found with it after that is no result. So results are the same whether an archive is
refined in one step or in several.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.spark.archive import Archive
from shedjoin.window import RowWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Records of the shed log after which a row without a partner was not delivered.
OPEN = ("dropped", "evicted", "schedule", "unknown")
#: A row whose window has not ended yet is settled in no batch.
NEVER = 2**62
KEYS = ("_sj_shard", "_sj_seq")


class Ends(NamedTuple):
    """Of one stream: up to where windows have ended, rising from batch to batch."""

    batches: list[int]
    reached: list[int]

    def settled(self, ends: Any) -> Any:
        """The batch in which a window ends."""
        place = np.searchsorted(np.array(self.reached, np.int64), ends)
        return np.append(np.array(self.batches, np.int64), NEVER)[place]


class Newest(NamedTuple):
    """Of one stream in one batch: one more than the number of its last row, and its newest time."""

    rows: int
    ts: int


#: By batches and streams.
Clocks = dict[int, dict[int, Newest]]


def clocks_of(archive: Archive) -> Clocks:
    """The newest rows of each batch: one job over the archive, for the windows of all streams."""
    from pyspark.sql import functions as F

    sides = [
        archive.side(one).select("sj_batch", F.lit(one).alias("stream"), "_sj_seq", "_sj_ts")
        for one in range(len(archive.names))
    ]
    newest = reduce(lambda one, two: one.union(two), sides).groupBy("sj_batch", "stream")
    found: Clocks = {}
    for row in newest.agg((F.max("_sj_seq") + 1).alias("rows"), F.max("_sj_ts").alias("ts")).collect():
        found.setdefault(row["sj_batch"], {})[row["stream"]] = Newest(row["rows"], row["ts"])
    return found


def ends_of(archive: Archive, stream: int, clocks: Clocks) -> Ends:
    """When the windows of a stream have ended: by the clocks of the others, or by its own rows."""
    by_rows = isinstance(archive.windows[stream], RowWindow)
    batches = sorted(clocks)
    most: list[int | None] = [None] * len(archive.names)
    reached = []
    for batch in batches:
        for one, newest in clocks[batch].items():
            known, value = most[one], newest.rows if by_rows else newest.ts
            most[one] = value if known is None else max(known, value)
        reached.append(_reached(archive, stream, most))
    return Ends(batches, np.maximum.accumulate(reached).tolist() if reached else [])


def _reached(archive: Archive, stream: int, most: list[int | None]) -> int:
    """A window that ends here or before is over."""
    if isinstance(archive.windows[stream], RowWindow):
        return most[stream] or 0
    known = [one for one in most if one is not None]
    floor = max(known) - archive.max_skew if archive.max_skew is not None and known else None
    clocks = [one if floor is None else floor if one is None else max(one, floor) for one in most]
    others = [clock for one, clock in enumerate(clocks) if one != stream]
    there = [clock for clock in others if clock is not None]
    return min(there) - archive.lateness if len(there) == len(others) else -NEVER


def with_settled(archive: Archive, stream: int, clocks: Clocks, rows: DataFrame, seq: str, ts: str) -> DataFrame:
    """The same rows with the batch in which their window settles them."""
    window, ends = archive.windows[stream], ends_of(archive, stream, clocks)
    by_rows = isinstance(window, RowWindow)
    column, length = (seq, window.size + 1) if by_rows else (ts, window.size)

    def settle(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            settled = ends.settled(part.column(column).to_numpy() + length)
            yield part.append_column("settled", pa.array(settled))

    from pyspark.sql.types import LongType, StructType

    return rows.mapInArrow(settle, StructType([*rows.schema.fields]).add("settled", LongType()))


def open_rows(archive: Archive, stream: int, clocks: Clocks) -> DataFrame:
    """Rows that were not delivered as unmatched but may have no partner; and the batch in which they are settled."""
    from pyspark.sql import functions as F

    log = archive.logged(stream, OPEN).select(*archive.known_in_log, F.col("batch").alias("logged"))
    own = archive.row_columns
    payload = [F.col(f"`{name.replace('`', '``')}`") for name in archive.side(stream).columns if name not in own]
    rows = archive.side(stream).select(*own, F.struct(*payload).alias("_sj_row")).join(log, archive.known_in_log)
    times = with_settled(archive, stream, clocks, rows.select(*KEYS, "_sj_ts"), "_sj_seq", "_sj_ts").drop("_sj_ts")
    made = rows.join(times, [*KEYS])
    return made.withColumn("settled", F.greatest("settled", "logged")).drop("logged")


def settled_rows(
    archive: Archive,
    stream: int,
    clocks: Clocks,
    sides: list[DataFrame],
    meets: Callable[[DataFrame], DataFrame],
    after: int | None,
    *,
    matched: bool,
) -> DataFrame:
    """The results of open rows of a stream that are settled now, with a partner (`matched`) or without one.

    `meets` gives the results of the exact join that begin with some rows of the stream.
    """
    from pyspark.sql import functions as F

    rows = open_rows(archive, stream, clocks).where(F.col("settled") < NEVER)
    if after is not None:
        rows = rows.where(F.col("settled") > after)
    ids = _renamed(rows.select(*KEYS, "settled"), stream)
    mine = f"r{stream}"
    begun = sides[stream].join(ids, [f"{mine}_shard", f"{mine}_seq"])
    others = [F.col(f"r{other}_batch") for other in range(len(archive.names)) if other != stream]
    in_time = reduce(operator.and_, (batch <= F.col("settled") for batch in others))
    met = (
        meets(begun)
        .where(in_time)
        .select(F.col(f"{mine}_shard").alias("_sj_shard"), F.col(f"{mine}_seq").alias("_sj_seq"))
    )
    return _alone(archive, stream, rows.join(met.distinct(), [*KEYS], "left_semi" if matched else "left_anti"))


def without_too_late(
    archive: Archive, clocks: Clocks, lost: DataFrame, sides: list[DataFrame], meets: Any
) -> DataFrame:
    """The missing pairs without those that a row found after its partner was settled as a row without one."""
    from pyspark.sql import functions as F

    for stream in archive.how.preserved:
        mine = f"r{stream}"
        late = [
            F.col(f"r{other}_late") & (F.col(f"r{other}_batch") > F.col("settled"))
            for other in range(len(archive.names))
            if other != stream
        ]
        ids = (
            sides[stream]
            .select(*(f"{mine}_{what}" for what in ("shard", "seq", "ts")))
            .join(lost.select(f"{mine}_shard", f"{mine}_seq").distinct(), [f"{mine}_shard", f"{mine}_seq"])
        )
        named = {"_sj_shard": f"{mine}_shard", "_sj_seq": f"{mine}_seq"}
        known = [named[name] for name in archive.known_in_log]
        logged = archive.logged(stream, OPEN).withColumnsRenamed(named).select(*known, F.col("batch").alias("logged"))
        times = with_settled(archive, stream, clocks, ids, f"{mine}_seq", f"{mine}_ts").drop(f"{mine}_ts")
        times = times.join(logged, known, "left")
        times = times.withColumn("settled", F.greatest("settled", F.coalesce("logged", F.lit(-1)))).drop("logged")
        marked = lost.join(times, [f"{mine}_shard", f"{mine}_seq"], "left").withColumn(
            "too_late", reduce(operator.or_, late)
        )
        doubtful = marked.where("too_late").select(f"{mine}_shard", f"{mine}_seq", "settled").distinct()
        begun = sides[stream].join(doubtful, [f"{mine}_shard", f"{mine}_seq"])
        others = [F.col(f"r{other}_batch") for other in range(len(archive.names)) if other != stream]
        found = meets(begun, stream).where(reduce(operator.and_, (batch <= F.col("settled") for batch in others)))
        met = found.select(f"{mine}_shard", f"{mine}_seq").distinct().withColumn("met", F.lit(True))
        marked = marked.join(met, [f"{mine}_shard", f"{mine}_seq"], "left")
        lost = marked.where(~F.col("too_late") | F.coalesce("met", F.lit(False))).drop("settled", "too_late", "met")
    return lost


def _renamed(rows: DataFrame, stream: int) -> DataFrame:
    return rows.withColumnsRenamed({"_sj_shard": f"r{stream}_shard", "_sj_seq": f"r{stream}_seq"})


def _alone(archive: Archive, stream: int, rows: DataFrame) -> DataFrame:
    """Results of one row: what `missing_results` gives, with nulls for the other streams."""
    from pyspark.sql import functions as F

    there = {"seq": "_sj_seq", "ts": "_sj_ts", "batch": "sj_batch", "id": "_sj_id", "shard": "_sj_shard"}
    named = list(enumerate(archive.names))
    nothing = F.lit(None)
    structs = [F.col("_sj_row") if one == stream else nothing.cast(_row_type(archive, one)) for one, _ in named]
    shard = F.lit(0) if archive.spread or archive.moves else F.col("_sj_shard")
    return rows.select(
        shard.alias("_sj_shard"),
        *(
            (F.col(there[what]) if one == stream else nothing).cast("bigint").alias(f"_sj_{what}_{name}")
            for what in archive.known_by
            for one, name in named
        ),
        *(struct.alias(name) for struct, (_, name) in zip(structs, named, strict=True)),
    )


def _row_type(archive: Archive, stream: int) -> Any:
    from pyspark.sql.types import StructType

    own = archive.row_columns
    return StructType([field for field in archive.side(stream).schema.fields if field.name not in own])
