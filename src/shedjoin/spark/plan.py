"""A checked join as DataFrames: rows packed for their shards, what the shards give, and the results of that."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from shedjoin.error_target import ErrorTarget
from shedjoin.errors import SpecError
from shedjoin.join_type import TYPES
from shedjoin.policies import Auto
from shedjoin.spark.archive import ID
from shedjoin.spark.error_columns import ErrorColumns
from shedjoin.spark.exchange import GIVEN, PACKED, RESULT, SHED, inputs_of
from shedjoin.spark.host_cache import forget_at_exit
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.inputs import DELAY, is_connect
from shedjoin.spark.job import Job
from shedjoin.spark.join_condition import Condition
from shedjoin.spark.keys import IMPORTANCE, KEY, KIND, SIDES, TS, OutColumn, quoted
from shedjoin.spark.late import OBSERVED, Limit, observe_late
from shedjoin.spark.metrics import metric_schema
from shedjoin.spark.output_files import OutputFiles
from shedjoin.spark.packing import Packing
from shedjoin.spark.payload import column_name
from shedjoin.spark.tasks import batch_worker, pack_worker, unpack_worker
from shedjoin.spark.watermarks import check_lowest, delayed, milliseconds
from shedjoin.spark.weights import weight_columns
from shedjoin.spark.where import WHERE, Split, filtered
from shedjoin.spec import JoinSpec
from shedjoin.window import UNLIMITED, RowWindow, TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class ResultLayout:
    """How results look in their blobs. Knows no DataFrame, so that it can travel."""

    schema: StructType
    equal: list[tuple[str, str]]
    chosen: list[
        tuple[tuple[str, ...], str]
    ]  # columns, of which the first that is there counts, and the name in the result
    alone: bool = False  # whether some results have rows of one side only
    where: tuple[str, ...] = ()  # the filter after the join,
    looked_at: tuple[tuple[str, str], ...] = ()  # and columns with the names that they have in it


def rows_of(blobs: DataFrame, kind: str, schema: StructType | str) -> DataFrame:
    """The rows of all blobs of one kind."""
    from pyspark.sql import functions as fn

    return blobs.where(fn.col("kind") == kind).select("blob").mapInArrow(unpack_worker(), schema)


def results_of(blobs: DataFrame, layout: ResultLayout) -> DataFrame:
    """The rows of the result. Where two keys can have one hash, keys are compared as they are: such two make no row."""
    from pyspark.sql import functions as fn

    rows = rows_of(blobs, RESULT, layout.schema)
    for first, second in layout.equal:
        same = fn.col(first) == fn.col(second)
        rows = rows.where(fn.coalesce(same, fn.lit(True)) if layout.alone else same)  # nulls match nothing
    rows = filtered(rows, layout.where, {name: fn.col(column) for column, name in layout.looked_at})
    return rows.select(*(_first(names).alias(given) for names, given in layout.chosen))


def _first(names: tuple[str, ...]) -> Column:
    """The first of some columns that is not null."""
    from pyspark.sql import functions as fn

    return fn.coalesce(*map(fn.col, names)) if len(names) > 1 else fn.col(names[0])


@dataclass(frozen=True)
class JoinPlan:
    """A join that is checked and can be run: its pieces as DataFrames."""

    sides: tuple[DataFrame, ...]
    names: tuple[str, ...]
    condition: Condition
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
    where: Split | None = None
    weights: bool = False  # whether results have them
    target: float | None = None  # the recall that memory follows
    error: ErrorTarget | None = None  # the error of sums that it follows
    stored: tuple[tuple[str, ...], ...] = ()  # the columns that the state of a query that goes on has of each stream
    query: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def streaming(self) -> bool:
        return bool(self.sides[0].isStreaming)

    @property
    def metrics(self) -> StructType:
        """The columns of its metric rows."""
        from pyspark.sql.pandas.types import from_arrow_schema

        made = metric_schema(
            self.names,
            selective=self.spec.selective is not None,
            front=any(self.front),
            unmatched=bool(TYPES[self.spec.how].judged),
            target=self.target is not None or self.error is not None,
            error=self.error is not None,
            rear=self.spec.dual is not None,
            tries=isinstance(self.spec.policy, Auto),
            what_if=self.spec.what_if is not None,
        )
        return from_arrow_schema(made)

    @property
    def archived(self) -> tuple[tuple[str, str], ...]:
        """The additional columns of an archived row, with types. Rows of a join graph have one id in all shards."""
        kinds = {
            "_sj_shard": "int",
            "_sj_seq": "bigint",
            KEY: self.condition.archived,
            TS: "bigint",
            IMPORTANCE: "double",
        }
        return (*kinds.items(), *([(ID, "bigint")] if self.condition.copied else []))

    def needed(self, side: int) -> list[str]:
        """The columns of a side that results need: those that are compared again, and the selected ones."""
        asked = [column.source for column in self.out if column.side == side]
        asked += [] if self.where is None else self.where.needed(side)
        asked += [] if side == 0 else self._instead.values()
        compared = self.condition.hashed(side) if asked else self.condition.columns(side)
        return list(self.stored[side]) if self.stored else list(dict.fromkeys([*compared, *asked]))

    def going_on(self, stored: Sequence[Sequence[str]]) -> JoinPlan:
        """The same join with a state that has these columns of each stream: results may have all of them, and no others."""
        for side, columns in enumerate(stored):
            unknown = [name for name in self.needed(side) if name not in columns]
            if unknown:
                raise SpecError(
                    f"select: the stored rows of {self.names[side]} have no column {unknown[0]!r}, and those that come would be "
                    f"joined with them. They have {', '.join(columns)}; for others start with a new output directory"
                )
        return replace(self, stored=tuple(tuple(columns) for columns in stored))

    @property
    def _instead(self) -> dict[str, str]:
        """Of a join that gives right rows alone: key columns of left that are the right one's then."""
        if 1 not in TYPES[self.spec.how].preserved:
            return {}
        shared = set(self.condition.keys.shared)
        return {one.source: one.source for one in self.out if one.side == 0 and one.source in shared}

    def travels(self, side: int, kinds: tuple[str, ...]) -> list[str]:
        """The columns that go through the shuffle: all of them if the input is to be archived."""
        return list(self.sides[side].columns) if inputs_of(self.names)[side] in kinds else self.needed(side)

    def blobs(self, kinds: tuple[str, ...], files: OutputFiles | None = None) -> DataFrame:
        """The output of the shards: rows of (kind, shard, blob). `files`: the tables that they write themselves."""
        packed = reduce(
            lambda one, two: one.unionAll(two), [self._packed(side, kinds) for side in range(len(self.sides))]
        )
        grouped = packed.groupBy("label")
        job = replace(self._job(kinds), files=files)
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

            warn_when_late(spark, f"{OBSERVED}{self.query}", self.late_limit)
        return observe_late(blobs, self.query)

    @property
    def lateness(self) -> int | None:
        """In microseconds; None where times are numbers in a unit of the user's."""
        return self.spec.lateness if self.timestamps else None

    @property
    def late_limit(self) -> Limit:
        return Limit(self.lateness, bool(TYPES[self.spec.how].preserved))

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
        # A row without a partner is a result when it expires.
        rounds = max(self.spec.evaluate_every, (self.spec.expire_every or 0) if self.spec.how != "inner" else 0)
        longest = max(window.size for window in self.spec.windows)
        waits = longest if self.spec.dual is not None else 0  # in the aux-window
        return milliseconds(self.lateness + rounds + waits + longest)

    def with_watermarks(self) -> JoinPlan:
        """The same join, whose results have a watermark that holds for them."""
        if self.delay is None:
            return self
        check_lowest(self.sides[0].sparkSession)
        sides = [delayed(side, time, self.delay) for side, time in zip(self.sides, self.times, strict=True)]
        return replace(self, sides=tuple(sides))

    def with_event_time(self, results: DataFrame) -> DataFrame:
        """The same rows, with the time columns marked as event times."""
        from pyspark.sql import functions as fn

        if self.delay is None:
            return results
        note = {DELAY: self.delay}
        times = {one.name for one in self.out if one.source == self.times[one.side]}
        named = ((name, fn.col(quoted(name))) for name in results.columns)
        return results.select(*(one.alias(name, metadata=note) if name in times else one for name, one in named))

    def layout(self) -> ResultLayout:
        """How results look in their blobs."""
        from pyspark.sql.types import DataType, StructField, StructType

        fields = []
        names: list[dict[str, str]] = [{} for _ in self.sides]
        for side in range(len(self.sides)):
            for place, name in enumerate(self.needed(side)):
                names[side][name] = column_name(len(self.sides), side, place)
                fields.append(StructField(names[side][name], self.sides[side].schema[name].dataType))
        beside = weight_columns(len(self.sides)) if self.weights else ()
        fields += [StructField(name, DataType.fromDDL(kind)) for name, kind in beside]
        return ResultLayout(
            StructType(fields),
            [(names[one][first], names[two][second]) for (one, first), (two, second) in self.condition.equal()],
            [*((self._columns_of(one, names), one.name) for one in self.out), *(((name,), name) for name, _ in beside)],
            self.spec.how != "inner",
            *self._behind(names),
        )

    def _behind(self, names: list[dict[str, str]]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The filter after the join, and its columns by their names in blobs."""
        if self.where is None or not self.where.behind:
            return (), ()
        named = self.where.named({(side, name): blob for side, mine in enumerate(names) for name, blob in mine.items()})
        return tuple(sql for sql, _ in self.where.behind), named

    def _columns_of(self, one: OutColumn, names: list[dict[str, str]]) -> tuple[str, ...]:
        """Which columns of the blobs a column of the result is: a shared key is that of whichever row is there."""
        own = names[one.side][one.source]
        instead = self._instead.get(one.source) if one.side == 0 else None
        return (own,) if instead is None else (own, names[1][instead])

    def _packed(self, side: int, kinds: tuple[str, ...]) -> DataFrame:
        from pyspark.sql import functions as fn

        frame, travels = self.sides[side], self.travels(side, kinds)
        compared = self.condition.column(frame, side, [self.times[side], *travels])
        if self.where is not None:
            frame, compared = self.where.with_columns(frame, side), self.where.meets(side, compared)
        payload = [fn.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(travels)]
        chosen = frame.select(*self._own(side, compared, travels), *payload)
        return chosen.mapInArrow(pack_worker(self._packing(side, travels, kinds)), PACKED)

    def _own(self, side: int, key: Column, travels: list[str]) -> list[Column]:
        """The values that the engine needs of a row: key, time (unless it is sent anyway), importance and type."""
        from pyspark.sql import functions as fn

        chosen, time = [key.alias(KEY)], self.times[side]
        if time not in travels:
            chosen.append(fn.col(quoted(time)).alias(TS))
        for names, kind, called in ((self.importances, "double", IMPORTANCE), (self.kinds, "bigint", KIND)):
            if names and (name := names[side]) is not None:
                chosen.append(fn.col(quoted(name)).cast(kind).alias(called))
        if self.where is not None and (numbers := self.where.numbers(side)) is not None:
            chosen.append(numbers.alias(WHERE))
        return chosen

    def _packing(self, side: int, travels: list[str], kinds: tuple[str, ...]) -> Packing:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        schema, time, condition = self.sides[side].schema, self.times[side], self.condition
        chosen = StructType([schema[name] for name in travels])
        return Packing(
            stream=side,
            name=self.names[side],
            labels=self.labels,
            cube=condition.cube,
            schema=to_arrow_schema(chosen, timezone="UTC").serialize().to_pybytes(),
            time=time,
            time_at=travels.index(time) if time in travels else None,
            importance=self.importances[side],
            kind=self.kinds[side] if self.kinds else None,
            kinds=0 if self.spec.selective is None else self.spec.selective.types,
            values=condition.values,
            compared=condition.columns(side)[0],
            sized=self.spec.budget is not None and self.spec.budget.unit == "bytes",
            counted=self._job(kinds).adaptive,
            numbered=self.spec.counted_elsewhere,
            timed=self.deadline is not None,
            named=condition.copied and inputs_of(self.names)[side] in kinds,
            front=self.front[side] if self.front else 0.0,
            # Windows of rows count those that are dropped; rows may have lost partners to them.
            marked=SHED in kinds
            or self.spec.counts_partners
            or any(isinstance(window, RowWindow) for window in self.spec.windows),
            seed=self.seed,
            checked=None if self.where is None else self.where.checked(side),
        )

    @property
    def signature(self) -> dict[str, Any]:
        """The settings of the job, in addition to the spec, that may not change on a checkpoint."""
        return self._job(()).signature

    def _signature(self) -> dict[str, Any]:
        """The same without the columns."""
        signature: dict[str, Any] = {
            **self.condition.signature(),
            "time": list(self.times),
            "weights": list(self.importances),
        }
        if any(self.kinds):
            signature["kind"] = list(self.kinds)
        if self.where is not None:
            signature["where"] = self.where.clause.text
            signature["types in where"] = list(self.where.types)
        if len(self.names) > len(SIDES):  # two are always left and right
            signature["streams"] = list(self.names)
        return signature

    def _job(self, kinds: tuple[str, ...]) -> Job:
        """What every shard gets."""
        kept = []
        signature = self._signature()
        for side, called in enumerate(self.names):
            travels = self.travels(side, kinds)
            kept.append(tuple(travels.index(name) for name in self.needed(side)))
            schema = self.sides[side].schema
            signature[f"columns of {called}"] = [
                [name, schema[name].dataType.simpleString()] for name in self.needed(side)
            ]
        return Job(
            spec=self.spec.to_dict(),
            labels=self.labels,
            cube=self.condition.cube,
            seed=self.seed,
            kept=tuple(kept),
            signature=signature,
            kinds=kinds,
            cache=self.cache,
            shares=self.shares,
            query=self.query,
            names=self.names,
            recall=self.recall and self.spec.how not in ("left_semi", "left_anti"),  # it is that of pairs
            schemas=self._schemas() if self.spec.how != "inner" else (),
            timestamps=self.timestamps,
            keys=self._hashed_keys(),
            deadline=self.deadline,
            front=any(self.front),
            weights=self.weights,
            target=self.target,
            error=self._error(),
        )

    def _error(self) -> ErrorColumns | None:
        """The error target, and where its columns stand among those that results are made of."""
        if self.error is None:
            return None
        places = {one.name: (one.side, self.needed(one.side).index(one.source)) for one in self.out}
        by = tuple(places[name] for name in self.error.by)
        return ErrorColumns(self.error, by, None if self.error.sum is None else places[self.error.sum])

    def stored_by(self, labels: Sequence[int], spec: dict[str, Any]) -> Job:
        """The job of a state with these shards, for the same join and its own spec."""
        shards, streams = len(labels), len(self.names)
        everywhere = self.condition.cube.is_everywhere
        cube = HyperCube.of_copies(shards) if everywhere else HyperCube.of_key(streams, shards)
        condition = replace(cast(Any, self.condition), cube=cube)  # all conditions are dataclasses
        return replace(self, labels=tuple(labels), condition=condition, spec=JoinSpec.from_dict(spec))._job(())

    def _schemas(self) -> tuple[bytes, ...]:
        """The columns of each side that results are made of, where one side may be missing."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        made = []
        for side, frame in enumerate(self.sides):
            chosen = StructType([frame.schema[name] for name in self.needed(side)])
            made.append(bytes(to_arrow_schema(chosen, timezone="UTC").serialize().to_pybytes()))
        return tuple(made)

    def _hashed_keys(self) -> bytes | None:
        """The schema of the key columns, if they cannot be told from the key's number."""
        from pyspark.sql import functions as fn
        from pyspark.sql.pandas.types import to_arrow_schema

        hashed = self.condition.hashed(0) if self.condition.key_columns else []
        if not hashed:
            return None
        named = zip(hashed, self.condition.key_columns, strict=True)
        keys = self.sides[0].select(*(fn.col(quoted(name)).cast(kind).alias(key) for name, (key, kind) in named))
        return bytes(to_arrow_schema(keys.schema, timezone="UTC").serialize().to_pybytes())
