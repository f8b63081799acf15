"""Random joins for hypothesis: every policy, estimator, allocation and window, on inputs full of ties and trouble; and
how a case is run on the engine.

Domains are small on purpose: few keys, few importances and rows of equal time make ties, and ties are where a heap and
a scan part ways.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import shedjoin as sj
from naive import Record, Row, cut, instant_borders, interleave
from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.estimators import CountMin, Decayed, Estimator, History, InMemory, InWindow, Table
from shedjoin.policies import (
    Additive,
    Cumulative,
    Dgl,
    DimpProb,
    KeepAll,
    Life,
    Multiplicative,
    Policy,
    Prob,
    Prospect,
    Rand,
    Replay,
    Simp,
    SimpProb,
)
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow, TimeWindow, Window

#: Kernels run as plain Python under NUMBA_DISABLE_JIT=1, about a hundred times slower.
INTERPRETED = bool(numba.config.DISABLE_JIT)
LONGEST_INPUT = 24 if INTERPRETED else 64

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]


# ------------------------------------------------------------------------------------------------- all combinations

ESTIMATORS = ("table", "in_memory", "history", "in_window", "decayed", "count_min")
WEIGHED = (
    "prob", "life", "simp_prob", "dimp_prob", "dgl", "additive_arrival", "additive_always", "multiplicative_arrival",
    "multiplicative_always", "cumulative",
)  # fmt: skip
UNWEIGHED = ("rand", "simp", "replay", "prospect")
WINDOWS = ("time", "row", "time_time", "time_row", "row_time")


class Chooser(NamedTuple):
    """A policy, with the estimator where it has one."""

    policy: str
    estimator: str | None = None

    def __str__(self) -> str:
        return self.policy if self.estimator is None else f"{self.policy}-{self.estimator}"


class Combination(NamedTuple):
    chooser: Chooser
    allocation: str | None
    window: str

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part is not None)


#: Everything that can decide who goes.
CHOOSERS = [Chooser(policy) for policy in UNWEIGHED] + [
    Chooser(policy, estimator) for policy, estimator in itertools.product(WEIGHED, ESTIMATORS)
]
#: One estimator a policy, and every estimator once: what runs where all would take too long.
REPRESENTATIVES = [Chooser(policy) for policy in UNWEIGHED] + [
    Chooser(policy, estimator) for policy, estimator in zip(WEIGHED, itertools.cycle(ESTIMATORS), strict=False)
]
#: Prospect is for two streams: a join of n streams refuses it.
N_WAY_CHOOSERS = [chooser for chooser in CHOOSERS if chooser.policy != "prospect"]
N_WAY_REPRESENTATIVES = [chooser for chooser in REPRESENTATIVES if chooser.policy != "prospect"]
COMBINATIONS = [
    Combination(chooser, allocation, window)
    for chooser, allocation, window in itertools.product(CHOOSERS, ALLOCATIONS, WINDOWS)
]
EXACT = [Combination(Chooser("keep_all"), None, window) for window in WINDOWS]


# -------------------------------------------------------------------------------------------------------- the inputs


class Shape(NamedTuple):
    """What kind of input it is; the rows themselves are drawn one by one."""

    streams: tuple[int, ...]  # which streams rows are drawn from: an empty one, a rare one, both alike
    block: int  # so many rows in a row come from one stream
    own_time: bool  # streams go through time each for itself, so that one runs ahead
    ahead: int  # and stream 1 starts so far ahead
    start: int
    steps: tuple[int, ...]  # how time goes on from row to row
    lags: tuple[int, ...]  # how far a row lies behind the time of its stream
    keys: tuple[int | None, ...]
    importances: tuple[float, ...]
    sizes: tuple[int, ...]


STREAM_MIXES = ((0, 1), (0, 1), (0, 1), (0, 0, 0, 0, 0, 1), (0, 1, 1, 1, 1, 1), (0,), (1,))
STEPS = ((0, 1), (0, 0, 0, 1), (1,), (0, 1, 2, 5), (0, 0, 1, 40), (0, 300))
LAGS = ((0,), (0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 4, 5, 6), (0, 0, 3, 60))
FAR = 2**63 - 1
KEYS = (
    (1, 2, 3),
    (1,),
    (1, 1, 1, 2, 2, 3, None),
    tuple(range(12)),
    (-FAR - 1, FAR, 0, -1, None),
    (0, 0, 0, 1, 2, 3, 4, 5),
)
IMPORTANCES = ((1.0,), (1.0, 2.0), (1.0, 1.0, 1.0, 5.0), (0.1, 0.3, 0.7, 1.0, 2.5), (1e-9, 1.0, 1e9))
SIZES = ((192,), (1, 100, 192, 250), (64, 128))
LENGTHS = st.integers(0, LONGEST_INPUT)
STARTS = (0, 0, 0, 7, -50, 10**6, -(2**40))


SHAPES = st.builds(
    Shape,
    streams=st.sampled_from(STREAM_MIXES),
    block=st.sampled_from((1, 1, 1, 6)),
    own_time=st.booleans(),
    ahead=st.sampled_from((0, 0, 0, 4, 100)),
    start=st.sampled_from(STARTS),
    steps=st.sampled_from(STEPS),
    lags=st.sampled_from(LAGS),
    keys=st.sampled_from(KEYS),
    importances=st.sampled_from(IMPORTANCES),
    sizes=st.sampled_from(SIZES),
)


def _choose(number: int, *options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take one of each, as the digits of the number say."""
    chosen = []
    for option in options:
        number, at = divmod(number, len(option))
        chosen.append(option[at])
    return tuple(chosen)


def lay_out(shape: Shape, numbers: list[int]) -> list[Row]:
    """Rows in order of arrival from one number each."""
    times = [shape.start, shape.start + shape.ahead]
    rows: list[Row] = []
    stream = 0
    for place, number in enumerate(numbers):
        drawn, step, lag, key, importance, size = _choose(
            number, shape.streams, shape.steps, shape.lags, shape.keys, shape.importances, shape.sizes
        )
        stream = drawn if place % shape.block == 0 else stream
        moved = (stream,) if shape.own_time else (0, 1)
        for one in moved:
            times[one] += step
        rows.append(Row(stream, key, times[stream] - lag, importance, size))
    return rows


@st.composite
def inputs(draw: Draw) -> list[Row]:
    """Rows of both streams in order of arrival."""
    shape = draw(SHAPES)
    length = draw(LENGTHS)
    # Three bytes a row in a single draw: hypothesis would take longer over the draws than both joins over the rows.
    numbers = draw(st.binary(min_size=3 * length, max_size=3 * length))
    return lay_out(shape, [int.from_bytes(numbers[3 * row : 3 * row + 3], "big") for row in range(length)])


@cache
def places(count: int) -> st.SearchStrategy[list[int]]:
    """Some of `count` places; now and then all of them, which takes as many pushes as rows."""
    some = st.lists(st.integers(0, max(count - 1, 0)), max_size=min(count, 6), unique=True)
    return st.integers(0, 7).flatmap(lambda dice: st.just(list(range(count))) if dice == 7 else some)


# --------------------------------------------------------------------------------------------------------- the specs


@cache
def windows(kind: str) -> st.SearchStrategy[Any]:
    """A window for both streams, or one each."""
    time: st.SearchStrategy[Window] = st.builds(TimeWindow, st.sampled_from((1, 2, 3, 5, 8, 20, 500)))
    row: st.SearchStrategy[Window] = st.builds(RowWindow, st.sampled_from((1, 2, 3, 5, 8, 20)))
    sides = [{"time": time, "row": row}[side] for side in kind.split("_")]
    return sides[0] if len(sides) == 1 else st.tuples(*sides)


@cache
def budgets(allocation: str | None) -> st.SearchStrategy[Budget | None]:
    """In tuples or in bytes; equal and unequal shares."""
    if allocation is None:
        return st.none()
    if allocation == "variable":
        return st.one_of(
            st.builds(Budget, tuples=st.integers(2, 12), allocation=st.just(allocation)),
            st.builds(Budget, bytes=st.integers(384, 2000), allocation=st.just(allocation)),
        )
    return st.one_of(
        st.builds(Budget, tuples=st.integers(2, 12)),
        st.builds(Budget, tuples=st.integers(4, 16), shares=st.sampled_from(((3, 1), (1.0, 2.5)))),
        st.builds(Budget, bytes=st.integers(384, 2000)),
        st.builds(Budget, bytes=st.integers(800, 2000), shares=st.just((1, 3))),
    )


@cache
def estimators(name: str | None) -> st.SearchStrategy[Estimator]:
    side = st.dictionaries(st.sampled_from((-1, 0, 1, 2, 3, 5)), st.sampled_from((0.0, 0.1, 0.3, 0.5, 2.0)), max_size=5)
    return {
        "table": st.builds(Table, side, side),
        "in_memory": st.just(InMemory()),
        "history": st.just(History()),
        "in_window": st.just(InWindow()),
        "decayed": st.builds(Decayed, st.sampled_from((0.01, 0.5, 1.0, 3.0, 10.0, 1000.0))),
        "count_min": st.builds(CountMin, st.sampled_from((1, 2, 4, 64)), st.sampled_from((1, 2, 4))),
    }[name or "history"]


@cache
def policies(chooser: Chooser) -> st.SearchStrategy[Policy]:
    """The policy with parameters of its own. (`Replay` is made from the rows it is for, see `schedules`.)"""
    estimator = estimators(chooser.estimator)
    factor = st.sampled_from((1.0, 0.0, 0.5, 2.0, -1.0, 0.1))
    factors = (factor, factor, factor)
    gain, loss = st.sampled_from((1.0, 0.25, 3.0, 1e-6)), st.sampled_from((0.99, 0.5, 0.9, 1e-3, 1e-300))
    arrival, always = st.just("arrival"), st.just("always")
    made: dict[str, st.SearchStrategy[Policy]] = {
        "keep_all": st.just(KeepAll()),
        "rand": st.just(Rand()),
        "simp": st.just(Simp()),
        "prospect": st.just(Prospect()),
        "prob": st.builds(Prob, estimator),
        "life": st.builds(Life, estimator),
        "simp_prob": st.builds(SimpProb, estimator),
        "dimp_prob": st.builds(DimpProb, estimator),
        "dgl": st.builds(Dgl, gain, loss, estimator),
        "cumulative": st.builds(Cumulative, *factors, gain, loss, estimator),
        "additive_arrival": st.builds(Additive, *factors, arrival, estimator),
        "additive_always": st.builds(Additive, *factors, always, estimator),
        "multiplicative_arrival": st.builds(Multiplicative, *factors, arrival, estimator),
        "multiplicative_always": st.builds(Multiplicative, *factors, always, estimator),
    }
    return made[chooser.policy]


@st.composite
def schedules(draw: Draw, rows: list[Row]) -> Replay:
    """Rows that leave before they came, at once, soon, late or never."""
    stays = draw(st.binary(min_size=len(rows), max_size=len(rows)))
    until = [row.ts + (-2, 0, 0, 1, 2, 3, 5, 8, 20, 10**6)[stay % 10] for row, stay in zip(rows, stays, strict=True)]
    left, right = ([u for u, row in zip(until, rows, strict=True) if row.stream == stream] for stream in (0, 1))
    return Replay(left, right)


# --------------------------------------------------------------------------------------------------------- the cases


@dataclass(frozen=True)
class Case:
    """A join and its input. Pushes begin at `cuts`; a budget under `changes` is set before the push of that number, and after
    that a policy under `policies`."""

    spec: JoinSpec
    rows: list[Row]
    cuts: list[int] = field(default_factory=list)
    seed: int = 0
    changes: dict[int, Budget] = field(default_factory=dict)
    policies: dict[int, Policy] = field(default_factory=dict)

    @property
    def pushes(self) -> list[list[Row]]:
        return cut(self.rows, self.cuts)

    def side(self, stream: int) -> list[Row]:
        return [row for row in self.rows if row.stream == stream]

    def interleaved(self) -> Case:
        """The same tables in the order in which a simulation takes them, in one push."""
        return replace(self, rows=interleave(self.side(0), self.side(1)), cuts=[], changes={}, policies={})

    def cut_at_instants(self) -> Case:
        return replace(self, cuts=instant_borders(self.rows), changes={}, policies={})


SETTINGS = st.fixed_dictionaries(
    {
        "importance": st.sampled_from(tuple(IMPORTANCE)),
        "lateness": st.sampled_from((0, 0, 1, 3, 10, 400)),
        "max_skew": st.sampled_from((None, None, None, 0, 2, 30)),
    }
)
SEEDS = st.sampled_from((0, 1, 7, 2**64 - 1))


@cache
def cases(combination: Combination) -> st.SearchStrategy[Case]:
    return _cases(combination)


@st.composite
def _cases(draw: Draw, combination: Combination) -> Case:
    """A case that is cut anywhere, inside instants too: there, two instants of one time follow each other."""
    rows = draw(inputs())
    replayed = combination.chooser.policy == "replay"
    spec = JoinSpec(
        window=draw(windows(combination.window)),
        budget=draw(budgets(combination.allocation)),
        policy=draw(schedules(rows) if replayed else policies(combination.chooser)),
        **draw(SETTINGS),
    )
    return Case(spec, rows, cuts=draw(places(len(rows))), seed=draw(SEEDS))


@st.composite
def cases_of(draw: Draw, chooser: Chooser) -> Case:
    """Any allocation and window for one way of choosing."""
    combination = Combination(chooser, draw(st.sampled_from(ALLOCATIONS)), draw(st.sampled_from(WINDOWS)))
    case: Case = draw(cases(combination))
    return case


@st.composite
def changing_cases(draw: Draw, chooser: Chooser) -> Case:
    """Cases whose budget changes on the way, allocation and unit included."""
    case: Case = draw(cases_of(chooser))
    anything = st.sampled_from(ALLOCATIONS).flatmap(budgets)
    return replace(
        case, changes=draw(st.dictionaries(st.integers(0, len(case.cuts)), anything, min_size=1, max_size=4))
    )


@st.composite
def learning_cases(draw: Draw, chooser: Chooser) -> Case:
    """Cases whose policy and estimator get other numbers on the way, where they have any; now and then with a budget."""
    case: Case = draw(changing_cases(chooser) if draw(st.booleans()) else cases_of(chooser))
    others = draw(st.lists(policies(chooser), min_size=1, max_size=3))
    assert case.spec.policy is not None
    kept = [_with_sketch_of(policy, case.spec.policy) for policy in others]
    at = draw(st.lists(st.integers(0, len(case.cuts)), min_size=len(kept), max_size=len(kept)))
    return replace(case, policies=dict(zip(at, kept, strict=True)))


def _with_sketch_of(policy: Policy, first: Policy) -> Policy:
    """What cannot change stays as it was."""
    fixed = isinstance(first.estimator, CountMin | Table)
    return replace(policy, estimator=first.estimator) if fixed else policy  # type: ignore[type-var]


def needed_lateness(rows: list[Row]) -> int:
    """The least lateness with which no row is late, when no skew is set."""
    clocks: dict[int, int] = {}
    needed = 0
    for row in rows:
        clocks[row.stream] = max(clocks.get(row.stream, row.ts), row.ts)
        needed = max(needed, clocks[row.stream] - row.ts)
    return needed


@st.composite
def punctual_cases(draw: Draw, window: str) -> Case:
    """The exact join of rows in any order at all, with just enough lateness that none is late."""
    rows = draw(inputs())
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    spec = JoinSpec(window=draw(windows(window)), policy=KeepAll(), lateness=needed_lateness(rows))
    return Case(spec, rows, cuts=draw(places(len(rows))))


LONG_SHAPE = Shape(
    streams=(0, 1),
    block=1,
    own_time=False,
    ahead=0,
    start=0,
    steps=(0, 1, 1),
    lags=(0, 0, 0, 1, 2),
    keys=tuple(range(9)) * 2 + tuple(range(30)),
    importances=(1.0, 1.0, 2.0, 3.5),
    sizes=(100, 192),
)


def long_case(chooser: Chooser, number: int) -> Case:
    """A plain stream that is long enough for heaps to grow deep, tables to be rebuilt and rings to come round."""
    random = Random(f"{chooser} {number}")
    rows = lay_out(LONG_SHAPE, [random.getrandbits(40) for _ in range(4 * LONGEST_INPUT)])
    allocation = random.choice(ALLOCATIONS)
    spec = JoinSpec(
        window=random.choice((TimeWindow(60), RowWindow(50), (TimeWindow(50), RowWindow(40)))),
        budget=random.choice((Budget(tuples=40, allocation=allocation), Budget(bytes=6000, allocation=allocation))),
        policy=_long_policy(chooser, rows, random),
        lateness=random.choice((1, 2)),
    )
    return Case(spec, rows, cuts=sorted(random.sample(range(len(rows)), 6)), seed=number)


def _long_policy(chooser: Chooser, rows: list[Row], random: Random) -> Policy:
    side = {key: random.choice((0.1, 0.2, 0.5)) for key in range(25)}
    estimator = {
        "table": Table(side, dict(reversed(side.items()))),
        "in_memory": InMemory(),
        "history": History(),
        "in_window": InWindow(),
        "decayed": Decayed(7.0),
        "count_min": CountMin(16, 2),
    }[chooser.estimator or "history"]
    until = [[row.ts + random.randrange(60) for row in rows if row.stream == stream] for stream in (0, 1)]
    return {
        "rand": Rand(),
        "simp": Simp(),
        "prospect": Prospect(),
        "replay": Replay(*until),
        "prob": Prob(estimator),
        "life": Life(estimator),
        "simp_prob": SimpProb(estimator),
        "dimp_prob": DimpProb(estimator),
        "dgl": Dgl(estimator=estimator),
        "cumulative": Cumulative(0.5, 1.0, 2.0, 0.7, 0.9, estimator),
        "additive_arrival": Additive(1.0, 0.3, 0.5, "arrival", estimator),
        "additive_always": Additive(1.0, 0.3, 0.5, "always", estimator),
        "multiplicative_arrival": Multiplicative(1.0, 0.3, 0.5, "arrival", estimator),
        "multiplicative_always": Multiplicative(1.0, 0.3, 0.5, "always", estimator),
    }[chooser.policy]


# ------------------------------------------------------------------------------------------- a case on the engine


class Told(NamedTuple):
    """What a push (or a change of the budget) told, and what was stored after it."""

    results: list[tuple[int, int, float]]
    shed: list[Record]
    residents: tuple[int, int]
    used: tuple[int, int]


def side_table(case: Case, stream: int) -> dict[str, Any]:
    """The columns of one stream, with types that hold for no rows too."""
    rows = case.side(stream)
    return {
        "key": pa.array([row.key for row in rows], type=pa.int64()),
        "ts": np.array([row.ts for row in rows], dtype=np.int64),
        "importance": np.array([row.importance for row in rows], dtype=np.float64),
        "bytes": np.array([row.bytes for row in rows], dtype=np.int64),
    }


def batch(rows: list[Row]) -> sj.Batch:
    """Rows as they are pushed. Made by hand: reading tables is not what is tested here, and takes longer than the join."""
    columns = zip(*((*row, row.key is None) for row in rows), strict=True) if rows else ((),) * 6
    stream, key, ts, importance, size, null = columns
    return sj.Batch(
        stream=np.array(stream, dtype=np.int64),
        key=np.array([one or 0 for one in key], dtype=np.int64),
        null=np.array(null, dtype=np.bool_),
        ts=np.array(ts, dtype=np.int64),
        importance=np.array(importance, dtype=np.float64),
        bytes=np.array(size, dtype=np.int64),
    ).in_canonical_order()


def records(log: sj.ShedLog) -> list[Record]:
    columns = (log.stream, log.seq, log.ts, log.key, log.when, log.tick, log.why, log.seen)
    return [
        Record(stream, seq, ts, key, when, tick, sj.WHY[why], (seen[0], seen[1]))
        for stream, seq, ts, key, when, tick, why, seen in zip(*(column.tolist() for column in columns), strict=True)
    ]


def told(engine: sj.Engine, out: sj.Output) -> Told:
    results = zip(out.left.tolist(), out.right.tolist(), out.importance.tolist(), strict=True)
    residents, used = tuple(engine.residents), tuple(engine.used)
    return Told(sorted(results), records(out.shed), (residents[0], residents[1]), (used[0], used[1]))


def go_on(engine: sj.Engine, case: Case, first: int = 0, last: int | None = None) -> list[Told]:
    """Push the pushes from `first` to before `last`, with the changes of the budget that come before each."""
    history = []
    for number, rows in list(enumerate(case.pushes))[first:last]:
        if number in case.changes:
            history.append(told(engine, engine.set_budget(case.changes[number])))
        if number in case.policies:
            engine.set_policy(case.policies[number])
        history.append(told(engine, engine.push(batch(rows))))
    return history


def run_engine(case: Case) -> list[Told]:
    return go_on(case.spec.build(seed=case.seed), case)


def results_of(history: list[Told]) -> list[tuple[int, int, float]]:
    return sorted(result for one in history for result in one.results)


def pairs_of(history: list[Told]) -> list[tuple[int, int]]:
    return [(left, right) for left, right, _ in results_of(history)]


def shed_by(history: list[Told]) -> list[Record]:
    return [record for one in history for record in one.shed]


# -------------------------------------------------------------------------------------------------------- the runner


def for_all(strategy: st.SearchStrategy[T], check: Callable[[T], None], *, label: object, examples: int) -> None:
    """Hold `check` against examples that depend on nothing but the label.

    Hypothesis' own `derandomize` seeds by the source of the test: all parameters of a test would get the same inputs.
    """
    profile = settings(
        max_examples=max(min(2, examples), examples // 2)
        if INTERPRETED
        else examples,  # the first is always the simplest
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )

    @profile
    @seed(zlib.crc32(str(label).encode()))
    @given(strategy)
    def law(example: T) -> None:
        check(example)

    law()
