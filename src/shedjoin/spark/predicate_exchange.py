"""How rows of a join on a predicate reach the shards: every row goes to all of them (SplitJoin); equal sets go by their hash."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from shedjoin.engine.records import NEVER
from shedjoin.predicates.rows import hashes_of_sets
from shedjoin.spark.exchange import OWN, Packer, Packing, one_batch, to_blob
from shedjoin.spark.keys import SIDES
from shedjoin.spark.predicate_values import in_order, values_of


@dataclass(frozen=True, slots=True)
class PredicatePacking(Packing):
    """How one side of a join on a predicate is packed. The value of a row is the last column."""

    kind: str = "number"  # of the values
    value: str = ""  # the column's name, for messages
    spread: bool = True  # to all shards; otherwise by the hash of the set


class PredicatePacker(Packer):
    """Sends every row to every shard, or to that of its set."""

    how: PredicatePacking

    def send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        if not self.how.spread:
            return super().send(held)
        table = self._engine_columns(one_batch(held))
        blob = to_blob(table)
        message = self._rows([(place, table.num_rows, NEVER, blob) for place in range(len(self.how.labels))])
        self.part += 1
        return message

    def _engine_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        table = super()._engine_columns(batch)
        last = table.num_columns - 1
        name = f"{SIDES[self.how.stream]}.{self.how.value}"
        value = in_order(name, table.column(last), self.how.kind)
        if not self.how.spread:
            values = values_of(value, self.how.kind)
            key = pa.array(hashes_of_sets(values), mask=values.null)
            return table.set_column(0, OWN[0], key).select(range(last))
        table = table.set_column(last, "value", value)
        return table.set_column(0, OWN[0], pa.nulls(table.num_rows))
