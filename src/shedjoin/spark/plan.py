"""A checked join as DataFrames: rows packed for their shards, what the shards give, and the results of that."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from shedjoin.spark import keys as columns
from shedjoin.spark.cache import forget_at_exit
from shedjoin.spark.exchange import GIVEN, PACKED, RESULT, SHED, Packing, inputs_of
from shedjoin.spark.inputs import DELAY, is_connect
from shedjoin.spark.job import Job
from shedjoin.spark.keys import IMPORTANCE, KEY, KIND, SIDES, TS, Keys, OutColumn, quoted
from shedjoin.spark.late import OBSERVED, observe_late
from shedjoin.spark.metrics import metric_ddl
from shedjoin.spark.payload import column_name
from shedjoin.spark.tasks import batch_worker, pack_worker, unpack_worker
from shedjoin.spark.watermarks import check_lowest, delayed, milliseconds
from shedjoin.spec import JoinSpec
from shedjoin.window import UNLIMITED, RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


#: What an archived row has beside the user's columns.
ARCHIVED = (
    ("_sj_shard", "integer"),
    ("_sj_seq", "long"),
    ("_sj_key", "long"),
    ("_sj_ts", "long"),
    ("_sj_imp", "double"),
)


@dataclass(frozen=True)
class Layout:
    """How results look in their blobs. Knows no DataFrame, so that it can travel."""

    schema: StructType
    equal: list[tuple[str, str]]
    chosen: list[tuple[str, str]]  # columns and the names they have in the result


def rows_of(blobs: DataFrame, kind: str, schema: StructType | str) -> DataFrame:
    """The rows of all blobs of one kind."""
    from pyspark.sql import functions as fn

    return blobs.where(fn.col("kind") == kind).select("blob").mapInArrow(unpack_worker(), schema)


def results_of(blobs: DataFrame, layout: Layout) -> DataFrame:
    """The rows of the result. Where two keys can have one hash, keys are compared as they are: such two make no row."""
    from pyspark.sql import functions as fn

    rows = rows_of(blobs, RESULT, layout.schema)
    for first, second in layout.equal:
        rows = rows.where(fn.col(first) == fn.col(second))
    return rows.select(*(fn.col(name).alias(given) for name, given in layout.chosen))


@dataclass(frozen=True)
class JoinPlan:
    """A join that is checked and can be run: its pieces as DataFrames."""

    sides: tuple[DataFrame, ...]
    names: tuple[str, ...]
    keys: Keys
    key_types: list[str]
    times: tuple[str, ...]
    importances: tuple[str | None, ...]
    out: list[OutColumn]
    spec: JoinSpec
    labels: tuple[int, ...]
    timestamps: bool  # or times are whole numbers
    seed: int
    shares: str
    cache: str | bool | None
    recall: bool = True  # whether it is estimated while the join runs
    deadline: float | None = None  # seconds
    front: tuple[float, ...] = ()  # the share of each stream that is dropped; none: nothing is
    kinds: tuple[str | None, ...] = ()  # the columns with the types of rows; none: there are no types
    query: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def streaming(self) -> bool:
        return bool(self.sides[0].isStreaming)

    @property
    def metrics(self) -> str:
        """The columns of its metric rows."""
        return metric_ddl(self.names, selective=self.spec.selective is not None, front=any(self.front))

    @property
    def archived(self) -> tuple[tuple[str, Any], ...]:
        """What an archived row has beside the user's columns, with types."""
        return ARCHIVED

    def needed(self, side: int) -> list[str]:
        """The columns of a side that results are made of: those asked for, and keys that are to be compared once more."""
        asked = [column.source for column in self.out if column.side == side]
        keys = self.keys.names(side) if not columns.is_number(self.key_types) or not asked else []
        return list(dict.fromkeys([*keys, *asked]))

    def travels(self, side: int, kinds: tuple[str, ...]) -> list[str]:
        """The columns that go through the shuffle: all of them if the input is to be archived."""
        return list(self.sides[side].columns) if inputs_of(self.names)[side] in kinds else self.needed(side)

    def blobs(self, kinds: tuple[str, ...]) -> DataFrame:
        """What the shards give: rows of (kind, shard, blob)."""
        packed = reduce(
            lambda one, two: one.unionAll(two), [self._packed(side, kinds) for side in range(len(self.sides))]
        )
        grouped = packed.groupBy("label")
        job = self._job(kinds)
        if not self.streaming:
            return grouped.applyInArrow(batch_worker(job), GIVEN)
        from shedjoin.spark.processor import ShardProcessor

        if not is_connect(self.sides[0].sparkSession):  # whose server has the copies
            forget_at_exit(self.query, self.cache)
        return grouped.transformWithStateInPandas(ShardProcessor(job), GIVEN, outputMode="Append", timeMode="None")

    def watched(self, blobs: DataFrame) -> DataFrame:
        """The same blobs, of whose late rows the driver warns."""
        spark = self.sides[0].sparkSession
        if not self.streaming:
            return blobs
        if not is_connect(spark):  # its clients read the number from the progress of the query
            from shedjoin.spark.query_events import warn_when_late

            warn_when_late(spark, f"{OBSERVED}{self.query}", self.lateness)
        return observe_late(blobs, self.query)

    @property
    def lateness(self) -> int | None:
        """In microseconds; None where times are numbers in a unit of the user's."""
        return self.spec.lateness if self.timestamps else None

    def results(self, blobs: DataFrame) -> DataFrame:
        """The rows of the result."""
        return results_of(blobs, self.layout())

    @property
    def delay(self) -> int | None:
        """How far results may lag behind the newest row, in milliseconds; None: no watermark is possible."""
        if not self.streaming or self.lateness is None or self.lateness >= UNLIMITED:
            return None
        if not all(isinstance(window, TimeWindow) for window in self.spec.windows):
            return None
        return milliseconds(self.lateness + max(window.size for window in self.spec.windows))

    def with_watermarks(self) -> JoinPlan:
        """The same join, whose results have a watermark that holds for them."""
        if self.delay is None:
            return self
        check_lowest(self.sides[0].sparkSession)
        sides = [delayed(side, time, self.delay) for side, time in zip(self.sides, self.times, strict=True)]
        return replace(self, sides=tuple(sides))

    def with_event_time(self, results: DataFrame) -> DataFrame:
        """The same rows, in which Spark knows the time columns as event times."""
        from pyspark.sql import functions as fn

        if self.delay is None:
            return results
        note = {DELAY: self.delay}
        times = {one.name for one in self.out if one.source == self.times[one.side]}
        named = ((name, fn.col(quoted(name))) for name in results.columns)
        return results.select(*(one.alias(name, metadata=note) if name in times else one for name, one in named))

    def layout(self) -> Layout:
        """How results look in their blobs."""
        from pyspark.sql.types import StructField, StructType

        fields = []
        names: list[dict[str, str]] = [{} for _ in self.sides]
        for side in range(len(self.sides)):
            for place, name in enumerate(self.needed(side)):
                names[side][name] = column_name(len(self.sides), side, place)
                fields.append(StructField(names[side][name], self.sides[side].schema[name].dataType))
        return Layout(
            StructType(fields),
            [(names[one][first], names[two][second]) for (one, first), (two, second) in self.compared()],
            [(names[one.side][one.source], one.name) for one in self.out],
        )

    def compared(self) -> list[tuple[tuple[int, str], tuple[int, str]]]:
        """Pairs of (stream, column) that are joined by their hashes, so that the values of results are compared once more."""
        hashed = () if columns.is_number(self.key_types) else self.keys.pairs
        return [((0, pair[0]), (side, pair[side])) for pair in hashed for side in range(1, len(pair))]

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn

        frame = self.sides[side]
        travels = self.travels(side, kinds)
        chosen = self._own(side, columns.key_number(frame, self.keys.names(side), self.key_types), travels)
        packing = self._packing(side, travels)
        how = Packing(
            **packing,
            counted=self._job(kinds).adaptive,
            numbered=self.spec.counted_elsewhere,
            front=self.front[side] if self.front else 0.0,
            # Windows of rows count those that are dropped.
            marked=SHED in kinds or any(isinstance(window, RowWindow) for window in self.spec.windows),
            seed=self.seed,
        )
        payload = [fn.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(travels)]
        return frame.select(*chosen, *payload).mapInArrow(pack_worker(how), PACKED)

    def _own(self, side: int, key: Column, travels: list[str]) -> list[Column]:
        """What the engine asks of a row: its key, its time unless that travels anyway, its importance and its type."""
        from pyspark.sql import functions as fn

        chosen, time = [key.alias(KEY)], self.times[side]
        if time not in travels:
            chosen.append(fn.col(quoted(time)).alias(TS))
        for names, kind, called in ((self.importances, "double", IMPORTANCE), (self.kinds, "bigint", KIND)):
            if names and (name := names[side]) is not None:
                chosen.append(fn.col(quoted(name)).cast(kind).alias(called))
        return chosen

    def _packing(self, side: int, travels: list[str]) -> dict[str, Any]:
        """How a side is packed, whatever the join is on."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        schema, time = self.sides[side].schema, self.times[side]
        chosen = StructType([schema[name] for name in travels])
        return {
            "stream": side,
            "labels": self.labels,
            "schema": to_arrow_schema(chosen, timezone="UTC").serialize().to_pybytes(),
            "weighed": self.importances[side] is not None,
            "sized": self.spec.budget is not None and self.spec.budget.unit == "bytes",
            "time": time,
            "importance": self.importances[side],
            "side": self.names[side],
            "time_at": travels.index(time) if time in travels else None,
            "timed": self.deadline is not None,
            "typed": self.kinds[side] if self.kinds else None,
            "types": 0 if self.spec.selective is None else self.spec.selective.types,
        }

    def _signature(self) -> dict[str, Any]:
        """What may not change while a checkpoint lives, beside the spec and the columns."""
        signature: dict[str, Any] = {
            "keys": [[*pair, kind] for pair, kind in zip(self.keys.pairs, self.key_types, strict=True)],
            "time": list(self.times),
            "weights": list(self.importances),
        }
        if any(self.kinds):
            signature["kind"] = list(self.kinds)
        if len(self.names) > len(SIDES):  # two are always left and right
            signature["streams"] = list(self.names)
        return signature

    def _job(self, kinds: tuple[str, ...]) -> Job:
        return Job(**self._told(kinds))

    def _told(self, kinds: tuple[str, ...]) -> dict[str, Any]:
        """What every shard is told."""
        kept = []
        signature = self._signature()
        for side, called in enumerate(self.names):
            travels = self.travels(side, kinds)
            kept.append(tuple(travels.index(name) for name in self.needed(side)))
            schema = self.sides[side].schema
            signature[f"columns of {called}"] = [
                [name, schema[name].dataType.simpleString()] for name in self.needed(side)
            ]
        return {
            "spec": self.spec.to_dict(),
            "labels": self.labels,
            "seed": self.seed,
            "kept": tuple(kept),
            "signature": signature,
            "kinds": kinds,
            "cache": self.cache,
            "shares": self.shares,
            "query": self.query,
            "names": self.names,
            "recall": self.recall,
            "timestamps": self.timestamps,
            "keys": self._hashed_keys(),
            "deadline": self.deadline,
            "front": any(self.front),
        }

    @property
    def key_columns(self) -> list[tuple[str, str]]:
        """What the columns of the key are called in the shed log, and their types."""
        return [(f"key_{pair[0]}", kind) for pair, kind in zip(self.keys.pairs, self.key_types, strict=True)]

    def _hashed_keys(self) -> bytes | None:
        """The schema of the key columns, if they cannot be told from the key's number."""
        from pyspark.sql import functions as fn
        from pyspark.sql.pandas.types import to_arrow_schema

        if columns.is_number(self.key_types) or not self.key_types:
            return None
        named = zip(self.keys.names(0), self.key_columns, strict=True)
        keys = self.sides[0].select(*(fn.col(quoted(name)).cast(kind).alias(key) for name, (key, kind) in named))
        return bytes(to_arrow_schema(keys.schema, timezone="UTC").serialize().to_pybytes())
