"""A checked join on a predicate as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shedjoin.predicates import Band, Predicate
from shedjoin.spark.exchange import PACKED
from shedjoin.spark.job import Job
from shedjoin.spark.keys import KEY, quoted
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_exchange import PredicatePacking
from shedjoin.spark.predicate_values import ARCHIVED_VALUES, is_spread, value_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PredicatePlan(JoinPlan):
    """A join on a predicate: rows go to all shards, equal sets to that of their hash."""

    predicate: Predicate = field(default_factory=lambda: Band("value", within=0.0))
    value_types: list[str] = field(default_factory=list)

    @property
    def spread(self) -> bool:
        """Whether every row goes to every shard."""
        return is_spread(self.predicate)

    @property
    def archived(self) -> tuple[tuple[str, Any], ...]:
        """What the predicate compares in place of a key."""
        if not self.spread:
            return super().archived
        from pyspark.sql.types import DataType

        kind = DataType.fromDDL(ARCHIVED_VALUES[self.predicate.kind])
        return tuple((name, kind if name == KEY else one) for name, one in super().archived)

    @property
    def key_columns(self) -> list[tuple[str, str]]:
        return []  # such a log has no keys

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        frame, travels = self.sides[side], self.travels(side, kinds)
        chosen = self._own(side, fn.lit(None).cast("bigint"), travels)
        kind, name = self.predicate.kind, self.predicate.columns[side]
        payload = [fn.col(quoted(one)).alias(f"c{place}") for place, one in enumerate(travels)]
        payload.append(value_column(frame, name, kind).alias(f"c{len(travels)}"))
        given = frame.select(*chosen, *payload)
        schema = to_arrow_schema(StructType(given.schema.fields[len(chosen) :]), timezone="UTC")
        packing = {**self._packing(side, travels), "schema": schema.serialize().to_pybytes()}
        numbered = self.spec.counted_elsewhere
        how = PredicatePacking(**packing, numbered=numbered, kind=kind, value=name, spread=self.spread)
        return given.mapInArrow(_pack_worker(how), PACKED)

    def _job(self, kinds: tuple[str, ...]) -> Job:
        return Job(**{**self._told(kinds), "spread": self.spread})

    def _signature(self) -> dict[str, Any]:
        return {**super()._signature(), "values": list(self.value_types)}


def _pack_worker(how: PredicatePacking) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shedjoin.spark.exchange import pack_by
        from shedjoin.spark.predicate_exchange import PredicatePacker

        context = TaskContext.get()
        yield from pack_by(PredicatePacker(how, 0 if context is None else context.partitionId()), batches)

    return work
