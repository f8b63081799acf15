"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shedjoin.policies import Policy
from shedjoin.predicates import Predicate
from shedjoin.spark.arguments import Told
from shedjoin.spark.exchange import RESULT
from shedjoin.spark.keyed_join import plan_keyed
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.predicate_join import plan_predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shed_join(
    left: DataFrame,
    right: DataFrame,
    *more: DataFrame,
    on: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
    predicate: Predicate | dict[str, Any] | None = None,
    time: str | tuple[str, ...],
    window: Any,
    budget: Any = None,
    policy: str | dict[str, Any] | Policy | None = None,
    importance: str | tuple[str | None, ...] | None = None,
    allocation: str | None = None,
    lateness: Any = "watermark",
    max_skew: Any = None,
    shards: int | None = None,
    select: list[str] | dict[str, str] | None = None,
    suffixes: tuple[str, ...] | None = None,
    combine: str = "min",
    seed: int = 0,
    shares: str | None = None,
    cache: str | bool | None = None,
    deadline: Any = None,
    names: tuple[str, ...] | None = None,
) -> DataFrame:
    """Join DataFrames on keys and time within a memory budget. Streaming in, streaming out; batch in, batch out.

    Parameters
    ----------
    left, right, more
        Streaming DataFrames, or batch ones: two, or up to 16. Wherever a pair (left, right) is spoken of below, three and more
        streams take one value a stream.
    on
        The key: a column name, a pair (left name, right name), or a list of these. Null keys match nothing.
    predicate
        Instead of a key: `Overlap("tags", at_least=2)` and its like. Each row is then stored in one shard and compared in all.
    time
        The event time: a column name, or a pair (left, right). Timestamps, or whole numbers in a unit of your own.
    window
        Rows join if their times differ by less than this: "10 minutes", a timedelta, a number in the unit of times that are whole
        numbers, a `TimeWindow` (of microseconds), or a pair of these (how long a left row, a right row is kept).
        Of three and more streams: if no row is older than the newest by its window.
    budget
        How much may be stored in all shards together: "200k tuples", "512 MB", a number of tuples, a `Budget`. None: no limit,
        and the join is exact.
    policy
        Which rows stay when memory is short: a name, a table of settings, or a policy. Default: "prospect"; of three and more
        streams "prob"; of a join on a predicate, or with a deadline, "simp_prob".
    importance
        A column of positive numbers that says how much a row matters: a name, or a pair (left, right) in which None means
        that all rows matter alike.
    allocation
        "variable" (default): streams compete for one memory. "fixed": each stream has a share of its own (see `Budget`).
    lateness
        How far a row may lag behind the newest row of its stream, from one micro-batch to the next, and still be joined:
        "5 minutes"; 0 if rows arrive in the order of their times; None if rows never expire. Default: the delay of the inputs'
        watermarks. Streams without a watermark must say it. Rows that come later are counted, logged and warned of.
    max_skew
        A stream whose clock lags behind the other's by more than this counts as idle and no longer holds up expiry.
    shards
        Into how many parts the keys are split. Default: Spark's parallelism, at most its shuffle partitions. A checkpoint
        keeps its number.
    select
        The columns of the result: names ("left.x" or "right.x" where both sides have x), or a dict from new names to such.
        Default: all, as in Spark's own joins (keys of one name once and first, then left's, then right's).
    suffixes
        Endings for columns that both sides have, such as ("_left", "_right"). Without them such columns are an error.
    combine
        How a result's importance follows from its rows': min, max, sum, product, mean.
    seed
        For policies that draw lots.
    shares
        How the budget is split over the shards: "adaptive" (default) gives each what the whole join would keep there, by what
        arrives; "equal" gives all the same, as joins on a predicate or with a deadline do. May change while a checkpoint lives.
    cache
        Where workers keep copies of the state beside Spark's state store: a directory, False for none, None for the default.
    deadline
        How long a micro-batch may take: "2 seconds", a timedelta, or a number of seconds. When the rows are too many for that,
        each is compared with the most profitable part of the window only. May change while a checkpoint lives.
    names
        What three and more streams are called in `select`, the shed log, metrics and the archive; default: s0, s1, s2, ... (Two
        are left and right.)
    """
    told = Told(
        on=on,
        predicate=predicate,
        time=time,
        window=window,
        budget=budget,
        policy=policy,
        importance=importance,
        allocation=allocation,
        lateness=lateness,
        max_skew=max_skew,
        shards=shards,
        select=select,
        suffixes=suffixes,
        combine=combine,
        seed=seed,
        shares=shares,
        cache=cache,
        deadline=deadline,
        names=names,
    )
    plan = plan_join((left, right, *more), told).with_watermarks()
    return plan.with_event_time(plan.results(plan.watched(plan.blobs((RESULT,)))))


def plan_join(frames: tuple[DataFrame, ...], told: Told) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join."""
    if told.predicate is not None or told.deadline is not None:
        return plan_predicate(frames, told)
    return plan_keyed(frames, told)
