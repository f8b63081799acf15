"""Random joins: a spec, its input, how that is cut into pushes, and what changes between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

from hypothesis import strategies as st

from naive import Row, cut, instant_borders, interleave
from shedjoin.budget import ALLOCATIONS, Budget
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.estimators import CountMin, Decayed, History, InMemory, InWindow, Table
from shedjoin.policies import KeepAll, Policy, Replay
from shedjoin.spec import JoinSpec
from shedjoin.window import UNLIMITED, RowWindow, TimeWindow
from strategies.combinations import WINDOWS, Chooser, Combination
from strategies.policies import VARIANTS, values
from strategies.rows import LONGEST_INPUT, Draw, Shape, inputs, lay_out, places
from strategies.specs import budgets, policies, schedules, windows


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
        "lateness": st.sampled_from((0, 0, 1, 3, 10, 400, UNLIMITED)),
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
        **draw(windows(combination.window)),
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
    at = draw(st.lists(st.integers(0, len(case.cuts)), min_size=len(others), max_size=len(others)))
    return replace(case, policies=dict(zip(at, others, strict=True)))


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
    spec = JoinSpec(**draw(windows(window)), policy=KeepAll(), lateness=needed_lateness(rows))
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
    if chooser.policy == "replay":
        return Replay(*([row.ts + random.randrange(60) for row in rows if row.stream == stream] for stream in (0, 1)))
    return VARIANTS[chooser.policy].make(lambda name: random.choice(values(name)), estimator)
