"""From the arguments of a join to its spec: all that can be checked without Spark. `shed_join` and job files do the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shedjoin.batch import MOST_STREAMS as MOST
from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.engine.codes import IMPORTANCE, SAME
from shedjoin.engine.graph import parse
from shedjoin.errors import SpecError
from shedjoin.policies import KeepAll, Policy, Prospect, Replay
from shedjoin.spark.cache import check_option
from shedjoin.spark.front import front_of
from shedjoin.spark.join_args import JoinArgs
from shedjoin.spark.join_graph import cube_of, rates_of, read_on
from shedjoin.spark.key_table import is_table, without_keys
from shedjoin.spark.keys import SIDES, by_stream, check_suffixes, column_names, key_pairs, per_stream, selected
from shedjoin.spark.predicate_spec import join_condition, read_deadline
from shedjoin.spark.selective_spec import check_types, selective_of
from shedjoin.spark.shares import EQUAL, SHARES, least_of
from shedjoin.spec import JoinSpec, check_seed
from shedjoin.window import RowWindow, TimeWindow, Window
from shedjoin.words import parse_budget, parse_duration, parse_lateness, parse_policy, parse_windows

MOST_SHARDS = 1024


def stream_names(names: Any, count: int) -> tuple[str, ...]:
    """What the streams are called: words that columns and directories can be named by."""
    if count == 2:
        if names is not None:
            raise SpecError(f"names is for joins of three and more streams, not {names!r}: two are left and right")
        return SIDES
    if not 2 < count <= MOST:
        raise SpecError(f"shed_join takes 2 to {MOST} DataFrames, not {count}")
    made = tuple(f"s{place}" for place in range(count)) if names is None else names
    if not isinstance(made, tuple | list) or len(made) != count or not all(isinstance(name, str) for name in made):
        raise SpecError(f"names must be one text for each of {count} streams, not {names!r}")
    lower = [name.lower() for name in made]
    if len(set(lower)) < count or not all(name.isidentifier() and name.isascii() for name in made):
        raise SpecError(
            f"names must be simple words that differ, not {names!r}: columns and directories are named by them"
        )
    return tuple(made)


def spec_of(
    args: JoinArgs, names: tuple[str, ...], *, lateness: int, shards: int | None, kind: str | None = None
) -> JoinSpec:
    """The join that arguments describe.

    Parameters
    ----------
    args
        All of them.
    names
        Of the streams.
    lateness
        In microseconds, or in the unit of whole-number times.
    shards
        How many there will be; None: not known yet.
    kind
        Whether times are timestamps ("time") or whole numbers ("number"); None: not known yet.
    """
    for argument, value, allowed in (
        ("combine", args["combine"], (*IMPORTANCE,)),
        ("shares", args["shares"], (None, *SHARES)),
        ("allocation", args["allocation"], (None, *ALLOCATIONS)),
    ):
        if value not in allowed:
            raise SpecError(f"{argument} must be one of {', '.join(filter(None, allowed))}, not {value!r}")
    check_seed(args["seed"])
    check_option(args["cache"])
    check_shards(args["shards"])
    check_suffixes(args["suffixes"], names)
    if args["select"] is not None:
        selected(args["select"])
    on, predicate = join_condition(args["on"], args["predicate"])
    on, graph = read_on(on, names)
    if predicate is None and graph is None:
        key_pairs(on, names)
    rates = rates_of(args["rates"], names)
    column_names("time", args["time"], names)
    column_names("importance", args["importance"], names, optional=True)
    types = column_names("kind", args["kind"], names, optional=True)
    seconds = read_deadline(args["deadline"])
    if any(front_of(args["front"], names)) and (graph is not None or predicate is not None):
        raise SpecError(
            "front is for joins on a key: rows of other joins go to several shards, so filter the streams instead"
        )
    budget = parse_budget(args["budget"], allocation=args["allocation"])
    windows = windows_of(args["window"], kind, names)
    if graph is not None and shards is not None:
        shards = cube_of(parse(graph, names), shards, windows, rates).shards
    if budget is not None and shards is not None:
        least_of(budget, shards, len(names))
    given: dict[str, Any] = {
        "budget": budget,
        "policy": policy_of(args["policy"], budget),
        "importance": args["combine"],
        "lateness": lateness,
        "max_skew": None if args["max_skew"] is None else duration_of(args["max_skew"], kind, "max_skew"),
    }
    if is_table(given["policy"]) and (graph is not None or predicate is not None):
        raise SpecError("policy: Table() on Spark is for joins on a key, whose values it gives weights: take History()")
    if graph is not None:
        given["on"] = graph
    elif args["rates"] is not None:
        raise SpecError("rates is for join graphs, whose rows may go to several shards: leave it out")
    elif predicate is not None:
        if args["shares"] not in (None, EQUAL):  # these joins count no keys by which shards could be compared
            raise SpecError(f"shares must be 'equal' for a join on a predicate, not {args['shares']!r}")
        given["on"] = predicate
    given["selective"] = selective_of(args["selective"], windows, seconds, kind)
    check_types(given["selective"], types)
    by_rows = any(isinstance(window, RowWindow) for window in windows)
    # Shards of a predicate see all rows; those of equal sets see theirs.
    all_rows = predicate is not None and predicate.code != SAME
    given["counted_elsewhere"] = by_rows and not all_rows and shards is not None and shards > 1
    if given["counted_elsewhere"] and isinstance(given["policy"], Prospect):
        raise SpecError(
            "policy: Prospect() is not available for row windows over several shards, where each shard learns from its own rows "
            "only: leave it out (the default is Prob() there), take another policy, or pass shards=1"
        )
    if len(names) == 2:
        return JoinSpec(window=windows[0] if windows[0] == windows[1] else (windows[0], windows[1]), **given)
    return JoinSpec(window=dict(zip(names, windows, strict=True)), **given)


def check_shards(shards: Any) -> None:
    if shards is not None and (
        isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MOST_SHARDS
    ):
        raise SpecError(f"shards must be a whole number from 1 to {MOST_SHARDS}, not {shards!r}")


def duration_of(value: Any, kind: str | None, argument: str) -> int:
    """A duration or a lateness, in microseconds or in the unit of whole-number times."""
    if value is not None and value != "unlimited":
        _check_unit(value, kind, argument)
    return parse_lateness(value) if argument == "lateness" else parse_duration(value, argument=argument)


def windows_of(value: Any, kind: str | None, names: tuple[str, ...]) -> tuple[Window, ...]:
    given = by_stream("window", value, names)
    made = parse_windows(given, len(names))
    for one, window in zip(per_stream("window", given, names), made, strict=True):
        if isinstance(window, TimeWindow):
            _check_unit(one, kind, "window")
    return made


def _check_unit(value: Any, kind: str | None, argument: str) -> None:
    """Timestamps need durations with a unit, whole numbers need durations without."""
    if kind == "number" and isinstance(value, str | timedelta):
        raise SpecError(f"{argument} must be a whole number, as the times are, not {value!r}")
    if kind == "time" and isinstance(value, int) and value > 0:
        raise SpecError(
            f"{argument}={value} has no unit, but times are timestamps: say '{value} seconds' or '{value} milliseconds', or "
            "give a timedelta"
        )


def policy_of(policy: Any, budget: Budget | None) -> Policy | None:
    """The policy that was asked for; None leaves the choice to the spec. The keys of a `Table` are known to Spark only."""
    made = parse_policy(policy)
    if made is None:
        return None
    if budget is None and not isinstance(made, KeepAll):
        raise SpecError(f"policy {made!r} is given without a budget, so that it would evict nothing: give a budget too")
    if isinstance(made, Replay):
        raise SpecError(
            f"policy: {made!r} is written for known rows, but on Spark rows are numbered by shard: take another policy"
        )
    return without_keys(made) if is_table(made) else made
