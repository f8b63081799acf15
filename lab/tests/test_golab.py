"""golab2003 in the lab: quick runs of its figures, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from shedjoin.errors import DataError
from shedjoin.workloads import Workload
from shedjoin_lab.agreement import HOLDS
from shedjoin_lab.catalogue import find
from shedjoin_lab.claims import claims_of, judge
from shedjoin_lab.experiment import Row, Scale
from shedjoin_lab.papers.golab2003.fig04b import allocation
from shedjoin_lab.papers.golab2003.flights import SIZES as FLIGHTS
from shedjoin_lab.papers.golab2003.real import joined
from shedjoin_lab.papers.golab2003.ships import SIZES as SHIPS
from shedjoin_lab.papers.golab2003.streams import TABLES
from shedjoin_lab.papers.golab2003.table8 import PAPER, plans
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import Store
from shedjoin_lab.workloads.multi import golab_streams

CLAIMS = {claim.name: claim for claim in claims_of("golab2003")}
ON_STREAMS = [name for name, claim in CLAIMS.items() if not {"flights", "ships"} & set(claim.figures)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Every figure that needs no real streams, at its small scale."""
    store = Store(tmp_path_factory.mktemp("lab"), quick=True)
    for name in ("table3", "fig02", "fig03", "tables567", "table8", "fig04a", "fig04b"):
        assert run(find("golab2003", name), Scale(seeds=1, quick=True), store, in_process) > 0
    return store


#: Claims that ours contradicts in part.
IN_PART = {"five-to-slow", "plan-ratios", "longer-intervals-hurt", "first-step-is-greatest"}


@pytest.mark.parametrize("name", [name for name in ON_STREAMS if name not in IN_PART])
def test_claims_hold_at_the_small_scale(name: str, quick: Store) -> None:
    line = judge("golab2003", CLAIMS[name], quick)
    assert line.verdict == HOLDS, line.ours


#: What each claim must not survive: a method whose column is multiplied.
SPOILT = {
    "no-expired-tuple": ("LAZY", "matches", 4),
    "naive-scales-worse": ("NAIVE", "cost", 0.01),
    "lazy-is-general": ("LAZY", "cost", 1.2),
    "general-is-least": ("GENERAL", "cost", 1.5),
    "fast-stream-last": ("LAZY", "cost", 0.5),
    "costs-as-printed": ("worst", "cost", 1.01),
    "heuristic-finds-best": ("heuristic", "cost", 1.02),
    "plan-ratios": ("worst", "rate", 0.5),
    "heuristic-plan": ("heuristic", "rate", 0.9),
    "hash-beats-nlj": ("best", "rate", 0.01),
    "more-buckets-faster": ("HASH30", "rate", 0.01),
    "best-tau-grows": ("HASH30", "rate", 0.01),
    "more-to-the-fast": ("Equal", "rate", 10),
    "five-to-slow": ("Equal", "rate", 10),
}


@pytest.mark.parametrize("name", SPOILT)
def test_claims_fail_on_other_rows(name: str, quick: Store) -> None:
    method, column, times = SPOILT[name]
    (figure,) = CLAIMS[name].figures
    rows = []
    for row in quick.read(find("golab2003", figure)):
        hit = row["method"] == method and (name != "hash-beats-nlj" or row["buckets"] == 5)
        hit = hit and (name != "best-tau-grows" or row["tau"] != 0)
        rows.append({**row, column: float(str(row[column])) * times} if hit else row)
    assert not verdict(name, rows)


@pytest.mark.parametrize(("fall", "holds"), [(-1, True), (0, False), (1, False)])
def test_longer_intervals_must_hurt(fall: int, holds: bool) -> None:
    rows: list[Row] = [
        {"method": "best", "buckets": buckets, "tau": tau, "rate": 100 + fall * tau, "seed": 0}
        for buckets in (1, 5)
        for tau in (0, 5, 10)
    ]
    assert verdict("longer-intervals-hurt", rows) == holds


def test_the_papers_own_rates_have_the_papers_ratios() -> None:
    rows: list[Row] = [
        {"method": plan, "buckets": buckets, "tau": tau, "rate": rate, "seed": 0}
        for (buckets, tau), rates in PAPER.items()
        for plan, rate in zip(("best", "worst"), rates, strict=True)
    ]
    assert verdict("plan-ratios", rows)
    assert verdict("longer-intervals-hurt", rows)


@pytest.mark.parametrize(("rates", "holds"), [((1, 3, 6, 9), True), ((1, 2, 6, 9), False)])
def test_the_first_step_must_be_the_greatest(rates: tuple[int, ...], holds: bool) -> None:
    methods = ("NLJ", "HASH2", "HASH10", "HASH30")
    rows: list[Row] = [{"method": m, "tau": 0, "rate": rate, "seed": 0} for m, rate in zip(methods, rates, strict=True)]
    assert verdict("first-step-is-greatest", rows) == holds


def verdict(name: str, rows: list[Row]) -> bool:
    check = CLAIMS[name].check
    return check(rows).verdict == HOLDS


@pytest.mark.parametrize(("figure", "unit", "sizes"), [("flights", "minutes", FLIGHTS), ("ships", "hours", SHIPS)])
def test_exact_sizes_are_held_against_the_known_ones(figure: str, unit: str, sizes: dict) -> None:
    rows: list[Row] = [
        {"method": "EXACT", "streams": streams, unit: size, "matches": count}
        for (streams, size), count in sizes.items()
    ]
    assert verdict(f"{figure}-exact", rows)
    rows[0]["matches"] = 1
    assert not verdict(f"{figure}-exact", rows)


def test_real_joins_within_half_the_memory() -> None:
    rng = np.random.default_rng(0)
    ts = np.arange(300)
    streams = [{"key": np.minimum(rng.zipf(1.4, 300), 40), "ts": ts, "importance": np.ones(300)} for _ in range(3)]
    rows = {method: joined(Workload(tuple(streams)), 20, method, 0) for method in ("EXACT", "PROB", "PROBV", "RAND")}
    for method, row in rows.items():
        assert method == "EXACT" or int(str(row["peak_tuples"])) <= 30
        assert 0 < int(str(row["matches"])) <= int(str(rows["EXACT"]["matches"]))
    assert rows["PROB"]["share"] > rows["RAND"]["share"]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["flights", "ships"])
def test_real_figures_ask_for_their_data(name: str) -> None:
    figure = find("golab2003", name)
    with pytest.raises(DataError, match="--data FOLDER"):
        figure.measure(figure.parameters(Scale(seeds=1, quick=True))[0], None)


@pytest.mark.parametrize(("share", "holds"), [(0.9, True), (0.4, False)])
def test_prob_is_held_against_rand(share: float, holds: bool) -> None:
    rows: list[Row] = [
        {"case": "x", "method": method, "seed": seed, "share": level}
        for method, level in (("PROB", share), ("PROBV", 0.8), ("RAND", 0.5))
        for seed in (0, 1)
    ]
    assert verdict("nway-prob", rows) == holds


def test_streams_are_the_papers() -> None:
    tables, lengths = golab_streams(TABLES["table5"], 15_000, seed=0)
    assert [len(table["ts"]) / 1000 for table in tables.values()] == pytest.approx([10, 1, 1, 3], rel=0.1)
    assert [len(np.unique(table["key"])) for table in tables.values()] == [500, 50, 40, 5]
    assert list(lengths.values()) == [1500, 1500, 3000, 1500]
    assert sorted(np.concatenate([table["ts"] for table in tables.values()])) == list(range(15_000))


def test_plans_and_allocations() -> None:
    assert plans()["best"] == plans()["heuristic"] == "1,2,3,4"
    assert allocation("5 to slow", 12) == (5, 5, 5, 33)
    assert allocation("Equal", 12) == (12, 12, 12, 12)
    assert sum(allocation("by size", 12)) == sum(allocation("by cost", 12)) == 48
