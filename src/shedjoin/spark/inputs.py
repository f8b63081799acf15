"""Checks of the input DataFrames and their session, and the lateness from watermarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.spark.arguments import check_shards, duration_of
from shedjoin.spark.join_args import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
#: The column metadata in which Spark stores the delay of a watermark, in milliseconds.
DELAY = "spark.watermarkDelayMs"


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
    if streaming:
        check_provider(frames[0].sparkSession)


def check_provider(spark: SparkSession) -> None:
    provider = spark.conf.get(PROVIDER)
    if provider is None or "RocksDB" not in provider:
        raise SpecError(
            f"a streaming shed_join needs Spark's RocksDB state store, but {PROVIDER} is {provider}: make the session with "
            f"shedjoin.spark.session(), call shedjoin.spark.prepare(spark), or set it to {ROCKSDB}"
        )


def shards_of(spark: SparkSession, shards: int | None, partitions: int) -> int:
    check_shards(shards)
    if shards is None:
        context = getattr(spark, "sparkContext", None) if not is_connect(spark) else None
        return max(1, min(partitions, int(context.defaultParallelism) if context is not None else partitions))
    return shards


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def lateness_of(
    value: Any, kind: str, frames: tuple[DataFrame, ...], times: tuple[str, ...], sides: tuple[str, ...]
) -> int:
    """The lateness of a join: given, or the longest delay of the inputs' watermarks. Batch inputs have no late rows."""
    if value != WATERMARK:
        return duration_of(value, kind, "lateness")
    if not frames[0].isStreaming:
        return 0
    delays = [frame.schema[name].metadata.get(DELAY) for frame, name in zip(frames, times, strict=True)]
    without = [f"{side}.{name}" for side, name, delay in zip(sides, times, delays, strict=True) if delay is None]
    if without:
        raise SpecError(
            f"lateness is missing: {' and '.join(without)} {'has' if len(without) == 1 else 'have'} no watermark to take it "
            "from. Set how far a row may lag behind the newest row of its stream, such as lateness='5 minutes'; 0: rows "
            "arrive in the order of their times; None: rows never expire, and only a budget bounds the memory"
        )
    return int(max(delay for delay in delays if delay is not None)) * 1000
