"""N-way joins without a budget: every variant gives what looking at all combinations gives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shedjoin as sj
from naive import Row, without_limits
from shedjoin.errors import InputError, SnapshotError, SpecError
from strategies import INTERPRETED, columns_of, for_all

pytestmark = pytest.mark.small
Draw = Callable[[st.SearchStrategy[Any]], Any]
EXAMPLES = 25 if INTERPRETED else 120
LONGEST = 14 if INTERPRETED else 26

GRAPHS: dict[int, tuple[str | tuple[str, ...], ...]] = {
    2: ("x", ("a.x = b.y",), ("a.x <= b.x",), ("|a.x - b.y| <= 1", "a.y != b.y")),
    3: (
        "x",
        ("a.x = b.x", "b.y = c.y"),
        ("a.x = b.x", "c.y > a.y"),
        ("a.x = b.x", "b.x = c.y", "a.y = b.x"),
        ("a.x < b.x", "b.y >= c.y"),
        ("a.x = b.x", "b.y = c.y", "|c.x - a.y| <= 1"),
    ),
    4: ("x", ("a.x = b.x", "b.y = c.y", "c.x = d.x"), ("a.x = b.x", "a.y = c.y", "a.x = d.y", "d.x != c.x")),
}
WINDOWS = st.one_of(
    st.builds(sj.TimeWindow, st.sampled_from((1, 2, 4, 8, 30))), st.builds(sj.RowWindow, st.sampled_from((1, 2, 3, 6)))
)


@st.composite
def cases(draw: Draw) -> tuple[sj.JoinSpec, list[list[Row]]]:
    many = draw(st.sampled_from((2, 3, 3, 3, 4)))
    names = tuple("abcd"[:many])
    every = draw(st.sampled_from((0, 0, 1, 3, 7)))
    expire = draw(st.sampled_from((None, None, every * 2 if every else 5)))
    own_order = st.permutations(names).map(tuple)
    order = draw(st.one_of(st.just("auto"), own_order, st.fixed_dictionaries(dict.fromkeys(names, own_order))))
    choice = st.sampled_from(("auto", "scan", 1, 2, 5))
    spec = sj.MultiJoinSpec(
        windows={name: draw(WINDOWS) for name in names},
        on=draw(st.sampled_from(GRAPHS[many])),
        order=order,
        index=draw(st.one_of(choice, st.fixed_dictionaries(dict.fromkeys(names, choice)))),
        evaluate_every=every,
        expire_every=expire,
        lateness=draw(st.sampled_from((0, 0, 2, 100, sj.UNLIMITED))),
        max_skew=draw(st.sampled_from((None, None, 3))),
        importance=draw(st.sampled_from(("min", "sum", "mean", "product", "max"))),
        reordering=sj.Reordering(every=draw(st.sampled_from((3, 10))), drift=0.0),
    )
    size = draw(st.integers(0, LONGEST if many < 4 else LONGEST // 2 + 4))
    dice = iter(draw(st.binary(min_size=6 * size, max_size=6 * size)))
    values, lags = (
        draw(st.sampled_from(((0, 1, 2), (1,), (0, 1, None, -5)))),
        draw(st.sampled_from(((0,), (0, 0, 1, 4)))),
    )
    apart = draw(st.booleans())
    time = [draw(st.sampled_from((0, 0, 9))) for _ in names]
    rows = []
    for _ in range(size):
        stream = next(dice) % many
        step = (0, 0, 1, 1, 3)[next(dice) % 5]
        for one in (stream,) if apart else range(many):
            time[one] += step
        x, y = values[next(dice) % len(values)], values[next(dice) % len(values)]
        rows.append(
            Row(stream, {"x": x, "y": y}, time[stream] - lags[next(dice) % len(lags)], (1.0, 2.0, 0.5)[next(dice) % 3])
        )
    cuts = sorted(draw(st.lists(st.integers(0, max(size, 1)), max_size=3)))
    return spec, [rows[start:end] for start, end in itertools.pairwise([0, *cuts, size])]


def run(spec: sj.JoinSpec, pushes: list[list[Row]], *, limit: int = 1000, stop_at: int | None = None):
    """(results, importance of each, the engine at the end)."""
    engine = spec.build()
    parts = []
    for number, push in enumerate(pushes):
        if number == stop_at:
            engine = spec.resume(engine.snapshot())
        if push:
            parts += list(engine.chunks(engine.rows(columns_of(push)), limit=limit))
    parts.append(engine.flush())
    out = sj.Output.joined(parts)
    return out, engine


def results(out: sj.Output) -> Counter:
    return Counter(map(tuple, out.rows.tolist()))


def combined(spec: sj.JoinSpec, pushes: list[list[Row]], row: tuple[int, ...]) -> float:
    by_stream: list[list[float]] = [[] for _ in spec.names]
    for push in pushes:
        for _, run_ in itertools.groupby(push, key=lambda one: one.ts):
            for one in sorted(run_, key=lambda one: one.stream):
                by_stream[one.stream].append(one.importance)
    worth = [by_stream[stream][seq] for stream, seq in enumerate(row)]
    return {
        "min": min(worth),
        "max": max(worth),
        "sum": sum(worth),
        "product": float(np.prod(worth)),
        "mean": sum(worth) / len(worth),
    }[spec.importance]


def test_every_variant_gives_the_whole_join() -> None:
    def check(case: tuple[sj.JoinSpec, list[list[Row]]]) -> None:
        spec, pushes = case
        out, engine = run(spec, pushes, limit=3, stop_at=1)
        assert results(out) == Counter(without_limits(spec, pushes))
        assert engine.counters["results"] == len(out)
        for row, worth in list(zip(out.rows.tolist(), out.importance, strict=True))[:5]:
            assert worth == pytest.approx(combined(spec, pushes, tuple(row)))

    for_all(cases(), check, label="n-way exact", examples=EXAMPLES)


def test_sixteen_streams() -> None:
    names = tuple("abcdefghijklmnop")
    rng = np.random.default_rng(6)
    windows = {name: sj.TimeWindow(6) if place % 3 else sj.RowWindow(2) for place, name in enumerate(names)}
    chain = tuple(f"{a}.x = {b}.x" for a, b in itertools.pairwise(names))
    twice = [Row(int(stream), {"x": 0}, 2 + place) for place, stream in enumerate(rng.permutation(16)[:7])]
    rows = [*(Row(stream, {"x": 0}, stream // 6) for stream in range(16)), *twice]
    for on in ("x", (*chain, "a.x <= p.x")):
        spec = sj.MultiJoinSpec(windows=windows, on=on)
        out, _ = run(spec, [rows[:20], rows[20:]])
        assert results(out) == Counter(without_limits(spec, [rows[:20], rows[20:]]))
        assert len(out) > 10


def test_expired_tuples_are_not_kept_for_ever() -> None:
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(5)), on="x", evaluate_every=3, expire_every=6)
    engine = spec.build()
    for start in range(0, 200, 10):
        ts = list(range(start, start + 10))
        engine.push({name: {"x": ts, "ts": ts} for name in "abc"})
        assert max(engine.residents) <= 5 + 6 + 10


@pytest.mark.parametrize("index", ["auto", "scan", 5])
@pytest.mark.parametrize("variant", ["naive", "eager", "lazy", "general"])
def test_tables_2_and_3_of_the_paper(index, variant) -> None:
    """No expired tuple joins: of the eight combinations that NAIVE would return at time 210, two are right."""
    names = ("s1", "s2", "s3")
    order = {"naive": dict.fromkeys(names, names), "general": {"s1": names, "s2": names, "s3": ("s2", "s3", "s1")}}
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(names, sj.TimeWindow(100)),
        on="attr",
        order=order.get(variant, names),
        index=index,
        evaluate_every=30 if variant in ("lazy", "general") else 0,
    )
    engine = spec.build()
    tables = {"s1": [90, 100], "s2": [150, 180], "s3": [195, 205]}
    out = [engine.push({name: {"attr": [1, 1], "ts": ts} for name, ts in tables.items()}), engine.flush()]
    got = [
        [tables[name][row] for name, row in zip(names, line, strict=True)]
        for part in out
        for line in part.rows.tolist()
    ]
    assert sorted(got) == [[100, 150, 195], [100, 180, 195]]


def test_a_result_is_out_at_most_tau_after_its_last_tuple() -> None:
    """Once a row or a told clock shows time t, every result whose last tuple came by t - tau is out."""
    tau, rng = 7, np.random.default_rng(3)
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(20)), on="x", evaluate_every=tau)
    engine = spec.build()
    done: Counter = Counter()
    rows: list[Row] = []
    for time in range(60):
        new = [Row(int(rng.integers(3)), {"x": int(rng.integers(3))}, time) for _ in range(rng.integers(0, 3))]
        out = engine.push(engine.rows(columns_of(new))) if new else engine.push(clocks={"a": time})
        rows += sorted(new, key=lambda row: row.stream)
        done += results(out)
        due = Counter(without_limits(spec, [[row for row in rows if row.ts <= time - tau]]))
        assert due <= done


def test_told_clocks_expire_and_join_what_is_due() -> None:
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("ab", sj.TimeWindow(5)), on="x", evaluate_every=4)
    engine = spec.build()
    assert len(engine.push({"a": {"x": [1], "ts": [0]}, "b": {"x": [1], "ts": [1]}})) == 0
    assert engine.push(clocks={"a": 50, "b": 50}).rows.tolist() == [[0, 0]]
    engine.push(clocks={"a": 60, "b": 60})
    assert engine.residents == (0, 0)
    assert engine.clocks == (60, 60)


def stream(rng: np.random.Generator, rows: int, values: int, every: int = 1) -> dict[str, np.ndarray]:
    return {"x": rng.integers(0, values, rows), "ts": np.arange(rows, dtype=np.int64) * every}


def test_growing_indexes_give_what_fixed_ones_give() -> None:
    rng = np.random.default_rng(0)
    tables = {name: stream(rng, 150 if INTERPRETED else 6000, 400) for name in "abc"}
    counts = []
    for index in ("auto", 7, {"a": "scan", "b": 3, "c": "auto"}):
        spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(900)), on="x", index=index)
        engine = spec.build()
        counts.append(results(engine.push(tables)))
        assert engine.residents == (min(900, len(tables["a"]["x"])),) * 3
    assert counts[0] == counts[1] == counts[2]
    assert sum(counts[0].values()) > 0


def test_order_follows_the_streams_and_changes_no_result() -> None:
    """Rates and distinct values that turn around: the order follows, nothing is lost or repeated."""
    rng = np.random.default_rng(1)
    long = 60 if INTERPRETED else 400
    parts = {}
    for name, first, second in (("a", 5, 1), ("b", 1, 5), ("c", 1, 1)):
        ts = np.sort(np.concatenate([rng.integers(0, long, first * long), rng.integers(long, 2 * long, second * long)]))
        parts[name] = {"x": rng.integers(0, 40, ts.size), "ts": ts}
    windows = dict.fromkeys("abc", sj.TimeWindow(20))
    fixed = sj.MultiJoinSpec(windows=windows, on="x", order=("a", "b", "c"), index="scan")
    adapting = sj.MultiJoinSpec(
        windows=windows, on="x", index="scan", reordering=sj.Reordering(every=long // 2, drift=0.05)
    )
    engine = adapting.build()
    assert results(engine.push(parts)) == results(fixed.build().push(parts))
    assert engine.reorderings > 0
    assert engine.orders["c"] == ("c", "a", "b")  # b has five times as many rows now
    assert engine.counters["compared"] < fixed.build().push(parts).stats["compared"]
    assert "in all" in engine.explain()


def test_explain_before_anything_is_known() -> None:
    engine = sj.MultiJoinSpec(windows=dict.fromkeys("ab", sj.TimeWindow(5)), on="x").build()
    assert "nothing is known of the streams yet" in engine.explain()


def test_a_stream_that_stops_or_jumps_holds_up_nothing() -> None:
    """One stream stops, another brings a hundred times its rows: the others go on, and the cap holds."""
    rng = np.random.default_rng(2)
    budget = sj.Budget(tuples=60, allocation="fixed")
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys("abc", sj.TimeWindow(50)), on="x", budget=budget, reordering=sj.Reordering(every=50)
    )
    engine = spec.build()
    steady = 100
    for start in range(0, 4 * steady, steady):
        ts = np.arange(start, start + steady)
        tables = {"a": {"x": rng.integers(0, 5, steady), "ts": ts}}
        times = 1 if start < 2 * steady else (5 if INTERPRETED else 100)
        tables["b"] = {"x": rng.integers(0, 5, steady * times), "ts": np.repeat(ts, times)}
        if start < steady:
            tables["c"] = {"x": rng.integers(0, 5, steady), "ts": ts}
        out = engine.push(tables)
        assert all(held <= 20 for held in engine.residents)
        if start < 2 * steady:
            assert len(out) > 0
    assert engine.counters["peak_tuples"] <= 60
    assert engine.arrived[1] == 2 * steady + 2 * steady * times


def test_snapshots_are_checked() -> None:
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(5)), on="x", order=("a", "b", "c"))
    engine = spec.build()
    engine.push({name: {"x": [1, 2, 3]} for name in "abc"})
    saved = engine.snapshot()
    again = spec.resume(saved)
    more = {name: {"x": [3, 2, 1]} for name in "abc"}
    assert results(again.push(more)) == results(engine.push(more))
    assert again.counters == engine.counters
    with pytest.raises(SnapshotError, match="damaged"):
        spec.resume(saved[:-40] + b"x" + saved[-39:])
    other = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(6)), on="x", order=("a", "b", "c"))
    with pytest.raises(SnapshotError, match="another window"):
        other.resume(saved)


def test_chunks_are_of_the_size_asked_for() -> None:
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(50)), on="x")
    engine = spec.build()
    tables = {name: {"x": np.zeros(12, np.int64)} for name in "abc"}
    parts = list(engine.chunks(tables, limit=100))
    assert [len(part) for part in parts[:-1]] == [100] * (len(parts) - 1)
    assert sum(len(part) for part in parts) == 12**3
    assert sum(part.stats["results"] for part in parts) == 12**3
    counted = list(spec.build().chunks(tables, limit=100, emit=False))
    assert sum(len(part) for part in counted) == 0
    assert sum(part.stats["results"] for part in counted) == 12**3
    pieces = engine.chunks(tables, limit=1)
    next(pieces)
    with pytest.raises(InputError, match="in the middle of a push"):
        engine.snapshot()


WIDE = dict.fromkeys("abc", sj.TimeWindow(5))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(windows={"a": sj.TimeWindow(1)}), "2 to 16 streams"),
        (dict(windows={"a": 5, "b": sj.TimeWindow(1)}), "TimeWindow or RowWindow"),
        (dict(windows={"a b": sj.TimeWindow(1), "b": sj.TimeWindow(1)}), "simple words"),
        (dict(on=("a.x = b.x",)), "no predicate leads to 'c'"),
        (dict(on=("a.x ~ b.x",)), "cannot read the predicate"),
        (dict(on=("a.x = d.x",)), "stream 'd'"),
        (dict(on=("a.x = a.y",)), "with itself"),
        (dict(order="best"), "'auto' or name the streams"),
        (dict(order=("a", "b")), "name each of a, b, c once"),
        (dict(order={"a": ("a", "b", "c")}), "an order for each of a, b, c"),
        (dict(index="tree"), "'auto', 'scan' or a number"),
        (dict(index={"z": 3}), "speaks of 'z'"),
        (dict(evaluate_every=4, expire_every=6), "multiple of evaluate_every"),
        (dict(evaluate_every=-1), "evaluate_every must be a whole number"),
        (
            dict(budget=sj.Budget(tuples=30), policy=sj.Dgl(), evaluate_every=2),
            r"evaluate_every: Age\(\), Dgl\(\), Cumulative\(\)",
        ),
        (dict(budget=sj.Budget(tuples=2, allocation="fixed")), "leaves stream 0 with no tuple"),
        (dict(budget=30), "must be a Budget"),
        (dict(policy=sj.Prob(sj.Table({}, {}))), "is for 2 streams, but this join has 3"),
        (dict(policy="prob"), "must be a policy"),
        (dict(policy=sj.KeepAll(), budget=sj.Budget(tuples=30)), "cannot stay within a budget"),
        (dict(importance="best"), "importance must be one of"),
        (dict(reordering=3), "must be a Reordering"),
    ],
)
def test_clear_words_about_specs(settings, words) -> None:
    with pytest.raises(SpecError, match=words):
        sj.MultiJoinSpec(**{"windows": WIDE, "on": "x", **settings})


def test_clear_words_about_rows() -> None:
    engine = sj.MultiJoinSpec(windows=WIDE, on="x").build()
    with pytest.raises(InputError, match="no stream 'z'"):
        engine.push({"z": {"x": [1]}})
    with pytest.raises(InputError, match="a needs a column 'x'"):
        engine.push({"a": {"y": [1]}})
    with pytest.raises(InputError, match="all columns must be equally long"):
        engine.push({"a": {"x": [1], "ts": [1, 2]}})
    with pytest.raises(InputError, match="clocks must be times"):
        engine.push(clocks={"z": 3})
    with pytest.raises(InputError, match="stream must be 0 to 2"):
        engine.rows({"stream": [3], "x": [1]})
    with pytest.raises(InputError, match="needs a column 'stream'"):
        engine.rows({"x": [1]})
    with pytest.raises(SpecError, match="limit must be"):
        engine.chunks({}, limit=0)
    with pytest.raises(InputError, match=r"stream must be one of 0 \(a\)"):
        engine.live("z")
    with pytest.raises(SpecError, match="is for 3 streams"):
        sj.JoinSpec(window=sj.TimeWindow(3), policy=sj.Prob(sj.Table({}, {}, [{}])))


def test_specs_are_plain_data() -> None:
    spec = sj.MultiJoinSpec(
        windows={"a": sj.TimeWindow(5), "b": sj.RowWindow(7), "c": sj.TimeWindow(9)},
        on=("a.x = b.x", "|b.y - c.y| <= 3"),
        order={"a": ("a", "b", "c"), "b": ("b", "a", "c"), "c": ("a", "c", "b")},
        index={"a": 5},
        budget=sj.Budget(tuples=60, shares=(1, 2, 3)),
        policy=sj.Prob(sj.Table({1: 0.5}, {2: 0.25}, [{3: 1.0}])),
        lateness=3,
        max_skew=50,
    )
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    replay = sj.MultiJoinSpec(windows=WIDE, on="x", policy=sj.Replay([1], [2, 3], [[4]]))
    assert sj.JoinSpec.from_dict(replay.to_dict()) == replay


def test_the_earliest_time_of_all_is_refused():
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(10)), on="key")
    with pytest.raises(sj.InputError, match=r"a\.ts must lie within"):
        spec.build().push({name: {"key": [1, 1], "ts": [-(2**63), 0]} for name in "abc"})


@pytest.mark.parametrize(
    "wrong", [{"every": 0}, {"every": 2.5}, {"every": "x"}, {"drift": -5}, {"drift": float("nan")}, {"drift": "x"}]
)
def test_reordering_is_checked(wrong):
    with pytest.raises(sj.SpecError, match=f"{next(iter(wrong))} must be"):
        sj.Reordering(**wrong)


@pytest.mark.parametrize("wrong", [{"on": None}, {"on": 5}, {"on": "key", "order": 5}])
def test_what_is_no_join_is_refused(wrong):
    with pytest.raises(sj.SpecError, match="must"):
        sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(10)), **wrong)


def test_a_budget_may_come_later():
    spec = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(10)), on="key")
    assert isinstance(spec.with_budget(sj.Budget(tuples=30)).policy, sj.Prob)
