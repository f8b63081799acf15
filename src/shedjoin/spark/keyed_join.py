"""`shed_join` on keys: what is checked, and the plan of the join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shedjoin.errors import SpecError
from shedjoin.multi import MultiJoinSpec
from shedjoin.spark import keys as columns
from shedjoin.spark.arguments import (
    PARTITIONS,
    budget_of,
    check_frames,
    check_provider,
    duration_of,
    lateness_of,
    policy_of,
    shards_of,
    stream_names,
    windows_of,
)
from shedjoin.spark.cache import check_option
from shedjoin.spark.exchange import shard_labels
from shedjoin.spark.join_args import JoinArgs
from shedjoin.spark.keys import Keys, sides_of
from shedjoin.spark.many import KEY as HASH
from shedjoin.spark.many import Join, Many
from shedjoin.spark.plan import JoinPlan
from shedjoin.spark.shares import ADAPTIVE, SHARES
from shedjoin.spec import JoinSpec, check_seed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plan_keyed(frames: tuple[DataFrame, ...], args: JoinArgs, *, unkeyed: bool = False) -> JoinPlan:
    """Check the arguments of `shed_join` and plan the join. `unkeyed`: what is joined on is looked at elsewhere."""
    if args["on"] is None and not unkeyed:
        raise SpecError("on must name the key columns, or predicate say when two rows join: neither is given")
    sides = stream_names(args["names"], len(frames))
    check_frames(frames, sides)
    check_seed(args["seed"])
    check_option(args["cache"])
    if args["shares"] is not None and args["shares"] not in SHARES:
        raise SpecError(f"shares must be one of {', '.join(SHARES)}, not {args['shares']!r}")
    spark = frames[0].sparkSession
    found = Keys(()) if unkeyed else Keys.of(args["on"], *frames, sides=sides)
    times = sides_of("time", args["time"], sides)
    kind = columns.time_kind(frames, times, sides)
    weights = sides_of("importance", args["importance"], sides)
    for side, frame, name in zip(sides, frames, weights, strict=True):
        if name is not None:
            columns.check_column("importance", name, frame, side)
    if frames[0].isStreaming:
        check_provider(spark)
    partitions = int(spark.conf.get(PARTITIONS) or 1)
    count = shards_of(spark, args["shards"], partitions)
    given: dict[str, Any] = {
        "budget": budget_of(args["budget"], args["allocation"], count, len(frames)),
        "policy": policy_of(args["policy"], args["budget"]),
        "importance": args["combine"],
        "lateness": lateness_of(args["lateness"], kind, frames, times, sides),
        "max_skew": None if args["max_skew"] is None else duration_of(args["max_skew"], kind, "max_skew"),
    }
    windows = windows_of(args["window"], kind, count, sides)
    spec: Join
    if len(frames) == 2:
        spec = JoinSpec(window=(windows[0], windows[1]) if windows[0] != windows[1] else windows[0], **given)
    else:
        spec = Many(MultiJoinSpec(windows=dict(zip(sides, windows, strict=True)), on=HASH, **given))
    return JoinPlan(
        sides=frames,
        names=sides,
        keys=found,
        key_types=columns.common_types(frames, found, sides),
        times=times,
        importances=weights,
        out=columns.out_columns(frames, found, args["select"], args["suffixes"], sides),
        spec=spec,
        labels=shard_labels(count, partitions),
        timestamps=kind != "number",
        seed=args["seed"],
        shares=args["shares"] or ADAPTIVE,
        cache=args["cache"],
    )
