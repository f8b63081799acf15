"""`shed_join`: a windowed join of two or more DataFrames, streaming or batch, within a memory budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.multi import MultiJoinSpec
from shedjoin.policies import Policy
from shedjoin.predicates import Predicate
from shedjoin.spark import keys as columns
from shedjoin.spark.arguments import (
    PARTITIONS,
    budget_of,
    check_frames,
    check_provider,
    duration_of,
    policy_of,
    shards_of,
    stream_names,
    windows_of,
)
from shedjoin.spark.cache import check_option
from shedjoin.spark.exchange import RESULT, shard_labels
from shedjoin.spark.keys import Keys, sides_of
from shedjoin.spark.many import KEY as HASH
from shedjoin.spark.many import Join, Many
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.shares import ADAPTIVE, SHARES
from shedjoin.spec import JoinSpec, check_seed

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
    lateness: Any = 0,
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
        Rows join if their times differ by less than this: "10 minutes", a timedelta, microseconds (for whole numbers: in
        their unit), a `TimeWindow`, or a pair of these (how long a left row, a right row is kept).
        Of three and more streams: if no row is older than the newest by its window.
    budget
        How much may be stored in all shards together: "200k tuples", "512 MB", a number of tuples, a `Budget`. None: no limit,
        and the join is exact.
    policy
        Who stays when memory is short: a name, a table of settings, or a policy. Default: "prob"; of a join on a predicate, or
        with a deadline, "simp_prob".
    importance
        A column of positive numbers that says how much a row matters: a name, or a pair (left, right) in which None means
        that all rows matter alike.
    allocation
        "fixed" (default) or "variable" shares of the streams (see `Budget`), for a budget that does not say so itself.
    lateness
        How far a row may lag behind the newest of its stream, from one micro-batch to the next, and still be joined.
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
    plan = plan_join(
        left,
        right,
        *more,
        on=on,
        predicate=predicate,
        deadline=deadline,
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
        names=names,
    )
    return plan.results(plan.blobs((RESULT,)))


def plan_join(
    *frames: DataFrame,
    on: Any = None,
    predicate: Any = None,
    time: Any,
    window: Any,
    budget: Any = None,
    policy: Any = None,
    importance: Any = None,
    allocation: str | None = None,
    lateness: Any = 0,
    max_skew: Any = None,
    shards: int | None = None,
    select: Any = None,
    suffixes: Any = None,
    combine: str = "min",
    seed: int = 0,
    shares: str | None = None,
    cache: str | bool | None = None,
    names: Any = None,
    deadline: Any = None,
    unkeyed: bool = False,
) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join. `unkeyed`: what is joined on is looked at elsewhere."""
    if predicate is not None or deadline is not None:
        from shedjoin.spark.predicate_join import plan_predicate

        told = {name: value for name, value in locals().items() if name not in ("unkeyed", "plan_predicate", "frames")}
        return plan_predicate(*frames, **told)
    if on is None and not unkeyed:
        raise SpecError("on must name the key columns, or predicate say when two rows join: neither is given")
    sides = stream_names(names, len(frames))
    check_frames(frames, sides)
    check_seed(seed)
    check_option(cache)
    if shares is not None and shares not in SHARES:
        raise SpecError(f"shares must be one of {', '.join(SHARES)}, not {shares!r}")
    spark = frames[0].sparkSession
    found = Keys(()) if unkeyed else Keys.of(on, *frames, sides=sides)
    times = sides_of("time", time, sides)
    kind = columns.time_kind(frames, times, sides)
    weights = sides_of("importance", importance, sides)
    for side, frame, name in zip(sides, frames, weights, strict=True):
        if name is not None:
            columns.check_column("importance", name, frame, side)
    if frames[0].isStreaming:
        check_provider(spark)
    partitions = int(spark.conf.get(PARTITIONS) or 1)
    count = shards_of(spark, shards, partitions)
    chooser = policy_of(policy)  # a mistake is told, budget or not
    given: dict[str, Any] = {
        "budget": budget_of(budget, allocation, count, len(frames)),
        "policy": None if budget is None else chooser,
        "importance": combine,
        "lateness": duration_of(lateness, kind, "lateness"),
        "max_skew": None if max_skew is None else duration_of(max_skew, kind, "max_skew"),
    }
    windows = windows_of(window, kind, count, sides)
    spec: Join
    if len(frames) == 2:
        spec = JoinSpec(window=(windows[0], windows[1]) if windows[0] != windows[1] else windows[0], **given)
    else:
        spec = Many(MultiJoinSpec(windows=dict(zip(sides, windows, strict=True)), on=HASH, **given))
    return JoinPlan(
        sides=tuple(frames),
        names=sides,
        keys=found,
        key_types=columns.common_types(frames, found, sides),
        times=times,
        importances=weights,
        out=columns.out_columns(frames, found, select, suffixes, sides),
        spec=spec,
        labels=shard_labels(count, partitions),
        seed=seed,
        shares=shares or ADAPTIVE,
        cache=cache,
    )
