"""Sessions, sources and sinks that the benchmarks on Spark share."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

MEMORY, ROCKSDB = "spark-memory", "spark-rocksdb"
#: Spark's join with the settings that shed_join has.
LEANLY = "-lean"
CORES = os.cpu_count() or 1
HEAP = "6g"
STORES = "spark.sql.streaming.stateStore"
PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
#: The newest format of Spark's join; only RocksDB has it. Spark's own default is 2.
JOIN_FORMAT = 4
#: The state stores of Spark's own join.
STATE = {
    MEMORY: {f"{STORES}.providerClass": f"{PROVIDERS}.HDFSBackedStateStoreProvider"},
    ROCKSDB: {
        f"{STORES}.providerClass": f"{PROVIDERS}.RocksDBStateStoreProvider",
        f"{STORES}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": str(JOIN_FORMAT),
    },
}


def spark_session(system: str) -> Any:
    """All systems have the same settings but for their state stores, and for those of `lean()`."""
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", HEAP)
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.sql.session.timeZone", "UTC")
    )
    if system == "shedjoin" or system.endswith(LEANLY):
        from shedjoin.spark import lean
        from shedjoin.spark.checkpoint_files import LOCAL, SETTING

        builder = builder.config(map={**lean(), SETTING: LOCAL})  # as in the commands, whose checkpoints are on a disk
    if system == "shedjoin":
        from shedjoin.spark import session

        return session(builder)
    return builder.config(map=STATE[system.removesuffix(LEANLY)]).getOrCreate()


def stream_of(spark: Any, folder: Path) -> Any:
    """The files of a folder, one a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def write_out(joined: Any, out: Path, checkpoint: Path) -> tuple[list[Any], float]:
    """Write a stream to Parquet: the progress of the micro-batches with rows, and the seconds in all."""
    begin = time.perf_counter()
    query = (
        joined.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return with_rows(query), time.perf_counter() - begin


def with_rows(query: Any) -> list[Any]:
    """The progress of the micro-batches that had rows."""
    return [one for one in query.recentProgress if one["numInputRows"]]


def times_of(progress: list[Any]) -> list[float]:
    """How long each micro-batch took, in seconds."""
    return [one["durationMs"]["triggerExecution"] / 1000 for one in progress]


def warm_seconds(batches: list[float]) -> float:
    """What all micro-batches would take once warm: in the first half of them, workers start and the JVM compiles."""
    return len(batches) * float(np.median(batches[len(batches) // 2 :]))
