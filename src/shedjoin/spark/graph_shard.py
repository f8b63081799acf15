"""One shard of a join graph: the engine over the rows that go to its cell, of which it counts those that it is the first of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.engine.codes import LATE as LATE_CODE
from shedjoin.engine.output import ShedLog
from shedjoin.spark.exchange import LATE, OWN, Given
from shedjoin.spark.graph_exchange import ID
from shedjoin.spark.job import GraphJob
from shedjoin.spark.keeping import Counting
from shedjoin.spark.operator import Integers, Shard
from shedjoin.spark.state import Store


class GraphShard(Shard):
    """One shard of a join graph, for one micro-batch.

    Rows have a number of their own in each shard they go to, and each shard has an archive and a log of its own: what a shard
    misses is found where it would have been found. Metrics count a row once, in the first of its shards.
    """

    job: GraphJob

    def __init__(self, job: GraphJob, number: int, store: Store | None = None) -> None:
        super().__init__(job, number, store)
        self.width = self.spec.plan().width
        self.counts = np.array([job.cube.is_first(number, stream) for stream in range(job.streams)], np.bool_)
        self.late = 0

    def _shed(self, log: ShedLog) -> Iterator[Given]:
        if len(log):
            self.late += int((self.counts[log.stream] & (log.why == LATE_CODE)).sum())
        yield from super()._shed(log)

    def _late(self, engine: Counting, before: dict[str, int]) -> Iterator[Given]:
        if self.late:
            yield LATE, str(self.late).encode()

    def _known(self, before: dict[str, int], rows: Sequence[int], seconds: float) -> dict[str, Any]:
        known = super()._known(before, rows, seconds)
        known["late"] = self.late
        for stream, name in enumerate(self.job.names):
            known[f"rows_{name}"] *= int(self.counts[stream])
        return known

    def _archived(self, part: pa.RecordBatch, seqs: Integers) -> list[pa.Array]:
        last = part.num_columns - 1
        assert part.schema.names[last] == ID
        columns = super()._archived(part.select(range(last)), seqs)
        payload = last - len(OWN)
        columns[payload + 2] = _listed(columns[payload + 2])
        return [*columns, part.column(last)]


def _listed(key: pa.Array) -> pa.Array:
    """Attributes as a list of numbers, null where the row lacks one."""
    columns = [attribute.fill_null(0) for attribute in key.flatten()]
    many, rows = len(columns), len(key)
    flat = np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1).reshape(-1)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * many)
    return pa.ListArray.from_arrays(offsets, pa.array(flat, pa.int64()), mask=key.is_null())
