"""Which results of three and more streams, or of a join graph, are missing, as a Spark job over the archive: the rule of
docs/nway.md, "Budgets".

A result is missing iff one of its rows was late, or was shed before another of them came. It is put down to the first stream
whose row that is: so it is found once, beginning with a shed row of that stream and going on to the others, one equality
join on (shard, key, bucket of time) each, as for two streams.

The shards of a join graph are joins of their own here too: each archived the rows that went to it and logged what it shed. The
rows of a result meet in one shard only, so it is missing there or nowhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from itertools import permutations
from typing import TYPE_CHECKING

from shedjoin.engine.graph import AT_LEAST, AT_MOST, BAND, LESS, MORE, UNEQUAL
from shedjoin.spark.archive import ID, Archive
from shedjoin.spark.missing import Span, arrivals, bucket, called, with_keys
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_COMPARE: dict[int, Callable[[Column, Column], Column]] = {
    LESS: operator.lt,
    AT_MOST: operator.le,
    MORE: operator.gt,
    AT_LEAST: operator.ge,
    UNEQUAL: operator.ne,
}


def missing_results(archive: Archive, span: Span | None = None) -> DataFrame:
    """Every missing result once: `_sj_shard`, of each stream a row number `_sj_seq_...` and a time `_sj_ts_...`, and its row as
    a struct of the stream's name. Of a join graph also what names a row in all shards: `_sj_batch_...`, `_sj_id_...`.

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
        *(
            F.col(f"r{stream}_{what}").alias(f"_sj_{what}_{name}")
            for what in ("batch", "id")
            for stream, name in enumerate(archive.names)
            if archive.graph is not None
        ),
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
    named = [] if archive.graph is None else [F.col("_sj_key").alias(f"{mine}_key"), F.col(ID).alias(f"{mine}_id")]
    found = called(rows, mine, *(f"{mine}_seen{other}" for other in others), *arrived, *named)
    return found if archive.graph is None else found.drop("key")


def _lost_by(archive: Archive, sides: list[DataFrame], culprit: int) -> DataFrame:
    """The missing results that are put down to rows of one stream."""
    from pyspark.sql import functions as F

    others = [stream for stream in _all(archive) if stream != culprit]
    met = sides[culprit].where(F.col(f"r{culprit}_seen{others[0]}").isNotNull())
    there = [culprit]
    while others:
        stream = min(others, key=lambda other: -len(_equal(archive, there, other)))  # the first of those linked most
        others.remove(stream)
        met = _meet(archive, met, sides[stream], there, stream)
        pairs = [pair for one in there for pair in permutations((one, stream))]
        met = met.where(reduce(operator.and_, (_in_window(archive, *pair) for pair in pairs)))
        there.append(stream)
    earlier = [~_has_left_early(stream, archive) for stream in range(culprit)]
    return met.where(reduce(operator.and_, earlier, _has_left_early(culprit, archive)))


def _meet(archive: Archive, met: DataFrame, rows: DataFrame, there: list[int], stream: int) -> DataFrame:
    """Rows of one more stream, of the same key; where both windows are of time, only those that are near the culprit's."""
    from pyspark.sql import functions as F

    culprit, keys = there[0], ["shard"]
    own, other = archive.windows[culprit], archive.windows[stream]
    if archive.graph is None:
        keys.append("key")
    for place, (theirs, mine) in enumerate(_equal(archive, there, stream)):
        keys.append(f"key{place}")
        met, rows = met.withColumn(keys[-1], theirs), rows.withColumn(keys[-1], mine)
    if isinstance(own, TimeWindow) and isinstance(other, TimeWindow):
        width, ts = max(own.length, other.length), F.col(f"r{culprit}_ts")
        first, last = bucket(ts - (other.length - 1), width), bucket(ts + (own.length - 1), width)
        met = met.withColumn("bucket", F.explode(F.sequence(first, last, F.lit(width))))
        rows = rows.withColumn("bucket", bucket(F.col(f"r{stream}_ts"), width))
        keys.append("bucket")
    met = met.join(rows, keys).drop(*(name for name in keys if name not in ("shard", "key")))
    return reduce(lambda found, fits: found.where(fits), _others_hold(archive, there, stream), met)


def _equal(archive: Archive, there: list[int], stream: int) -> list[tuple[Column, Column]]:
    """Of a join graph: attributes of the rows that are there, and those of one more stream that they must be equal to."""
    if archive.graph is None:
        return []
    found = []
    for one in archive.graph.equalities:
        for other in there:
            if {one.left, one.right} == {other, stream}:
                _, mine, _, theirs = one.seen_from(stream)
                found.append((_attribute(other, theirs), _attribute(stream, mine)))
    return found


def _others_hold(archive: Archive, there: list[int], stream: int) -> list[Column]:
    """The other predicates of a join graph between a stream and those that are there."""
    from pyspark.sql import functions as F

    found = []
    for one in () if archive.graph is None else archive.graph.thetas:
        if stream in (one.left, one.right) and {one.left, one.right} & {*there}:
            left, right = _attribute(one.left, one.left_attr), _attribute(one.right, one.right_attr)
            if one.op == BAND:  # differences of 64-bit numbers may need more
                near = F.abs(left.cast("decimal(20)") - right.cast("decimal(20)"))
                found.append(near <= F.lit(one.band))
            else:
                found.append(_COMPARE[one.op](left, right))
    return found


def _attribute(stream: int, place: int) -> Column:
    from pyspark.sql import functions as F

    return F.col(f"r{stream}_key")[place]


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
