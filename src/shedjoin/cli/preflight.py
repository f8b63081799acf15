"""Checks of a job before Spark starts. `run` and `explain` make the same checks."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from shedjoin.budget import Budget
from shedjoin.cli.stream_job import StreamJob
from shedjoin.cli.tables import errors_in
from shedjoin.errors import SpecError
from shedjoin.parse import format_budget
from shedjoin.spark.arguments import duration_of, windows_of
from shedjoin.spark.formats import check_jar
from shedjoin.spark.join import check_counted
from shedjoin.spark.join_args import PARAMETERS
from shedjoin.spark.key_table import is_table
from shedjoin.spark.sources import Source
from shedjoin.spark.start import check_before, check_writable, is_default, read_job
from shedjoin.spark.where_split import Splitter
from shedjoin.spark.where_text import Clause, read_where


def check_job(job: StreamJob) -> None:
    """Check that a job can run, as far as this is known without Spark."""
    for source in job.sources:
        source.check_directory()
    check_columns(job)
    check_times(job)
    check_condition(job)
    check_formats(job)
    check_memory(job)
    check_query(job)


def check_columns(job: StreamJob) -> None:
    """See that the columns of keys, times and importance are there, where a source says which it has."""
    wanted: list[tuple[str, tuple[str | None, ...]]] = [("join.on", pair) for pair in job.on.keys]
    if job.on.predicate is not None:
        wanted.append(("join.predicate", job.on.predicate.columns))
    if (graph := job.graph) is not None:
        most = max(map(len, graph.columns))
        padded = [(*columns, *[None] * (most - len(columns))) for columns in graph.columns]
        wanted += [("join.on", tuple(column)) for column in zip(*padded, strict=True)]
    for one in () if (clause := clause_of(job)) is None else clause.columns:
        wanted.append(("join.where", tuple(one.name if one.stream == side else None for side in range(len(job.names)))))
    wanted += [("join.time", job.times), ("join.importance", job.importances), ("join.kind", job.kinds)]
    for side, (name, source) in enumerate(zip(job.names, job.sources, strict=True)):
        known = columns_of(source)
        if known is None:
            continue
        there = {column.lower() for column in known}  # Spark does not tell upper from lower case
        for what, given in wanted:
            column = given[side]
            # A dot may lead to a field of a column.
            if column is not None and not {column.lower(), column.lower().partition(".")[0]} & there:
                raise SpecError(f"{what}: {name} has no column {column!r}; it has {', '.join(known)}")


def check_times(job: StreamJob) -> None:
    """See that times are timestamps or whole numbers, and that durations fit them, where files say which type they have."""
    import pyarrow as pa

    kinds = set()
    for name, time, source in zip(job.names, job.times, job.sources, strict=True):
        found = None if source.select or source.schema is not None else schema_of_files(source)
        if found is None or time not in found.names:
            continue
        kind = found.field(time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
            raise SpecError(f"join.time: {name}.{time} must be a timestamp or a whole number, not {kind}")
        kinds.add("time" if pa.types.is_timestamp(kind) else "number")
    if len(kinds) != 1:
        return
    (kind_of_times,) = kinds
    with errors_in("join", PARAMETERS):
        windows_of(job.join, kind_of_times, job.names)
        duration_of(job.join["lateness"], kind_of_times, "lateness")


def check_condition(job: StreamJob) -> None:
    """See that a join that counts partners has no condition that only Spark can evaluate."""
    if (clause := clause_of(job)) is not None:
        with errors_in("join", PARAMETERS):
            check_counted(Splitter(clause, job.names).split(), job.spec)


def clause_of(job: StreamJob) -> Clause | None:
    """The condition `where`. Names without a stream are looked up if the columns of all sources are known."""
    if job.join["where"] is None:
        return None
    columns = [columns_of(source) for source in job.sources]
    known = [one for one in columns if one is not None]
    with errors_in("join", PARAMETERS):
        return read_where(job.join["where"], job.names, known if len(known) == len(columns) else None)


def check_formats(job: StreamJob) -> None:
    """See that Spark will have the formats of sources and sink, and that a sink of files can be written."""
    for source in job.sources:
        check_jar(f"{source.name}.format", source.format, source.options, job.settings)
    if (sink := job.sink) is not None:
        check_jar("sink.format", sink.format, sink.options, job.settings)
        if sink.path is not None and "://" not in sink.path:
            check_writable(sink.path, argument="sink.path")


def check_memory(job: StreamJob) -> None:
    """See that a budget in bytes fits into this machine, if Spark is to run here."""
    budget, memory = job.spec.budget, machine_memory()
    here = job.settings.get("spark.master", "local").startswith("local") and "spark.remote" not in job.settings
    if budget is None or budget.unit != "bytes" or not here or memory is None or budget.total <= memory:
        return
    whole = format_budget(Budget(bytes=memory // 2**20 * 2**20))
    raise SpecError(f"join.budget: {format_budget(budget)} are more than this machine has, {whole}")


def machine_memory() -> int | None:
    """Bytes of this machine; None if it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_query(job: StreamJob) -> None:
    """See that a query that goes on is the one that was begun in its output directory."""
    before = read_job(job.output.path)
    if before is not None:
        check_before(before, json.loads(json.dumps(known_of(job, before))), job.output.path)


def known_of(job: StreamJob, before: dict[str, Any]) -> dict[str, Any]:
    """What `start` will write of a job, without what depends on the columns of its sources."""
    output, shards = job.output, job.join["shards"] or before["shards"]
    cube = job.cube(shards, before.get("cube"))
    default = output.checkpoint is None or is_default(output.path, output.checkpoint)
    spec = job.spec_on(shards if cube is None else cube.shards)
    known, was = spec.to_dict(), before["spec"]["policy"]
    if (
        is_table(spec.policy) and was.get("estimator", {}).get("name") == "table"
    ):  # which keys it has is known to Spark only
        known["policy"]["estimator"] = was["estimator"]
    return {
        "spec": known,
        "shards": shards if cube is None else cube.shards,
        **({} if cube is None else {"cube": list(cube.shares)}),
        "seed": job.join["seed"],
        "on": job.on.keys,
        **({} if job.join["where"] is None else {"where": job.join["where"]}),
        "time": job.times,
        "importance": job.importances,
        **({"kind": job.kinds} if any(job.kinds) else {}),
        "streams": job.names,
        "archive": output.archive,
        "checkpoint": None if default else os.path.abspath(str(output.checkpoint)),
        "timestamps": before.get("timestamps", True),
    }


def columns_of(source: Source) -> list[str] | None:
    """The columns of a stream; None if they are not known before it is read."""
    if source.select or (source.path is not None and any(Path(source.path).glob("*=*"))):  # expressions; partitions
        return None
    if source.schema is None:
        return None if (found := schema_of_files(source)) is None else list(found.names)
    names = [re.match(r"`([^`]+)`|([^\s:`]+)", column) for column in parts_of(source.schema)]
    return [name[1] or name[2] for name in names if name is not None]


def parts_of(schema: str) -> list[str]:
    """The columns of a schema as Spark writes it.

    Examples
    --------
    >>> parts_of("`a,b` decimal(10, 2), c struct<x: int, y: int>")
    ['`a,b` decimal(10, 2)', 'c struct<x: int, y: int>']
    """
    parts, depth, quoted = [""], 0, False
    for sign in schema:  # commas inside of names, of decimal(10, 2) or of struct<...> part no columns
        quoted ^= sign == "`"
        depth += 0 if quoted else (sign in "(<") - (sign in ")>")
        if sign == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def schema_of_files(source: Source) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.format != "parquet" or source.path is None:
        return None
    path = Path(source.path)
    first = path if path.is_file() else next(iter(sorted(path.rglob("*.parquet"))), None)
    if first is None or not first.is_file():
        return None
    try:
        return pq.read_schema(first)
    except (OSError, pa.ArrowInvalid):
        return None
