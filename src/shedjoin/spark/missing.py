"""Which results are missing, as a Spark job over the archive: the rule of docs/semantics.md, "The shed log".

A result is missing if one of its rows was dropped, had left before another of them came, or came late when another had expired;
it is put down to the first stream whose row that is. Else it is missing if its newest row left another one out. So it is found
once, beginning with that row and going on to the other streams, one join each.

A range condition alone would make Spark compare all rows of a key, in one task. So the axis of a window is cut into buckets as
wide as the window, the first row is sent to the two or three buckets it can reach, and the join is an equality on (shard, key,
bucket). A key with half of all rows is then spread over as many tasks as there are windows in the data, and what is left of
skew Spark's adaptive execution splits.

Shards are joins of their own: each archived the rows that went to it and logged what it shed. Where rows go to several shards
of a join graph, those of a result meet in one only, so it is missing there or nowhere. Where every row probes all shards
(predicates), each is archived in the shard that stores it, and all shards are looked at as one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import permutations
from typing import TYPE_CHECKING, Any

from shedjoin.join_type import FIRSTS, PAIRS
from shedjoin.spark.archive import ID, Archive
from shedjoin.spark.conditions import attribute, attributes_hold, predicate_holds
from shedjoin.spark.keys import quoted
from shedjoin.spark.settled import Clocks, clocks_of, settled_rows, without_too_late
from shedjoin.spark.where import filtered
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Records of the shed log that stand for rows which were not there: `partial` ones are in `left_out`.
DROPPED, LATE, LEFT = "dropped", "late", ("evicted", "schedule")


def missing_results(archive: Archive, after: int | None = None) -> DataFrame:
    """Every missing result once: `_sj_shard`, of each stream a row number `_sj_seq_...` and a time `_sj_ts_...`, and its row as
    a struct of the stream's name. Of a join graph also what names a row in all shards: `_sj_batch_...`, `_sj_id_...`.

    A result belongs to the last of its rows' batches: what made it missing is known by then. So the results of batches 0 to 4 and
    those of 5 to 9 are those of 0 to 9. `after`: batches up to this one are done.
    """

    counts = arrivals(archive)
    sides = [_rows(archive, stream, counts) for stream in _all(archive)]
    how, parts = archive.how, []
    judged = how.judged if how.gives == FIRSTS else how.preserved
    clocks = clocks_of(archive) if judged else {}
    if how.gives == PAIRS:
        parts.append(_missing_pairs(archive, sides, clocks, after))
    for stream in judged:
        meets = partial(_exactly_met, archive, sides, stream=stream)
        parts.append(settled_rows(archive, stream, clocks, sides, meets, after, matched=how.gives == FIRSTS))
    return reduce(lambda one, two: one.unionByName(two), parts)


def _exactly_met(archive: Archive, sides: list[DataFrame], rows: DataFrame, stream: int) -> DataFrame:
    """The results of the exact join that begin with some rows of one stream, wherever the others lie."""
    from pyspark.sql import functions as F

    others = [other for other in _all(archive) if other != stream]
    bounds = {"seen": 0, "first": -(2**62), "last": 2**62}  # as if each row had missed all that came before it
    everything = {
        f"r{stream}_{what}{other}": F.lit(bound).cast("bigint") for what, bound in bounds.items() for other in others
    }
    return _met(archive, rows.withColumns(everything), sides, stream, _ways)


def _missing_pairs(archive: Archive, sides: list[DataFrame], clocks: Clocks, after: int | None) -> DataFrame:
    """The pairs, or results of n rows, that are missing."""
    from pyspark.sql import functions as F

    found = [_lost_by(archive, sides, stream) for stream in _all(archive)]
    if archive.left_out is not None:
        found += [_left_out_by(archive, sides, stream) for stream in _all(archive)]
    whole = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), found)
    if archive.how.preserved:
        whole = without_too_late(archive, clocks, whole, sides, partial(_exactly_met, archive, sides))
    if after is not None:
        whole = whole.where(F.greatest(*(F.col(f"r{stream}_batch") for stream in _all(archive))) > after)
    columns = archive.known_by
    named = list(enumerate(archive.names))
    return whole.select(
        F.col("shard").alias("_sj_shard"),
        *(F.col(f"r{stream}_{what}").alias(f"_sj_{what}_{name}") for what in columns for stream, name in named),
        *(F.col(f"r{stream}_row").alias(name) for stream, name in named),
    )


def _all(archive: Archive) -> range:
    return range(len(archive.names))


# ----------------------------------------------------------------------------------------------------------- the rows


def _rows(archive: Archive, stream: int, counts: DataFrame | None) -> DataFrame:
    """The rows of a stream that can have partners: `r0_...`.

    `seen` of each other stream is from the shed log (dropped: 0), null for rows that were not shed; of late rows `came` and
    `expired` say which rows of it they did not meet: those before a number, up to a time. `out` of each other stream has the
    stretches that were not compared, `first` and `last` the times between which they lie. `after`, with row windows, is what
    had arrived of a stream by the end of the row's instant.
    """
    from pyspark.sql import functions as F

    mine, others = f"r{stream}", [other for other in _all(archive) if other != stream]
    records, known = _records(archive, stream, others), archive.known_in_log
    rows = _with_keys(archive, stream).join(records, known, "left")
    more = [f"{mine}_{what}{other}" for what in ("seen", "came", "expired") for other in others]
    if archive.left_out is not None:
        keys = ["_sj_seq"] if archive.spread else ["_sj_shard", "_sj_seq"]
        rows = rows.join(_stretches(archive.left_out, stream, others, keys), keys, "left")
        more += [f"{mine}_{what}{other}" for other in others for what in ("out", "first", "last")]
    if counts is not None:
        rows = rows.join(counts, ["sj_batch", "_sj_ts"], "left")
    arrived = [F.col(f"_after_{archive.names[other]}").alias(f"{mine}_after{other}") for other in others]
    numbers = (("_sj_shard", "shard"), ("_sj_seq", "seq"), ("_sj_ts", "ts"), ("sj_batch", "batch"), ("_sj_row", "row"))
    named = [*numbers, *([(ID, "id")] if archive.has_copies else [])]
    return rows.select(
        F.lit(0).alias("shard") if archive.spread or archive.moves else F.col("_sj_shard").alias("shard"),
        F.col("_sj_key").alias("key" if archive.keyed else f"{mine}_key"),
        *(F.col(there).alias(f"{mine}_{name}") for there, name in named),
        *more,
        F.coalesce("_sj_late", F.lit(False)).alias(f"{mine}_late"),
        *(arrived if counts is not None else ()),
    )


def _with_keys(archive: Archive, stream: int) -> DataFrame:
    """The rows that are not null; the user's columns, whatever their names, in one struct."""
    from pyspark.sql import functions as F

    rows, own = archive.side(stream), archive.row_columns
    payload = [F.col(f"`{name.replace('`', '``')}`") for name in rows.columns if name not in own]
    return rows.where(F.col("_sj_key").isNotNull()).select(*own, F.struct(*payload).alias("_sj_row"))


def _records(archive: Archive, stream: int, others: list[int]) -> DataFrame:
    """What the shed log says of the rows of a stream that were not there, or that others were not there for."""
    from pyspark.sql import functions as F

    why = F.col("why")

    def of(other: int) -> dict[str, Column]:
        seen, expired = (F.col(quoted(f"{what}_{archive.names[other]}")) for what in ("seen", "expired"))
        return {
            "seen": F.when(why == DROPPED, 0).when(why.isin(*LEFT), seen),
            "came": F.when(why == LATE, seen),
            "expired": F.when(why == LATE, expired),
        }

    named = archive.logged(stream, (DROPPED, LATE, *LEFT)).groupBy(*archive.known_in_log)
    said = [(f"r{stream}_{what}{other}", column) for other in others for what, column in of(other).items()]
    late = F.coalesce(F.max(why == LATE), F.lit(False)).alias("_sj_late")
    return named.agg(*(F.min(column).alias(name) for name, column in said), late)


def _stretches(log: DataFrame, stream: int, others: list[int], keys: list[str]) -> DataFrame:
    """What each row of a stream was not compared with."""
    from pyspark.sql import functions as F

    mine = log.where(F.col("stream") == stream).withColumnsRenamed({"shard": "_sj_shard", "seq": "_sj_seq"})
    stretch = F.struct("_sj_shard", "lo_ts", "lo_seq", "hi_ts", "hi_seq")

    def of(other: int, column: Column | str) -> Column:
        return F.when(F.col("other") == other, column if not isinstance(column, str) else F.col(column))

    return mine.groupBy(*keys).agg(
        *(
            made.alias(f"r{stream}_{what}{other}")
            for other in others
            for what, made in (
                ("out", F.collect_list(of(other, stretch))),
                ("first", F.min(of(other, "lo_ts"))),
                ("last", F.max(of(other, "hi_ts"))),
            )
        )
    )


def arrivals(archive: Archive) -> DataFrame | None:
    """How many rows of each stream had arrived after each instant; None: no window asks for it.

    An instant is the rows of one batch and time, of all shards: with row windows rows are numbered over all of them. Instants
    follow one another by (batch, time). Batches are few: of each the first numbers are worked out, and then all are counted.
    Of a stream with a row window the last rows are enough: before the first of them nothing is asked.
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

    def reached(frame: Any, name: str, first: Any) -> Column:
        return F.coalesce(F.max(name).over(frame) + 1, first)

    batches = Over.orderBy("sj_batch").rowsBetween(Over.unboundedPreceding, -1)
    begun = (
        rows.groupBy("sj_batch")
        .agg(*[F.max(name).alias(name) for name in sides])
        .select("sj_batch", *(reached(batches, name, F.lit(0)).alias(f"_first_{name}") for name in sides))
    )
    until = Over.partitionBy("sj_batch").orderBy("_sj_ts").rowsBetween(Over.unboundedPreceding, Over.currentRow)
    instants = rows.groupBy(*keys).agg(*[F.max(name).alias(name) for name in sides])
    return instants.join(F.broadcast(begun), "sj_batch").select(
        *keys, *[reached(until, name, F.col(f"_first_{name}")).alias(f"_after_{name}") for name in sides]
    )


# -------------------------------------------------------------------------------------------------------- the results


def _lost_by(archive: Archive, sides: list[DataFrame], culprit: int) -> DataFrame:
    """The results that are missing because rows of one stream were dropped, had left, or came when others had expired."""
    from pyspark.sql import functions as F

    first = next(stream for stream in _all(archive) if stream != culprit)
    gone = sides[culprit].where(F.coalesce(f"r{culprit}_seen{first}", f"r{culprit}_came{first}").isNotNull())
    earlier = [~_has_missed(archive, stream) for stream in range(culprit)]
    return _met(archive, gone, sides, culprit, _ways).where(
        reduce(operator.and_, earlier, _has_missed(archive, culprit))
    )


def _left_out_by(archive: Archive, sides: list[DataFrame], newest: int) -> DataFrame:
    """The results that are missing only because their newest row, one of this stream, left another out."""
    from pyspark.sql import functions as F

    others = [stream for stream in _all(archive) if stream != newest]
    partly = sides[newest].where(F.col(f"r{newest}_out{others[0]}").isNotNull())
    there = [~_has_missed(archive, stream) for stream in _all(archive)]
    came = [_is_after(newest, other) for other in others]
    left_out = reduce(operator.or_, (_is_left_out(archive, newest, other) for other in others))
    return _met(archive, partly, sides, newest, _ways_back).where(reduce(operator.and_, [*there, *came], left_out))


def _met(
    archive: Archive,
    met: DataFrame,
    sides: list[DataFrame],
    first: int,
    ways: Callable[[Archive, int, int], Iterator[_Way]],
) -> DataFrame:
    """The results of the exact join that begin with some rows of one stream."""
    from pyspark.sql import functions as F

    others, there = [stream for stream in _all(archive) if stream != first], [first]
    while others:
        stream = min(others, key=lambda other: -len(_equal(archive, there, other)))  # the first of those linked most
        others.remove(stream)
        met = _meet(archive, met, sides[stream], there, stream, list(ways(archive, first, stream)))
        pairs = [pair for one in there for pair in permutations((one, stream))]
        holds = [_in_window(archive, *pair) for pair in pairs]
        if archive.graph is not None:
            holds += attributes_hold(archive.graph, there, stream)
        if archive.predicate is not None:
            holds.append(predicate_holds(archive.predicate, _key(0), _key(1)))
        met = met.where(reduce(operator.and_, holds))
        there.append(stream)
    if archive.where is None:
        return met
    columns = {name: F.col(f"r{stream}_row")[column] for name, stream, column, _ in archive.where.columns}
    return filtered(met, [archive.where.sql], columns)


def _key(stream: int) -> Column:
    from pyspark.sql import functions as F

    return F.col(f"r{stream}_key")


@dataclass(frozen=True, slots=True)
class _Way:
    """One way in which a row y of another stream lies to the first row x, as an equality on buckets of an axis.

    `place` is where y lies there, `low` and `high` (both included) what x reaches, `width` that of a bucket.
    """

    place: Column
    low: Column
    high: Column
    width: int
    fits: Column | None = None  # ways do not overlap

    def buckets(self, tag: int | None) -> Column:
        """Where x can find y."""
        from pyspark.sql import functions as F

        step = F.lit(self.width).cast("bigint")
        found = F.sequence(_bucket(self.low, self.width), _bucket(self.high, self.width), step)
        if tag is not None:
            found = F.transform(found, lambda begin: F.struct(F.lit(tag).alias("way"), begin.alias("begin")))
        return F.when(self.low <= self.high, found)

    def bucket(self, tag: int | None) -> Column:
        """Where y is."""
        from pyspark.sql import functions as F

        begin = _bucket(self.place, self.width)
        return begin if tag is None else F.struct(F.lit(tag).alias("way"), begin.alias("begin"))


def _bucket(place: Column, width: int) -> Column:
    """Where the bucket begins in which a place lies."""
    from pyspark.sql import functions as F

    return (place - F.pmod(place, F.lit(width))).cast("bigint")


def _meet(
    archive: Archive, met: DataFrame, rows: DataFrame, there: list[int], stream: int, ways: list[_Way]
) -> DataFrame:
    """Rows of one more stream, of the same key, that are near the first row."""
    from pyspark.sql import functions as F

    keys = ["shard", *(["key"] if archive.keyed else [])]
    for place, (theirs, mine) in enumerate(_equal(archive, there, stream)):
        keys.append(f"key{place}")
        met, rows = met.withColumn(keys[-1], theirs), rows.withColumn(keys[-1], mine)
    tags = [None] if len(ways) == 1 else list(range(len(ways)))
    both = list(zip(ways, tags, strict=True))
    nothing = F.array()
    reached = F.concat(*(F.coalesce(way.buckets(tag), nothing) for way, tag in both))
    met = met.withColumn("bucket", F.explode(reached))
    rows = rows.withColumn("bucket", F.explode(F.array(*(way.bucket(tag) for way, tag in both))))
    keys.append("bucket")
    found = met.join(rows, keys)
    fits = [
        (F.lit(True) if tag is None else F.col("bucket")["way"] == tag)
        & way.place.between(way.low, way.high)
        & (F.lit(True) if way.fits is None else way.fits)
        for way, tag in both
    ]
    return found.where(reduce(operator.or_, fits)).drop(*(name for name in keys if name not in ("shard", "key")))


def _ways(archive: Archive, x: int, y: int) -> Iterator[_Way]:
    """All ways: y came after x, in the same instant, or before."""
    from pyspark.sql import functions as F

    own, other = archive.windows[x], archive.windows[y]
    if isinstance(own, TimeWindow) and isinstance(other, TimeWindow):
        ts = F.col(f"r{x}_ts")
        width = max(own.length, other.length)
        yield _Way(F.col(f"r{y}_ts"), ts - (other.length - 1), ts + (own.length - 1), width)
        return
    later = _came(x) < _came(y)
    if isinstance(own, RowWindow):  # how many rows of x's stream there were when y came
        seq = F.col(f"r{x}_seq")
        yield _Way(F.col(f"r{y}_after{x}"), seq + 1, seq + own.rows, own.rows, later)
    else:
        yield _Way(F.lit(0), F.lit(0), F.lit(0), 1, later)
    # Of two streams only rows that were dropped or late have missed what had come before.
    chosen = F.coalesce(F.col(f"r{x}_seen{y}") == 0, F.lit(False)) | F.col(f"r{x}_came{y}").isNotNull()
    yield from _ways_back(archive, x, y, chosen if len(archive.names) == 2 else None)


def _ways_back(archive: Archive, x: int, y: int, chosen: Column | None = None) -> Iterator[_Way]:
    """The ways to rows that came before x; in time no farther than what x left out, if there is one other stream only."""
    from pyspark.sql import functions as F

    own, other = archive.windows[x], archive.windows[y]
    if isinstance(own, TimeWindow) and isinstance(other, TimeWindow):
        (reach,) = _ways(archive, x, y)
        if len(archive.names) == 2:
            low = F.greatest(reach.low, F.col(f"r{x}_first{y}"))
            high = F.least(reach.high, F.col(f"r{x}_last{y}"))
            reach = _Way(reach.place, low, high, reach.width)
        yield reach
        return
    ts, after = F.col(f"r{x}_ts"), F.col(f"r{x}_after{y}")
    last = F.lit(True) if chosen is None else chosen
    yield _Way(F.col(f"r{y}_ts"), ts, F.when(last, ts), 1, _came(y) == _came(x))
    earlier = _came(y) < _came(x)
    if isinstance(other, RowWindow):
        yield _Way(F.col(f"r{y}_seq"), after - other.rows, F.when(last, after - 1), other.rows, earlier)
    else:
        yield _Way(F.lit(0), F.lit(0), F.when(last, 0), 1, earlier)


def _equal(archive: Archive, there: list[int], stream: int) -> list[tuple[Column, Column]]:
    """Of a join graph: attributes of the rows that are there, and those of one more stream that they must be equal to."""
    if archive.graph is None:
        return []
    found = []
    for one in archive.graph.equalities:
        for other in there:
            if {one.left, one.right} == {other, stream}:
                _, mine, _, theirs = one.seen_from(stream)
                found.append((attribute(other, theirs), attribute(stream, mine)))
    return found


def _came(stream: int) -> Column:
    """The instant of a row."""
    from pyspark.sql import functions as F

    return F.struct(f"r{stream}_batch", f"r{stream}_ts")


def _is_after(one: int, other: int) -> Column:
    """Whether a row came after another; inside an instant rows come in the order of streams."""
    return _came(other) <= _came(one) if other < one else _came(other) < _came(one)


def _in_window(archive: Archive, one: int, other: int) -> Column:
    """Whether a row of one stream was in its window when that of another came."""
    from pyspark.sql import functions as F

    match archive.windows[one]:
        case TimeWindow(length):
            return F.col(f"r{other}_ts") - F.col(f"r{one}_ts") < length
        case RowWindow(rows):
            seq, arrived = F.col(f"r{one}_seq"), F.col(f"r{other}_after{one}")
            return (_came(other) <= _came(one)) | (seq >= arrived - rows)


def _has_missed(archive: Archive, stream: int) -> Column:
    """Whether a row had left when one of the others came, or came when one of them had expired."""
    from pyspark.sql import functions as F

    def missed(other: int) -> list[Column]:
        seq, ts = F.col(f"r{other}_seq"), F.col(f"r{other}_ts")
        seen, came, expired = (F.col(f"r{stream}_{what}{other}") for what in ("seen", "came", "expired"))
        return [seq >= seen, (seq < came) & (ts <= expired)]

    reasons = [reason for other in _all(archive) if other != stream for reason in missed(other)]
    return reduce(operator.or_, (F.coalesce(reason, F.lit(False)) for reason in reasons))


def _is_left_out(archive: Archive, newest: int, other: int) -> Column:
    """Whether a row was not compared with that of another stream."""
    from pyspark.sql import functions as F

    ts = F.col(f"r{other}_ts") if isinstance(archive.windows[other], TimeWindow) else F.lit(0).cast("bigint")
    place = F.struct(ts, F.col(f"r{other}_seq"))

    def holds(stretch: Column) -> Column:
        low, high = (F.struct(stretch[f"{end}_ts"], stretch[f"{end}_seq"]) for end in ("lo", "hi"))
        return (stretch["_sj_shard"] == F.col(f"r{other}_shard")) & (low <= place) & (place < high)

    return F.exists(F.col(f"r{newest}_out{other}"), holds)
