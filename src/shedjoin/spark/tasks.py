"""What Spark's tasks do, as functions that it ships to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shedjoin.spark.exchange import GIVEN_ARROW, Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shedjoin.spark.job import Job
    from shedjoin.spark.packing import Packing


#: Where Spark tells tasks the number of their micro-batch.
BATCH = "streaming.sql.batchId"


def pack_worker(how: Packing) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shedjoin.spark.packing import pack

        context = TaskContext.get()
        number = context.getLocalProperty(BATCH) if context is not None else None
        yield from pack(batches, how, 0 if context is None else context.partitionId(), int(number or 0))

    return work


def unpack_worker() -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from shedjoin.spark.exchange import unpack

        yield from unpack(batches)

    return work


def batch_worker(job: Job) -> Any:
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
