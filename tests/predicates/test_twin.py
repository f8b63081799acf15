"""Every index gives the same pairs as a scan, and both the same as the slow twin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from predicate_strategies import PREDICATES, exact_pairs, pairs, streams, table


def indexes(predicate: sj.Predicate) -> list[str]:
    return ["scan", "lists"] if predicate.indexable else ["scan"]


@pytest.mark.small
@pytest.mark.parametrize("predicate", PREDICATES, ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_index_gives_the_pairs_of_the_twin(predicate: sj.Predicate, data: st.DataObject) -> None:
    disorder = data.draw(st.sampled_from([0, 0, 3]))
    left, right = data.draw(streams(predicate.kind, disorder=disorder))
    windows = (data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8)))
    lateness = data.draw(st.sampled_from([disorder, sj.UNLIMITED]))
    expected = exact_pairs(predicate, windows, left, right)
    for index in indexes(predicate):
        join = sj.PredicateJoin(
            (sj.TimeWindow(windows[0]), sj.TimeWindow(windows[1])), predicate, index=index, lateness=lateness
        )
        out = join.build().push(left=table(left), right=table(right))
        assert pairs(out) == expected, index
        assert out.stats["results"] == len(expected)
        assert len(out.shed) == 0


@pytest.mark.small
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_one_stream_may_run_ahead(data: st.DataObject) -> None:
    """All of one stream, then all of the other: nothing is lost."""
    predicate = data.draw(st.sampled_from([sj.Overlap("x", 2), sj.Band("x", 1.0), sj.Subset("x")]))
    left, right = data.draw(streams(predicate.kind))
    engine = sj.PredicateJoin(sj.TimeWindow(4), predicate).build()
    first, second = (left, right) if data.draw(st.booleans()) else (right, left)
    names = ("left", "right") if first is left else ("right", "left")
    outs = [engine.push(**{name: table(rows)}) for name, rows in zip(names, (first, second), strict=True)]
    assert pairs(*outs) == exact_pairs(predicate, (4, 4), left, right)


@pytest.mark.small
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_cutting_and_resuming_changes_nothing(data: st.DataObject) -> None:
    predicate = data.draw(st.sampled_from(PREDICATES))
    left, right = data.draw(streams(predicate.kind))
    join = sj.PredicateJoin(sj.TimeWindow(5), predicate, max_skew=data.draw(st.sampled_from([None, 2])))
    cut = data.draw(st.integers(-3, 20))
    parts: list[dict[str, Any]] = [
        {
            "left": table([row for row in left if (row[0] < cut) == early]),
            "right": table([row for row in right if (row[0] < cut) == early]),
        }
        for early in (True, False)
    ]
    whole = join.build()
    expected = [whole.push(**part) for part in parts]
    engine = join.build()
    outs = [engine.push(**parts[0])]
    engine = join.resume(engine.snapshot())
    outs.append(engine.push(**parts[1]))
    assert pairs(*outs) == pairs(*expected)
    assert engine.counters == whole.counters
    assert [engine.live(stream).tolist() for stream in (0, 1)] == [whole.live(stream).tolist() for stream in (0, 1)]


def test_a_window_of_thousands_through_growth_and_expiry() -> None:
    """Lists, items and pool grow and are repacked many times over; counted with numpy."""
    import numpy as np

    rng = np.random.default_rng(5)
    rows, window = 6000, 500
    sizes = rng.integers(0, 7, rows)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    tables = [
        {"x": sj.Sets(offsets, rng.integers(0, 40 if side else 60, offsets[-1])), "ts": np.arange(rows) // 2}
        for side in range(2)
    ]
    dense = np.zeros((2, rows, 60), np.int32)
    for side, one in enumerate(tables):
        dense[side][np.repeat(np.arange(rows), sizes), one["x"].items] = 1  # type: ignore[attr-defined]
    ts = np.arange(rows) // 2
    common = dense[0] @ dense[1].T
    near = np.abs(ts[:, None] - ts[None, :]) < window
    for predicate, fits in (
        (sj.Overlap("x", at_least=2), common >= 2),
        (sj.Subset("x"), common == dense[0].sum(1)[:, None]),
        (sj.SameSet("x"), (common == dense[0].sum(1)[:, None]) & (common == dense[1].sum(1)[None, :])),
    ):
        engine = sj.PredicateJoin(sj.TimeWindow(window), predicate).build()
        outs = [engine.push(left=_part(tables[0], cut), right=_part(tables[1], cut)) for cut in range(4)]
        found = np.zeros((rows, rows), np.bool_)
        for out in outs:
            assert not found[out.left, out.right].any(), "a pair twice"
            found[out.left, out.right] = True
        assert np.array_equal(found, fits & near)
        assert max(engine.residents) <= 2 * window + 2


def _part(one: dict[str, Any], cut: int) -> dict[str, Any]:
    """A quarter of a table."""
    rows = slice(cut * 1500, (cut + 1) * 1500)
    offsets = one["x"].offsets[rows.start : rows.stop + 1]
    return {"ts": one["ts"][rows], "x": sj.Sets(offsets - offsets[0], one["x"].items[offsets[0] : offsets[-1]])}


def test_bitmaps_follow_what_comes_and_goes() -> None:
    """Lists, and the bitmaps beside them, find what a scan finds while tuples expire and are evicted and rows come late."""
    import numpy as np

    rng = np.random.default_rng(8)
    rows = 4000
    sizes = rng.integers(0, 12, rows)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    # Most items are frequent, some are rare: counted by bits, counted one by one.
    items = np.where(
        rng.random(offsets[-1]) < 0.9, rng.integers(0, 20, offsets[-1]), rng.integers(20, 400, offsets[-1])
    )
    ts = np.arange(rows) // 2 - rng.integers(0, 4, rows)
    found = []
    for index in ("scan", "lists"):
        join = sj.PredicateJoin(
            sj.TimeWindow(700),
            sj.Overlap("x", at_least=3),
            index=index,
            budget=sj.Budget(tuples=1800),
            policy=sj.Rand(),
            lateness=4,
        )
        engine = join.build(seed=3)
        outs = []
        for start in range(0, rows, 800):
            part = slice(start, start + 800)
            sets = sj.Sets(offsets[start : start + 801] - offsets[start], items[offsets[start] : offsets[start + 800]])
            outs.append(engine.push(left={"ts": ts[part], "x": sets}, right={"ts": ts[part], "x": sets}))
            engine = join.resume(engine.snapshot())
        assert index == "scan" or engine._state["bitmaps_used"] == 1  # resumed without
        found.append(pairs(*outs))
        assert engine.counters["evicted"] > 100
    assert found[0] == found[1]
    assert len(found[0]) > 1000
