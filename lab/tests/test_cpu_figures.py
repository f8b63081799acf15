"""Figures and claims of the papers on slow CPUs: what is drawn is measured, and other rows give another verdict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shedjoin.workloads import zipf
from shedjoin_lab.agreement import FAILS, HOLDS, PARTLY
from shedjoin_lab.catalogue import PAPERS
from shedjoin_lab.claims import Finding
from shedjoin_lab.experiment import Figure, Row, Scale
from shedjoin_lab.papers.dual2006 import claims as dual
from shedjoin_lab.papers.dual2006 import rivals
from shedjoin_lab.papers.gedik2007 import claims as gedik
from shedjoin_lab.papers.gedik2007.joins import join_of
from shedjoin_lab.papers.gedik2007.optimality import density, optimality

FIGURES = [figure for paper in ("dual2006", "gedik2007") for figure in PAPERS[paper]]


def by_name(figure: Figure) -> str:
    return f"{figure.paper} {figure.name}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little of each real data set's columns, made up."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(3)
    for name in ("flux_tower_tharandt", "reuters_news_1987", "network_wrccdc_2018"):
        (folder / name).mkdir()
    for year in (1996, 1998):
        ts = np.datetime64(f"{year}-01-01", "ms") + np.arange(4000) * np.timedelta64(1800, "s")
        table = pa.table({"ts": ts, "tair_d10": rng.integers(-50, 200, 4000), "rg_wm2": rng.random(4000)})
        pq.write_table(table, folder / "flux_tower_tharandt" / f"tharandt_{year}.parquet")
    for place in ("usa", "elsewhere"):
        ts = np.datetime64("1987-03-01", "ms") + np.sort(rng.integers(0, 86_400_000, 300)) * np.timedelta64(1, "ms")
        words = [[f"w{item}" for item in rng.integers(0, 40, 6)] for _ in range(300)]
        pq.write_table(pa.table({"ts": ts, "keywords": words}), folder / "reuters_news_1987" / f"news_{place}.parquet")
    for log in ("dns", "ssl"):
        ts = np.datetime64("2018-03-24", "us") + np.sort(rng.integers(0, 60_000_000, 600)) * np.timedelta64(1, "us")
        hosts = [f"h{host}" for host in rng.integers(0, 9, 600)]
        pq.write_table(pa.table({"ts": ts, "orig_h": hosts}), folder / "network_wrccdc_2018" / f"{log}.parquet")
    return folder


def test_a_queue_that_keeps_popular_keys_finds_more_than_the_exact_join_and_less_of_it() -> None:
    """What the rivals of dual2006 differ in: whether results count that the exact join does not have."""
    params: dict[str, Any] = {"window": 40, "warmup": 80, "speed": 250, "seed": 1}
    workload = zipf(600, seed=1, domain=10, skew=1.0)
    rows = {m: rivals.run(workload, {**params, "method": m}, workload.probabilities) for m in rivals.METHODS}
    exact = rows["EXACT"]["rate"]
    for method, row in rows.items():
        if method != "BOUND":
            assert row["subset"] <= min(row["rate"], exact), method
    assert rows["PROB, queue"]["rate"] > exact > rows["PROB, queue"]["subset"]
    assert rows["RAND, memory"]["rate"] < rows["PROB, memory"]["rate"] <= rows["OPT, memory"]["rate"]
    assert rows["PROB, memory"]["kept"] == 6  # 100 / 250 - 100 / 400 of 40


@pytest.mark.parametrize("figure", FIGURES, ids=by_name)
def test_what_is_drawn_is_measured(figure: Figure, data: Path) -> None:
    params = figure.parameters(Scale(seeds=1, quick=True))
    names = ("method", "index", "shape", "window")
    chosen = {str([one.get(name) for name in names]): one for one in params}
    rows = [row for one in chosen.values() for row in figure.measure(one, data)]
    drawn = figure.derive(rows)
    assert drawn
    for panel in figure.plot.panels:
        shown = [row for row in drawn if all(row.get(name) == value for name, value in panel.where.items())]
        assert shown, panel.title
        assert all(np.isfinite(float(str(row[panel.y]))) for row in shown if panel.y in row)
        assert any(panel.y in row for row in shown)


def speeds(levels: dict[str, Any]) -> list[Row]:
    """Rows of output against speed, V_opt at 100."""
    return [
        {"method": method, "speed": speed, "seed": 0, "best": 100.0, "rate": level(speed)}
        for method, level in levels.items()
        for speed in (60, 80, 100, 120, 200, 400)
    ]


by_queue = partial(dual.above, reading=dual.IN_QUEUE)
by_bound = partial(dual.below, "BOUND")


def memory(level: Any) -> dict[str, Any]:
    return {"PROB, memory": level, "RAND, memory": level}


@pytest.mark.parametrize(
    ("check", "levels", "holds"),
    [
        (dual.flat, {"DUAL": lambda v: min(v, 100)}, True),
        (dual.flat, {"DUAL": lambda v: v}, False),
        (dual.rear_falls, {"REAR": lambda v: max(0, 400 - v)}, True),
        (dual.rear_falls, {"REAR": lambda v: 500 - v}, False),
        (dual.best_at_computed, {"REAR": lambda v: 1 - np.log(v / 100) ** 2}, True),
        (dual.best_at_computed, {"REAR": lambda v: 1 - np.log(v / 200) ** 2}, False),
        (dual.above, {"DUAL": lambda v: 3, "PROB, memory": lambda v: 2, "RAND, memory": lambda v: 1}, True),
        (dual.above, {"DUAL": lambda v: 3, "PROB, memory": lambda v: 2.9, "RAND, memory": lambda v: 1}, False),
        (dual.above, {"DUAL": lambda v: 3, "PROB, memory": lambda v: 2 * (v < 400), "RAND, memory": lambda v: 1}, True),
        (
            by_queue,
            {"DUAL": lambda v: 3, "PROB, queue": lambda v: 2, "COUNTS, queue": lambda v: 9, "RAND, queue": lambda v: 1},
            True,
        ),
        (
            by_queue,
            {"DUAL": lambda v: 3, "PROB, queue": lambda v: 9, "COUNTS, queue": lambda v: 1, "RAND, queue": lambda v: 1},
            False,
        ),
        (dual.most_at_high_speed, {"DUAL": lambda v: 3, **memory(lambda v: 1 / v)}, True),
        (dual.most_at_high_speed, {"DUAL": lambda v: 3, **memory(lambda v: v)}, False),
        (
            dual.uniform_prob_is_rand,
            {"DUAL": lambda v: 3, "PROB, memory": lambda v: 1, "RAND, memory": lambda v: 1.05},
            True,
        ),
        (
            dual.uniform_prob_is_rand,
            {"DUAL": lambda v: 3, "PROB, memory": lambda v: 1, "RAND, memory": lambda v: 1.5},
            False,
        ),
        (by_bound, {"DUAL": lambda v: 1, "BOUND": lambda v: 1.2}, True),
        (by_bound, {"DUAL": lambda v: 1.3, "BOUND": lambda v: 1.2}, False),
    ],
)
def test_claims_about_speed_follow_the_rows(check: Any, levels: dict[str, Any], holds: bool) -> None:
    found = check(speeds(levels))
    assert isinstance(found, Finding)
    assert (found.verdict == HOLDS) == holds


def seconds(levels: dict[str, float], **more: float) -> list[Row]:
    """Rows over time: a method's level in the burst, 1 before and after."""
    times = range(0, 120, 5)
    return [
        {"method": method, "time": time, "seed": 0, "output": level if 60 <= time < 105 else 1.0, **more}
        for method, level in levels.items()
        for time in times
    ]


@pytest.mark.parametrize(
    ("check", "rows", "holds"),
    [
        (gedik.rate_gain, seconds({"DROP": 1.0, "RATE": 1.8}), True),
        (gedik.rate_gain, seconds({"DROP": 1.0, "RATE": 1.1}), False),
        (gedik.correlation_gain, seconds({"RATE": 1.0, "TIME": 1.5, "ALL": 2.0}), True),
        (gedik.correlation_gain, seconds({"RATE": 1.0, "TIME": 1.1, "ALL": 2.0}), False),
        (gedik.less_useful_first, seconds({"ALL": 1.0}, r1=0.3, r2=0.0), True),
        (gedik.less_useful_first, seconds({"ALL": 1.0}, r1=0.25, r2=0.22), False),
    ],
)
def test_claims_over_time_follow_the_rows(check: Any, rows: list[Row], holds: bool) -> None:
    assert (check(rows).verdict == HOLDS) == holds


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (lambda frequency, skew: {"uniform": 0.1, "inverse": 0.2, "direct": 0.0}[frequency] * skew, HOLDS),
        (lambda frequency, skew: 0.1 * skew, PARTLY),
        (lambda frequency, skew: {"uniform": -0.1, "inverse": -0.2, "direct": 0.2}[frequency] * skew, FAILS),
    ],
)
def test_utility_follows_the_rows(gain: Any, verdict: str) -> None:
    rows: list[Row] = [
        {"method": method, "frequency": frequency, "value_skew": skew, "types": 3, "seed": 0, "utility": level}
        for frequency in ("uniform", "inverse", "direct")
        for skew in (0.0, 1.0, 3.0)
        for method, level in (("ALL", 1.0), ("UTILITY", 1.0 + gain(frequency, skew)))
    ]
    assert gedik.utility_skew(rows).verdict == verdict


def test_windows_are_closed() -> None:
    """A tuple of age T still joins, one of T + 1 does not; with one window the other stream's tuples are not kept."""
    params: dict[str, Any] = {"join": "equal", "window": 1, "method": "DROP"}
    early, late = {"x": [1, 1], "ts": [0, 1]}, {"x": [1], "ts": [1001]}
    assert joined(params, early, late) == {(1, 0)}
    assert joined(params, late, early) == {(0, 1)}
    assert joined({**params, "one_window": True}, early, late) == {(1, 0)}
    assert joined({**params, "one_window": True}, late, early) == set()


def joined(params: dict[str, Any], left: dict[str, list[int]], right: dict[str, list[int]]) -> set[tuple[int, int]]:
    engine = join_of(params).build()
    outputs = [engine.push(left=left, right=right), engine.flush()]
    return {pair for out in outputs for pair in zip(out.left.tolist(), out.right.tolist(), strict=True)}


def test_smaller_basic_windows_are_nearer_to_the_best() -> None:
    for shape in ("less skewed", "more skewed"):
        f = density(shape)
        assert f.sum() == pytest.approx(1.0)
        values = [optimality(f, basic, 0.2) for basic in (0.01, 0.1, 0.3)]
        assert 1.0 >= values[0] > values[1] > values[2] > 0.0
        assert optimality(f, 0.1, 1.0) == pytest.approx(1.0, abs=0.05)
