"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.engine.nway.state import MOST
from shedjoin.errors import SpecError
from shedjoin.multi import MultiJoinSpec
from shedjoin.policies import Policy, Prob, Replay
from shedjoin.predicates import Predicate
from shedjoin.spark import keys as columns
from shedjoin.spark.cache import check_option, forget_at_exit
from shedjoin.spark.exchange import GIVEN, GIVEN_ARROW, PACKED, RESULT, Packing, inputs_of, shard_labels
from shedjoin.spark.keys import IMPORTANCE, KEY, SIDES, TS, Keys, OutColumn, quoted, sides_of
from shedjoin.spark.many import KEY as HASH
from shedjoin.spark.many import Join, Many
from shedjoin.spark.metrics import metric_ddl
from shedjoin.spark.operator import Job, Message
from shedjoin.spark.payload import column_name
from shedjoin.spark.shares import ADAPTIVE, SHARES, least_of
from shedjoin.spec import JoinSpec, check_seed
from shedjoin.window import RowWindow, TimeWindow, Window
from shedjoin.words import parse_budget, parse_duration, parse_policy, parse_windows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from shedjoin.spark.predicate_shard import PredicateJob

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
MOST_SHARDS = 1024


def shed_join(
    left: DataFrame,
    right: DataFrame,
    *more: DataFrame,
    on: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
    predicate: Predicate | dict[str, Any] | None = None,
    time: str | tuple[str, ...],
    window: Any,
    budget: Any = None,
    policy: str | dict[str, Any] | Policy | None = None,
    importance: str | tuple[str | None, ...] | None = None,
    allocation: str | None = None,
    lateness: Any = 0,
    max_skew: Any = None,
    shards: int | None = None,
    select: list[str] | dict[str, str] | None = None,
    suffixes: tuple[str, ...] | None = None,
    combine: str = "min",
    seed: int = 0,
    shares: str | None = None,
    cache: str | bool | None = None,
    deadline: Any = None,
    names: tuple[str, ...] | None = None,
) -> DataFrame:
    """Join DataFrames on keys and time within a memory budget. Streaming in, streaming out; batch in, batch out.

    Parameters
    ----------
    left, right, more
        Streaming DataFrames, or batch ones: two, or up to 16. Wherever a pair (left, right) is spoken of below, three and more
        streams take one value a stream.
    on
        The key: a column name, a pair (left name, right name), or a list of these. Null keys match nothing.
    predicate
        Instead of a key: `Overlap("tags", at_least=2)` and its like. Each row is then stored in one shard and compared in all.
    time
        The event time: a column name, or a pair (left, right). Timestamps, or whole numbers in a unit of your own.
    window
        Rows join if their times differ by less than this: "10 minutes", a timedelta, microseconds (for whole numbers: in
        their unit), a `TimeWindow`, or a pair of these (how long a left row, a right row is kept).
        Of three and more streams: if no row is older than the newest by its window.
    budget
        How much may be stored in all shards together: "200k tuples", "512 MB", a number of tuples, a `Budget`. None: no limit,
        and the join is exact.
    policy
        Who stays when memory is short: a name, a table of settings, or a policy. Default: "prob"; of a join on a predicate, or
        with a deadline, "simp_prob".
    importance
        A column of positive numbers that says how much a row matters: a name, or a pair (left, right) in which None means
        that all rows matter alike.
    allocation
        "fixed" (default) or "variable" shares of the streams (see `Budget`), for a budget that does not say so itself.
    lateness
        How far a row may lag behind the newest of its stream, from one micro-batch to the next, and still be joined.
    max_skew
        A stream whose clock lags behind the other's by more than this counts as idle and no longer holds up expiry.
    shards
        Into how many parts the keys are split. Default: Spark's parallelism, at most its shuffle partitions. A checkpoint
        keeps its number.
    select
        The columns of the result: names ("left.x" or "right.x" where both sides have x), or a dict from new names to such.
        Default: all, as in Spark's own joins (keys of one name once and first, then left's, then right's).
    suffixes
        Endings for columns that both sides have, such as ("_left", "_right"). Without them such columns are an error.
    combine
        How a result's importance follows from its rows': min, max, sum, product, mean.
    seed
        For policies that draw lots.
    shares
        How the budget is split over the shards: "adaptive" (default) gives each what the whole join would keep there, by what
        arrives; "equal" gives all the same, as joins on a predicate or with a deadline do. May change while a checkpoint lives.
    cache
        Where workers keep copies of the state beside Spark's state store: a directory, False for none, None for the default.
    deadline
        How long a micro-batch may take: "2 seconds", a timedelta, or a number of seconds. When the rows are too many for that,
        each is compared with the most profitable part of the window only. May change while a checkpoint lives.
    names
        What three and more streams are called in `select`, the shed log, metrics and the archive; default: s0, s1, s2, ... (Two
        are left and right.)
    """
    plan = plan_join(
        left,
        right,
        *more,
        on=on,
        predicate=predicate,
        deadline=deadline,
        time=time,
        window=window,
        budget=budget,
        policy=policy,
        importance=importance,
        allocation=allocation,
        lateness=lateness,
        max_skew=max_skew,
        shards=shards,
        select=select,
        suffixes=suffixes,
        combine=combine,
        seed=seed,
        shares=shares,
        cache=cache,
        names=names,
    )
    return plan.results(plan.blobs((RESULT,)))


@dataclass(frozen=True)
class Layout:
    """How results look in their blobs. Knows no DataFrame, so that it can travel."""

    schema: StructType
    equal: list[tuple[str, str]]
    chosen: list[tuple[str, str]]  # columns and the names they have in the result


def rows_of(blobs: DataFrame, kind: str, schema: StructType | str) -> DataFrame:
    """The rows of all blobs of one kind."""
    from pyspark.sql import functions as fn

    return blobs.where(fn.col("kind") == kind).select("blob").mapInArrow(_unpack_worker(), schema)


def results_of(blobs: DataFrame, layout: Layout) -> DataFrame:
    """The rows of the result. Where two keys can have one hash, keys are compared as they are: such two make no row."""
    from pyspark.sql import functions as fn

    rows = rows_of(blobs, RESULT, layout.schema)
    for first, second in layout.equal:
        rows = rows.where(fn.col(first) == fn.col(second))
    return rows.select(*(fn.col(name).alias(given) for name, given in layout.chosen))


@dataclass(frozen=True)
class JoinPlan:
    """A join that is checked and can be run: its pieces as DataFrames."""

    sides: tuple[DataFrame, ...]
    names: tuple[str, ...]
    keys: Keys
    key_types: list[str]
    times: tuple[str, ...]
    importances: tuple[str | None, ...]
    out: list[OutColumn]
    spec: Join
    labels: tuple[int, ...]
    seed: int
    shares: str
    cache: str | bool | None
    query: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def streaming(self) -> bool:
        return bool(self.sides[0].isStreaming)

    @property
    def metrics(self) -> str:
        """The columns of its metric rows."""
        return metric_ddl(self.names)

    def check_archive(self, archive: bool) -> None:
        """Refuse an archive that could not be made use of."""

    def needed(self, side: int) -> list[str]:
        """The columns of a side that results are made of: those asked for, and keys that are to be compared once more."""
        asked = [column.source for column in self.out if column.side == side]
        keys = self.keys.names(side) if columns.hash_may_collide(self.key_types) or not asked else []
        return list(dict.fromkeys([*keys, *asked]))

    def travels(self, side: int, kinds: tuple[str, ...]) -> list[str]:
        """The columns that go through the shuffle: all of them if the input is to be archived."""
        return list(self.sides[side].columns) if inputs_of(self.names)[side] in kinds else self.needed(side)

    def blobs(self, kinds: tuple[str, ...]) -> DataFrame:
        """What the shards give: rows of (kind, shard, blob)."""
        packed = reduce(
            lambda one, two: one.unionAll(two), [self._packed(side, kinds) for side in range(len(self.sides))]
        )
        grouped = packed.groupBy("label")
        job = self._job(kinds)
        if not self.streaming:
            return grouped.applyInArrow(_batch_worker(job), GIVEN)
        from shedjoin.spark.processor import ShardProcessor

        if not is_connect(self.sides[0].sparkSession):  # whose server has the copies
            forget_at_exit(self.query, self.cache)
        return grouped.transformWithStateInPandas(ShardProcessor(job), GIVEN, outputMode="Append", timeMode="None")

    def results(self, blobs: DataFrame) -> DataFrame:
        """The rows of the result."""
        return results_of(blobs, self.layout())

    def layout(self) -> Layout:
        """How results look in their blobs."""
        from pyspark.sql.types import StructField, StructType

        fields = []
        names: list[dict[str, str]] = [{} for _ in self.sides]
        for side in range(len(self.sides)):
            for place, name in enumerate(self.needed(side)):
                names[side][name] = column_name(len(self.sides), side, place)
                fields.append(StructField(names[side][name], self.sides[side].schema[name].dataType))
        compared = self.keys.pairs if columns.hash_may_collide(self.key_types) else ()
        return Layout(
            StructType(fields),
            [(names[0][pair[0]], names[side][pair[side]]) for pair in compared for side in range(1, len(pair))],
            [(names[one.side][one.source], one.name) for one in self.out],
        )

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        frame = self.sides[side]
        travels = self.travels(side, kinds)
        importance = self.importances[side]
        time = self.times[side]
        chosen = [columns.key_hash(frame, self.keys.names(side), self.key_types).alias(KEY)]
        if time not in travels:
            chosen.append(fn.col(quoted(time)).alias(TS))
        if importance is not None:
            chosen.append(fn.col(quoted(importance)).cast("double").alias(IMPORTANCE))
        schema = StructType([frame.schema[name] for name in travels])
        how = Packing(
            stream=side,
            labels=self.labels,
            schema=to_arrow_schema(schema, timezone="UTC").serialize().to_pybytes(),
            weighed=importance is not None,
            sized=self.spec.budget is not None and self.spec.budget.unit == "bytes",
            time=time,
            importance=importance,
            counted=self._job(kinds).adaptive,
            side=self.names[side],
            time_at=travels.index(time) if time in travels else None,
        )
        payload = [fn.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(travels)]
        return frame.select(*chosen, *payload).mapInArrow(_pack_worker(how), PACKED)

    def _job(self, kinds: tuple[str, ...]) -> Job:
        kept = []
        signature: dict[str, Any] = {
            "keys": [[*pair, kind] for pair, kind in zip(self.keys.pairs, self.key_types, strict=True)],
            "time": list(self.times),
            "weights": list(self.importances),
        }
        if len(self.names) > len(SIDES):  # two are always left and right
            signature["streams"] = list(self.names)
        for side, called in enumerate(self.names):
            travels = self.travels(side, kinds)
            kept.append(tuple(travels.index(name) for name in self.needed(side)))
            schema = self.sides[side].schema
            signature[f"columns of {called}"] = [
                [name, schema[name].dataType.simpleString()] for name in self.needed(side)
            ]
        return Job(
            self.spec.to_dict(),
            self.labels,
            self.seed,
            tuple(kept),
            signature,
            kinds,
            self.cache,
            self.shares,
            self.query,
            self.names,
        )


def plan_join(
    *frames: DataFrame,
    on: Any = None,
    predicate: Any = None,
    time: Any,
    window: Any,
    budget: Any = None,
    policy: Any = None,
    importance: Any = None,
    allocation: str | None = None,
    lateness: Any = 0,
    max_skew: Any = None,
    shards: int | None = None,
    select: Any = None,
    suffixes: Any = None,
    combine: str = "min",
    seed: int = 0,
    shares: str | None = None,
    cache: str | bool | None = None,
    names: Any = None,
    deadline: Any = None,
    unkeyed: bool = False,
) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join. `unkeyed`: what is joined on is looked at elsewhere."""
    if predicate is not None or deadline is not None:
        from shedjoin.spark.predicate_join import plan_predicate

        told = {name: value for name, value in locals().items() if name not in ("unkeyed", "plan_predicate", "frames")}
        return plan_predicate(*frames, **told)
    if on is None and not unkeyed:
        raise SpecError("on must name the key columns, or predicate say when two rows join: neither is given")
    sides = stream_names(names, len(frames))
    _check_frames(frames, sides)
    check_seed(seed)
    check_option(cache)
    if shares is not None and shares not in SHARES:
        raise SpecError(f"shares must be one of {', '.join(SHARES)}, not {shares!r}")
    spark = frames[0].sparkSession
    found = Keys(()) if unkeyed else Keys.of(on, *frames, sides=sides)
    times = sides_of("time", time, sides)
    kind = columns.time_kind(frames, times, sides)
    weights = sides_of("importance", importance, sides)
    for side, frame, name in zip(sides, frames, weights, strict=True):
        if name is not None:
            columns.check_column("importance", name, frame, side)
    if frames[0].isStreaming:
        _check_provider(spark)
    partitions = int(spark.conf.get(PARTITIONS) or 1)
    count = _shards(spark, shards, partitions)
    chooser = _policy(policy)  # a mistake is told, budget or not
    given: dict[str, Any] = {
        "budget": _budget(budget, allocation, count, len(frames)),
        "policy": None if budget is None else chooser,
        "importance": combine,
        "lateness": _duration(lateness, kind, "lateness"),
        "max_skew": None if max_skew is None else _duration(max_skew, kind, "max_skew"),
    }
    windows = _windows(window, kind, count, sides)
    spec: Join
    if len(frames) == 2:
        spec = JoinSpec(window=(windows[0], windows[1]) if windows[0] != windows[1] else windows[0], **given)
    else:
        spec = Many(MultiJoinSpec(windows=dict(zip(sides, windows, strict=True)), on=HASH, **given))
    return JoinPlan(
        sides=tuple(frames),
        names=sides,
        keys=found,
        key_types=columns.common_types(frames, found, sides),
        times=times,
        importances=weights,
        out=columns.out_columns(frames, found, select, suffixes, sides),
        spec=spec,
        labels=shard_labels(count, partitions),
        seed=seed,
        shares=shares or ADAPTIVE,
        cache=cache,
    )


def stream_names(names: Any, count: int) -> tuple[str, ...]:
    """What the streams are called: words that columns and directories can be named by."""
    if count == 2:
        if names is not None:
            raise SpecError(f"names is for joins of three and more streams, not {names!r}: two are left and right")
        return SIDES
    if not 2 < count <= MOST:
        raise SpecError(f"shed_join takes 2 to {MOST} DataFrames, not {count}")
    made = tuple(f"s{place}" for place in range(count)) if names is None else names
    if not isinstance(made, tuple | list) or len(made) != count or not all(isinstance(name, str) for name in made):
        raise SpecError(f"names must be one text for each of {count} streams, not {names!r}")
    lower = [name.lower() for name in made]
    if len(set(lower)) < count or not all(name.isidentifier() and name.isascii() for name in made):
        raise SpecError(
            f"names must be simple words that differ, not {names!r}: columns and directories are named by them"
        )
    return tuple(made)


def _check_frames(frames: tuple[DataFrame, ...], sides: tuple[str, ...]) -> None:
    for side, frame in zip(sides, frames, strict=True):
        if not hasattr(frame, "mapInArrow"):
            raise SpecError(f"{side} must be a Spark DataFrame, not {type(frame).__name__}")
    streaming = [side for side, frame in zip(sides, frames, strict=True) if frame.isStreaming]
    if streaming and len(streaming) < len(sides):
        both = "both" if len(sides) == 2 else "all"
        verb = "is" if len(streaming) == 1 else "are"
        raise SpecError(
            f"{' and '.join(sides)} must {both} be streaming or {both} be batch DataFrames; only "
            f"{' and '.join(streaming)} {verb} streaming"
        )


def _check_provider(spark: SparkSession) -> None:
    provider = spark.conf.get(PROVIDER)
    if provider is None or "RocksDB" not in provider:
        raise SpecError(
            f"a streaming shed_join needs Spark's RocksDB state store, but {PROVIDER} is {provider}: make the session with "
            f"shedjoin.spark.session(), call shedjoin.spark.prepare(spark), or set it to {ROCKSDB}"
        )


def _shards(spark: SparkSession, shards: int | None, partitions: int) -> int:
    if shards is None:
        context = getattr(spark, "sparkContext", None) if not is_connect(spark) else None
        return max(1, min(partitions, int(context.defaultParallelism) if context is not None else partitions))
    if isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MOST_SHARDS:
        raise SpecError(f"shards must be a whole number from 1 to {MOST_SHARDS}, not {shards!r}")
    if shards > partitions:
        raise SpecError(
            f"shards must be at most {PARTITIONS}, which is {partitions}, not {shards}: shards beyond that would share tasks"
        )
    return shards


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _duration(value: Any, kind: str, argument: str) -> int:
    """In microseconds, or in the unit of whole-number times."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "number":
        raise SpecError(f"{argument} must be a whole number, as the times are, not {value!r}")
    return parse_duration(value, argument=argument)


def _windows(value: Any, kind: str, shards: int, sides: tuple[str, ...]) -> tuple[Window, ...]:
    made = parse_windows(value, len(sides))
    for given, one in zip(sides_of("window", value, sides), made, strict=True):
        if isinstance(one, RowWindow) and shards != 1:
            raise SpecError(
                f"window: a RowWindow counts the rows of a whole stream, which {shards} shards do not see: pass shards=1"
            )
        if isinstance(one, TimeWindow) and kind == "number" and isinstance(given, str | timedelta):
            raise SpecError(f"window must be a whole number, as the times are, not {given!r}")
    return made


def _budget(value: Any, allocation: str | None, shards: int, streams: int) -> Budget | None:
    if allocation is not None and allocation not in ALLOCATIONS:
        raise SpecError(f"allocation must be one of {', '.join(ALLOCATIONS)}, not {allocation!r}")
    made = parse_budget(value, allocation=allocation)
    if made is not None:
        least_of(made, shards, streams)
    return made


def _policy(policy: Any) -> Policy:
    made = parse_policy(policy) or Prob()
    if isinstance(made, Replay) or getattr(made.estimator, "name", None) == "table":
        raise SpecError(
            f"policy: {made!r} is written for known rows or keys, but on Spark rows are numbered and keys hashed by shard: "
            "use an estimator such as History()"
        )
    return made


# ----------------------------------------------------------------------------------------------------- what tasks do


def _pack_worker(how: Packing) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shedjoin.spark.exchange import pack

        context = TaskContext.get()
        yield from pack(batches, how, 0 if context is None else context.partitionId())

    return work


def _unpack_worker() -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from shedjoin.spark.exchange import unpack

        yield from unpack(batches)

    return work


def _batch_worker(job: Job | PredicateJob) -> Any:
    import pyarrow as pa

    def work(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shard = job.labels.index(key[0].as_py())
        for kind, blob in job.shard(shard).run(_messages(batches)):
            yield pa.RecordBatch.from_arrays(
                [pa.array([value], field.type) for value, field in zip((kind, shard, blob), GIVEN_ARROW, strict=True)],
                schema=GIVEN_ARROW,
            )

    # Spark tells the forms of a grouped function apart by real types, not by their names.
    work.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return work


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    names = ("stream", "task", "part", "rows", "newest", "blob")
    for batch in batches:
        plain = [batch.column(name).to_pylist() for name in names]
        for row in zip(*plain, strict=True):
            yield Message(*row)
