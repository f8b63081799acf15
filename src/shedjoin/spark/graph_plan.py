"""A checked join graph as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shedjoin.engine.graph import Graph
from shedjoin.spark.archive import ID
from shedjoin.spark.exchange import PACKED, inputs_of
from shedjoin.spark.graph_exchange import GraphPacking
from shedjoin.spark.hypercube import ROW, HyperCube
from shedjoin.spark.job import GraphJob
from shedjoin.spark.join_graph import attributes_column, is_hashed
from shedjoin.spark.keys import KEY, quoted
from shedjoin.spark.plan import JoinPlan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class GraphPlan(JoinPlan):
    """A join graph: rows go to the cells of a cube of shards."""

    graph: Graph = field(default_factory=lambda: Graph((), (), (), ()))
    types: list[list[str]] = field(default_factory=list)
    cube: HyperCube = field(default_factory=lambda: HyperCube((), ()))

    @property
    def archived(self) -> tuple[tuple[str, Any], ...]:
        """All attributes in place of a key, and the row's number in its micro-batch and stream, the same in all shards."""
        from pyspark.sql.types import ArrayType, LongType

        own = tuple((name, ArrayType(LongType()) if name == KEY else kind) for name, kind in super().archived)
        return (*own, (ID, "long"))

    def needed(self, side: int) -> list[str]:
        """The columns that results are made of: those asked for, and attributes that are to be compared once more."""
        asked = [column.source for column in self.out if column.side == side]
        hashed = [
            name
            for name, kind in zip(self.graph.columns[side], self.types[side], strict=True)
            if is_hashed(kind) or not asked
        ]
        return list(dict.fromkeys([*hashed, *asked]))

    def compared(self) -> list[tuple[tuple[int, str], tuple[int, str]]]:
        columns = self.graph.columns
        return [
            ((one.left, columns[one.left][one.left_attr]), (one.right, columns[one.right][one.right_attr]))
            for one in self.graph.equalities
            if is_hashed(self.types[one.left][one.left_attr])
        ]

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn

        frame = self.sides[side]
        travels, time = self.travels(side, kinds), self.times[side]
        names = self.graph.columns[side]
        own = any(dim.get(side) == ROW for dim in self.cube.dims)
        hashed = list(dict.fromkeys([*names, time, *travels])) if own else []
        chosen = self._own(side, attributes_column(frame, names, self.types[side], hashed), travels)
        how = GraphPacking(
            **self._packing(side, travels),
            counted=self._job(kinds).adaptive,
            cube=self.cube,
            attributes=len(names),
            named=inputs_of(self.names)[side] in kinds,
        )
        payload = [fn.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(travels)]
        return frame.select(*chosen, *payload).mapInArrow(_pack_worker(how), PACKED)

    def _job(self, kinds: tuple[str, ...]) -> GraphJob:
        return GraphJob(**self._told(kinds), cube=self.cube)

    def _signature(self) -> dict[str, Any]:
        return {**super()._signature(), "attributes": self.types, "cube": list(self.cube.shares)}


def _pack_worker(how: GraphPacking) -> Any:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from shedjoin.spark.exchange import pack_by
        from shedjoin.spark.graph_exchange import GraphPacker

        context = TaskContext.get()
        yield from pack_by(GraphPacker(how, 0 if context is None else context.partitionId()), batches)

    return work
