"""From the arguments of a join to its spec: all that can be checked without Spark. `shed_join` and job files do the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

from shedjoin.batch import MOST_STREAMS as MOST
from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.cpu.settings import Dual
from shedjoin.engine.codes import IMPORTANCE, SAME
from shedjoin.engine.reordering import Reordering
from shedjoin.error_target import ErrorTarget
from shedjoin.error_target.control import check_error
from shedjoin.errors import SpecError
from shedjoin.join_type import TYPES, check_how
from shedjoin.parse import parse_budget, parse_duration, parse_interval, parse_lateness, parse_policy, parse_windows
from shedjoin.plain_dict import made_of
from shedjoin.policies import KeepAll, Policy, Prospect, Replay
from shedjoin.predicates import Predicate
from shedjoin.spark.budget_split import EQUAL, SHARES, least_of
from shedjoin.spark.front import front_of
from shedjoin.spark.host_cache import check_option
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.join_args import JoinArgs
from shedjoin.spark.join_graph import cube_of
from shedjoin.spark.key_table import is_table, without_keys
from shedjoin.spark.keys import SIDES, by_stream, check_suffixes, column_names, per_stream, selected
from shedjoin.spark.on_args import rates_of, read_on
from shedjoin.spark.selective_spec import check_types, selective_of
from shedjoin.spark.weights import check_weights
from shedjoin.spark.where_text import read_where
from shedjoin.spec import JoinSpec, check_seed
from shedjoin.target import Target, check_target
from shedjoin.what_if import what_if_of
from shedjoin.window import RowWindow, TimeWindow, Window, interval_windows

MOST_SHARDS = 1024
#: Arguments that are settings of the join as they are, and those of them that are durations of event time.
DURATIONS = ("max_skew", "evaluate_every", "expire_every")
PASSED = (*DURATIONS, "order", "index", "how", "matches")


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
    _check_words(args, names)
    on = read_on(args["on"], args["predicate"], names)
    if args["where"] is not None:
        read_where(args["where"], names)
    rates = rates_of(args["rates"], names)
    types = column_names("kind", args["kind"], names, optional=True)
    budget = parse_budget(args["budget"], allocation=args["allocation"])
    windows = windows_of(args, kind, names)
    graph, whole, everywhere = on.parsed(names), whole_streams(args), False
    if shards is not None and (graph is not None or on.predicate is not None):
        cube = (
            cube_of(graph, shards, windows, rates, whole=whole)
            if graph is not None
            else HyperCube.of_predicate(cast(Predicate, on.predicate), shards, whole)
        )
        check_partners(args, whole, cube.shards)
        shards, everywhere = cube.shards, cube.is_everywhere
    if graph is None and args["rates"] is not None:
        raise SpecError("rates is for join graphs, whose rows may go to several shards: leave it out")
    if budget is not None and shards is not None:
        least_of(budget, shards, len(names))
    if not has_groups(on.predicate) and args["shares"] not in (None, EQUAL):
        raise SpecError(
            f"shares must be 'equal' for a join on a predicate, not {args['shares']!r}: shards store rows in turn"
        )
    selective = selective_of(args["selective"], windows, read_deadline(args["deadline"]), kind)
    check_types(selective, types)
    policy = policy_of(args["policy"], budget)
    check_weights(args["weights"], policy, front_of(args["front"], names))
    several = shards is not None and shards > 1
    counted_elsewhere = several and not everywhere and are_counted_elsewhere(windows, policy)
    dual = dual_of(args, counted_elsewhere=counted_elsewhere, split=several and everywhere)
    given: dict[str, Any] = {name: value for name, value in args.items() if name in PASSED and value is not None}
    if isinstance(matches := by_stream("matches", args["matches"], names), tuple | list):  # job files know no None
        given["matches"] = [number or None for number in matches]
    given |= {name: duration_of(given[name], kind, name) for name in DURATIONS if name in given}
    if (what_if := what_if_of(args["what_if"])) is not None:
        given["what_if"] = what_if
    if args["reordering"] is not None:
        given["reordering"] = _reordering(args["reordering"])
    if not on.keys:
        given["on"] = on.graph or on.predicate
    if args["between"] is not None:
        given["between"] = interval_of(args["between"], kind)
    else:
        one = windows[0] if len(set(windows)) == 1 else windows
        given["window"] = one if names == SIDES else dict(zip(names, windows, strict=True))
    try:
        spec = JoinSpec(
            budget=budget,
            policy=policy,
            importance=args["combine"],
            lateness=lateness,
            selective=selective,
            dual=dual,
            counted_elsewhere=counted_elsewhere,
            **given,
        )
    except SpecError as reason:  # arguments have the names of its settings
        raise SpecError(str(reason).removeprefix("JoinSpec.")) from None
    if args["target"] is not None:
        Target.of(args["target"])
        check_target(spec)
    if args["error"] is not None:
        ErrorTarget.of(args["error"])
        check_error(spec)
        if not args["weights"]:
            raise SpecError("error: intervals are made of the weights of results, so give weights=True as well")
    return spec


def has_groups(predicate: object) -> bool:
    """Whether partners share a value, by which rows are counted and distributed."""
    return not isinstance(predicate, Predicate) or predicate.code == SAME


def are_counted_elsewhere(windows: Sequence[Window], policy: Policy | None) -> bool:
    """Whether row windows count the rows of several shards."""
    counted = any(isinstance(window, RowWindow) for window in windows)
    if counted and isinstance(policy, Prospect):
        raise SpecError(
            "policy: Prospect() is not available for row windows over several shards, where each shard learns from its own rows "
            "only: leave it out (the default is Prob() there), take another policy, or pass shards=1"
        )
    return counted


def dual_of(args: JoinArgs, *, counted_elsewhere: bool, split: bool) -> Dual | None:
    """The aux-windows of rear shedding; None: all rows probe at once. Front shedding comes before the shards.

    `counted_elsewhere`: rows are counted over several shards. `split`: rows probe several shards.
    """
    rear = args["rear"]
    if rear is None:
        return None
    if isinstance(rear, bool) or not isinstance(rear, int | float) or not 0.0 <= rear <= 1.0:
        raise SpecError(f"rear must be a share from 0 to 1, not {rear!r}")
    if counted_elsewhere:
        raise SpecError(
            "rear: with row windows a row waits until as many others have arrived as the windows hold, and each of several "
            "shards sees some of them: leave rear out, or pass shards=1"
        )
    if split:
        raise SpecError(
            "rear: a row of a join on a predicate probes all shards, and what does not probe is chosen in one place: leave rear "
            "out, or pass shards=1"
        )
    if judges_partners(args):
        raise SpecError(
            "rear: refine resolves rows without a partner by their time of arrival, and with rear they are processed a window "
            "later: leave rear or how and matches out"
        )
    return Dual(rear=float(rear), front=False)


def judges_partners(args: JoinArgs) -> bool:
    """Whether it matters how many partners a row has found."""
    return args["matches"] is not None or check_how("how", args["how"]) != "inner"


def whole_streams(args: JoinArgs) -> tuple[int, ...]:
    """The streams whose partners are counted: a shard must see all partners of its rows, so these are not copied."""
    limits = args["matches"] if isinstance(args["matches"], tuple | list) else ()
    judged = TYPES[check_how("how", args["how"])].judged
    return tuple(sorted({*judged, *(stream for stream, limit in enumerate(limits) if limit)}))


def check_partners(args: JoinArgs, whole: Sequence[int], shards: int) -> None:
    """Refuse several shards if each would have only some partners of a row."""
    if whole and shards == 1 and (args["shards"] or 1) > 1:
        what = f"how={args['how']!r}" if args["matches"] is None else f"matches={args['matches']!r}"
        raise SpecError(
            f"shards must be 1 with {what} here: rows go to several shards, and none would see all partners of the rows of "
            "each stream whose partners count"
        )


def _check_words(args: JoinArgs, names: tuple[str, ...]) -> None:
    """Arguments that need no others to be checked."""
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
    column_names("time", args["time"], names)
    column_names("importance", args["importance"], names, optional=True)
    front_of(args["front"], names)


def _reordering(value: Any) -> Reordering:
    """When a join searches for a better order: a `Reordering`, or a table of its settings."""
    return value if isinstance(value, Reordering) else made_of(Reordering, "reordering", value)


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


def windows_of(args: JoinArgs, kind: str | None, names: tuple[str, ...]) -> tuple[Window, ...]:
    """The windows of all streams; of an interval, how long rows of each can find partners."""
    if args["between"] is not None:
        if args["window"] is not None:
            raise SpecError("between replaces window: leave one of the two out")
        if len(names) != 2:
            raise SpecError(f"between is for joins of two streams, not of {len(names)}: give a window")
        return interval_windows(*interval_of(args["between"], kind))
    given = by_stream("window", args["window"], names)
    made = parse_windows(given, len(names))
    for one, window in zip(per_stream("window", given, names), made, strict=True):
        if isinstance(window, TimeWindow):
            _check_unit(one, kind, "window")
    return made


def interval_of(value: Any, kind: str | None) -> tuple[int, int]:
    """The ends of an interval, in microseconds or in the unit of whole-number times."""
    for place, end in enumerate(value if isinstance(value, tuple | list) else ()):
        _check_unit(end, kind, f"between[{place}]")
    return parse_interval(value)


def _check_unit(value: Any, kind: str | None, argument: str) -> None:
    """Timestamps need durations with a unit, whole numbers need durations without."""
    if kind == "number" and isinstance(value, bool | float | str | timedelta):
        raise SpecError(f"{argument} must be a whole number, as the times are, not {value!r}")
    if kind == "time" and isinstance(value, int) and not isinstance(value, bool) and value != 0:
        raise SpecError(
            f"{argument}={value} has no unit, but times are timestamps: say '{value} seconds' or '{value} milliseconds', or "
            "give a timedelta"
        )


def policy_of(policy: Any, budget: Budget | None) -> Policy | None:
    """The policy in the arguments; None: the default of the spec. Only Spark can read the keys of a `Table`."""
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


def read_deadline(value: Any) -> float | None:
    """Seconds."""
    if value is None:
        return None
    if isinstance(value, str | timedelta):
        seconds = parse_duration(value, argument="deadline") / 1e6
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise SpecError(f"deadline must be a duration such as '2 seconds', or a number of seconds, not {value!r}")
    if not 0.0 < seconds < 1e9:
        raise SpecError(f"deadline must be above 0, not {value!r}")
    return seconds
