"""`refine`: deliver the missing results from the archive. Results and refined rows together are the exact join.

das2003's load smoothing: shed rows while the stream is too fast for the memory, log them, and complete the results later. It is
a batch job. It may run repeatedly while the query runs, and delivers each missing row once.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from shedjoin.errors import InputError, SpecError
from shedjoin.spark.archive import Archive
from shedjoin.spark.lock import alone_in
from shedjoin.spark.missing import missing_results
from shedjoin.spark.output import open_archive
from shedjoin.spark.refine_log import RefineLog, Step, read_if_there
from shedjoin.spark.start import check_directory
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Refinement:
    """The result of a refinement.

    Attributes
    ----------
    rows
        All refined rows so far: with the results, the exact join.
    count
        The number of these rows.
    new
        The number of rows that this call has added.
    batches
        The last refined batch; None if there was none.
    incomplete
        For each stream, by its name, the rows that had missed a partner and had to be read again.
    """

    rows: DataFrame
    count: int
    new: int
    batches: int | None
    incomplete: dict[str, int]

    @property
    def arm(self) -> int:
        """The Archive-metric of das2003 (ArM): rows of all streams that missed a partner, in the batches refined so far.

        A row counts once, for any number of missed partners and calls. 0: nothing was lost. `quality.arm` computes the
        same for a simulation.
        """
        return sum(self.incomplete.values())


def refine(
    source: str | Path | Archive,
    *,
    into: str | Path | None = None,
    upto: int | None = None,
    spark: SparkSession | None = None,
) -> Refinement:
    """Deliver the missing results of a join, including those of late rows.

    Parameters
    ----------
    source
        The output directory of `start`, written with an archive; or an `Archive` of DataFrames.
    into
        Where refined rows are stored (Parquet, one directory a call), with a list of the finished batches: a later call
        refines only new batches.
        Default: `refined` in the output directory; for an `Archive` nowhere (each call computes all rows again).
    upto
        The last batch to refine. Default: the last complete one.
    spark
        The session. Default: the active one.

    Notes
    -----
    One refinement of a directory at a time: a second one is refused while the first runs.
    """
    check_wishes(into, upto)
    archive, target, last = _opened(source, into, spark)
    upto = last if upto is None else min(upto, last)
    if target is None:
        return _unstored(archive.upto(upto), upto)
    new = 0
    with alone_in(target):
        log = RefineLog(archive.left.sparkSession, f"{target}/_ledger")
        while (step := _next_step(archive, log, upto)) is not None:
            new += _refine_step(archive.upto(step.upto), step, log, target)
        return _so_far(archive, log.done(), target, new)


def check_wishes(into: object, upto: object) -> None:
    """What can be wrong with them, before any work."""
    if into is not None:
        check_directory(os.fspath(into) if isinstance(into, os.PathLike) else str(into), argument="into")
    if upto is not None and (isinstance(upto, bool) or not isinstance(upto, int) or upto < 0):
        raise SpecError(f"upto must be the number of a batch, from 0 on, not {upto!r}")


def _opened(
    source: str | Path | Archive, into: str | Path | None, spark: SparkSession | None
) -> tuple[Archive, str | None, int]:
    """The archive, where refined rows go, and the last complete batch."""
    if isinstance(source, Archive):
        return source, None if into is None else str(into), _last_batch(source)
    archive, last = open_archive(str(source), spark)
    return archive, str(into or f"{source}/refined"), last


def _last_batch(archive: Archive) -> int:
    from pyspark.sql import functions as F

    parts = [side.select(F.col("sj_batch").alias("batch")) for side in archive.sides]
    last = reduce(lambda one, two: one.unionAll(two), parts).agg(F.max("batch")).first()
    return -1 if last is None or last[0] is None else int(last[0])


def _next_step(archive: Archive, log: RefineLog, upto: int) -> Step | None:
    """The unfinished step, if there is one; else the new batches with the same shards."""
    begun = log.unfinished()
    if begun is not None:
        return begun
    done = log.done()
    after = done[-1].upto if done else None
    if upto <= (-1 if after is None else after):
        return None
    moves = [move.after for move in archive.moves if move.after > (-1 if after is None else after)]
    step = Step(after, min([upto, *moves]), arrived=done[-1].arrived if done else {})
    log.plan(step)
    return step


def _refine_step(archive: Archive, step: Step, log: RefineLog, target: str) -> int:
    """Run a step and record it; returns the number of its rows."""
    new = _New.of(archive, step)
    ids = _ids(archive)
    found = _missing(new.reachable(archive), step.after, *ids).persist()
    try:  # readers see the last batch of the step as a column, as they do in `results`
        found.drop(*ids).write.mode("overwrite").parquet(f"{target}/sj_batch={step.upto}")
        rows = found.count()
        notes = f"{target}/_incomplete"
        incomplete = _newly_incomplete(found, archive.names, step, log.done(), notes, new.oldest(archive))
    finally:
        found.unpersist()
    log.finish(replace(step, rows=rows, incomplete=incomplete, arrived=new.arrived))
    return rows


def _so_far(archive: Archive, done: list[Step], target: str, new: int) -> Refinement:
    spark = archive.left.sparkSession
    rows = read_if_there(spark, "parquet", target)
    if rows is None:
        rows = spark.createDataFrame([], _missing(archive).schema)
    return Refinement(
        rows=rows,
        count=sum(step.rows for step in done),
        new=new,
        batches=done[-1].upto if done else None,
        incomplete={name: sum(step.incomplete[stream] for step in done) for stream, name in enumerate(archive.names)},
    )


def _unstored(archive: Archive, last: int) -> Refinement:
    _New.of(archive, Step(None, last))  # checks that the archive is complete
    found = _missing(archive, None, *_ids(archive)).persist()
    incomplete = {name: int(_touched(found, name, 0).count()) for name in archive.names}
    count = found.count()
    found.unpersist()
    return Refinement(_missing(archive), count, count, last if last >= 0 else None, incomplete)


def _missing(archive: Archive, after: int | None = None, *more: str) -> DataFrame:
    """The missing results, and more columns of theirs."""
    assert archive.layout is not None  # Archive fills it in
    return archive.layout.results(missing_results(archive, after), *more)


def _ids(archive: Archive) -> tuple[str, ...]:
    """The columns by which rows are known."""
    return "_sj_shard", *(f"_sj_{what}_{name}" for what in archive.known_by for name in archive.names)


def _touched(found: DataFrame, name: str, stream: int) -> DataFrame:
    """The rows of a stream that missed a partner; those of a join graph once, whichever shard it was in."""
    from pyspark.sql import functions as F

    graph = f"_sj_id_{name}" in found.columns
    shard = f"_sj_shard_{name}" if f"_sj_shard_{name}" in found.columns else "_sj_shard"
    return (
        found.select(
            F.lit(stream).alias("stream"),
            F.col(f"_sj_batch_{name}" if graph else shard).alias("shard"),
            F.col(f"_sj_id_{name}" if graph else f"_sj_seq_{name}").alias("seq"),
            F.col(f"_sj_ts_{name}").alias("ts"),
        )
        .where("seq is not null")
        .distinct()
    )


def _newly_incomplete(
    found: DataFrame, names: Sequence[str], step: Step, done: list[Step], folder: str, oldest: int
) -> tuple[int, ...]:
    """How many rows of each stream missed a partner now and had not before; they are noted for the next time."""
    from pyspark.sql import functions as F

    spark, keys = found.sparkSession, ["stream", "shard", "seq"]
    parts = [_touched(found, name, stream) for stream, name in enumerate(names)]
    touched = reduce(lambda one, two: one.unionAll(two), parts)
    if done:  # of these alone: a step that is done again may have left a note of its own
        known = spark.read.parquet(*(f"{folder}/{earlier.name}" for earlier in done)).where(F.col("ts") >= oldest)
        touched = touched.join(known.select(*keys), keys, "left_anti")
    touched.write.mode("overwrite").parquet(f"{folder}/{step.name}")
    noted = spark.read.parquet(f"{folder}/{step.name}").groupBy("stream").count().collect()
    counts = {row["stream"]: int(row["count"]) for row in noted}
    return tuple(counts.get(stream, 0) for stream in range(len(names)))


@dataclass(frozen=True, slots=True)
class _New:
    """What the batches of a step have brought, of each shard."""

    after: int | None
    before: dict[int, tuple[int, ...]]  # rows of each stream that had arrived, of each shard
    arrived: dict[int, tuple[int, ...]]  # the same at the end of the step
    earliest: int | None  # the smallest time

    @classmethod
    def of(cls, archive: Archive, step: Step) -> _New:
        """Counts the new rows, and checks that none is missing: a gap in the archive would silently make refined rows wrong."""
        from pyspark.sql import functions as F

        totals = {shard: list(counts) for shard, counts in step.arrived.items()}
        numbered = F.col("_sj_shard")
        if archive.counts_over_all:  # rows of a join graph are there once for each copy
            totals = {0: [sum(counts) for counts in zip(*totals.values(), strict=True)]} if totals else {}
            numbered = F.lit(0)
        first = [0] * len(archive.names)
        for move in archive.moves:
            if move.renumbers and step.after is not None and move.after <= step.after:
                first = list(move.start)
                totals = {} if move.after == step.after else totals
        before = {shard: tuple(counts) for shard, counts in totals.items()}
        rows_of = F.countDistinct("_sj_seq") if archive.has_copies else F.count("*")
        earliest: int | None = None
        for stream, name in enumerate(archive.names):
            rows = archive.side(stream)
            if step.after is not None:
                rows = rows.where(F.col("sj_batch") > step.after)
            found = rows.groupBy(numbered.alias("shard")).agg(
                rows_of.alias("rows"),
                F.min("_sj_seq").alias("first"),
                F.max("_sj_seq").alias("last"),
                F.min("_sj_ts").alias("earliest"),
            )
            for row in found.collect():
                counts = totals.setdefault(row["shard"], list(first))
                whose = "there are" if archive.counts_over_all else f"shard {row['shard']} has"
                _check_whole(name, whose, counts[stream], row["rows"], row["first"], row["last"])
                counts[stream] += row["rows"]
                earliest = row["earliest"] if earliest is None else min(earliest, row["earliest"])
        arrived = {shard: tuple(counts) for shard, counts in totals.items()}
        return cls(step.after, before, arrived, earliest)

    def oldest(self, archive: Archive) -> int:
        """No row of a new pair is older than this."""
        if self.earliest is None or any(isinstance(window, RowWindow) for window in archive.windows):
            return -(2**62)
        return self.earliest - max(window.size for window in archive.windows)

    def reachable(self, archive: Archive) -> Archive:
        """The archive without old rows that no new row can reach: they need not be read."""
        from pyspark.sql import functions as F

        if self.after is None or archive.how.name != "inner":  # rows are resolved long after their arrival
            return archive
        sides = [
            side.where(self._keeps(archive, stream, "sj_batch", "_sj_ts", "_sj_seq"))
            for stream, side in enumerate(archive.sides)
        ]
        shed = [
            (F.col("stream") == stream) & self._keeps(archive, stream, "batch", "ts", "seq")
            for stream in range(len(sides))
        ]
        left_out = archive.left_out  # of a result the newest row left something out: it is new
        if left_out is not None:
            left_out = left_out.where(F.col("batch") > self.after)
        return archive.only(sides, archive.shed.where(reduce(operator.or_, shed)), left_out)

    def _keeps(self, archive: Archive, stream: int, batch: str, ts: str, seq: str) -> Column:
        from pyspark.sql import functions as F

        new = F.col(batch) > F.lit(self.after)
        match archive.windows[stream]:
            case TimeWindow(length):
                return new if self.earliest is None else new | (F.col(ts) > self.earliest - length)
            case RowWindow(rows):
                before = sum(counts[stream] for counts in self.before.values())
                return new | (F.col(seq) >= before - rows)


def _check_whole(name: str, whose: str, before: int, rows: int, first: int, last: int) -> None:
    if first != before or last - first + 1 != rows:
        raise InputError(
            f"the archive of {name} is not whole: {whose} {rows} rows with numbers from {first} to {last}, where {before} should "
            "come first and none be left out"
        )
