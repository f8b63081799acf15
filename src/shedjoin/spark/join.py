"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from shedjoin.spark.exchange import RESULT
from shedjoin.spark.join_args import JoinArgs, complete, takes_join_args
from shedjoin.spark.keyed_join import plan_keyed
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_join import plan_predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@takes_join_args
def shed_join(left: DataFrame, right: DataFrame, *more: DataFrame, **args: Unpack[JoinArgs]) -> DataFrame:
    """Join DataFrames on keys and time within a memory budget. Streaming in, streaming out; batch in, batch out.

    Parameters
    ----------
    left, right, more
        Streaming DataFrames, or batch ones: two, or up to 16. Where an argument takes a pair (left, right), three and more
        streams take one value a stream.
    """
    plan = plan_join((left, right, *more), complete(args, shed_join)).with_watermarks()
    return plan.with_event_time(plan.results(plan.watched(plan.blobs((RESULT,)))))


def plan_join(frames: tuple[DataFrame, ...], args: JoinArgs) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join."""
    plan = plan_keyed if args["predicate"] is None and args["deadline"] is None else plan_predicate
    return plan(frames, args)
