"""Missing results and incomplete rows from shed logs, against the exact join by two nested loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shedjoin as sj
from shedjoin import quality
from shedjoin.quality import archive_metric, missing, ranges, runs

INTERPRETED = bool(numba.config.DISABLE_JIT)
Pair = tuple[int, int]


class Row(NamedTuple):
    stream: int
    key: int | None
    ts: int
    seq: int
    instant: int


def numbered(table: list[dict[str, Any]], cuts: tuple[int, ...] = ()) -> list[Row]:
    """Rows with their numbers; a new instant begins with every new time and at every cut."""
    rows, counts, instant = [], [0, 0], -1
    for place, row in enumerate(table):
        if place == 0 or row["ts"] != table[place - 1]["ts"] or place in cuts:
            instant += 1
        rows.append(Row(row["stream"], row["key"], row["ts"], counts[row["stream"]], instant))
        counts[row["stream"]] += 1
    return rows


def exact_pairs(rows: list[Row], windows: tuple[sj.TimeWindow | sj.RowWindow, ...]) -> set[Pair]:
    """docs/semantics.md, "The exact join", word for word."""

    def arrived(stream: int, instant: int) -> int:
        return sum(row.stream == stream and row.instant <= instant for row in rows)

    def joins(r: Row, s: Row) -> bool:
        if r.key is None or r.key != s.key:
            return False
        earlier, later = (r, s) if r.ts <= s.ts else (s, r)
        window = windows[earlier.stream]
        if isinstance(window, sj.TimeWindow) and not later.ts - earlier.ts < window.length:
            return False
        older, newer = sorted((r, s), key=lambda row: row.instant)
        window = windows[older.stream]
        if isinstance(window, sj.TimeWindow) or older.instant == newer.instant:
            return True
        return older.seq >= arrived(older.stream, newer.instant) - window.rows

    lefts, rights = ([row for row in rows if row.stream == stream] for stream in (0, 1))
    return {(r.seq, s.seq) for r in lefts for s in rights if joins(r, s)}


def as_set(pairs: tuple[np.ndarray, np.ndarray]) -> set[Pair]:
    found = list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
    assert len(found) == len(set(found)), "a pair is there twice"
    return set(found)


WINDOW = st.one_of(st.builds(sj.TimeWindow, st.integers(1, 7)), st.builds(sj.RowWindow, st.integers(1, 5)))
POLICY = st.sampled_from((sj.Rand(), sj.Prob(), sj.Simp(), sj.Life(), sj.DimpProb()))
BUDGET = st.builds(sj.Budget, tuples=st.integers(2, 6), allocation=st.sampled_from(("fixed", "variable")))
SPEC = st.builds(
    sj.JoinSpec,
    window=st.tuples(WINDOW, WINDOW),
    budget=BUDGET,
    policy=POLICY,
    lateness=st.sampled_from((0, 0, 2)),
    max_skew=st.sampled_from((None, None, 3)),
)


@st.composite
def rows_in_order(draw: Any, in_step: bool = False) -> list[dict[str, Any]]:
    """Rows of both streams in order of arrival; some out of order, some late, some null."""
    clock, rows = 0, []
    for step, lag, stream, key in draw(
        st.lists(
            st.tuples(
                st.integers(0, 2),
                st.sampled_from((0, 0, 0, 1, 2, 6)),
                st.integers(0, 1),
                st.sampled_from((1, 1, 2, 3, None)),
            ),
            max_size=12 if INTERPRETED else 40,
        )
    ):
        clock += step
        rows.append(
            {"stream": stream, "key": key, "ts": clock if in_step else clock - lag, "importance": 1.0 + (clock * 7) % 3}
        )
    return rows


def batch_of(table: list[dict[str, Any]]) -> sj.Batch:
    names = ("stream", "key", "ts", "importance")
    return sj.Batch.rows({name: [row[name] for row in table] for name in names}) if table else sj.Batch.of()


def canonical(batch: sj.Batch) -> list[dict[str, Any]]:
    return [
        {"stream": int(stream), "key": None if null else int(key), "ts": int(ts)}
        for stream, key, null, ts in zip(batch.stream, batch.key, batch.null, batch.ts, strict=True)
    ]


def produced_at(rows: list[Row], pair: Pair) -> int:
    return max(row.ts for row in rows if row.seq == pair[row.stream])


@pytest.mark.small
@settings(deadline=None, max_examples=40 if INTERPRETED else 200)
@given(SPEC, rows_in_order(), st.sampled_from((None, None, 5, 12)), st.data())
def test_shed_log_and_inputs_give_exactly_what_is_missing(
    spec: sj.JoinSpec, table: list[dict[str, Any]], warmup: int | None, data: st.DataObject
) -> None:
    whole = batch_of(table)
    cut = data.draw(st.integers(0, len(whole)))
    pushes = [batch for batch in (whole.take(slice(0, cut)), whole.take(slice(cut, None))) if len(batch)]
    engine = spec.build(seed=3)
    outputs = [engine.push(batch) for batch in pushes]
    shed = sj.ShedLog([out.shed.records() for out in outputs])
    rows = numbered([row for batch in pushes for row in canonical(batch)], cuts=(cut,))
    exact = exact_pairs(rows, spec.windows)
    met = {pair for out in outputs for pair in as_set((out.left, out.right))}
    expected = {pair for pair in exact - met if warmup is None or produced_at(rows, pair) >= warmup}

    arrivals = quality.Arrivals.pushed(pushes)
    assert as_set(missing.missing_rows(shed, arrivals, spec, warmup=warmup)) == expected
    assert missing.record_counts(shed, arrivals, spec, warmup=warmup).sum() == len(expected)
    masks = archive_metric.marked(shed, arrivals, spec, None, warmup)
    assert set(np.flatnonzero(masks[0]).tolist()) == {left for left, _ in expected}
    assert set(np.flatnonzero(masks[1]).tolist()) == {right for _, right in expected}


def sides(table: list[dict[str, Any]]) -> list[pa.Table]:
    kinds = {"key": pa.int64(), "ts": pa.int64(), "importance": pa.float64()}
    return [
        pa.table(
            {
                name: pa.array([row[name] for row in table if row["stream"] == side], kind)
                for name, kind in kinds.items()
            }
        )
        for side in (0, 1)
    ]


@pytest.mark.small
@settings(deadline=None, max_examples=30 if INTERPRETED else 100)
@given(SPEC, st.booleans().flatmap(rows_in_order), st.sampled_from((None, 8)))
def test_a_run_is_measured_alike_by_its_log_and_by_its_results(
    spec: sj.JoinSpec, table: list[dict[str, Any]], warmup: int | None
) -> None:
    left, right = sides(table)
    run = sj.simulate(spec, left, right, late="log", warmup=warmup, seed=1)
    rows = numbered(canonical(sj.Batch.of(left, right)))
    exact = quality.exact_results(left, right, spec)
    assert as_set(exact) == exact_pairs(rows, spec.windows)
    counted = quality.exact_results(left, right, spec, warmup=warmup)
    assert as_set(counted) == {pair for pair in as_set(exact) if warmup is None or produced_at(rows, pair) >= warmup}

    by_results = quality.compare(counted, run.pairs())
    assert runs.from_run(run) == by_results
    assert by_results.extra == 0
    lost = quality.missing_results(run.shed, left, right, spec, warmup=warmup)
    assert as_set(lost) == as_set(counted) - as_set(run.pairs())
    per_record = quality.missing_counts(run.shed, left, right, spec, warmup=warmup)
    assert per_record.size == len(run.shed)
    assert per_record.sum() == by_results.missing
    masks = quality.incomplete_rows(run.shed, left, right, spec, warmup=warmup)
    assert tuple(int(mask.sum()) for mask in masks) == (by_results.incomplete_left, by_results.incomplete_right)

    times = [rows_ts(table, side) for side in (0, 1)]
    given_out, wanted = (
        np.column_stack([times[side][pairs[side]] for side in (0, 1)]) for pairs in (run.pairs(), counted)
    )
    assert quality.distances_from_run(run, penalty=0.5) == {
        "emd": quality.emd(given_out, wanted),
        "mac": pytest.approx(quality.mac(given_out, wanted, penalty=0.5)),
    }


def rows_ts(table: list[dict[str, Any]], side: int) -> Any:
    return np.array([row["ts"] for row in table if row["stream"] == side], np.int64)


def test_answers_too_large_to_compare_each_with_each_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MATCHABLE", 10)
    spec = sj.JoinSpec(window=sj.TimeWindow(9), budget=sj.Budget(tuples=2), policy=sj.Rand())
    with pytest.raises(sj.InputError, match="shorter stretch"):
        quality.distances_from_run(sj.simulate(spec, {"key": [1] * 9}, {"key": [1] * 9}))


def test_pairs_come_whole_however_they_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    left, right = ({"key": draw.integers(0, 5, 300)} for _ in range(2))
    spec = sj.JoinSpec(window=sj.TimeWindow(50), budget=sj.Budget(tuples=10), policy=sj.Rand())
    run = sj.simulate(spec, left, right)
    whole = quality.missing_results(run.shed, left, right, spec)
    monkeypatch.setattr(ranges, "CHUNK", 7)
    in_pieces = quality.missing_results(run.shed, left, right, spec)
    assert whole[0].size > 1000
    assert all(np.array_equal(one, two) for one, two in zip(whole, in_pieces, strict=True))


def test_das2003_figure_2_by_its_schedule() -> None:
    left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    # r(0) stays to meet s(2), then r(2), then r(3); s(1) to meet r(3).
    schedule = sj.Replay([2, 1, 3, 5, 4], [0, 3, 2, 3, 4])
    spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=schedule)
    run = sj.simulate(spec, left, right)
    lost = quality.missing_results(run.shed, left, right, spec)
    assert as_set(lost) == {(1, 2), (1, 3)}
    summary = quality.from_run(run)
    assert (summary.exact, summary.approximate, summary.arm) == (7, 5, 3)


def test_a_log_of_other_inputs_is_refused() -> None:
    spec = sj.JoinSpec(window=sj.TimeWindow(9), budget=sj.Budget(tuples=2), policy=sj.Rand())
    run = sj.simulate(spec, {"key": [1] * 9}, {"key": [1] * 9})
    with pytest.raises(sj.InputError, match="inputs of the same run"):
        quality.missing_results(run.shed, {"key": [1]}, {"key": [1]}, spec)
