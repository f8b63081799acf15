"""A checked join on a predicate, or with a deadline, as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shedjoin.predicates import Predicate
from shedjoin.spark import keys as columns
from shedjoin.spark.exchange import PACKED
from shedjoin.spark.job import PredicateJob
from shedjoin.spark.keys import IMPORTANCE, KEY, SIDES, TS, quoted
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_exchange import PredicatePacking
from shedjoin.spark.predicate_metrics import PREDICATE_DDL
from shedjoin.spark.predicate_values import value_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PredicatePlan(JoinPlan):
    """A join on a predicate, or by key with a deadline."""

    predicate: Predicate | None = None  # None: by key
    value_types: Any = ()
    deadline: float | None = None

    @property
    def spread(self) -> bool:
        """Whether every row goes to every shard."""
        return self.predicate is not None

    @property
    def metrics(self) -> str:
        return PREDICATE_DDL

    @property
    def key_columns(self) -> list[tuple[str, str]]:
        return []  # such a log has no keys

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        frame, importance = self.sides[side], self.importances[side]
        names = self.travels(side, kinds)
        chosen = [fn.col(quoted(self.times[side])).alias(TS)]
        if importance is not None:
            chosen.append(fn.col(quoted(importance)).cast("double").alias(IMPORTANCE))
        payload = [fn.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(names)]
        kind, value = "value", ""
        if self.predicate is None:
            key = columns.key_number(frame, self.keys.names(side), self.key_types)
        else:
            kind, value = self.predicate.kind, self.predicate.columns[side]
            key = fn.lit(None).cast("bigint")
            payload.append(value_column(frame, value, kind).alias(f"c{len(names)}"))
        given = frame.select(key.alias(KEY), *chosen, *payload)
        schema = StructType(given.schema.fields[1 + len(chosen) :])
        how = PredicatePacking(
            stream=side,
            labels=self.labels,
            schema=to_arrow_schema(schema, timezone="UTC").serialize().to_pybytes(),
            weighed=importance is not None,
            sized=False,
            time=self.times[side],
            importance=importance,
            kind=kind,
            value=value,
            spread=self.spread,
        )
        return given.mapInArrow(_pack_worker(how), PACKED)

    def _job(self, kinds: tuple[str, ...]) -> PredicateJob:  # type: ignore[override]
        kept, signature = [], self._signature()
        for side in (0, 1):
            travels, schema = self.travels(side, kinds), self.sides[side].schema
            kept.append(tuple(travels.index(name) for name in self.needed(side)))
            signature[f"columns of {SIDES[side]}"] = [
                [name, schema[name].dataType.simpleString()] for name in self.needed(side)
            ]
        return PredicateJob(
            spec=self.spec.to_dict(),
            labels=self.labels,
            seed=self.seed,
            kept=(kept[0], kept[1]),
            signature=signature,
            kinds=kinds,
            cache=self.cache,
            spread=self.spread,
            deadline=self.deadline,
            query=self.query,
            timestamps=self.timestamps,
        )

    def _signature(self) -> dict[str, Any]:
        return {
            "keys": [[*pair, kind] for pair, kind in zip(self.keys.pairs, self.key_types, strict=True)],
            "values": list(self.value_types),
            "time": list(self.times),
            "weights": list(self.importances),
        }


def _pack_worker(how: PredicatePacking) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shedjoin.spark.exchange import pack_by
        from shedjoin.spark.predicate_exchange import PredicatePacker

        context = TaskContext.get()
        yield from pack_by(PredicatePacker(how, 0 if context is None else context.partitionId()), batches)

    return work
