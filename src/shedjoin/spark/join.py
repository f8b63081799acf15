"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from shedjoin.error_target import ErrorTarget
from shedjoin.errors import SpecError
from shedjoin.parse import parse_policy
from shedjoin.spark import keys as columns
from shedjoin.spark.arguments import judges_partners, read_deadline, spec_of, stream_names, whole_streams, windows_of
from shedjoin.spark.budget_split import ADAPTIVE, EQUAL
from shedjoin.spark.exchange import RESULT, shard_labels
from shedjoin.spark.front import front_of
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.inputs import PARTITIONS, check_frames, lateness_of, shards_of
from shedjoin.spark.join_args import JoinArgs, complete, takes_join_args
from shedjoin.spark.join_condition import Condition, OnGraph, OnKey, OnPredicate
from shedjoin.spark.join_graph import attribute_types, cube_of
from shedjoin.spark.key_table import is_table, table_of_numbers
from shedjoin.spark.keys import Keys
from shedjoin.spark.on_args import rates_of, read_on
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.value_columns import check_values
from shedjoin.spark.weights import ROW, WEIGHT
from shedjoin.spark.where import Split
from shedjoin.spark.where_split import split_where
from shedjoin.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from shedjoin.spec import JoinSpec


@takes_join_args
def shed_join(left: DataFrame, right: DataFrame, *more: DataFrame, **args: Unpack[JoinArgs]) -> DataFrame:
    """Join DataFrames on keys and time within a memory budget. Streaming in, streaming out; batch in, batch out.

    Parameters
    ----------
    left, right, more
        Streaming DataFrames, or batch ones: two, or up to 16. Where an argument takes a pair (left, right), it also takes a
        dict by the streams' names; three and more streams take one value a stream.
    """
    plan = plan_join((left, right, *more), complete(args, shed_join)).with_watermarks()
    return plan.with_event_time(plan.results(plan.watched(plan.blobs((RESULT,)))))


def plan_join(
    frames: tuple[DataFrame, ...], args: JoinArgs, *, cube: Sequence[int] | None = None, partitions: int | None = None
) -> JoinPlan:
    """Check all arguments of a join against its inputs, and plan it.

    `cube`: the shares of a join graph that continues. `partitions`: those of a state that continues unchanged.
    """
    sides = stream_names(args["names"], len(frames))
    check_frames(frames, sides)
    spark = frames[0].sparkSession
    times = columns.column_names("time", args["time"], sides)
    kind = columns.time_kind(frames, times, sides)
    partitions = partitions or int(spark.conf.get(PARTITIONS) or 1)
    shards = shards_of(spark, args["shards"], partitions)
    lateness = lateness_of(args["lateness"], kind, frames, times, sides)
    condition = _condition(args, frames, sides, shards, kind, cube)
    if judges_partners(args) and args["shards"] is None and _has_copies(condition, len(sides)):
        condition = _condition(args, frames, sides, 1, kind, cube)
    shards = condition.cube.shards
    spec = spec_of(args, sides, lateness=lateness, shards=shards, kind=kind)
    if is_table(policy := parse_policy(args["policy"])) and policy is not None:
        weighed = [condition.weighed(side) for side in range(len(sides))]
        spec = replace(spec, policy=table_of_numbers(policy, spark, weighed, sides))
    where = split_where(args["where"], frames, sides)
    if where is not None:
        spec = replace(spec, where=where.engine)
        check_counted(where, spec)
    importances = columns.column_names("importance", args["importance"], sides, optional=True)
    types = columns.column_names("kind", args["kind"], sides, optional=True)
    for argument, names in (("importance", importances), ("kind", types)):
        for side, frame, name in zip(sides, frames, names, strict=True):
            if name is not None:
                columns.check_column(argument, name, frame, side)
    columns.check_types(frames, types, sides)
    columns_out = columns.out_columns(frames, condition.keys, args["select"], args["suffixes"], sides, spec.how)
    return JoinPlan(
        sides=frames,
        names=sides,
        condition=condition,
        times=times,
        importances=importances,
        kinds=types,
        out=columns_out,
        spec=spec,
        labels=shard_labels(shards, partitions),
        timestamps=kind != "number",
        seed=args["seed"],
        shares=args["shares"] or ADAPTIVE if condition.has_groups else EQUAL,
        cache=args["cache"],
        deadline=read_deadline(args["deadline"]),
        front=front_of(args["front"], sides),
        where=where,
        weights=_weights(args, columns_out),
        target=_target(args, streaming=frames[0].isStreaming),
        error=_error(args, frames, columns_out),
    )


def _weights(args: JoinArgs, out: Sequence[columns.OutColumn]) -> bool:
    """Whether results have weights; an error if a user's column has the name of a weight column."""
    for one in out:
        if args["weights"] and one.name in (WEIGHT, ROW):
            raise SpecError(
                f"select: with weights=True the column {one.name!r} is the join's own: give it another name"
            )
    return args["weights"]


def _target(args: JoinArgs, *, streaming: bool) -> float | None:
    """The recall that memory follows."""
    if args["target"] is None:
        return None
    if not streaming:
        raise SpecError(
            "target: memory follows it from micro-batch to micro-batch, and a batch join has none: leave it out"
        )
    return Target.of(args["target"]).recall


def _error(args: JoinArgs, frames: tuple[DataFrame, ...], out: Sequence[columns.OutColumn]) -> ErrorTarget | None:
    """The error that memory follows, of columns that the results have."""
    if args["error"] is None:
        return None
    if not frames[0].isStreaming:
        raise SpecError(
            "error: memory follows it from micro-batch to micro-batch, and a batch join has none: leave it out"
        )
    from pyspark.sql.types import NumericType

    target = ErrorTarget.of(args["error"])
    known = {one.name: one for one in out}
    for name in (*target.by, *filter(None, [target.sum])):
        if name not in known:
            raise SpecError(f"error: results have no column {name!r}; they have {', '.join(known)}")
    if target.sum is not None:
        one = known[target.sum]
        kind = frames[one.side].schema[one.source].dataType
        if not isinstance(kind, NumericType):
            raise SpecError(f"error: sum must be a column of numbers, and {target.sum!r} is {kind.simpleString()}")
    return target


def check_counted(where: Split, spec: JoinSpec) -> None:
    """Refuse a filter after the join if partners are counted: workers would also count pairs that the filter drops."""
    if where.behind and spec.counts_partners:
        sql, why = where.clause.words(where.behind[0][0], where.names), where.behind[0][1]
        argument = "matches" if spec.how == "inner" else f"how={spec.how!r}"
        raise SpecError(
            f"where: {sql} cannot be decided while rows are joined ({why}), and {argument} counts partners there: leave one of "
            "the two out, or compare a column of one stream with a column of another"
        )


def _has_copies(condition: Condition, streams: int) -> bool:
    """Whether rows go to several shards."""
    return any(condition.cube.copies(stream) > 1 for stream in range(streams))


def _condition(
    args: JoinArgs,
    frames: tuple[DataFrame, ...],
    sides: tuple[str, ...],
    shards: int,
    kind: str,
    before: Sequence[int] | None,
) -> Condition:
    """What rows are joined on, with the types of its columns and the shards that rows go to."""
    on = read_on(args["on"], args["predicate"], sides)
    if on.predicate is not None:
        cube = HyperCube.of_predicate(on.predicate, shards, whole_streams(args))
        return OnPredicate(on.predicate, check_values(on.predicate, frames), cube)
    if (graph := on.parsed(sides)) is not None:
        windows, rates = windows_of(args, kind, sides), rates_of(args["rates"], sides)
        cube = cube_of(graph, shards, windows, rates, before, whole_streams(args))
        return OnGraph(graph, attribute_types(frames, graph, sides), cube)
    keys = Keys.of(list(on.keys), *frames, sides=sides)
    return OnKey(keys, columns.common_types(frames, keys, sides), HyperCube.of_key(len(sides), shards))
