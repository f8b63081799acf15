"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from shedjoin.engine.graph import parse
from shedjoin.spark import keys as columns
from shedjoin.spark.arguments import spec_of, stream_names, windows_of
from shedjoin.spark.exchange import RESULT, shard_labels
from shedjoin.spark.front import front_of
from shedjoin.spark.graph_plan import GraphPlan
from shedjoin.spark.inputs import PARTITIONS, check_frames, lateness_of, shards_of
from shedjoin.spark.join_args import JoinArgs, complete, takes_join_args
from shedjoin.spark.join_graph import attribute_types, cube_of, rates_of, read_on
from shedjoin.spark.key_table import is_table, table_of_numbers
from shedjoin.spark.keys import Keys
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_plan import PredicatePlan
from shedjoin.spark.predicate_spec import join_condition, read_deadline
from shedjoin.spark.predicate_values import check_values
from shedjoin.spark.shares import ADAPTIVE, EQUAL
from shedjoin.words import parse_policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def plan_join(frames: tuple[DataFrame, ...], args: JoinArgs, *, cube: Sequence[int] | None = None) -> JoinPlan:
    """Check all arguments of a join against its inputs, and plan it. `cube`: the shares of a join graph that goes on."""
    sides = stream_names(args["names"], len(frames))
    check_frames(frames, sides)
    spark = frames[0].sparkSession
    times = columns.column_names("time", args["time"], sides)
    kind = columns.time_kind(frames, times, sides)
    partitions = int(spark.conf.get(PARTITIONS) or 1)
    shards = shards_of(spark, args["shards"], partitions)
    lateness = lateness_of(args["lateness"], kind, frames, times, sides)
    on, predicate = join_condition(args["on"], args["predicate"])
    on, predicates = read_on(on, sides)
    graph: dict[str, Any] = {}
    if predicates is not None:
        parsed, windows = parse(predicates, sides), windows_of(args["window"], kind, sides)
        cells = cube_of(parsed, shards, windows, rates_of(args["rates"], sides), cube)
        graph = {"graph": parsed, "types": attribute_types(frames, parsed, sides), "cube": cells}
        shards = cells.shards
    keys = Keys(()) if on is None else Keys.of(on, *frames, sides=sides)
    key_types = columns.common_types(frames, keys, sides)
    spec = spec_of(args, sides, lateness=lateness, shards=shards, kind=kind)
    if is_table(policy := parse_policy(args["policy"])) and policy is not None:
        spec = replace(spec, policy=table_of_numbers(policy, spark, keys, key_types, sides))
    importances = columns.column_names("importance", args["importance"], sides, optional=True)
    types = columns.column_names("kind", args["kind"], sides, optional=True)
    for argument, names in (("importance", importances), ("kind", types)):
        for side, frame, name in zip(sides, frames, names, strict=True):
            if name is not None:
                columns.check_column(argument, name, frame, side)
    columns.check_types(frames, types, sides)
    plan: dict[str, Any] = {
        "sides": frames,
        "names": sides,
        "keys": keys,
        "key_types": key_types,
        "times": times,
        "importances": importances,
        "kinds": types,
        "out": columns.out_columns(frames, keys, args["select"], args["suffixes"], sides),
        "spec": spec,
        "labels": shard_labels(shards, partitions),
        "timestamps": kind != "number",
        "seed": args["seed"],
        "cache": args["cache"],
        "deadline": read_deadline(args["deadline"]),
        "front": front_of(args["front"], sides),
    }
    if graph:
        return GraphPlan(shares=args["shares"] or ADAPTIVE, **graph, **plan)
    if predicate is None:
        return JoinPlan(shares=args["shares"] or ADAPTIVE, **plan)
    return PredicatePlan(shares=EQUAL, predicate=predicate, value_types=check_values(predicate, *frames), **plan)
