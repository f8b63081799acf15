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
policy = "prob"                         # or a table of its settings; a Table's weights may be files, relative to the job file
importance = {left = "bid"}
deadline = "5 seconds"                  # how long a micro-batch may take; optional
selective = {basic = "30 seconds", sample = 0.2}   # the part of the windows to compare if time is short; optional

front = {left = 0.2}                    # the share of rows that is dropped before the shuffle; optional
rear = 0.3                              # the share of rows, those with fewest partners, that does not probe; optional

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

Three streams and more have tables `[streams.NAME]` instead of `[left]` and `[right]`. Settings with one value for each stream,
such as `time`, are a list in their order or a table by their names.

`on` may be a list of predicates between streams, such as `["a.x = b.x", "b.y < c.y"]` (a join graph).

Instead of `on`, `predicate` is a table with its name and settings, such as `{name = "overlap", column = "tags", at_least = 2}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shedjoin.cli.tables import errors_in, flattened, located, read_table, read_toml, settings
from shedjoin.engine.graph import Graph
from shedjoin.errors import SpecError
from shedjoin.parse import parse_duration
from shedjoin.spark.arguments import duration_of, has_groups, spec_of, stream_names, whole_streams
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.join import shed_join
from shedjoin.spark.join_args import NOT_ON_SPARK, PARAMETERS, JoinArgs, check_known, complete
from shedjoin.spark.join_graph import cube_of
from shedjoin.spark.keys import SIDES, column_names
from shedjoin.spark.master import check_places
from shedjoin.spark.on_args import On, rates_of, read_on
from shedjoin.spark.sources import Sink, Source
from shedjoin.spark.start import output_folder
from shedjoin.spec import JoinSpec

TABLES = ("join", "left", "right", "streams", "output", "sink", "run", "spark")
#: Settings of [join]. Streams are named by their tables.
JOIN = tuple(name for name in PARAMETERS if name != "names")
AVAILABLE_NOW = ("available now", "available-now", "availableNow")


@dataclass(frozen=True, slots=True)
class OutputTable:
    """The table [output]: arguments of `start`."""

    path: str
    archive: bool = False
    recall: bool = True
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        output_folder(self.path, argument="path")


@dataclass(frozen=True, slots=True)
class RunTable:
    """The table [run]."""

    trigger: str | None = None
    name: str | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        self.spark_trigger()
        if self.metrics_port is not None and not 0 <= self.metrics_port <= 65535:
            raise SpecError(f"metrics_port must be a whole number from 0 to 65535, not {self.metrics_port}")

    def spark_trigger(self) -> dict[str, Any] | None:
        """The trigger as `start` takes it."""
        if self.trigger is None:
            return None
        if self.trigger in AVAILABLE_NOW:
            return {"availableNow": True}
        try:
            every = parse_duration(self.trigger, argument="trigger")
        except SpecError:
            raise SpecError(
                f"trigger must be 'available now' or a duration such as '10 seconds', not {self.trigger!r}"
            ) from None
        return {"processingTime": f"{every // 1000} milliseconds"}


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A checked job file.

    Attributes
    ----------
    names, sources
        Of each stream: left and right, or those of [streams] in their order.
    join
        All arguments of `shed_join`, as they are given.
    spec
        The join that they describe. Durations in words count in microseconds.
    settings
        Of Spark, by their full names.
    """

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    join: JoinArgs
    spec: JoinSpec
    output: OutputTable
    sink: Sink | None
    run: RunTable
    settings: dict[str, str]

    def spec_on(self, shards: int) -> JoinSpec:
        """The join with this number of shards, which `spec` may not know yet."""
        with errors_in("join", PARAMETERS):
            return spec_of(self.join, self.names, lateness=self.spec.lateness, shards=shards)

    @property
    def on(self) -> On:
        """What rows are joined on."""
        return read_on(self.join["on"], self.join["predicate"], self.names)

    @property
    def graph(self) -> Graph | None:
        """The join graph; None if the join is by key or on a predicate."""
        return self.on.parsed(self.names)

    def cube(self, shards: int, before: Sequence[int] | None = None) -> HyperCube | None:
        """How rows are spread over at most this many shards, where some are copied; `before`: as the checkpoint has it."""
        whole, predicate = whole_streams(self.join), self.on.predicate
        if (graph := self.graph) is not None:
            return cube_of(graph, shards, self.spec.windows, rates_of(self.join["rates"], self.names), before, whole)
        cube = None if predicate is None else HyperCube.of_predicate(predicate, shards, whole)
        return None if cube is None or cube.looks_at_values or cube.is_everywhere else cube

    def copies_for_partners(self, shards: int) -> bool:
        """Whether rows would go to several of this many shards although partners are counted: then one is the default."""
        if not whole_streams(self.join):
            return False
        if (cube := self.cube(shards)) is None:
            return not has_groups(self.on.predicate)
        return any(cube.copies(stream) > 1 for stream in range(len(self.names)))

    @property
    def times(self) -> tuple[str, ...]:
        return column_names("time", self.join["time"], self.names)

    @property
    def importances(self) -> tuple[str | None, ...]:
        return column_names("importance", self.join["importance"], self.names, optional=True)

    @property
    def kinds(self) -> tuple[str | None, ...]:
        return column_names("kind", self.join["kind"], self.names, optional=True)


def read_stream_job(path: Path) -> StreamJob:
    """The job in a file. Nothing is started, and nothing is read but this file."""
    data, folder = read_toml(path), path.parent
    if "workload" in data:
        raise SpecError("workload: generated streams are for `shedjoin simulate`; a job to run has [left] and [right]")
    settings(data, "", TABLES)
    for name in (*(() if "streams" in data else SIDES), "join", "output"):
        if name not in data:
            raise SpecError(
                f"[{name}] is missing: a job to run needs the tables [left], [right], [join] and [output] (three streams and "
                "more: [streams.NAME] for each)"
            )
    sources = _sources(data, folder)
    join, spec = _join(data["join"], tuple(sources), folder)
    output = read_table(OutputTable, located(data["output"], folder), "output")
    spark = dict(flattened("spark", settings(data.get("spark", {}), "spark", None), "spark"))
    check_places(spark)
    return StreamJob(
        names=tuple(sources),
        sources=tuple(sources.values()),
        join=join,
        spec=spec,
        output=output,
        sink=read_table(Sink, located(data["sink"], folder), "sink") if "sink" in data else None,
        run=read_table(RunTable, data.get("run", {}), "run"),
        settings=spark,
    )


def _sources(data: Mapping[str, Any], folder: Path) -> dict[str, Source]:
    if "streams" not in data:
        return {side: _source(data[side], side, folder) for side in SIDES}
    streams = settings(data["streams"], "streams", None)
    both = [side for side in SIDES if side in data]
    if both or len(streams) < 3:
        found = ", ".join([*both, *streams])
        raise SpecError(f"streams must have three tables or more, and no [left] or [right], not {found}")
    with errors_in("streams"):
        stream_names(tuple(streams), len(streams))
    return {name: _source(table, f"streams.{name}", folder) for name, table in streams.items()}


def _source(data: Any, where: str, folder: Path) -> Source:
    table = located(data, folder)
    if isinstance(table, Mapping) and isinstance(table.get("schema"), Mapping):
        table = {**table, "schema": _ddl(table["schema"], f"{where}.schema")}
    return read_table(Source, table, where, name=where)


def _ddl(columns: Mapping[str, Any], where: str) -> str:
    """A schema as Spark writes it, from a table of types."""
    for name, kind in columns.items():
        if not isinstance(kind, str) or not kind:
            raise SpecError(f'{where}.{name} must be a type such as "bigint", not {kind!r}')
    return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in columns.items())


def _join(data: Any, names: tuple[str, ...], folder: Path) -> tuple[JoinArgs, JoinSpec]:
    """The arguments of `shed_join`, and the spec they amount to."""
    with errors_in("join", NOT_ON_SPARK):
        check_known(data if isinstance(data, Mapping) else ())
    table = _with_files(settings(data, "join", JOIN), folder)
    with errors_in("join", PARAMETERS):
        args = complete({**table, "names": None if names == SIDES else names}, shed_join)  # type: ignore[typeddict-item]
        if "lateness" not in table:
            raise SpecError(
                'lateness is missing: set it, such as lateness = "5 minutes" (0: rows arrive in order; "unlimited": rows '
                "never expire)"
            )
        lateness = duration_of(args["lateness"], None, "lateness")
        return args, spec_of(args, names, lateness=lateness, shards=args["shards"])


def _with_files(join: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """[join], whose policy finds the files of a `Table` wherever one is."""
    match join:
        case {"policy": {"estimator": {"name": "table", **sides} as estimator} as policy}:
            found = {name: _file(one, folder) for name, one in sides.items()}
            return {**join, "policy": {**policy, "estimator": {**estimator, **found}}}
    return dict(join)


def _file(side: Any, folder: Path) -> Any:
    if isinstance(side, list):
        return [_file(one, folder) for one in side]
    return str(folder / side) if isinstance(side, str) and "://" not in side else side
