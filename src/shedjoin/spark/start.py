"""`start`: one query that writes results, shed log, metrics and, if asked, an archive of the input, each exactly once."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Unpack

from shedjoin.errors import SpecError
from shedjoin.plain_dict import make_policy
from shedjoin.spark import reshard
from shedjoin.spark.batch_writer import BatchWriter, Outputs, Sink
from shedjoin.spark.checkpoint_files import written_for
from shedjoin.spark.compatibility import changes, check_same, kept_policy, lasting
from shedjoin.spark.host_cache import forget
from shedjoin.spark.inputs import is_connect
from shedjoin.spark.join import plan_join
from shedjoin.spark.join_args import JoinArgs, complete, takes_join_args
from shedjoin.spark.lock import Owner
from shedjoin.spark.output_tables import BATCH
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.sources import Sink as SparkSink
from shedjoin.spark.weights import check_weights_before

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "job.json"
FORMAT = 4
#: What may change from one start to the next, and is noted in the job when it does.
NOTED = ("budget", "policy", "shards", "columns", "deadline", "front", "rear", "target", "error")


@takes_join_args
def start(
    left: DataFrame,
    right: DataFrame,
    *more: DataFrame,
    output: str | os.PathLike[str],
    archive: bool = False,
    recall: bool = True,
    sink: Sink | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
    **args: Unpack[JoinArgs],
) -> StreamingQuery:
    """Start a query that writes results, shed log and metrics.

    `output` has Parquet files: `results`, `shed` (the shed log), `left_out` (with a deadline: the skipped comparisons),
    `metrics` (one row for each shard and micro-batch), `archive/left` and `archive/right` (the input with row numbers; three
    and more streams by their names). Each has one directory for each micro-batch. The shards write these files, and the driver
    renames them into place when all are complete. A micro-batch that is repeated after a failure replaces its directories, so
    every row is written exactly once. `job.json` describes the query. Without `shards`, a query that continues keeps its
    number of shards.

    Parameters
    ----------
    left, right, more
        Streaming DataFrames.
    output
        A directory; on a cluster one that all machines can access.
    archive
        Keep the input, so that `refine` can complete the join.
    recall
        Estimate the share of delivered results, with its limits, while the query runs (in `metrics`).
    sink
        A function of the results of a micro-batch and its number, instead of the directory `results`. After a failure it may
        be called again with the same number: it must then replace its earlier output.
    checkpoint
        Default: `checkpoint` below `output`.
    trigger
        As in Spark, such as {"processingTime": "10 seconds"} or {"availableNow": True}.
    name
        Of the query.
    """
    if not isinstance(recall, bool):
        raise SpecError(f"recall must be True or False, not {recall!r}")
    folder = output_folder(output)
    args = complete(args, start)
    _check_trigger(trigger)
    before = found(folder, checkpoint)
    if before is not None and args["shards"] is None:
        args["shards"] = before["shards"]
    cube, partitions = (
        (None, None) if before is None else (before.get("cube"), _pinned(before, args, folder, checkpoint))
    )
    plan = replace(plan_join((left, right, *more), args, cube=cube, partitions=partitions), recall=recall)
    if plan.target is not None and not recall:
        raise SpecError("target: memory follows recall, so recall=False leaves it nothing to follow")
    goes_on = before is not None and has_batches(folder)
    if before is not None and goes_on:
        plan = plan.going_on(before["stored"])
        if plan.weights:
            check_weights_before(before["spec"].get("budget"), make_policy(before["spec"]["policy"]))
    if not plan.streaming:
        raise SpecError("start takes streaming DataFrames: join batch DataFrames with shed_join and write the result")
    _check_names(plan, archive, sink)
    job = job_of(plan, archive, None if checkpoint is None or is_default(folder, checkpoint) else str(checkpoint))
    check_before(before, job, folder)
    if before is not None and goes_on:
        check_shards(before, job, checkpoint_of(folder, checkpoint))
        job = going_on(before, job)
    if isinstance(sink, SparkSink):
        sink.check(left.sparkSession)
    owner = Owner.of(folder)
    try:
        if before is not None and goes_on and before["shards"] != job["shards"]:
            _reshard(plan, folder, before, job, checkpoint_of(folder, checkpoint))
        else:
            write_job(folder, job)
        owner.query = query = _started(plan, folder, archive, sink, checkpoint, trigger, name)
    except BaseException:
        owner.release()
        raise
    if not is_connect(left.sparkSession):  # of Spark Connect no end is told: there the owner is this process
        from shedjoin.spark.query_events import at_end

        at_end(left.sparkSession, query, partial(_end, plan, owner))
    return query


def _pinned(
    before: dict[str, Any], args: JoinArgs, folder: str, checkpoint: str | os.PathLike[str] | None
) -> int | None:
    """The partitions of a state that keeps its shards: Spark takes them from the checkpoint."""
    path = checkpoint_of(folder, checkpoint)
    return reshard.partitions_of(path) if args["shards"] == before["shards"] and "://" not in path else None


def found(folder: str, checkpoint: str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """The job of an output directory; a change of its shards that a crash has stopped is brought to its end."""
    path = checkpoint_of(folder, checkpoint)
    if reshard.is_unfinished(path):
        owner = Owner.of(folder)
        try:
            reshard.finish(path, partial(write_job, folder))
        finally:
            owner.release()
    return read_job(folder)


def going_on(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The job of a query that goes on, with what has changed so far, and when."""
    if (kept := kept_policy(before["spec"], now["spec"])) is not None:
        now["spec"]["policy"] = kept
    was, is_now = ({name: job["spec"].get(name, job.get(name)) for name in NOTED} for job in (before, now))
    what = changes(was, is_now, timestamps=now["timestamps"])
    at = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "what": what}
    noted = (
        [] if what is None else [at | ({"budget_before": was["budget"]} if was["budget"] != is_now["budget"] else {})]
    )
    return now | {"changes": [*before.get("changes", []), *noted], "moves": before.get("moves", [])}


def _reshard(plan: JoinPlan, folder: str, before: dict[str, Any], now: dict[str, Any], checkpoint: str) -> None:
    """Give the checkpoint another number of shards, and write the job that it has then."""
    old = replace(plan.stored_by(before["labels"], before["spec"]), cache=False)
    spec = now["spec"] | {"policy": before["spec"]["policy"], "budget": before["spec"].get("budget")}
    try:
        new = plan.stored_by(now["labels"], spec)
    except SpecError:  # the old policy has no meaning for several shards
        new = plan.stored_by(now["labels"], now["spec"])
    reshard.move(plan.sides[0].sparkSession, old, new, checkpoint, now)
    reshard.swap(checkpoint, partial(write_job, folder))


def check_shards(before: dict[str, Any], now: dict[str, Any], checkpoint: str) -> None:
    """Whether the number of shards may change."""
    if before["shards"] == now["shards"]:
        return
    reason = reshard.why_not(before, now, checkpoint)
    if reason is None and reshard.last_committed(checkpoint) is None:
        reason = "its first micro-batch is not committed yet"
    if reason is not None:
        raise SpecError(
            f"shards: the query began with {before['shards']} and cannot go on with {now['shards']}: {reason}"
        )


def _end(plan: JoinPlan, owner: Owner) -> None:
    owner.release()
    forget(plan.query, plan.cache)


def _started(
    plan: JoinPlan,
    folder: str,
    archive: bool,
    sink: Sink | None,
    checkpoint: str | os.PathLike[str] | None,
    trigger: dict[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """The query that runs a plan."""
    outputs = Outputs.of(plan, folder, archive=archive, results=sink is None)
    place = checkpoint_of(folder, checkpoint)
    writer = (
        plan.blobs(outputs.kinds, outputs.files)
        .writeStream.foreachBatch(BatchWriter(outputs, sink))
        .option("checkpointLocation", place)
    )
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    with written_for(plan.sides[0].sparkSession, place):
        return writer.start()


#: Of Spark's `DataStreamWriter.trigger`.
TRIGGERS = ("processingTime", "availableNow", "once", "continuous", "realTime")


def _check_trigger(trigger: object) -> None:
    """Spark itself raises errors of many kinds."""
    if trigger is not None and not (isinstance(trigger, dict) and len(trigger) == 1 and {*trigger} <= {*TRIGGERS}):
        raise SpecError(
            'trigger must be a dict with one setting of Spark, such as {"processingTime": "10 seconds"} or '
            f'{{"availableNow": True}}, not {trigger!r}'
        )


def output_folder(output: object, *, argument: str = "output") -> str:
    """The output directory, as text; a clear word if it cannot be one."""
    path = os.fspath(output) if isinstance(output, str | os.PathLike) else None
    if not isinstance(path, str) or not path.strip():
        raise SpecError(f"{argument} must be the path of a directory, as text or a Path, not {output!r}")
    if "://" in path:
        raise SpecError(
            f"{argument} must be the path of a directory, not an address: {path!r} (results can go to one by a sink)"
        )
    check_directory(path, argument=argument)
    check_writable(path, argument=argument)
    return path


def check_directory(path: str, *, argument: str) -> None:
    """A clear word if a path of this machine is one of a file."""
    place = path.removeprefix("file://")
    if "://" not in place and os.path.exists(place) and not os.path.isdir(place):
        raise SpecError(f"{argument} must be a directory, but {path} is a file")


def check_writable(path: str, *, argument: str) -> None:
    """A clear word if a directory of this machine cannot be made or written to. Tried out: root may do what no mode allows."""
    there = next(one for one in (Path(path).absolute(), *Path(path).absolute().parents) if one.exists())
    try:
        os.rmdir(mkdtemp(prefix=".shedjoin-", dir=there))
    except OSError as reason:
        where = "" if there == Path(path).absolute() else f", because {there} cannot be written to"
        raise SpecError(f"{argument}: the directory {path} cannot be written{where}: {reason.strerror}") from None


def checkpoint_of(folder: str, given: str | os.PathLike[str] | None) -> str:
    """Where the checkpoint of an output directory is."""
    return f"{folder}/checkpoint" if given is None else str(given)


def _check_names(plan: JoinPlan, archive: bool, sink: Sink | None) -> None:
    """Names that are written beside the user's."""
    taken = [BATCH, *(name for name, _ in plan.archived)]
    written = {f"the column {one.name!r} of the result": one.name for one in plan.out} if sink is None else {}
    if archive:
        for side, frame in enumerate(plan.sides):
            written |= {f"{plan.names[side]}.{name}": name for name in frame.columns}
    for what, name in written.items():
        if name in taken:
            raise SpecError(f"{what} needs another name: shedjoin writes columns named {', '.join(taken)}")


def _check_checkpoint(folder: str, before: dict[str, Any], given: str | os.PathLike[str] | None) -> None:
    """An output directory belongs to one checkpoint: the batches of two would overwrite one another."""
    was, now = (checkpoint_of(folder, path) for path in (before["checkpoint"], given))
    if _whole(was) != _whole(now):
        raise SpecError(
            f"checkpoint was {was} when {folder} was begun and is {now} now: start with another output directory, or put it back"
        )
    if "://" not in now and not Path(now).exists() and has_batches(folder):
        raise SpecError(
            f"{folder} has results, but its checkpoint {now} is gone: a query that begins anew would mix its batches with the "
            "old ones, so start with another output directory"
        )


def is_default(folder: str, checkpoint: str | os.PathLike[str]) -> bool:
    return _whole(str(checkpoint)) == _whole(checkpoint_of(folder, None))


def _whole(path: str) -> str:
    """A path that means the same wherever one is."""
    return path if "://" in path else os.path.abspath(path)


def job_of(plan: JoinPlan, archive: bool, checkpoint: str | None) -> dict[str, Any]:
    """What is run, as data. `checkpoint` is None if it lies where it does by default, and so moves with the output."""
    return {
        "format": FORMAT,
        "spec": plan.spec.to_dict(),
        "shards": len(plan.labels),
        "labels": list(plan.labels),
        "seed": plan.seed,
        "on": [list(pair) for pair in plan.condition.keys.pairs],
        "time": list(plan.times),
        "importance": list(plan.importances),
        **({"kind": list(plan.kinds)} if any(plan.kinds) else {}),
        "streams": list(plan.names),
        "columns": [[one.name, plan.names[one.side], one.source] for one in plan.out],
        "stored": [plan.needed(side) for side in range(len(plan.names))],
        "moves": [],
        "signature": plan.signature,
        "archive": archive,
        "checkpoint": None if checkpoint is None else _whole(checkpoint),
        "deadline": plan.deadline,
        **({} if plan.target is None else {"target": plan.target}),
        **({} if plan.error is None else {"error": plan.error.to_dict()}),
        **({"front": list(plan.front)} if any(plan.front) else {}),
        **({} if plan.spec.dual is None else {"rear": plan.spec.dual.rear}),
        "timestamps": plan.timestamps,
        **({} if plan.where is None else {"where": plan.where.clause.text, "where_sql": plan.where.plain()}),
        **({"cube": list(plan.condition.cube.shares)} if plan.condition.copied else {}),
    }


def write_job(folder: str, job: dict[str, Any]) -> None:
    """Say what is run, for `refine` and for the next start."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    part = Path(folder, f".{JOB}.{os.getpid()}")
    part.write_text(json.dumps(job, indent=2) + "\n")
    part.replace(Path(folder, JOB))


def check_before(before: dict[str, Any] | None, now: dict[str, Any], folder: str) -> None:
    """A query that goes on in an output directory is the one that was begun there. Of jobs as plain data."""
    if before is None:
        return
    if before["archive"] != now["archive"]:
        was = "with" if before["archive"] else "without"
        raise SpecError(
            f"archive: the query in {folder} began {was} an archive, which cannot change: set archive to "
            f"{before['archive']}, or start with a new output directory"
        )
    _check_checkpoint(folder, before, now["checkpoint"])
    if has_batches(folder):
        check_compatible(before, now, folder)


def check_compatible(before: dict[str, Any], now: dict[str, Any], folder: str) -> None:
    """What may not change while a checkpoint lives has not. The shards look at more, but only when there are rows."""
    parts = [
        name
        for name in (
            *(["shards"] if "cube" in now else []),
            *("cube", "seed", "on", "where", "time", "importance", "kind", "streams"),
        )
        if name in now or (name == "where" and name in before)
    ]
    specs = [lasting(job["spec"]) for job in (before, now)]
    others = [{name: job.get(name) for name in parts} for job in (before, now)]
    for was, is_now in (specs, others):
        check_same(json.loads(json.dumps(was)), json.loads(json.dumps(is_now)), timestamps=now["timestamps"])


def has_batches(folder: str | os.PathLike[str]) -> bool:
    """Whether a query has done some of its work there."""
    return any(Path(folder, "metrics").glob("batch=*"))


def read_job(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What `start` wrote there; None if nothing was started there yet."""
    path = Path(folder, JOB)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        data: dict[str, Any] = json.loads(text)
        known = data["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        raise SpecError(f"{path} is not the job file of a shedjoin query") from None
    if not known:
        raise SpecError(f"{path} has format {data['format']}, this shedjoin reads format {FORMAT}")
    return data
