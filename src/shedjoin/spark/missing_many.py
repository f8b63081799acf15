"""Which results of three and more streams are missing, as a Spark job over the archive: the rule of docs/nway.md, "Budgets".

A result is missing iff one of its rows was late, or was shed before another of them came. It is put down to the first stream
whose row that is: so it is found once, beginning with a shed row of that stream and going on to the others, one equality
join on (shard, key, bucket of time) each, as for two streams.
"""

from __future__ import annotations

import operator
from functools import reduce
from itertools import permutations
from typing import TYPE_CHECKING

from shedjoin.spark.archive import Archive
from shedjoin.spark.missing import Span, arrivals, bucket, called, with_keys
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def missing_results(archive: Archive, span: Span | None = None) -> DataFrame:
    """Every missing result once: `_sj_shard`, of each stream a row number `_sj_seq_...` and a time `_sj_ts_...`, and its row as
    a struct of the stream's name.

    A result belongs to the last of its rows' batches: what made it missing is known by then.
    """
    from pyspark.sql import functions as F

    span = span or Span()
    counts = arrivals(archive, span)
    sides = [_rows(archive, stream, counts) for stream in range(len(archive.names))]
    whole = reduce(
        lambda one, two: one.unionByName(two), (_lost_by(archive, sides, stream) for stream in _all(archive))
    )
    if span.after is not None:
        whole = whole.where(F.greatest(*(F.col(f"r{stream}_batch") for stream in _all(archive))) > span.after)
    return whole.select(
        F.col("shard").alias("_sj_shard"),
        *(F.col(f"r{stream}_seq").alias(f"_sj_seq_{name}") for stream, name in enumerate(archive.names)),
        *(F.col(f"r{stream}_ts").alias(f"_sj_ts_{name}") for stream, name in enumerate(archive.names)),
        *(F.col(f"r{stream}_row").alias(name) for stream, name in enumerate(archive.names)),
    )


def _all(archive: Archive) -> range:
    return range(len(archive.names))


def _rows(archive: Archive, stream: int, counts: DataFrame | None) -> DataFrame:
    """The rows of a stream: `r0_...`.

    `seen` of each other stream is from the shed log (late: 0), null for rows that were not shed. `after`, with row windows, is
    what had arrived of a stream by the end of the row's instant.
    """
    from pyspark.sql import functions as F

    mine = f"r{stream}"
    others = [other for other in _all(archive) if other != stream]
    late = F.col("why") == "late"
    records = archive.shed.where(F.col("stream") == stream).select(
        F.col("shard").alias("_sj_shard"),
        F.col("seq").alias("_sj_seq"),
        *(
            F.when(late, 0).otherwise(F.col(f"seen_{archive.names[other]}")).alias(f"{mine}_seen{other}")
            for other in others
        ),
    )
    rows = with_keys(archive, stream).join(records, ["_sj_shard", "_sj_seq"], "left")
    arrived: list[Column] = []
    if counts is not None:  # rows of batches that are done have none: they are older than any new one, and 0 says that
        rows = rows.join(counts, ["sj_batch", "_sj_ts"], "left")
        arrived = [
            F.coalesce(f"_after_{archive.names[other]}", F.lit(0)).alias(f"{mine}_after{other}") for other in others
        ]
    return called(rows, mine, *(f"{mine}_seen{other}" for other in others), *arrived)


def _lost_by(archive: Archive, sides: list[DataFrame], culprit: int) -> DataFrame:
    """The missing results that are put down to rows of one stream."""
    from pyspark.sql import functions as F

    others = [stream for stream in _all(archive) if stream != culprit]
    met = sides[culprit].where(F.col(f"r{culprit}_seen{others[0]}").isNotNull())
    there = [culprit]
    for stream in others:
        met = _meet(archive, met, sides[stream], culprit, stream)
        pairs = [pair for one in there for pair in permutations((one, stream))]
        met = met.where(reduce(operator.and_, (_in_window(archive, *pair) for pair in pairs)))
        there.append(stream)
    earlier = [~_has_left_early(stream, archive) for stream in range(culprit)]
    return met.where(reduce(operator.and_, earlier, _has_left_early(culprit, archive)))


def _meet(archive: Archive, met: DataFrame, rows: DataFrame, culprit: int, stream: int) -> DataFrame:
    """Rows of one more stream, of the same key; where both windows are of time, only those that are near the culprit's."""
    from pyspark.sql import functions as F

    own, other = archive.windows[culprit], archive.windows[stream]
    if not (isinstance(own, TimeWindow) and isinstance(other, TimeWindow)):
        return met.join(rows, ["shard", "key"])
    width, ts = max(own.length, other.length), F.col(f"r{culprit}_ts")
    first, last = bucket(ts - (other.length - 1), width), bucket(ts + (own.length - 1), width)
    met = met.withColumn("bucket", F.explode(F.sequence(first, last, F.lit(width))))
    rows = rows.withColumn("bucket", bucket(F.col(f"r{stream}_ts"), width))
    return met.join(rows, ["shard", "key", "bucket"]).drop("bucket")


def _in_window(archive: Archive, one: int, other: int) -> Column:
    """Whether a row of one stream was in its window when that of another came."""
    from pyspark.sql import functions as F

    match archive.windows[one]:
        case TimeWindow(length):
            return F.col(f"r{other}_ts") - F.col(f"r{one}_ts") < length
        case RowWindow(rows):
            came = [F.struct(f"r{stream}_batch", f"r{stream}_ts") for stream in (other, one)]
            return (came[0] <= came[1]) | (F.col(f"r{one}_seq") >= F.col(f"r{other}_after{one}") - rows)


def _has_left_early(stream: int, archive: Archive) -> Column:
    """Whether a row had left when one of the others came."""
    from pyspark.sql import functions as F

    missed = [
        F.coalesce(F.col(f"r{other}_seq") >= F.col(f"r{stream}_seen{other}"), F.lit(False))
        for other in _all(archive)
        if other != stream
    ]
    return reduce(operator.or_, missed)
