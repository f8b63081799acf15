"""Missing results of joins that are not two streams on a key, from tables: results and they are the exact join, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin import quality
from shedjoin.quality import exact

TIME, ROWS = sj.TimeWindow(6), sj.RowWindow(5)
SMALL = {"budget": sj.Budget(tuples=6), "policy": sj.Rand()}
PARTS = sj.Selective(basic=2, rate=False, period=5, rank_period=7, sample=0.2, fraction=0.4)
JOINS: dict[str, sj.JoinSpec] = {
    "band": sj.JoinSpec((TIME, ROWS), on=sj.Band("x", within=1.0), **SMALL),
    "overlap, parts of windows": sj.JoinSpec(TIME, on=sj.Overlap("items", at_least=2), selective=PARTS, **SMALL),
    "inner product": sj.JoinSpec(TIME, on=sj.InnerProduct("weights", at_least=1.0), **SMALL),
    "key, parts of windows": sj.JoinSpec(TIME, selective=PARTS),
    "key, queue": sj.JoinSpec(TIME, cpu=sj.VirtualCpu(1.0), queue=sj.Queue(tuples=2)),
    "key, dual windows of rows": sj.JoinSpec(ROWS, dual=sj.Dual(rear=0.3, front=0.3)),
    "three on a key": sj.JoinSpec({"a": TIME, "b": ROWS, "c": TIME}, **SMALL),
    "join graph": sj.JoinSpec({"a": TIME, "b": TIME, "c": TIME}, on=("a.key = b.key", "|b.n - c.n| <= 1"), **SMALL),
}


def tables(streams: int, seed: int, rows: int = 40) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    return [
        {
            "key": draw.integers(0, 3, rows),
            "n": draw.integers(0, 5, rows),
            "x": draw.normal(0.0, 2.0, rows),
            "items": [draw.choice(6, 3, replace=False).tolist() for _ in range(rows)],
            "weights": [dict.fromkeys(draw.choice(4, 2, replace=False).tolist(), 0.8) for _ in range(rows)],
            "ts": np.arange(rows) // 2 - draw.choice([0, 0, 0, 4], rows),
        }
        for _ in range(streams)
    ]


def lines(columns: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def latest(rows: tuple[int, ...], given: list[dict[str, Any]]) -> int:
    return max(int(table["ts"][row]) for table, row in zip(given, rows, strict=True))


@pytest.mark.small
@pytest.mark.parametrize("name", JOINS)
def test_results_and_missing_results_are_the_exact_join(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "PIECE", 50)
    monkeypatch.setattr(exact, "SETS", 50)
    spec = JOINS[name]
    given = tables(len(spec.names), seed=3)
    engine = spec.build(seed=2)
    out = sj.Output.joined([engine.push(dict(zip(spec.names, given, strict=True))), engine.flush()])
    left, right, *more = given
    whole = lines(quality.exact_results(left, right, spec, more=more, shed=out.shed))
    logs: dict[str, Any] = {"more": more, "left_out": out.left_out}
    lost = lines(quality.missing_results(out.shed, left, right, spec, **logs))
    found = sorted(lines(out.columns))
    assert found
    assert lost
    assert sorted([*found, *lost]) == whole == sorted(set(whole))
    counts = quality.missing_counts(out.shed, left, right, spec, **logs)
    assert (counts.size, counts.sum()) == (len(out.shed), len(lost))
    late = quality.missing_results(out.shed, left, right, spec, warmup=9, **logs)
    assert lines(late) == [rows for rows in lost if latest(rows, given) >= 9]
    masks = quality.incomplete_rows(out.shed, left, right, spec, **logs)
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [sorted(set(rows)) for rows in zip(*lost, strict=True)]


@pytest.mark.small
def test_a_run_with_parts_of_windows_is_measured_by_its_logs() -> None:
    spec = JOINS["key, parts of windows"]
    left, right = ({"key": table["key"]} for table in tables(2, seed=5))
    run = sj.simulate(spec, left, right, seed=4)
    measured = quality.from_run(run)
    whole = quality.exact_results(left, right, spec)
    assert measured == quality.compare(whole, run.pairs())
    assert measured.missing > 0
    given, wanted = (np.column_stack(pairs) for pairs in (run.pairs(), whole))  # row numbers are times here
    assert quality.distances_from_run(run)["emd"] == quality.emd(given, wanted)


def test_what_is_needed_is_asked_for() -> None:
    parts, dual = JOINS["key, parts of windows"], JOINS["key, dual windows of rows"]
    left, right = tables(2, seed=5)
    out = parts.build().push(left=left, right=right)
    with pytest.raises(sj.InputError, match="left_out must be given"):
        quality.missing_results(out.shed, left, right, parts)
    with pytest.raises(sj.InputError, match="left_out must be the LeftOutLog"):
        quality.missing_results(out.shed, left, right, parts, left_out=out.shed)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match="of which shed has no record"):
        quality.missing_results(sj.ShedLog(), left, right, parts, left_out=out.left_out)
    with pytest.raises(sj.InputError, match="count the rows that were let in"):
        quality.exact_results(left, right, dual)
    with pytest.raises(sj.InputError, match="tables of 1 streams, not of 0"):
        quality.exact_results(left, right, JOINS["join graph"])
