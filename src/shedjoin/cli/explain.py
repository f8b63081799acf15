"""`shedjoin explain JOB`: show the plan of a job, its memory and its shards; starts nothing."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.cli.preflight import check_job, clause_of, known_of, parts_of, schema_of_files
from shedjoin.cli.stream_job import StreamJob, read_stream_job
from shedjoin.engine.codes import SAME
from shedjoin.error_target import ErrorTarget
from shedjoin.errors import SpecError
from shedjoin.parse import format_bytes, format_duration, format_interval, format_lateness, format_window, parse_policy
from shedjoin.plain_dict import plain
from shedjoin.policies import Auto
from shedjoin.predicates import Predicate
from shedjoin.spark.arguments import read_deadline
from shedjoin.spark.budget_split import share_of
from shedjoin.spark.compatibility import changes
from shedjoin.spark.front import front_of
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.keys import SIDES
from shedjoin.spark.payload import COPIES
from shedjoin.spark.room import SOME, Room, width
from shedjoin.spark.session import PARTITIONS
from shedjoin.spark.sources import Source
from shedjoin.spark.start import checkpoint_of, read_job
from shedjoin.spark.where_split import Splitter
from shedjoin.spec import JoinSpec
from shedjoin.target import Target
from shedjoin.window import UNLIMITED, TimeWindow

#: What may change on a checkpoint and is known without Spark.
SHOWN = ("budget", "policy", "shards")
#: Bytes of a stored tuple in the engine's arrays where many tuples have one key (measured).
ENGINE = 250


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Check a job file, and show its plan, its memory and its shards."
    parser.add_argument("job", type=Path, metavar="JOB", help="a TOML file as for `shedjoin run`")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Print the job and its memory."""
    job = read_stream_job(args.job)
    check_job(job)
    console = Console()
    console.print("What will run", what_runs(job), "Memory: " + split_words(job), memory(job), sep="\n")
    if by_key(job):
        console.print(parts_words(job))
    if job.spec.budget is not None and by_key(job) and None in [row_width(source) for source in job.sources]:
        console.print("about: without the columns of a source that are not known before it is read")
    return 0


def _type_words(spec: JoinSpec) -> str:
    """The join type, and the memory of the filters that tell whether a row certainly has no partner."""
    taken = spec.plan().filter_bytes(spec.budget)
    return f"rows of a {spec.how} join; filters of shed rows take {taken:,} bytes a shard"


def what_runs(job: StreamJob) -> Table:
    """The job in words."""
    table = Table("", "", show_header=False)
    names, times, spec = job.names, job.times, job.spec
    for name, source in zip(names, job.sources, strict=True):
        table.add_row(name, source_words(source))
    table.add_row("join on", on_words(job))
    for place, what in where_words(job):
        table.add_row(f"where, {place}", what)
    table.add_row("window", f"{window_words(spec, names)}, by {', '.join(times[:-1])} and {times[-1]}")
    if spec.how != "inner":
        table.add_row("gives", _type_words(spec))
    table.add_row("rows may be late", lateness_words(spec, names))
    seconds = read_deadline(job.join["deadline"])
    front = front_of(job.join["front"], names)
    partly = spec.selective is not None or spec.dual is not None or any(front)
    exact = "none: without a cap" if partly else "none: exact, without a cap"
    policy = parse_policy(job.join["policy"]) or job.spec_on(shards_of(job)[0]).policy
    table.add_row("policy", exact if spec.budget is None else str(policy))
    if spec.budget is not None and isinstance(spec.policy, Auto):
        part = f"miniatures take up to {spec.policy.memory:.0%} on top of the budget"
        table.add_row("", f"begins with {spec.first_policy}; each shard tries others, {part}")
    if spec.budget is not None and spec.what_if is not None:
        table.add_row(
            "what if", f"miniatures with other memories take up to {spec.what_if.memory:.0%} of the budget on top of it"
        )
    if job.join["target"] is not None:
        table.add_row(
            "target", f"{Target.of(job.join['target']).recall:.3g} of results; memory follows it, up to the budget"
        )
    if job.join["error"] is not None:
        wanted = ErrorTarget.of(job.join["error"])
        what = f"the sum of {wanted.sum}" if wanted.sum else "the number of results"
        groups = f" of each {' and '.join(wanted.by)}" if wanted.by else ""
        table.add_row(
            "error",
            f"{what}{groups} within {wanted.within:.3g}; memory follows it, and a pilot takes an eighth of the budget",
        )
    if seconds is not None:
        table.add_row("deadline", f"{seconds:g} s a micro-batch; rows it leaves no time for see a part of the window")
    if spec.selective is not None:
        table.add_row("compared with", selective_words(job))
    if any(front):
        each = ", ".join(f"{share:.0%} of {name}" for name, share in zip(names, front, strict=True) if share)
        table.add_row("dropped in front", f"{each}, by lot")
    output, run = job.output, job.run
    table.add_row(
        "results", f"{output.path}/results" if job.sink is None else f"{job.sink.format} {job.sink.path or ''}"
    )
    table.add_row("shed log, metrics", output.path)
    archive = f"{output.path}/archive, for shedjoin refine" if output.archive else "none: nothing to refine"
    table.add_row("archive", archive)
    if spec.dual is not None:
        table.add_row(
            "stored without a probe", f"{spec.dual.rear:.0%}, those with fewest partners; results come a window later"
        )
    if spec.budget is not None or partly:
        table.add_row("live recall", "told while it runs" if output.recall else "left out")
    before = read_job(output.path)
    table.add_row(
        "checkpoint", f"{checkpoint_of(output.path, output.checkpoint)}, {'new' if before is None else 'continues'}"
    )
    if before is not None and (changed := changes_of(job, before)) is not None:
        table.add_row("changes", changed)
    table.add_row("trigger", trigger_words(job))
    if run.metrics_port is not None:
        table.add_row("metrics", f"http://{run.metrics_host}:{run.metrics_port or '(any free port)'}/metrics")
    return table


def split_words(job: StreamJob) -> str:
    """How the join is split."""
    shards, why = shards_of(job)
    moves = shards > 1 and job.spec.budget is not None and by_key(job) and job.join["shares"] != "equal"
    part = "its part of the budget" + ", which follows what arrives; to begin with:" * moves
    if (cube := cube_of(job)) is not None:
        words = cube.words(job.names, job.graph.columns if job.graph is not None else ())
        return f"{words} ({why}); all copies of rows count against the budget; each has {part}"
    by_hash, by_row = "has the keys that hash to it", "stores its part of the rows, and compares all with it"
    split_by_row = isinstance(job.spec.on, Predicate) and job.spec.on.code != SAME
    has = by_row if split_by_row else by_hash
    return f"{shards} shard{'s' * (shards != 1)} ({why}); each {has}, and has {part}"


def changes_of(job: StreamJob, before: dict[str, Any]) -> str | None:
    """What this job changes of the query that it continues, in words."""
    now = known_of(job, before)
    was, is_now = ({name: one["spec"].get(name, one.get(name)) for name in SHOWN} for one in (before, now))
    return changes(*json.loads(json.dumps([was, is_now])), timestamps=now["timestamps"])


def by_key(job: StreamJob) -> bool:
    """Whether tuples are stored by a key, so that their memory is known."""
    return job.on.predicate is None


def memory(job: StreamJob) -> Table:
    """What each shard may store of each stream."""
    shards, _ = shards_of(job)
    budget = job.spec.budget
    widths = [row_width(source) or 0 for source in job.sources]
    room = Room.of(job.spec_on(shards), widths, recall=job.output.recall)
    if budget is None:
        table = Table("", show_header=False)
        size = f", {ENGINE} to {room.row} bytes a row and its columns" if by_key(job) else ""
        table.add_row(f"no budget: as much as the window holds{size}")
        return table
    streams = len(job.sources)
    table = Table("shard", *job.names, *(["about"] if by_key(job) else []))
    for column in table.columns[1:]:
        column.justify = "right"
    shares = [share_of(budget, shard, shards, streams) for shard in range(shards)]
    for shard, share in enumerate(shares):
        if share.total < streams:
            raise SpecError(f"join.budget: {budget.total} {budget.unit} are too few for {shards} shards")
        table.add_row(str(shard), *caps(share, streams), *([bytes_words([share], widths, room)] if by_key(job) else []))
    table.add_section()
    table.add_row("all", *caps(budget, streams), *([bytes_words(shares, widths, room)] if by_key(job) else []))
    return table


def parts_words(job: StreamJob) -> str:
    """What a shard takes beside its rows, and what a row takes."""
    shards, _ = shards_of(job)
    room = Room.of(job.spec_on(shards), [row_width(source) or 0 for source in job.sources], recall=job.output.recall)
    beside = {
        "arrays and filters": room.arrays,
        "samples for live recall": room.recall,
        "columns not cleared yet": room.columns,
    }
    parts = ", ".join(f"{what} {format_bytes(size)}" for what, size in beside.items() if size)
    keys = (
        "; what an estimator remembers of keys without a stored row comes on top" if job.spec.budget is not None else ""
    )
    return (
        f"beside its rows a shard takes {format_bytes(room.apart)} ({parts}); a row takes up to {room.row} bytes and "
        f"{COPIES} times its columns{keys}"
    )


def window_words(spec: JoinSpec, names: Sequence[str]) -> str:
    """The windows, or the interval."""
    if spec.between is not None:
        return f"{names[1]} minus {names[0]} {format_interval(*spec.between)}"
    windows = [format_window(one) for one in spec.windows]
    each = ", ".join(f"{window} ({name})" for window, name in zip(windows, names, strict=True))
    return windows[0] if len(set(windows)) == 1 else each


def lateness_words(spec: JoinSpec, names: Sequence[str]) -> str:
    """The lateness, and how long rows are kept because of it."""
    if not spec.lateness:
        return "not at all"
    words = format_lateness(spec.lateness)
    if spec.lateness == UNLIMITED:
        return f"{words}: rows never expire" + ("" if spec.budget else ", and nothing bounds the memory")
    lengths = [window.length for window in spec.windows if isinstance(window, TimeWindow)]
    if not lengths:
        return words
    if spec.between is not None:
        low, high = spec.between
        kept = (format_duration(max(end, 0) + spec.lateness) for end in (high, -low))
        each = ", ".join(f"{name} rows for {length}" for name, length in zip(names, kept, strict=True))
        return f"{words}: kept are {each}"
    more = ", most of that for late rows" if spec.lateness > max(lengths) else ""
    return f"{words}: a row is kept for {format_duration(max(lengths) + spec.lateness)}{more}"


def caps(budget: Budget, streams: int) -> list[str]:
    """The cap of each stream."""
    found = budget.caps(streams, ROW_BYTES)
    words = [f"{cap:,} {budget.unit}" for cap in found]
    return words if len(found) == streams else words + ["shared"] * (streams - 1)


def bytes_words(shares: list[Budget], widths: list[int], room: Room) -> str:
    """Bytes of these shards, at least and at most."""
    low = high = float(len(shares) * room.apart)
    for share in shares:
        if share.unit == "bytes":  # rows count ROW_BYTES and their columns
            low += share.total
            high += share.total * max(room.row / ROW_BYTES, COPIES)
            continue
        low += share.total * (ENGINE + min(widths))
        high += share.total * (room.row + COPIES * max(widths))
    return f"{format_bytes(low)} to {format_bytes(high)}"


def shards_of(job: StreamJob) -> tuple[int, str]:
    """Into how many shards the job will be split, and why. A join graph may need fewer than there could be."""
    most, why = _most_shards(job)
    cube = cube_of(job)
    if cube is None or cube.shards == most:
        return most, why
    return cube.shards, f"{why} allows {most}" if why == "join.shards" else f"{why}: at most {most}"


def cube_of(job: StreamJob) -> HyperCube | None:
    """How the shards of a join graph are arranged; None for other joins."""
    before = read_job(job.output.path)
    return job.cube(_most_shards(job)[0], None if before is None else before.get("cube"))


def _most_shards(job: StreamJob) -> tuple[int, str]:
    before = read_job(job.output.path)
    if before is not None and (job.join["shards"] is None or "cube" in before):
        return int(before["shards"]), "as the checkpoint has it"
    if job.join["shards"] is not None:
        return job.join["shards"], "join.shards"
    most, why = _by_cores(job)
    return (1, "more would store rows several times") if job.copies_for_partners(most) else (most, why)


def _by_cores(job: StreamJob) -> tuple[int, str]:
    cores = cores_of(job.settings.get("spark.master", "local[*]"))
    partitions = job.settings.get(PARTITIONS)
    if cores is None:
        return int(partitions or 1), f"at most: {PARTITIONS}; a cluster's cores are not known here"
    if partitions is not None and int(partitions) < cores:
        return int(partitions), PARTITIONS
    return cores, "one a core"


def cores_of(master: str) -> int | None:
    """The cores that a local master uses; None for a cluster.

    Examples
    --------
    >>> cores_of("local[3]"), cores_of("local"), cores_of("spark://host:7077")
    (3, 1, None)
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    if found[1] == "*":
        return _usable_cores()
    return int(found[1] or 1)


def _usable_cores() -> int:
    """Those that this process may use, which is what the JVM counts too."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def row_width(source: Source) -> int | None:
    """About how many bytes the columns of a row take; None if they are not known."""
    if source.schema is None:
        kinds = None if (found := schema_of_files(source)) is None else found.types
        return None if kinds is None else sum(_width(kind) for kind in kinds)
    written = [re.split(r"[\s:]+", column, maxsplit=1)[-1].lower() for column in parts_of(source.schema)]
    return sum(map(width, written))


def _width(kind: Any) -> int:
    import pyarrow as pa

    return kind.bit_width // 8 or 1 if pa.types.is_primitive(kind) else SOME


def source_words(source: Source) -> str:
    options = ", ".join(f"{name}={value}" for name, value in source.options.items())
    return " ".join(part for part in (source.format, source.path or "", f"({options})" if options else "") if part)


def on_words(job: StreamJob) -> str:
    """What rows are joined on."""
    if job.graph is not None:
        assert isinstance(job.spec.on, tuple)
        return ", ".join(job.spec.on)
    return key_words(job) if job.on.predicate is None else predicate_words(job.on.predicate)


def where_words(job: StreamJob) -> list[tuple[str, str]]:
    """Where each part of the condition is evaluated, as far as that is known without the types of columns."""
    clause = clause_of(job)
    return [] if clause is None else list(Splitter(clause, job.names).split().explained())


def key_words(job: StreamJob) -> str:
    each = [
        pair[:1] if len(set(pair)) == 1 else map(".".join, zip(job.names, pair, strict=True)) for pair in job.on.keys
    ]
    return ", ".join(" = ".join(one) for one in each)


def predicate_words(predicate: Predicate) -> str:
    """A predicate, and the columns it looks at.

    Examples
    --------
    >>> from shedjoin.predicates import Overlap
    >>> predicate_words(Overlap(("tags", "words"), at_least=2))
    'overlap of left.tags and right.words, at_least 2'
    """
    sides = " and ".join(map(".".join, zip(SIDES, predicate.columns, strict=True)))
    settings = plain(predicate).items()
    said = [f"{name} {value}" for name, value in settings if name not in ("name", "column")]
    return ", ".join([f"{predicate.name} of {sides}", *said])


def selective_words(job: StreamJob) -> str:
    """Which part of the windows rows are compared with when there is no time for all."""
    how = job.spec.selective
    assert how is not None
    by_time = [isinstance(window, TimeWindow) for window in job.spec.windows]
    length = format_duration(how.basic) if all(by_time) else f"{how.basic} rows" if not any(by_time) else str(how.basic)
    ranked = f"ranked by a sample of {how.sample:.0%} of the rows" if how.correlation else "the newest first"
    types = f", by importance and {how.types} types of rows" if how.types else ""
    always = "" if job.join["deadline"] is not None else f"always {how.fraction:.0%} of the windows: "
    return f"{always}basic windows of {length}, {ranked}{types}"


def trigger_words(job: StreamJob) -> str:
    match job.run.spark_trigger():
        case None:
            return "batch after batch"
        case {"availableNow": True}:
            return "what is there now, then the end"
        case _:
            assert job.run.trigger is not None
            return f"every {job.run.trigger}"
