"""How rows of a join graph reach the shards: each row goes to all cells of the cube that agree with it (see `hypercube`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from shedjoin.batch import LATEST
from shedjoin.engine.records import NEVER
from shedjoin.spark.exchange import OWN, Packer, Packing, one_batch, split, times_of, to_blob
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.shares import Counts

#: The last column of rows that are archived: which row of its micro-batch and stream it is, the same in all shards.
ID = "id"
#: A task has fewer rows than this.
MOST_ROWS = 1 << 40


@dataclass(frozen=True, slots=True)
class GraphPacking(Packing):
    """How one stream of a join graph is packed. The key is a struct: its attributes, and a hash of the row if it needs one."""

    cube: HyperCube = field(default_factory=lambda: HyperCube((), ()))
    attributes: int = 1
    named: bool = False  # whether each row has a number that is the same in all shards


class GraphPacker(Packer):
    """Sends each row to its cells. A row that lacks an attribute joins nothing: it goes to one shard, which counts it."""

    how: GraphPacking

    def __init__(self, how: GraphPacking, task: int) -> None:
        super().__init__(how, task)
        self._sent = 0
        self._offsets = how.cube.offsets(how.stream).tolist()
        self._firsts = how.cube.firsts(how.stream)
        self._oldest = LATEST
        self._stored = np.zeros((2, len(how.labels)), np.int64)  # rows and bytes that may be stored, by shard

    def send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        table = self._engine_columns(one_batch(held))
        key, rows = table.column(0), table.num_rows
        null = np.asarray(key.is_null().to_numpy(zero_copy_only=False), np.bool_)
        fields = [field.fill_null(0).to_numpy(zero_copy_only=False) for field in key.flatten()]
        attributes = fields[: self.how.attributes]
        hashes = fields[-1] if len(fields) > self.how.attributes else None
        first = self.how.cube.first(self.how.stream, np.stack(attributes, axis=1), hashes)
        first[null] = self._firsts[np.arange(self._sent, self._sent + int(null.sum())) % self._firsts.size]
        table = table.set_column(0, pa.field(OWN[0], _struct(len(attributes))), _numbers(attributes, null))
        if self.how.named:
            table = table.append_column(ID, pa.array(self.task * MOST_ROWS + np.arange(self._sent, self._sent + rows)))
        self._sent += rows
        messages = []
        for some, offsets in ((~null, self._offsets), (null, self._offsets[:1])):
            if some.any():
                chosen = table if some.all() else table.filter(pa.array(some))
                if self.how.counted and some is not null:
                    self._note(chosen, first[some])
                messages.append(self._copies(chosen, first[some], offsets))
                self.part += 1
        return messages[0] if len(messages) == 1 else pa.concat_batches(messages)

    def _counted(self) -> Sequence[bytes | None]:
        """For every shard: how many rows this task sent where. Shares of memory follow these."""
        none, (rows, sizes) = np.empty(0, np.int64), self._stored
        counts = Counts(self._oldest, rows, sizes, none, none).to_bytes() if self.how.counted else None
        return [counts] * len(self.how.labels)

    def _note(self, table: pa.RecordBatch, first: np.ndarray) -> None:
        """Count rows that will be stored, in each shard they go to."""
        self._oldest = min(self._oldest, int(times_of(table).min()))
        sizes = table.column("bytes").to_numpy() if self.how.sized else np.zeros(first.size)
        shards = self._stored.shape[1]
        for offset in self._offsets:
            self._stored[0] += np.bincount(first + offset, minlength=shards)
            self._stored[1] += np.bincount(first + offset, sizes, minlength=shards).astype(np.int64)

    def _copies(self, table: pa.RecordBatch, first: np.ndarray, offsets: list[int]) -> pa.RecordBatch:
        """Messages with rows, one for each shard that they go to. What goes to several is written once."""
        blobs = [(place, part.num_rows, to_blob(part)) for place, part in split(table, first, len(self.how.labels))]
        return self._rows([(place + offset, rows, NEVER, blob) for place, rows, blob in blobs for offset in offsets])


def _struct(many: int) -> pa.DataType:
    return pa.struct([(f"k{place}", pa.int64()) for place in range(many)])


def _numbers(attributes: list[np.ndarray], null: np.ndarray) -> pa.Array:
    kind = _struct(len(attributes))
    columns = [pa.array(column, pa.int64()) for column in attributes]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(null))
