"""The arguments of `shed_join`: each is checked, and made into what the engine takes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.engine.nway.state import MOST
from shedjoin.errors import SpecError
from shedjoin.policies import KeepAll, Policy, Replay
from shedjoin.spark.join_args import WATERMARK
from shedjoin.spark.keys import SIDES, sides_of
from shedjoin.spark.shares import least_of
from shedjoin.window import RowWindow, TimeWindow, Window
from shedjoin.words import parse_budget, parse_duration, parse_lateness, parse_policy, parse_windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
MOST_SHARDS = 1024
#: Where Spark notes the delay of a watermark, in milliseconds, on the column that has it.
DELAY = "spark.watermarkDelayMs"


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


def check_frames(frames: tuple[DataFrame, ...], sides: tuple[str, ...]) -> None:
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


def check_provider(spark: SparkSession) -> None:
    provider = spark.conf.get(PROVIDER)
    if provider is None or "RocksDB" not in provider:
        raise SpecError(
            f"a streaming shed_join needs Spark's RocksDB state store, but {PROVIDER} is {provider}: make the session with "
            f"shedjoin.spark.session(), call shedjoin.spark.prepare(spark), or set it to {ROCKSDB}"
        )


def shards_of(spark: SparkSession, shards: int | None, partitions: int) -> int:
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


def duration_of(value: Any, kind: str, argument: str) -> int:
    """In microseconds, or in the unit of whole-number times."""
    if isinstance(value, int) and not isinstance(value, bool):
        check_unit(value, kind, argument)
        return value
    if kind == "number":
        raise SpecError(f"{argument} must be a whole number, as the times are, not {value!r}")
    return parse_duration(value, argument=argument)


def check_unit(value: Any, kind: str, argument: str) -> None:
    """Reject a number where times are timestamps: nobody can tell of what it is."""
    if kind != "number" and isinstance(value, int) and value > 0:
        raise SpecError(
            f"{argument}={value} has no unit, but times are timestamps: say '{value} seconds' or '{value} milliseconds', or "
            "give a timedelta"
        )


def lateness_of(
    value: Any, kind: str, frames: tuple[DataFrame, ...], times: tuple[str, ...], sides: tuple[str, ...]
) -> int:
    """The lateness of a join: given, or the longest delay of the inputs' watermarks. Batch inputs have no late rows."""
    if value == WATERMARK:
        if not frames[0].isStreaming:
            return 0
        delays = [frame.schema[name].metadata.get(DELAY) for frame, name in zip(frames, times, strict=True)]
        without = [f"{side}.{name}" for side, name, delay in zip(sides, times, delays, strict=True) if delay is None]
        if without:
            raise SpecError(
                f"lateness is missing: {' and '.join(without)} {'has' if len(without) == 1 else 'have'} no watermark to take it "
                "from. Say how far a row may lag behind the newest row of its stream, such as lateness='5 minutes'; 0: rows "
                "arrive in the order of their times; None: rows never expire, and only a budget bounds the memory"
            )
        return int(max(delay for delay in delays if delay is not None)) * 1000
    return parse_lateness(value) if value is None or value == "unlimited" else duration_of(value, kind, "lateness")


def windows_of(value: Any, kind: str, shards: int, sides: tuple[str, ...]) -> tuple[Window, ...]:
    made = parse_windows(value, len(sides))
    for given, one in zip(sides_of("window", value, sides), made, strict=True):
        if isinstance(one, RowWindow) and shards != 1:
            raise SpecError(
                f"window: a RowWindow counts the rows of a whole stream, which {shards} shards do not see: pass shards=1"
            )
        check_unit(given, kind, "window")
        if isinstance(one, TimeWindow) and kind == "number" and isinstance(given, str | timedelta):
            raise SpecError(f"window must be a whole number, as the times are, not {given!r}")
    return made


def budget_of(value: Any, allocation: str | None, shards: int, streams: int) -> Budget | None:
    if allocation is not None and allocation not in ALLOCATIONS:
        raise SpecError(f"allocation must be one of {', '.join(ALLOCATIONS)}, not {allocation!r}")
    made = parse_budget(value, allocation=allocation)
    if made is not None:
        least_of(made, shards, streams)
    return made


def policy_of(policy: Any, budget: Any) -> Policy | None:
    """The policy that was asked for; None leaves the choice to the spec."""
    made = parse_policy(policy)
    if made is None:
        return None
    if budget is None and not isinstance(made, KeepAll):
        raise SpecError(f"policy={made!r} is given without a budget, so that it would evict nothing: give a budget too")
    if isinstance(made, Replay) or getattr(made.estimator, "name", None) == "table":
        raise SpecError(
            f"policy: {made!r} is written for known rows or keys, but on Spark rows are numbered and keys hashed by shard: "
            "use an estimator such as History()"
        )
    return made
