"""Change the number of shards of a query: convert the checkpoint of its old shards to one of its new shards.

Spark's operator has a state for each shard. What the last committed micro-batch left is read with Spark's own reader of
checkpoints, split and put together (see `moved_state`), and written by a query of one micro-batch with the new shards. Its
checkpoint then gets the offsets, the commit and the sources of the old one, so that the query goes on with the next micro-batch.

The new checkpoint is made beside the old one and takes its place by renaming: whenever the process dies, the next start finds
either the old query or the new one, whole (`finish`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.spark.exchange import GIVEN
from shedjoin.spark.inputs import PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from shedjoin.spark.job import Job

#: Beside a checkpoint: one that is being made, one that is whole, and the one whose place it takes.
MAKING, MADE, OLD = ".making", ".made", ".old"
#: The job of a checkpoint that is whole, in it.
JOB = "shedjoin.json"
#: How the state of the first micro-batch is called in a checkpoint; hidden files are its checksums.
_FIRST_STATE = re.compile(r"^(\.?)1((?:_[^.]+)?\..+)$")


def why_not(before: dict[str, Any], now: dict[str, Any], checkpoint: str) -> str | None:
    """Why the number of shards of a query cannot change, in words; None: it can."""
    if "cube" in now or "cube" in before:
        return "rows are stored in several shards, as in a join graph or with how on a predicate"
    if now["spec"].get("evaluate_every") or before["spec"].get("evaluate_every"):
        return "with evaluate_every rows wait in their shards to be joined"
    if "dual" in now["spec"] or "dual" in before["spec"]:
        return "with rear rows wait in the aux-windows of their shards"
    if now["archive"] and "selective" in now["spec"]:
        return "with an archive, what selective processing has left out is logged by the row numbers of a shard"
    if now.get("target") is not None:
        return "with a target, which needs recall, and that is not estimated when shards have changed"
    if before["spec"]["policy"]["name"] == "sample":
        return "with policy Sample, the probabilities of stored rows belong to their shard"
    if "://" in checkpoint:
        return f"the checkpoint {checkpoint} is not a directory that the driver can rename"
    return None


def is_unfinished(checkpoint: str) -> bool:
    """Whether a change of shards has begun and not ended."""
    return "://" not in checkpoint and any(_beside(Path(checkpoint), ending).exists() for ending in (MAKING, MADE, OLD))


def finish(checkpoint: str, write: Callable[[dict[str, Any]], None]) -> None:
    """Put a checkpoint that is whole in its place, if the old one has left it, and write its job. Remove what is of no use."""
    place, made = Path(checkpoint), _beside(Path(checkpoint), MADE)
    if not place.exists() and made.exists():
        write(json.loads(Path(made, JOB).read_text()))
        made.rename(place)
    for ending in (MAKING, MADE, OLD):
        shutil.rmtree(_beside(place, ending), ignore_errors=True)


def swap(checkpoint: str, write: Callable[[dict[str, Any]], None]) -> None:
    """Put the checkpoint that is whole in the place of the old one. From the first step on it is the new one that counts."""
    Path(checkpoint).rename(_beside(Path(checkpoint), OLD))
    finish(checkpoint, write)


def last_committed(checkpoint: str) -> int | None:
    """The last micro-batch that is done; None: there is none."""
    return max((int(one.name) for one in Path(checkpoint, "commits").glob("[0-9]*")), default=None)


def move(spark: SparkSession, old: Job, new: Job, checkpoint: str, now: dict[str, Any]) -> None:
    """Make a checkpoint with the shards of a new job. In it is `now`, the job as it is written, with how rows are renumbered."""
    place = Path(checkpoint)
    batch = last_committed(checkpoint)
    assert batch is not None
    making = _beside(place, MAKING)
    shutil.rmtree(making, ignore_errors=True)
    sent = f"{making}/sent"
    _split(spark, old, new, checkpoint).write.parquet(sent)
    made = now | {"moves": [*now.get("moves", []), {"after": batch, **_numbering(spark, new, sent)}]}
    _put_together(spark, new, sent, str(making))
    shutil.rmtree(sent)
    _take_over(place, making, batch, str(spark.conf.get(PARTITIONS)))
    Path(making, JOB).write_text(json.dumps(made))
    shutil.rmtree(_beside(place, MADE), ignore_errors=True)
    making.rename(_beside(place, MADE))


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


# ------------------------------------------------------------------------------------------------------------ the state


def _split(spark: SparkSession, old: Job, new: Job, checkpoint: str) -> DataFrame:
    """What the old shards send to the new ones."""
    from pyspark.sql import functions as F

    from shedjoin.spark.moved_state import SENT

    def variable(name: str) -> DataFrame:
        return spark.read.format("statestore").option("stateVarName", name).load(checkpoint)

    label = F.col("key")["label"].alias("label")
    head = variable("head").select(
        label, F.lit("").alias("name"), F.lit(0).alias("part"), F.col("value")["value"].alias("value")
    )
    blobs = variable("blobs")
    key, value = F.col("user_map_key"), F.col("user_map_value")
    blobs = blobs.select(label, key["name"].alias("name"), key["part"].alias("part"), value["value"].alias("value"))
    return head.unionAll(blobs).groupBy("label").applyInArrow(_split_worker(old, new), SENT)


def _split_worker(old: Job, new: Job) -> Any:
    import pyarrow as pa

    def work(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from shedjoin.spark.moved_state import SENT_ARROW, Values, given_away

        names = ("name", "part", "value")
        values = Values(
            row for batch in batches for row in zip(*(batch.column(one).to_pylist() for one in names), strict=True)
        )
        for shard, sent in given_away(old, old.labels.index(key[0].as_py()), new, values):
            row = (new.labels[shard], *sent)
            yield pa.RecordBatch.from_arrays(
                [pa.array([one], field.type) for one, field in zip(row, SENT_ARROW, strict=True)], schema=SENT_ARROW
            )

    # Spark tells the forms of a grouped function apart by real types, not by their names.
    work.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return work


def _numbering(spark: SparkSession, new: Job, sent: str) -> dict[str, Any]:
    from shedjoin.spark.moved_state import numbering_of

    arrived = {row["origin"]: row["arrived"] for row in spark.read.parquet(sent).select("origin", "arrived").collect()}
    return numbering_of(new, arrived).to_dict()


def _put_together(spark: SparkSession, new: Job, sent: str, checkpoint: str) -> None:
    """A query of one micro-batch writes the state of the new shards."""
    from shedjoin.spark.moved_state import SENT
    from shedjoin.spark.processor import SeedProcessor

    rows = spark.readStream.schema(SENT).parquet(sent)
    given = rows.groupBy("label").transformWithStateInPandas(
        SeedProcessor(new), GIVEN, outputMode="Append", timeMode="None"
    )
    writer = given.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


# ------------------------------------------------------------------------------------------------------- the checkpoint


def _take_over(old: Path, new: Path, batch: int, partitions: str) -> None:
    """The new checkpoint continues after the last micro-batch of the old one."""
    for folder in new.glob("state/*/*"):
        for file in folder.iterdir():
            if found := _FIRST_STATE.match(file.name):
                file.rename(folder / f"{found[1]}{batch + 1}{found[2]}")
    for noted in new.glob("state/*/_metadata/v2/0"):  # where the schema of the state lies
        noted.write_text(noted.read_text().replace(f"{MAKING}/state/", "/state/"))
        noted.with_name(".0.crc").unlink(missing_ok=True)
    for name in ("offsets", "commits", "sources"):
        shutil.rmtree(new / name)
    shutil.copy2(old / "metadata", new / "metadata")
    (new / ".metadata.crc").unlink(missing_ok=True)
    if (old / "sources").exists():
        shutil.copytree(old / "sources", new / "sources")
    (new / "commits").mkdir()
    shutil.copy2(old / "commits" / str(batch), new / "commits" / str(batch))
    (new / "offsets").mkdir()
    for number in (batch - 1, batch, batch + 1):  # Spark looks at the one before; one that was begun is done again
        if (planned := old / "offsets" / str(number)).exists():
            (new / "offsets" / str(number)).write_text(_with_partitions(planned.read_text(), partitions))


def partitions_of(checkpoint: str) -> int | None:
    """How many partitions the state of a checkpoint is in; None: it does not say, or is not a directory of this machine."""
    numbers = (int(one.name) for one in Path(checkpoint, "offsets").glob("[0-9]*"))
    for number in sorted(numbers, reverse=True)[:1]:
        for line in Path(checkpoint, "offsets", str(number)).read_text().split("\n"):
            if line.startswith("{") and PARTITIONS in line:
                return int(json.loads(line)["conf"][PARTITIONS])
    return None


def _with_partitions(offsets: str, partitions: str) -> str:
    """Spark's log of a micro-batch has the number of partitions that its state is in."""
    lines = offsets.split("\n")
    for place, line in enumerate(lines):
        if line.startswith("{") and PARTITIONS in line:
            known = json.loads(line)
            known["conf"][PARTITIONS] = partitions
            lines[place] = json.dumps(known, separators=(",", ":"))
            return "\n".join(lines)
    raise SpecError("the log of offsets in the checkpoint does not say in how many partitions its state is")
