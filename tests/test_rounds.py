"""Benchmarks in turn: the order of the runs, runs that are stored, results that differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_sections import check_sections, write_section
from rounds import Row, Store, in_turn, ratios

pytestmark = pytest.mark.small
WORKLOAD = {"case": "tiny", "rows": 10}


def measure(system: str) -> Row:
    return {"results": 7, "hash": "x", "steady": 6.0 if system == "ours" else 2.0}


def test_systems_run_in_turn() -> None:
    rows = in_turn(WORKLOAD, ["ours", "peer"], 2, measure, Store(None))
    assert [(row["round"], row["system"]) for row in rows] == [(1, "ours"), (1, "peer"), (2, "ours"), (2, "peer")]
    assert ratios(rows, "ours", "peer") == [3.0, 3.0]


def test_stored_runs_are_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "runs.jsonl"
    first = in_turn(WORKLOAD, ["ours", "peer"], 1, measure, Store(path))
    again: list[str] = []

    def noted(system: str) -> Row:
        again.append(system)
        return measure(system)

    rows = in_turn(WORKLOAD, ["ours", "peer"], 2, noted, Store(path))
    assert rows[:2] == first
    assert again == ["ours", "peer"]
    in_turn({**WORKLOAD, "rows": 11}, ["ours"], 1, noted, Store(path))
    assert again == ["ours", "peer", "ours"]


def test_different_results_stop_the_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with pytest.raises(SystemExit, match="the outputs differ"):
        in_turn(WORKLOAD, ["ours", "another"], 1, lambda one: {**measure(one), "results": len(one)}, Store(path))
    assert len(path.read_text().splitlines()) == 1


def test_only_the_section_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("by hand\n<!-- a -->\nold\n<!-- end -->\nby hand\n<!-- b -->\nkept\n<!-- end -->\n")
    check_sections(page, ["a", "b"])
    write_section(page, "a", "new\n")
    assert page.read_text() == "by hand\n<!-- a -->\nnew\n<!-- end -->\nby hand\n<!-- b -->\nkept\n<!-- end -->\n"
    with pytest.raises(SystemExit, match="<!-- c -->"):
        check_sections(page, ["c"])
