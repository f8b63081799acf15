"""`shed_join` on a predicate, or with a deadline: what is checked, and what the pieces are as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from shedjoin.cpu.join import PredicateJoin
from shedjoin.cpu.settings import Selective
from shedjoin.errors import SpecError
from shedjoin.policies import Policy
from shedjoin.predicates import PREDICATES, Equal, Predicate
from shedjoin.spark import keys as columns
from shedjoin.spark.arguments import policy_of
from shedjoin.spark.exchange import PACKED
from shedjoin.spark.job import PredicateJob
from shedjoin.spark.join_args import JoinArgs
from shedjoin.spark.keyed_join import plan_keyed
from shedjoin.spark.keys import IMPORTANCE, KEY, SIDES, TS, quoted
from shedjoin.spark.many import Join
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_exchange import PredicatePacking
from shedjoin.spark.predicate_metrics import PREDICATE_DDL
from shedjoin.spark.predicate_values import check_values, value_column
from shedjoin.spark.shares import EQUAL
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow
from shedjoin.words import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

#: A window is cut into so many basic windows (gedik2007), and they are ranked anew so often in its course.
BASIC, RANKED = 20, 4
#: What equal keys are to the engine: the hash of the key columns.
BY_KEY = Equal(KEY)


def read_predicate(value: Any, *, argument: str = "predicate") -> Predicate:
    """A predicate, or a table of its name and settings."""
    if isinstance(value, Predicate):
        return value
    if not isinstance(value, Mapping) or value.get("name") not in PREDICATES:
        raise SpecError(
            f"{argument} must be a predicate such as Overlap('tags', at_least=2), or a table with a name, one of "
            f"{', '.join(PREDICATES)}, not {value!r}"
        )
    settings = {name: setting for name, setting in value.items() if name != "name"}
    columns = settings.get("column")
    if isinstance(columns, Mapping) and set(columns) == set(SIDES):
        settings["column"] = tuple(columns[side] for side in SIDES)
    try:
        return PREDICATES[value["name"]](**settings)
    except TypeError as reason:
        raise SpecError(f"{argument} {value['name']} does not take these settings: {reason}") from None
    except SpecError as reason:
        raise SpecError(f"{argument}: {reason}") from None


def read_deadline(value: Any, *, argument: str = "deadline") -> float | None:
    """Seconds."""
    if value is None:
        return None
    if isinstance(value, str | timedelta):
        seconds = parse_duration(value, argument=argument) / 1e6
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise SpecError(f"{argument} must be a duration such as '2 seconds', or a number of seconds, not {value!r}")
    if not 0.0 < seconds < 1e9:
        raise SpecError(f"{argument} must be above 0, not {value!r}")
    return seconds


def condition(on: Any, predicate: Any, *, where: str = "") -> tuple[Any, Predicate | None]:
    """What rows are joined on: keys, or a predicate. `where`: what these arguments are part of."""
    if on is not None and predicate is not None:
        raise SpecError(
            f"{where}on and {where}predicate cannot both be given: join on the predicate and filter the result on equal keys, or "
            "join on the keys and filter by the predicate"
        )
    found = None if predicate is None else read_predicate(predicate, argument=f"{where}predicate")
    return (found.column, None) if isinstance(found, Equal) else (on, found)  # the same join, by the same names


def check_shares(shares: Any, *, argument: str = "shares") -> None:
    """These joins count no keys, so that nothing says which shard would make more of the memory."""
    if shares not in (None, EQUAL):
        raise SpecError(f"{argument} must be 'equal' for a join on a predicate or with a deadline, not {shares!r}")


def plan_predicate(frames: tuple[DataFrame, ...], args: JoinArgs) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join, if it has a predicate or a deadline."""
    if len(frames) != 2:
        raise SpecError(f"predicate and deadline are for joins of two streams, not of {len(frames)}")
    left, right = frames
    on, found = condition(args["on"], args["predicate"])
    seconds = read_deadline(args["deadline"])
    if found is None and seconds is None:
        return plan_keyed(frames, {**args, "on": on})
    check_shares(args["shares"])
    # What joins on keys check is checked by them. Their policies need keys: who stays is settled below.
    plan = plan_keyed(frames, {**args, "on": on, "policy": None, "shares": EQUAL}, unkeyed=found is not None)
    types = [] if found is None else check_values(found, left, right)
    return PredicatePlan(
        **{name: getattr(plan, name) for name in JoinPlan.__dataclass_fields__ if name != "spec"},
        spec=predicate_join(plan.spec, found, seconds, policy_of(args["policy"], args["budget"])),  # type: ignore[arg-type]
        predicate=found,
        value_types=types,
        deadline=seconds,
    )


def predicate_join(
    spec: Join, predicate: Predicate | None, seconds: float | None, policy: Policy | None
) -> PredicateJoin:
    """The join that the shards run, from what it has in common with joins on keys. No predicate: by key."""
    assert isinstance(spec, JoinSpec)  # of two streams
    first, second = spec.windows
    if not (isinstance(first, TimeWindow) and isinstance(second, TimeWindow)):
        raise SpecError("window must be a length of time for a join on a predicate or with a deadline, not a RowWindow")
    longest = max(first.length, second.length)
    ways = Selective(
        basic=max(1, -(-longest // BASIC)),
        rate=False,  # the clock says what there is time for
        period=max(1, longest // RANKED),
        rank_period=max(1, longest // RANKED),
    )
    return PredicateJoin(
        window=first if first == second else (first, second),
        predicate=predicate or BY_KEY,
        selective=None if seconds is None else ways,
        budget=spec.budget,
        policy=policy if spec.budget is not None else None,
        importance=spec.importance,
        lateness=spec.lateness,
        max_skew=spec.max_skew,
    )


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

    def check_archive(self, archive: bool) -> None:
        if archive:
            raise SpecError(
                "archive=True is for joins on keys without a deadline: the shed log does not say which part of a window a row "
                "was compared with, so refine cannot find what is missing"
            )

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
