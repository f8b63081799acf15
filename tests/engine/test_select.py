"""Selective processing and deadlines on keys and join graphs: the engine against its slow twin, to the last record."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

import shedjoin as sj
from matrix import BY_HAND, CHANGES, DIALS, GRAPHS, STREAMS, WINDOWS, Case, draw, is_written, random_ones
from naive import LeftOut, Record, Row, Twin, cut, exact, missing, numbers
from shedjoin.engine.pace import Script, Watch
from shedjoin.join_type import TYPES
from shedjoin.recall.many import MultiRecall
from shedjoin.recall.pairs import PairRecall
from strategies import records, share

pytestmark = pytest.mark.small

CONDITIONS = ("key", "residual", "graph")
SHAPES = [
    (streams, condition, window)
    for streams, condition, window in itertools.product(STREAMS, CONDITIONS, WINDOWS)
    if is_written(streams, window)
]
EVERY_SHAPE = pytest.mark.parametrize(("streams", "condition", "window"), SHAPES)
#: Cases of each shape.
CASES = share(6)


def some_cases(label: str, streams: int, condition: str, window: str, size: int = 40) -> list[Case]:
    """Cases of a shape; `Met` is of joins on predicates."""
    random = Random(f"{label} {streams} {condition} {window}")
    among = {
        "streams": (streams,), "condition": (condition,), "window": (window,), "cpu": ("deadline",), "also": CHANGES,
        "where": (None,), "policy": BY_HAND, "estimator": [one for one in DIALS["estimator"] if one != "met"],
    }  # fmt: skip
    return [draw(one, random.randrange(10**6), size) for one in itertools.islice(random_ones(among, random), CASES)]


def spec_of(case: Case, **more: Any) -> sj.JoinSpec:
    one, join = case.combination, case.join
    on = "key" if one.condition == "key" else GRAPHS[one.condition, one.streams]
    return sj.JoinSpec(
        dict(zip("abc", join.windows, strict=False)),
        budget=join.budget,
        policy=join.policy,
        importance=join.importance,
        lateness=join.lateness,
        max_skew=join.max_skew,
        expire_every=join.expire_every or None,
        on=on,
        how=join.how.name,
        selective=join.selective,
        **more,
    )


def batch_of(engine: sj.Engine, rows: Sequence[Row], condition: str) -> sj.Batch:
    names = ("stream", "value", "ts", "importance", "bytes", "kind")
    table = dict(zip(names, zip(*(row[:6] for row in rows), strict=True) if rows else ((),) * 6, strict=True))
    values: Any = table.pop("value")
    if condition == "key":
        return engine.rows({**table, "key": values})
    return engine.rows({**table, **{column: [value[column] for value in values] for column in "xy"}})


class Told(NamedTuple):
    """What a push told, and what was known after it."""

    results: list[tuple[float, ...]]
    shed: list[Record]
    left_out: list[LeftOut]
    residents: tuple[int, ...]
    used: tuple[int, ...]
    fraction: float
    fractions: list[float]
    type_fractions: list[list[float]]
    ranking: list[list[int]]


def told(engine: sj.Engine, out: sj.Output) -> Told:
    results = [(*rows, worth) for rows, worth in zip(out.rows.tolist(), out.importance.tolist(), strict=True)]
    left_out = [LeftOut(*record) for record in out.left_out.records().tolist()]
    return Told(
        sorted(results),
        records(out.shed),
        left_out,
        engine.residents,
        engine.used,
        engine.fraction,
        list(engine.fractions),
        engine.type_fractions.tolist(),
        list(engine.ranking),
    )


def told_by(twin: Twin, out: Any) -> Told:
    of = twin.selection
    assert of is not None
    return Told(
        sorted((*result.rows, result.importance) for result in out.results),
        out.shed,
        out.left_out,
        twin.residents,
        twin.used,
        of.fraction,
        of.fractions,
        of.kind_fractions,
        [[age - of.ahead for age in ages] for ages in of.ranking],
    )


class Run:
    """A case on the engine and on its twin, side by side. `resumed`: lots for going on from a snapshot."""

    def __init__(self, case: Case, *, resumed: Random | None = None, **more: Any) -> None:
        self.case, self.resumed, self.spec = case, resumed, spec_of(case, **more)
        self.engine, self.twin = self.spec.build(seed=case.seed), Twin(case.join, case.seed)
        self.outs: list[Any] = []

    def go(self, pushes: list[list[Row]] | None = None, clocks: Sequence[Sequence[int | None] | None] = ()) -> Run:
        for number, rows in enumerate(self.case.pushes if pushes is None else pushes):
            self._change(number)
            if self.resumed is not None and self.resumed.random() < 0.6:
                saved = self.engine.snapshot()
                self.engine = replace(self.spec, budget=self.engine.budget).resume(saved)
                assert self.engine.snapshot() == saved
            told_clocks = clocks[number] if clocks else None
            batch = batch_of(self.engine, rows, self.case.combination.condition)
            limit = 1000 if self.resumed is None else self.resumed.randrange(1, 9)
            pace = Script(self.case.script or [])
            pieces = list(self.engine.chunks(batch, limit=limit, clocks=told_clocks, pace=pace))
            self.outs.append(self.twin.push(rows, told_clocks, script=self.case.script))
            assert told(self.engine, sj.Output.joined(pieces)) == told_by(self.twin, self.outs[-1])
        counted = {**self.twin.counters, **self.twin.more_counters}
        mine = self.engine.counters
        assert {name: mine[name] for name in counted if name in mine} == {
            name: count for name, count in counted.items() if name in mine
        }
        assert {"probed", "partial", "sampled", "compared", "looked_up"} <= mine.keys()
        return self

    def _change(self, number: int) -> None:
        if number in self.case.budgets:
            budget = self.case.budgets[number]
            mine, theirs = self.engine.set_budget(budget), self.twin.set_budget(budget)
            assert told(self.engine, mine) == told_by(self.twin, theirs)
        if number in self.case.policies:
            policy = self.case.policies[number]
            self.engine.set_policy(policy)
            self.twin.set_policy(policy)
            self.spec = replace(self.spec, policy=policy)


@EVERY_SHAPE
def test_engine_agrees_with_twin(streams: int, condition: str, window: str) -> None:
    for case in some_cases("whole", streams, condition, window):
        Run(case).go()


@EVERY_SHAPE
def test_engine_agrees_with_twin_when_it_is_cut_and_resumed(streams: int, condition: str, window: str) -> None:
    for case in some_cases("resumed", streams, condition, window, size=60):
        random = Random(case.seed)
        pushes = cut(case.rows, sorted(random.choices(range(len(case.rows) + 1), k=8)))
        Run(case, resumed=random).go(pushes)


@EVERY_SHAPE
def test_nothing_is_lost_but_what_the_logs_say(streams: int, condition: str, window: str) -> None:
    for case in some_cases("laws", streams, condition, window):
        case = replace(case, budgets={}, policies={}, join=replace(case.join, how=TYPES["inner"]))
        run = Run(case).go()
        log = [record for out in run.outs for record in out.shed]
        left = [one for out in run.outs for one in out.left_out]
        lost = numbers(missing(case.join, case.pushes, log, left))
        found = [result for out in run.outs for result in out.pairs]
        assert sorted([*lost, *found]) == sorted(numbers(exact(case.join, case.pushes)))
        partial = [(record.stream, record.seq) for record in log if record.why == "partial"]
        assert partial == list(dict.fromkeys((one.stream, one.seq) for one in left))


@pytest.mark.parametrize("window", [window for window in WINDOWS if is_written(3, window)])
def test_clocks_are_told(window: str) -> None:
    for case in some_cases("told", 3, "key", window):
        case = replace(case, budgets={}, policies={})
        random = Random(case.seed)
        clocks = []
        for rows in case.pushes:
            last = max((row.ts for row in rows), default=0)
            clocks.append([random.choice((None, last - 3, last + 4)) for _ in range(3)])
        Run(case).go(clocks=clocks)


@pytest.mark.parametrize(
    "more",
    [
        {"order": ("c", "a", "b")},
        {"order": {"a": ("b", "a", "c"), "b": ("b", "a", "c"), "c": ("a", "b", "c")}},
        {"reordering": sj.Reordering(every=7, drift=0.0)},
        {"index": 3},
    ],
    ids=["one order", "new tuples last", "reordered", "hash buckets"],
)
@pytest.mark.parametrize("condition", ["residual", "graph"])
def test_the_join_order_does_not_matter(condition: str, more: dict[str, Any]) -> None:
    for case in some_cases("orders", 3, condition, "mixed"):
        Run(case, **more).go()


@pytest.mark.parametrize("window", WINDOWS)
def test_tuples_that_expire_later_are_not_there(window: str) -> None:
    for case in some_cases("lazy", 2, "residual", window):
        if not case.combination.also:
            case = replace(case, join=replace(case.join, expire_every=6))
            Run(case).go()


def test_scans_count_the_whole_part() -> None:
    case = some_cases("scan", 2, "residual", "time")[0]
    case = replace(case, join=replace(case.join, index="scan"), budgets={}, policies={})
    run = Run(case, index="scan").go()
    assert run.engine.counters["looked_up"] == 0


def test_the_log_of_what_was_left_out() -> None:
    ways = sj.Selective(basic=2, rate=False, correlation=False, direction=False, sample=0.0, fraction=0.5)
    windows = {"a": sj.TimeWindow(10), "b": sj.TimeWindow(10)}
    engine = sj.JoinSpec(windows, on="key", selective=ways).build()
    out = engine.push(a={"key": [1, 1, 1, 1], "ts": [0, 1, 2, 3]}, b={"key": [1], "ts": [4]})
    assert out.rows.tolist() == [[2, 0], [3, 0]]
    assert out.left_out.records().tolist() == [(1, 0, 0, 0, 0, 1, 2)]
    assert (out.left_out.seq.tolist(), out.left_out.hi_ts.tolist(), len(out.left_out)) == ([0], [1], 1)
    assert out.left_out.to_arrow().select(["stream", "other"]).to_pylist() == [{"stream": "b", "other": "a"}]
    assert repr(out.left_out) == "LeftOutLog(1 stretches)"
    assert [sj.WHY[why] for why in out.shed.why] == ["partial"]
    assert (out.stats["partial"], out.stats["probed"]) == (1, 5)


def test_a_whole_window_leaves_nothing_out() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(10), selective=sj.Selective(basic=2))
    rows = {"key": [1, 1, 1, 1], "ts": [0, 1, 2, 3]}
    out = spec.build().push(left=rows, right=rows)
    plain = replace(spec, selective=None).build().push(left=rows, right=rows)
    assert sorted(out.rows.tolist()) == sorted(plain.rows.tolist())
    assert len(out.left_out) == len(out.shed) == len(plain.left_out) == 0
    assert "probed" not in plain.stats


def test_correlation_finds_where_the_partners_are() -> None:
    rng = np.random.default_rng(4)
    keys, size, lag = rng.integers(0, 2**40, 500), 500, 33
    found = {}
    for correlation in (False, True):
        ways = sj.Selective(
            basic=5, rate=False, fraction=0.25, correlation=correlation, direction=False, rank_period=50, sample=0.2
        )
        engine = sj.JoinSpec(sj.TimeWindow(50), selective=ways).build(seed=1)
        left, right = ({"key": np.roll(keys, by), "ts": np.arange(size)} for by in (0, lag))
        found[correlation] = len(engine.push(left=left, right=right))
        if correlation:
            assert engine.ranking[0][0] in (6, 7), "33 / 5"
    assert found[False] < 120
    assert found[True] > 380


# ---------------------------------------------------------------------------------------------------------- deadlines


class Laps:
    """A clock by which every row takes a while, and every comparison."""

    def __init__(self, engine: sj.Engine) -> None:
        self._engine = engine

    def __call__(self) -> float:
        done = self._engine.counters
        return 1e-3 * done["rows"] + 1e-2 * done["compared"]


def rows_from(first: int, count: int, span: int) -> dict[str, Any]:
    rng = np.random.default_rng(first + count)
    ts = first + np.arange(count) * span // count
    return {name: {"ts": ts, "key": rng.integers(0, 4, count)} for name in ("left", "right")}


def test_a_burst_ends_in_time_and_r_comes_back() -> None:
    ways = sj.Selective(basic=4, rate=False, rank_period=40)
    engine = sj.JoinSpec(sj.TimeWindow(40), selective=ways).build(seed=1)
    clock, seconds = Laps(engine), 8.0
    spent, fractions = [], []
    for number in range(12):
        watch, began = Watch(seconds, clock=clock), clock()
        count = 120 if 4 <= number < 7 else 20
        list(engine.chunks(engine.batch(rows_from(20 * number, count, 20)), limit=1000, pace=watch))
        spent.append(clock() - began)
        fractions.append(engine.fraction)
    assert max(spent) < 1.3 * seconds
    assert min(fractions[4:8]) < 0.3
    assert fractions[3] == fractions[-1] == 1.0


def test_a_script_says_what_the_watch_said() -> None:
    spec = sj.JoinSpec(
        sj.TimeWindow(40), selective=sj.Selective(basic=4, rank_period=40), cpu=sj.Deadline(2.0), lateness=2
    )
    first, second = spec.build(seed=3), spec.build(seed=3)
    for number in range(3):
        batch = first.batch(rows_from(20 * number, 60, 20))
        watch = Watch(2.0, clock=Laps(first))
        mine = sj.Output.joined(list(first.chunks(batch, limit=50, pace=watch)))
        theirs = sj.Output.joined(list(second.chunks(batch, limit=7, pace=Script(watch.said))))
        assert mine.rows.tolist() == theirs.rows.tolist()
        assert mine.left_out.records().tolist() == theirs.left_out.records().tolist()
        assert first.snapshot() == second.snapshot()
    assert first.fraction < 1.0


def test_the_deadline_of_the_spec_is_kept() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(40), selective=sj.Selective(basic=4), cpu=sj.Deadline(1e-6))
    engine = spec.build()
    engine.push(engine.batch(rows_from(0, 300, 40)))
    assert engine.fraction < 1.0
    relaxed = replace(spec, cpu=sj.Deadline(1e6)).resume(engine.snapshot())
    before = relaxed.fraction
    relaxed.push(relaxed.batch(rows_from(40, 20, 10)))
    assert relaxed.fraction > before


# ------------------------------------------------------------------------------------------------- settings, misuse


WAYS = sj.Selective(basic=3, types=2, fraction=0.5)


def test_settings_as_plain_data() -> None:
    spec = sj.JoinSpec(sj.RowWindow(9), selective=WAYS, cpu=sj.Deadline(0.25))
    data = spec.to_dict()
    assert data["cpu"] == {"name": "deadline", "seconds": 0.25}
    assert data["selective"]["basic"] == 3
    assert sj.JoinSpec.from_dict(data) == spec
    assert "cpu" not in sj.JoinSpec(sj.RowWindow(9)).to_dict()


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"cpu": sj.Deadline(1.0)}, r"JoinSpec.cpu: A deadline is met by comparing rows with a part of the windows"),
        ({"cpu": 3.0, "selective": WAYS}, r"JoinSpec.cpu must be a VirtualCpu, a Deadline or None, not 3\.0"),
        ({"selective": 0.5}, r"JoinSpec.selective must be a Selective or None, not 0\.5"),
        ({"selective": WAYS, "evaluate_every": 4}, "JoinSpec.evaluate_every: A CPU limit applies to each probe"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(sj.SpecError, match=wrong):
        sj.JoinSpec(sj.TimeWindow(9), **settings)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({"cpu": {"seconds": 1.0}}, "cpu must be a table with a name, one of deadline"),
        ({"cpu": {"name": "deadline", "minutes": 1}}, "cpu has no setting 'minutes'"),
        ({"cpu": {"name": "deadline"}}, "cpu does not take these settings"),
        ({"selective": {"basics": 1}}, "selective has no setting 'basics'"),
        ({"selective": 3}, "selective must be a table of settings"),
    ],
)
def test_plain_data_that_does_not_fit(data: dict[str, Any], wrong: str) -> None:
    with pytest.raises(sj.SpecError, match=wrong):
        sj.JoinSpec.from_dict({"window": {"time": 5}, **data})


def test_a_join_without_selective_processing_has_no_fraction() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(9)).build()
    for ask in (
        lambda: engine.set_fraction(0.5),
        lambda: engine.fraction,
        lambda: engine.fractions,
        lambda: engine.type_fractions,
        lambda: engine.ranking,
    ):
        with pytest.raises(sj.SpecError, match="compares with whole windows"):
            ask()
    with pytest.raises(sj.SpecError, match="pace needs a join with selective"):
        engine.chunks({}, limit=1, pace=Script([]))


@pytest.mark.parametrize("fraction", [0.0, 1.5, float("nan"), True, "0.5"])
def test_fractions_are_above_0_and_at_most_1(fraction: Any) -> None:
    engine = sj.JoinSpec(sj.TimeWindow(9), selective=WAYS).build()
    with pytest.raises(sj.SpecError, match="fraction must be above 0 and at most 1"):
        engine.set_fraction(fraction)
    assert engine.fractions == (0.5, 0.5)


def test_types_of_rows() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(9), selective=WAYS).build()
    engine.push(left={"key": [1, 2], "kind": [0, 1]}, right={"key": [1, 2]})
    assert engine._state.arrays["kind_rows"].tolist() == [1.0, 1.0, 2.0, 0.0]
    for kind, wrong in (
        ([0, 2], "kind must be from 0 to 1, as Selective.types says, but one row has 2"),
        ([0, -1], "left.kind must be at least 0, but row 1 has -1"),
        ([0.5, 1.0], "left.kind must be a column of whole numbers"),
        ([0, None], "left.kind must have a value in every row"),
    ):
        with pytest.raises(sj.InputError, match=wrong):
            engine.push(left={"key": [1, 2], "kind": kind})
    # Where types are not told apart, the column means whatever it means to its owner.
    plain = sj.JoinSpec(sj.TimeWindow(9), selective=replace(WAYS, types=0)).build()
    plain.push(left={"key": [1, 2], "kind": ["good", "bad"]})


def test_types_in_a_batch() -> None:
    whole, flags = np.zeros(2, np.int64), np.zeros(2, np.bool_)
    with pytest.raises(sj.InputError, match=r"Batch\.kind must be at least 0"):
        sj.Batch(whole, whole, flags, whole, np.ones(2), whole + 1, whole - 1)
    with pytest.raises(sj.InputError, match=r"Batch\.kind must be a flat array of int64"):
        sj.Batch(whole, whole, flags, whole, np.ones(2), whole + 1, np.ones(2))  # type: ignore[arg-type]
    batch = sj.Batch(whole, whole, flags, whole, np.ones(2), whole + 1, np.array([1, 0]))
    taken = batch.take(np.array([1, 0]))
    assert taken.kind is not None
    assert taken.kind.tolist() == [0, 1]


def test_a_snapshot_belongs_to_its_settings() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(9), selective=WAYS)
    saved = spec.build().snapshot()
    for other in (None, replace(WAYS, basic=4), replace(WAYS, types=3)):
        with pytest.raises(sj.SnapshotError, match="another selective"):
            replace(spec, selective=other).resume(saved)


def test_what_reads_no_log_of_stretches_refuses_such_joins() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(9), budget=sj.Budget(tuples=8), policy=sj.Prob(), selective=WAYS)
    rows = {"key": [1]}
    for use in (
        lambda: PairRecall(spec),
        lambda: MultiRecall(spec),
        lambda: sj.optimum(spec, rows, rows),
    ):
        with pytest.raises(sj.SpecError, match="compare rows with whole windows"):
            use()
