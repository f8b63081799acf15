"""Job files of `shedjoin run`: a streaming join on Spark, in TOML.

```toml
[left]
path = "impressions"                    # a directory; relative to the job file
format = "json"                         # parquet (default), orc, csv, json, text; or any that Spark has: rate, kafka, delta, ...
schema = "ad_id bigint, shown_at timestamp, bid double"   # for csv and json
options = {maxFilesPerTrigger = 10}     # as Spark takes them
select = ["ad_id", "shown_at", "bid"]   # SQL expressions, optional

[right]
path = "clicks"

[join]                                  # the arguments of shedjoin.spark.shed_join
on = "ad_id"                            # or {left = "ad", right = "ad_id"}, or a list of these
time = ["shown_at", "clicked_at"]
window = "10 minutes"
lateness = "1 minute"                   # 0: rows arrive in order; "unlimited": rows never expire
budget = "200k tuples"                  # or "512 MB"; a plain number is tuples; without: exact
policy = "prob"
importance = {left = "bid"}
deadline = "5 seconds"                  # how long a micro-batch may take; optional

[output]
path = "out"                            # results, shed log, metrics, checkpoint
archive = true                          # keep the input, for `shedjoin refine`
recall = true                           # estimate it while the query runs (the default)

[sink]                                  # optional: results elsewhere than in out/results
format = "csv"
path = "joined"

[run]                                   # optional
trigger = "10 seconds"                  # or "available now"; default: batch after batch
metrics_port = 9464                     # a Prometheus endpoint, on the loopback

[spark]                                 # optional; spark.sql.shuffle.partitions and the like
master = "local[4]"
sql.shuffle.partitions = 4
```

Three streams and more have tables `[streams.NAME]` in place of `[left]` and `[right]`; what is one a stream, such as `time`, is a
list in their order or a table by their names.

Instead of `on`, `predicate` is a table with its name and settings, such as `{name = "overlap", column = "tags", at_least = 2}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shedjoin.cli.tables import SPEC, Table, any_join, at, read_toml
from shedjoin.cpu.join import PredicateJoin
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.errors import SpecError
from shedjoin.spark.arguments import MOST_SHARDS, stream_names
from shedjoin.spark.keys import SIDES
from shedjoin.spark.master import check_places
from shedjoin.spark.predicate_join import check_shares, condition, predicate_join, read_deadline
from shedjoin.spark.shares import SHARES
from shedjoin.spark.sources import FILES, TYPED, Sink, Source
from shedjoin.spark.start import output_folder
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow
from shedjoin.words import parse_duration, parse_policy

TABLES = ("join", "left", "right", "streams", "output", "sink", "run", "spark")
JOIN = (
    "on", "predicate", "time", *SPEC, "deadline", "importance", "shards", "select", "suffixes", "combine", "seed", "shares",
    "cache",
)  # fmt: skip
SOURCE = ("format", "path", "schema", "options", "select")
SINK = ("format", "path", "options", "mode", "batch_column")
OUTPUT = ("path", "archive", "recall", "checkpoint")
RUN = ("trigger", "name", "metrics_port", "metrics_host")
MODES = ("append", "overwrite", "error", "ignore")
AVAILABLE_NOW = ("available now", "available-now", "availableNow")


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A checked job.

    Attributes
    ----------
    sources
        Of each stream: left and right, or those of [streams] in their order.
    join
        Arguments of `shed_join`.
    spec
        The engine's part of them. Durations in words count in microseconds.
    settings
        Of Spark, by their full names.
    """

    sources: tuple[Source, ...]
    join: dict[str, Any]
    spec: JoinSpec | PredicateJoin
    output: Path
    archive: bool
    recall: bool
    checkpoint: Path
    sink: Sink | None
    trigger: dict[str, Any] | None
    name: str | None
    metrics_port: int | None
    metrics_host: str
    settings: dict[str, str]


def read_stream_job(path: Path) -> StreamJob:
    """The job in a file. Nothing is started, and nothing is read but this file."""
    data = read_toml(path)
    if "workload" in data:
        raise SpecError("workload: made-up streams are for `shedjoin simulate`; a job to run has [left] and [right]")
    job = Table(data, "", TABLES)
    for name in (*(() if "streams" in job else SIDES), "join", "output"):
        if name not in job:
            raise SpecError(
                f"{name} is missing: a job to run needs the tables [left], [right], [join] and [output] (three streams and more: "
                "[streams.NAME] for each)"
            )
    folder = path.parent
    sources = _sources(job, folder)
    names = tuple(source.name.removeprefix("streams.") for source in sources)
    join, spec = _join(Table(job.get("join"), "join", JOIN), names)
    output = Table(job.get("output"), "output", OUTPUT)
    output.need("path", 'path = "out"')
    place = Path(output_folder(_place(output, folder), argument="output.path"))
    if output.flag("archive") and isinstance(spec, PredicateJoin):
        raise SpecError(
            "output.archive is for joins on keys without a deadline: refine cannot find what other joins missed"
        )
    run = Table(job.data.get("run", {}), "run", RUN)
    checkpoint = output.text("checkpoint")
    settings = dict(_flat("spark", Table(job.data.get("spark", {}), "spark", None).data))
    check_places(settings)
    return StreamJob(
        sources=sources,
        join=join,
        spec=spec,
        output=place,
        archive=output.flag("archive"),
        recall=output.flag("recall", default=True),
        checkpoint=place / "checkpoint" if checkpoint is None else folder / checkpoint,
        sink=_sink(Table(job.get("sink"), "sink", SINK), folder) if "sink" in job else None,
        trigger=_trigger(run),
        name=run.text("name"),
        metrics_port=run.whole("metrics_port", 0, 65535),
        metrics_host=run.text("metrics_host") or "127.0.0.1",
        settings=settings,
    )


# --------------------------------------------------------------------------------------------------- sources and sinks


def _sources(job: Table, folder: Path) -> tuple[Source, ...]:
    if "streams" not in job:
        return tuple(_source(Table(job.get(side), side, SOURCE), folder) for side in SIDES)
    streams = Table(job.get("streams"), "streams", None)
    both = [side for side in SIDES if side in job]
    if both or len(streams.data) < 3:
        found = ", ".join([*both, *streams.data])
        raise SpecError(f"streams must have three tables or more, and no [left] or [right] beside them, not {found}")
    at("streams", lambda: stream_names(tuple(streams.data), len(streams.data)))
    return tuple(_source(Table(streams.get(name), streams.path(name), SOURCE), folder) for name in streams.data)


def _source(table: Table, folder: Path) -> Source:
    kind = table.text("format") or "parquet"
    path = _place(table, folder)
    schema = _schema(table)
    if kind in FILES:
        if path is None:
            raise SpecError(f"{table.path('path')} is missing: a source of {kind} files needs a directory")
        if _is_local(path) and not Path(path).exists():
            raise SpecError(f"{table.path('path')}: there is no {path}")
        if Path(path).is_file():
            raise SpecError(f"{table.path('path')} must be a directory of files, but {path} is a file")
        if schema is None and kind not in TYPED:
            raise SpecError(
                f"{table.path('schema')} is missing: {kind} files do not store types, so give them, such as "
                'schema = "id bigint, at timestamp"'
            )
    select = tuple(table.texts("select") or ())
    return Source(table.where, kind, path, schema, _options(table), select)


def _sink(table: Table, folder: Path) -> Sink:
    kind = table.text("format") or "parquet"
    path = _place(table, folder)
    if kind in FILES and path is None:
        raise SpecError(f"{table.path('path')} is missing: a sink of {kind} files needs a directory")
    mode = table.one_of("mode", MODES)
    if kind in FILES and mode is not None:
        raise SpecError(
            f"{table.path('mode')}: {kind} files are written one directory a micro-batch, so there is no mode"
        )
    return Sink(kind, path, _options(table), mode or "append", table.text("batch_column"))


def _place(table: Table, folder: Path) -> str | None:
    """A path of this machine is relative to the job file; one with a scheme is as it is."""
    path = table.text("path")
    return str(folder / path) if path is not None and "://" not in path else path


def _is_local(path: str) -> bool:
    return "://" not in path and not any(sign in path for sign in "*?[{")


def _schema(table: Table) -> str | None:
    value = table.get("schema")
    if isinstance(value, Mapping):
        for name, kind in value.items():
            if not isinstance(kind, str) or not kind:
                raise SpecError(f'{table.path("schema")}.{name} must be a type such as "bigint", not {kind!r}')
        quoted = (f"`{name.replace('`', '``')}` {kind}" for name, kind in value.items())
        return ", ".join(quoted) or None
    return table.text("schema")


def _options(table: Table) -> dict[str, str]:
    value = Table(table.data.get("options", {}), table.path("options"), None).data
    return dict(_flat("", value, table.path("options")))


def _flat(prefix: str, data: Mapping[str, Any], where: str = "spark") -> Iterator[tuple[str, str]]:
    """Settings as Spark takes them: dotted names, values as text. TOML reads a dotted name as a table in a table."""
    for name, value in data.items():
        full = f"{prefix}.{name}" if prefix and not (prefix == "spark" and name.startswith("spark.")) else name
        match value:
            case Mapping():
                yield from _flat(full, value, f"{where}.{name}")
            case bool():
                yield full, str(value).lower()
            case str() | int() | float():
                yield full, str(value)
            case _:
                raise SpecError(f"{where}.{name} must be a text, a number, true or false, not {value!r}")


# ------------------------------------------------------------------------------------------------------------ the join


def _join(table: Table, names: tuple[str, ...]) -> tuple[dict[str, Any], JoinSpec | PredicateJoin]:
    """Arguments of `shed_join`, and the spec they amount to."""
    seconds = read_deadline(table.get("deadline"), argument="join.deadline")
    on, predicate = None, None
    if "predicate" in table:
        on, predicate = condition(table.get("on"), table.get("predicate"), where="join.")
    else:
        on = _on(table, names)
    if names != SIDES and (predicate is not None or seconds is not None):
        raise SpecError(f"join.{'deadline' if predicate is None else 'predicate'} is for two streams, not {len(names)}")
    time = table.sides("time", names) if table.need("time", 'time = "at"') is not None else None
    if not all(isinstance(name, str) and name for name in (time if isinstance(time, tuple) else (time,))):
        each = "a pair" if names == SIDES else "one each"
        raise SpecError(f"join.time must be a column name, or {each} [{', '.join(names)}], not {table.get('time')!r}")
    table.need("lateness", 'lateness = "5 minutes" (0: rows arrive in order; "unlimited": rows never expire)')
    common = any_join(table, table.one_of("combine", tuple(IMPORTANCE)) or "min", names)
    spec: JoinSpec | PredicateJoin = common
    if predicate is not None or seconds is not None:
        check_shares(table.one_of("shares", SHARES), argument="join.shares")
        chosen = parse_policy(table.get("policy"), argument="join.policy")
        spec = at("join", lambda: predicate_join(common, predicate, seconds, chosen))
    policy = spec.policy
    if spec.budget is None and table.get("policy") not in (None, "keep_all"):
        raise SpecError("join.policy is given without join.budget, so that it would evict nothing: give a budget too")
    if policy is not None and (policy.name == "replay" or getattr(policy.estimator, "name", None) == "table"):
        raise SpecError(
            f"join.policy: {policy.name} with known rows or keys is for simulations; use an estimator such as history"
        )
    shards = table.whole("shards", 1, MOST_SHARDS)
    if shards != 1 and any(isinstance(window, RowWindow) for window in spec.windows):
        raise SpecError("join.window: a number of rows is counted over a whole stream: it needs shards = 1")
    given: dict[str, Any] = {
        "on": on,
        "predicate": predicate,
        "deadline": seconds,
        "time": time,
        "names": None if names == SIDES else names,
        "window": table.sides("window", names),
        "budget": spec.budget,
        "policy": policy if spec.budget is not None else None,
        "importance": _importance(table, names),
        "lateness": table.get("lateness"),
        "max_skew": table.get("max_skew"),
        "shards": shards,
        "select": _select(table),
        "suffixes": _suffixes(table, names),
        "combine": spec.importance,
        "seed": table.whole("seed", 0, 2**63 - 1),
        "shares": table.one_of("shares", SHARES),
        "cache": _cache(table),
    }
    if shards is not None and spec.budget is not None and spec.budget.total // shards < len(names):
        raise SpecError(f"join.budget: {spec.budget.total} {spec.budget.unit} are too few for {shards} shards")
    return {name: value for name, value in given.items() if value is not None}, spec


def _on(table: Table, names: tuple[str, ...]) -> Any:
    value = table.need("on", 'on = "id"')
    parts = [_key(table, part, names) for part in (value if isinstance(value, list) else [value])]
    if not parts:
        raise SpecError("join.on must name at least one key column, not an empty list")
    return parts[0] if not isinstance(value, list) else parts


def _key(table: Table, part: Any, names: tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(part, str) and part:
        return part
    each = [part.get(side) for side in names] if isinstance(part, Mapping) and set(part) == set(names) else part
    if isinstance(each, list) and len(each) == len(names) and all(isinstance(one, str) and one for one in each):
        return tuple(each)
    by_name = ", ".join(f'{side} = "name"' for side in names)
    raise SpecError(f"join.on must be a column name, {{{by_name}}}, or a list of these, not {table.get('on')!r}")


def _importance(table: Table, names: tuple[str, ...]) -> Any:
    value = table.sides("importance", names)
    for name in value if isinstance(value, tuple) else (value,):
        if name is not None and not (isinstance(name, str) and name):
            by_name = ", ".join(f"{side} = name" for side in names)
            raise SpecError(f"join.importance must be a column name, or {{{by_name}}}, not {name!r}")
    return value


def _select(table: Table) -> Any:
    value = table.get("select")
    if isinstance(value, Mapping):
        if not value or not all(isinstance(source, str) and source for source in value.values()):
            raise SpecError(f"join.select must give each new name a column, not {value!r}")
        return dict(value)
    return table.texts("select")


def _suffixes(table: Table, names: tuple[str, ...]) -> tuple[str, ...] | None:
    value = table.get("suffixes")
    if value is None:
        return None
    if isinstance(value, list) and len(value) == len(names) and all(isinstance(one, str) for one in value):
        return tuple(value)
    some = ", ".join(f'"_{side}"' for side in names)
    what = "two texts" if names == SIDES else "one text a stream"
    raise SpecError(f"join.suffixes must be {what} such as [{some}], not {value!r}")


def _cache(table: Table) -> str | bool | None:
    value = table.get("cache")
    return False if value is False else table.text("cache")


def _trigger(run: Table) -> dict[str, Any] | None:
    text = run.text("trigger")
    if text is None:
        return None
    if text in AVAILABLE_NOW:
        return {"availableNow": True}
    try:
        every = parse_duration(text, argument="run.trigger")
    except SpecError:
        raise SpecError(
            f"run.trigger must be 'available now' or a duration such as '10 seconds', not {text!r}"
        ) from None
    return {"processingTime": f"{every // 1000} milliseconds"}
