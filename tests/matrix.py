"""The matrix: every dial with every other, which combinations have no meaning, and a small random input for each.

Nothing here calls an engine: a `Case` is a join as the twin has it, its input, and what changes on the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import shedjoin as sj
from naive import Condition, Conditional, Dual, Graph, Join, Key, Row, cut, draw_tree, on
from shedjoin.join_type import TYPES
from shedjoin.meaning import GRAPH, KEYED, Dials, Meaningless, why_not
from shedjoin.window import interval_windows
from strategies.policies import FOLLOWING, UNWEIGHED, VARIANTS, WEIGHED

STREAMS = (2, 3)
CONDITIONS = ("key", "residual", "graph", "overlap", "band")
#: Join types.
HOWS = tuple(TYPES)
#: The other predicates, for those who have time.
MORE_CONDITIONS = ("equal", "theta", "same_set", "subset", "superset", "inner_product")
WINDOWS = ("time", "row", "mixed", "interval")
BUDGETS = (None, "tuples", "bytes")
#: The kinds of windows that values of the dial stand for, where they have another name.
KINDS = {"mixed": {"time", "row"}, "interval": {"time"}}
ALLOCATIONS = ("fixed", "variable")
ESTIMATORS = ("table", "in_memory", "in_window", "history", "decayed", "count_min", "met")
CPUS = (
    None, "deadline", "queue", "selective queue", "semantic queue", "integrated queue", "dual", "selective dual", "rear",
)  # fmt: skip
#: Another limit, for those who have time.
MORE_CPUS = ("deadline dual",)
ALSO = (
    None, "archive", "live recall", "snapshot", "budget change", "policy change", "lazy evaluation", "lazy expiry",
    "matches",
)  # fmt: skip
#: What else must hold between the rows of a result.
WHERES = (None, "where")
#: Of these, what a single run can show.
CHANGES = (None, "snapshot", "budget change", "policy change", "lazy expiry")

PREDICATES: dict[str, sj.Predicate] = {
    "equal": sj.Equal("x"),
    "band": sj.Band("x", within=1.5),
    "theta": sj.Theta("x", "<", offset=1.0),
    "same_set": sj.SameSet("x"),
    "subset": sj.Subset("x"),
    "superset": sj.Superset("x"),
    "overlap": sj.Overlap("x", at_least=2),
    "inner_product": sj.InnerProduct("x", at_least=1.0),
}
GRAPHS = {
    ("residual", 2): ("a.x = b.x", "a.y <= b.y"),
    ("residual", 3): ("a.x = b.x", "b.x = c.x", "a.y <= c.y"),
    ("graph", 2): ("a.x = b.y", "|a.y - b.x| <= 1"),
    ("graph", 3): ("a.x = b.x", "b.y = c.y"),
}
#: The columns that conditions look at.
CHECKED = ("p", "q")
#: Numbers of policies, and those that they change to.
FACTORS = (0.0, 0.5, 1.0, 2.0)
NUMBERS = {"gain": (1.0, 3.0), "loss": (0.9, 0.5), "power": (1.0, 0.5), "keep": (0.0, 0.5)}
OTHER_NUMBERS = {"gain": (0.5, 2.0), "loss": (0.8, 0.95), "power": (0.0, 2.0), "keep": (0.3, 0.8)}
#: Budgets with their allocation, and policies with their estimator.
LIMITS: list[tuple[str | None, str | None]] = [(None, None), *itertools.product(BUDGETS[1:], ALLOCATIONS)]
CHOOSERS: list[tuple[str, str | None]] = [
    ("auto", None),
    *((policy, None) for policy in UNWEIGHED),
    *itertools.product(WEIGHED, ESTIMATORS),
]
#: Tries everything on all rows, and goes over to whatever found more in the last few of them.
AUTO = sj.Auto(memory=16.0, every=6, gain=0.0, stretches=1)
#: Without a budget nothing is given up, whatever the policy; a schedule and a budget that comes later apart.
WITHOUT_BUDGET: list[tuple[str, str | None]] = [("keep_all", None), ("replay", None), ("prob", "history")]
#: What their queues drop by.
QUEUES = {
    "queue": "random",
    "selective queue": "random",
    "semantic queue": "semantic",
    "integrated queue": "integrated",
}


@dataclass(frozen=True)
class Combination:
    """One setting of every dial."""

    streams: int = 2
    condition: str = "key"
    where: str | None = None
    window: str = "time"
    how: str = "inner"
    budget: str | None = None
    allocation: str | None = None
    policy: str = "keep_all"
    estimator: str | None = None
    cpu: str | None = None
    also: str | None = None

    def __str__(self) -> str:
        dials = (
            self.condition,
            self.where,
            self.window,
            None if self.how == "inner" else self.how,
            self.budget,
            self.allocation,
            self.policy,
            self.estimator,
            self.cpu,
            self.also,
        )
        return "-".join([str(self.streams), *(dial.replace(" ", "_") for dial in dials if dial is not None)])

    @property
    def dials(self) -> Dials:
        """The settings that the join begins with, as the list of what has no meaning looks at them."""
        queued = self.cpu is not None and self.cpu.endswith("queue")
        return Dials(
            streams=self.streams,
            condition=GRAPH if self.condition == "residual" else self.condition,
            windows=frozenset(KINDS.get(self.window, {self.window})),
            budget=self.budget is not None,
            policy=self.policy.removesuffix("_weighed"),
            estimator=self.estimator,
            follows_results=self.policy in FOLLOWING or self.estimator == "met",
            lazy=self.also == "lazy evaluation",
            cpu="virtual" if queued else "deadline" if self.meets_deadline else None,
            queue=QUEUES.get(str(self.cpu)),
            how=self.how,
            recall=self.also == "live recall",
            selective=self.meets_deadline or str(self.cpu).startswith("selective"),
            dual=str(self.cpu).endswith(("dual", "rear")),
        )

    @property
    def meets_deadline(self) -> bool:
        return str(self.cpu).startswith("deadline")

    @property
    def moments(self) -> tuple[Dials, ...]:
        """The settings as the join begins, and after its budget has changed."""
        begins = self.dials
        return (begins, replace(begins, budget=True)) if self.also == "budget change" else (begins,)

    @property
    def why_not(self) -> Meaningless | None:
        """Why the combination has no meaning, if it has none: the first reason."""
        return next((reason for reason in map(why_not, self.moments) if reason is not None), None)

    @property
    def settings(self) -> dict[str, Any]:
        """The value of every dial."""
        return {dial: getattr(self, dial) for dial in DIALS}


#: The dials, and which values each has. None: it is not set.
DIALS: dict[str, tuple[Any, ...]] = {
    "streams": STREAMS,
    "condition": CONDITIONS,
    "where": WHERES,
    "window": WINDOWS,
    "how": HOWS,
    "budget": BUDGETS,
    "allocation": (None, *ALLOCATIONS),
    "policy": ("auto", *UNWEIGHED, *WEIGHED),
    "estimator": (None, *ESTIMATORS),
    "cpu": CPUS,
    "also": ALSO,
}
#: The twin has no Auto: tests/matrix_laws.py makes its changes by hand.
BY_HAND = tuple(name for name in DIALS["policy"] if name != "auto")


def choosers_of(budget: str | None) -> list[tuple[str, str | None]]:
    return WITHOUT_BUDGET if budget is None else CHOOSERS


def is_written(streams: int, window: str) -> bool:
    """An interval lies between two streams: `JoinSpec` has no way to write another."""
    return streams == 2 or window != "interval"


def named(name: str) -> Combination:
    """The combination of a name: no two dials have a value in common."""
    first, *words = name.split("-")
    dials = {value: dial for dial in list(DIALS)[1:] for value in DIALS[dial] if value is not None}
    settings = {dials[value]: value for value in (word if word in dials else word.replace("_", " ") for word in words)}
    return Combination(int(first), **settings)


#: Some dials with a value of each.
Part = tuple[tuple[str, Any], ...]


def parts_of(combination: Combination, size: int = 2) -> set[Part]:
    """Each choice of this many dials, with the values that they have."""
    return set(itertools.combinations(combination.settings.items(), size))


def all_parts(size: int) -> Iterator[Part]:
    """Each choice of this many dials, with any values."""
    for dials in itertools.combinations(DIALS, size):
        for values in itertools.product(*(DIALS[dial] for dial in dials)):
            yield tuple(zip(dials, values, strict=True))


def covering(size: int = 2, seed: int = 0) -> list[Combination]:
    """Few combinations in which any values of this many dials occur together, if they can.

    For values that have not met yet, the best of some random combinations that have them is taken.
    """
    random = Random(seed)
    chosen: list[Combination] = []
    impossible: set[Part] = set()
    for many in range(2, size + 1):
        covered = {part for one in chosen for part in parts_of(one, many)}
        wanted = list(all_parts(many))
        random.shuffle(wanted)
        for part in wanted:
            if part in covered:
                continue
            known = many > 2 and any(less in impossible for less in itertools.combinations(part, many - 1))
            fixed = {dial: (value,) for dial, value in part}
            found = [] if known else list(itertools.islice(random_ones(fixed, random), 30))
            if not found:
                impossible.add(part)
                continue
            chosen.append(max(found, key=lambda one: len(parts_of(one, many) - covered)))
            covered |= parts_of(chosen[-1], many)
    return chosen


def random_ones(among: Mapping[str, Sequence[Any]], random: Random) -> Iterator[Combination]:
    """Random combinations that have a meaning and some of the values given, as far as a number of tries finds any."""
    return (one for one in tried(among, random) if one.why_not is None)


def tried(among: Mapping[str, Sequence[Any]], random: Random, tries: int = 600) -> Iterator[Combination]:
    """Random combinations with some of the values given, whether they have a meaning or not."""
    values = {**DIALS, **among}
    choosers = {budget: _fitting(choosers_of(budget), ("policy", "estimator"), values) for budget in BUDGETS}
    limits = [one for one in _fitting(LIMITS, ("budget", "allocation"), values) if choosers[one[0]]]
    for _ in range(tries if limits else 0):
        settings = {dial: random.choice(some) for dial, some in values.items()}
        settings["budget"], settings["allocation"] = limit = random.choice(limits)
        settings["policy"], settings["estimator"] = random.choice(choosers[limit[0]])
        one = Combination(**settings)
        if is_written(one.streams, one.window):
            yield one


def _fitting(
    pairs: Sequence[tuple[Any, ...]], dials: tuple[str, ...], values: Mapping[str, Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """The pairs of which each dial has one of its values."""
    return [pair for pair in pairs if all(one in values[dial] for dial, one in zip(dials, pair, strict=True))]


@dataclass(frozen=True)
class Case:
    """A join, its input, and what changes before the push of a number. `script`: what a deadline says of r in each push."""

    combination: Combination
    join: Join
    pushes: list[list[Row]]
    seed: int
    budgets: dict[int, sj.Budget] = field(default_factory=dict)
    policies: dict[int, sj.Policy] = field(default_factory=dict)
    script: list[float] | None = None

    @property
    def rows(self) -> list[Row]:
        return [row for push in self.pushes for row in push]


def draw(combination: Combination, seed: int, size: int = 40) -> Case:
    """A small random input for a combination: the same for the same seed."""
    random = Random(f"{combination} {seed}")
    rows = _rows(combination, random, size)
    streams = range(combination.streams)
    schedule = [
        [row.ts + random.choice((-1, 0, 2, 5, 20)) for row in rows if row.stream == stream] for stream in streams
    ]
    policy = _policy(combination, random, schedule)
    budget = _budget(combination, random)
    join = Join(
        windows=_windows(combination, random),
        condition=_condition(combination, random),
        budget=budget,
        policy=policy,
        importance=random.choice(("min", "max", "sum", "product", "mean")),
        lateness=random.choice((0, 0, 3, sj.UNLIMITED)),
        max_skew=random.choice((None, None, 4)),
        how=TYPES[combination.how],
        **_cpu(combination, random),
    )
    if combination.also == "lazy evaluation":
        every = random.choice((2, 5))
        join = replace(join, evaluate_every=every, expire_every=every * random.choice((1, 3)))
    if combination.also == "lazy expiry":
        join = replace(join, expire_every=random.choice((2, 5, 15)))
    if combination.also == "matches":
        join = replace(join, matches=[random.choice((1, 2, None)) for _ in range(combination.streams)])
    pushes = cut(rows, sorted(random.sample(range(size + 1), 3)))
    budgets, policies = {}, {}
    if combination.also == "budget change":
        other = replace(combination, budget=random.choice(BUDGETS[1:]), allocation=random.choice(ALLOCATIONS))
        budgets = {random.randrange(1, 4): made for made in [_budget(other, random)] if made is not None}
    if combination.also == "policy change":
        policies = {random.randrange(1, 4): _another(policy, random)}
        others = _with_another_estimator(combination)
        if others and random.random() < 0.7:
            other = random.choice(others)
            policies = {random.randrange(1, 3): _policy(other, random, schedule)}
            if budget is None:  # it comes later, once there is an order
                budgets = {1 + min(policies): made for made in [_budget(other, random)] if made is not None}
    scripted = combination.meets_deadline and combination.policy != "auto"  # r is said for each push, which AUTO cuts
    script = [random.choice((1.0, 0.6, 0.3, 0.1)) for _ in range(20)] if scripted else None
    return Case(combination, join, pushes, seed, budgets, policies, script)


def _rows(combination: Combination, random: Random, size: int) -> list[Row]:
    times = [random.choice((0, 0, 7)) for _ in range(combination.streams)]
    together, rows = random.random() < 0.7, []
    for _ in range(size):
        stream, step = random.randrange(combination.streams), random.choice((0, 0, 1, 1, 3))
        for one in range(combination.streams) if together else (stream,):
            times[one] += step
        value = _value(combination, random)
        worth, weight = random.choice((1.0, 1.0, 2.0, 0.5)), random.choice((100, 192, 250))
        lag = random.choice((0, 0, 0, 0, 2, 6))
        more = {column: random.choice((0, 0, 1, 2, None)) for column in CHECKED} if combination.where else {}
        rows.append(Row(stream, value, times[stream] - lag, worth, weight, random.randrange(2), more))
    return rows


def _value(combination: Combination, random: Random) -> Any:
    if (combination.condition, combination.streams) in GRAPHS:
        return {column: random.choice((0, 1, 2, 3, None) if column == "x" else (0, 1, 2)) for column in "xy"}
    if random.random() < 0.08:
        return None
    match combination.condition:
        case "key" | "equal":
            return random.choice((0, 0, 1, 2, 3))
        case "band" | "theta":
            return random.choice((random.randrange(-4, 5) * 1.0, random.uniform(-6.0, 6.0)))
        case "inner_product":
            return {item: random.choice((0.5, 1.0, 2.0, -1.0)) for item in random.sample(range(5), random.randrange(4))}
    return frozenset(random.sample(range(5), random.randrange(4 if combination.condition == "overlap" else 3)))


def _condition(combination: Combination, random: Random) -> Condition:
    plain = _plain_condition(combination)
    return Conditional(plain, draw_tree(random, combination.streams, CHECKED)) if combination.where else plain


def _plain_condition(combination: Combination) -> Condition:
    if combination.condition in PREDICATES:
        return on(PREDICATES[combination.condition])
    if combination.condition == "key":
        return Key(combination.streams)
    return Graph("abc"[: combination.streams], GRAPHS[combination.condition, combination.streams])


def _windows(combination: Combination, random: Random) -> list[sj.TimeWindow | sj.RowWindow]:
    if combination.window == "interval":
        return [*interval_windows(*random.choice(((-2, 7), (0, 5), (2, 8), (3, 3), (-6, -1))))]
    return [_window(combination.window, stream, random) for stream in range(combination.streams)]


def _window(kind: str, stream: int, random: Random) -> sj.TimeWindow | sj.RowWindow:
    if kind == "row" or (kind == "mixed" and stream == 1):
        return sj.RowWindow(random.choice((2, 4, 8)))
    return sj.TimeWindow(random.choice((3, 6, 15)))


def _budget(combination: Combination, random: Random) -> sj.Budget | None:
    if combination.budget is None:
        return None
    amount = random.randrange(4, 12) * combination.streams // 2
    shares = tuple(random.choice((1, 2)) for _ in range(combination.streams)) if random.random() < 0.3 else None
    given: dict[str, Any] = {combination.budget: amount if combination.budget == "tuples" else 250 * amount}
    return sj.Budget(
        allocation=combination.allocation, shares=shares if combination.allocation == "fixed" else None, **given
    )


def _cpu(combination: Combination, random: Random) -> dict[str, Any]:
    """Times go from 0 to about 40, so that a row a time unit comes."""
    cpu = sj.VirtualCpu(random.choice((0.5, 1.5, 4.0)), probe=0.5, comparison=0.25, lookup=0.125, update=0.25)
    selective = sj.Selective(
        basic=random.choice((2, 3)), types=random.choice((0, 0, 2)), period=5, rank_period=7, sample=0.3,
        fraction=random.choice((1.0, 0.5)),
    )  # fmt: skip
    bound = random.choice(({"tuples": 2}, {"span": 4}))
    match combination.cpu:
        case "deadline":
            return {"selective": selective}
        case "queue":
            return {"cpu": cpu, "queue": sj.Queue(**bound)}
        case "selective queue":
            return {"cpu": cpu, "queue": sj.Queue(**bound), "selective": selective}
        case "semantic queue":
            return {"cpu": cpu, "queue": sj.Queue(**bound, drop="semantic")}
        case "integrated queue":
            return {"cpu": cpu, "queue": sj.Queue(integrated=True, drop="semantic")}
        case "rear":
            return {"dual": Dual(random.choice((0.0, 0.3, 1.0)), False)}
        case "dual" | "selective dual" | "deadline dual":
            follows = combination.streams == 2 and combination.condition in KEYED
            shares = (random.choice((0.0, 0.3, True)), random.choice((False, 0.3, True) if follows else (False, 0.3)))
            slow = None if combination.meets_deadline else random.choice((None, cpu))
            dual = {"dual": Dual(*shares, period=5), "cpu": slow}
            return dual if combination.cpu == "dual" else {**dual, "selective": selective}
    return {}


def _policy(combination: Combination, random: Random, schedule: list[list[int]]) -> sj.Policy:
    def side() -> dict[int, float]:
        return {value: random.choice((0.0, 0.1, 0.4)) for value in range(5)}

    estimators: dict[str | None, sj.Estimator] = {
        "table": sj.Table(side(), side(), [side() for _ in range(combination.streams - 2)]),
        "in_memory": sj.InMemory(),
        "in_window": sj.InWindow(),
        "history": sj.History(),
        "decayed": sj.Decayed(random.choice((0.5, 4.0, 30.0))),
        "count_min": sj.CountMin(random.choice((2, 16)), 2),
        "met": sj.Met(),
    }
    estimator = estimators.get(combination.estimator, sj.History())
    if combination.policy == "auto":
        return AUTO
    if combination.policy == "replay":
        return sj.Replay(schedule[0], schedule[1], schedule[2:])
    return VARIANTS[combination.policy].make(lambda name: random.choice(NUMBERS.get(name, FACTORS)), estimator)


def _with_another_estimator(combination: Combination) -> list[Combination]:
    """The same join by every policy that it may change to, with a budget; none where rows wait for a CPU."""
    if combination.cpu not in (None, "deadline") or combination.policy == "replay":
        return []
    limit = (combination.budget, combination.allocation) if combination.budget is not None else ("tuples", "variable")
    made = [
        replace(combination, policy=policy, estimator=estimator, budget=limit[0], allocation=limit[1])
        for policy, estimator in CHOOSERS
        if policy not in ("auto", "keep_all", "replay")
    ]
    return [one for one in made if one.why_not is None]


def _another(policy: sj.Policy, random: Random) -> sj.Policy:
    """The policy with other numbers; or, where it has none, another policy that goes on with what is known."""
    if policy == AUTO:
        return sj.Rand()
    variant = next(one for one in VARIANTS.values() if isinstance(policy, one.kind))
    changes: dict[str, Any] = {name: random.choice(OTHER_NUMBERS.get(name, FACTORS)) for name in variant.numbers}
    if isinstance(policy.estimator, sj.Decayed):
        changes["estimator"] = sj.Decayed(random.choice((1.0, 10.0)))
    if changes:
        return replace(policy, **changes)  # type: ignore[type-var]
    following = [one.kind for one in VARIANTS.values() if one.is_weighed == variant.is_weighed and not one.numbers]
    following = [kind for kind in following if kind not in (sj.Age, sj.KeepAll, sj.Replay, sj.Prospect)]
    if type(policy) not in following:
        return sj.SimpProb(policy.estimator) if variant.is_weighed else sj.Simp()
    kind = following[(following.index(type(policy)) + 1) % len(following)]
    return kind(estimator=policy.estimator) if variant.is_weighed else kind()  # type: ignore[call-arg]
