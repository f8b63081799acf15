"""The output directory of `start`, read again: its archive, and which batches are complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from shedjoin.engine.codes import SAME
from shedjoin.engine.graph import Graph, parse
from shedjoin.errors import InputError
from shedjoin.join_type import TYPES
from shedjoin.predicates import Predicate
from shedjoin.spark.archive import ID, LEFT_OUT_DDL, Archive, Layout, Move, shed_ddl
from shedjoin.spark.keys import SIDES, quoted
from shedjoin.spark.refine_log import read_if_there
from shedjoin.spark.start import checkpoint_of, read_job
from shedjoin.spark.value_columns import ARCHIVED_VALUES
from shedjoin.spark.where import Filter, filter_of
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERS = "_sj_shard int, _sj_seq bigint, _sj_key {key}, _sj_ts bigint, _sj_imp double, sj_batch int"


def open_archive(folder: str, spark: SparkSession | None = None) -> tuple[Archive, int]:
    """The archive of an output directory, and the last batch that is complete (-1: none)."""
    job = check_archive(folder)
    spark = spark or active_session()
    last = last_complete(spark, folder, checkpoint_of(folder, job["checkpoint"]))
    names = tuple(job.get("streams", SIDES))  # directories of two streams may be older than the word
    layout = Layout(
        tuple(tuple(key) for key in job["on"]),
        tuple((name, names.index(side), source) for name, side, source in job["columns"]),
        names,
    )
    spec = JoinSpec.from_dict(job["spec"])
    layout = replace(layout, alone=spec.how != "inner")
    graph = parse(spec.on, names) if "cube" in job and not isinstance(spec.on, Predicate) else None
    predicate = spec.on if isinstance(spec.on, Predicate) and spec.on.code != SAME else None
    if graph is not None:
        layout = replace(layout, equal=tuple(_ends(graph)))
    numbers, where = _numbers(graph, predicate, copied="cube" in job), filter_of(job.get("where_sql"))
    left, right, *more = (
        table(spark, f"{folder}/archive/{side}", _nothing(layout, stream, graph, where, numbers))
        for stream, side in enumerate(names)
    )
    shed = table(spark, f"{folder}/shed", shed_ddl(names))
    leaves_out = spec.selective is not None or spec.dual is not None
    left_out = table(spark, f"{folder}/left_out", LEFT_OUT_DDL) if leaves_out else None
    moves = tuple(Move(one["after"], one["shards"], tuple(one["first"]), tuple(one["start"])) for one in job["moves"])
    archive = Archive(left, right, shed, spec.windows, layout, tuple(more), graph, left_out, predicate, where, moves)
    archive = replace(archive, how=TYPES[spec.how], lateness=spec.lateness, max_skew=spec.max_skew)
    archive = replace(archive, copied=graph is None and "cube" in job)
    if spec.dual is None:
        return archive, last
    archive = replace(archive.upto(last), waits=True)
    return archive, last_through(archive, last)


def last_through(archive: Archive, last: int) -> int:
    """The last batch without a row in an aux-window, once another batch is processed. See `aux_window.py`."""
    from pyspark.sql import functions as F

    times = reduce(lambda one, two: one.unionAll(two), (side.select("sj_batch", "_sj_ts") for side in archive.sides))
    known = times.groupBy("sj_batch").agg(F.max("_sj_ts").alias("newest"), F.count("*").alias("rows")).collect()
    batches = sorted((row["sj_batch"], row["newest"], row["rows"]) for row in known)
    if not batches:
        return last
    sizes = [window.size for window in archive.windows]
    if isinstance(archive.windows[0], TimeWindow):
        through = max(newest for _, newest, _ in batches) - max(sizes)
        return min((batch for batch, newest, _ in batches if newest > through), default=last + 1) - 1
    # As many rows have come behind it as all windows hold, and no row of the newest instant is in it or before it.
    first = times.where(F.col("_sj_ts") == batches[-1][1]).agg(F.min("sj_batch")).collect()[0][0]
    behind = 0
    for batch, _, rows in reversed(batches):
        if behind >= sum(sizes) and batch < first:
            return int(batch)
        behind += rows
    return -1


def _ends(graph: Graph) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """The columns that must be equal."""
    for one in graph.equalities:
        left, right = graph.columns[one.left][one.left_attr], graph.columns[one.right][one.right_attr]
        yield (one.left, left), (one.right, right)


def check_archive(folder: str) -> dict[str, Any]:
    """What was run there; a clear word if it cannot be refined."""
    job = read_job(folder)
    if job is None:
        raise InputError(f"{folder} is not the output directory of a join: it has no job.json")
    if not job["archive"]:
        raise InputError(
            f"{folder} has no archive to refine from: start the query with archive=True and a new output directory"
        )
    return job


def last_complete(spark: SparkSession, folder: str, checkpoint: str) -> int:
    """The last batch that Spark has committed: it is written whole, and will not be repeated. -1: none yet."""
    from pyspark.sql import functions as F

    # Each commit is a small file named by its number; what is being written has a name that Spark's readers pass over.
    commits = read_if_there(spark, "text", f"{checkpoint}/commits")
    names = F.col("_metadata.file_name")
    found = None if commits is None else commits.select(F.max(names.cast("long"))).first()
    if found is not None and found[0] is not None:
        return int(found[0])
    written = table(spark, f"{folder}/metrics", "batch int").agg(F.max("batch")).first()
    if written is not None and written[0]:  # a second batch is begun when the first is committed
        raise InputError(
            f"the checkpoint of {folder} is not at {checkpoint}: which batches are complete is not known without it"
        )
    return -1


def table(spark: SparkSession, path: str, otherwise: str) -> DataFrame:
    """A table with one directory a batch; an empty one of the other schema while there is none."""
    frame = read_if_there(spark, "parquet", path, flat=False)
    return spark.createDataFrame([], otherwise) if frame is None else frame


def _numbers(graph: Graph | None, predicate: Predicate | None, *, copied: bool) -> str:
    """What the join adds to each row, with types."""
    key = "array<bigint>" if graph is not None else "bigint" if predicate is None else ARCHIVED_VALUES[predicate.kind]
    return _NUMBERS.format(key=key) + (f", {ID} bigint" if copied else "")


def _nothing(layout: Layout, stream: int, graph: Graph | None, where: Filter | None, numbers: str) -> str:
    """The columns of a stream without rows: few types are known."""
    names = [pair[stream] for pair in layout.keys]
    names += [source for _, side, source in layout.columns if side == stream]
    names += [] if graph is None else graph.columns[stream]
    kinds = dict.fromkeys(names, "void") | ({} if where is None else where.of(stream))
    return ", ".join([*(f"{quoted(name)} {kind}" for name, kind in kinds.items()), numbers])


def active_session() -> SparkSession:
    """The session in use; a clear word if there is none."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise InputError("there is no Spark session: make one with shedjoin.spark.session(), or pass spark=...")
    return found
