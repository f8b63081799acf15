"""Claims: computed from stored rows, so that other rows give another verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shedjoin_lab.agreement import FAILS, HOLDS, PARTLY
from shedjoin_lab.catalogue import PAPERS, find
from shedjoin_lab.claims import (
    UNMEASURED,
    UNTESTABLE,
    Claim,
    Finding,
    as_markdown,
    claims_of,
    evaluate,
    judge,
    of_seed,
    seeds_that_agree,
)
from shedjoin_lab.experiment import Figure, Row, Scale, identity
from shedjoin_lab.methods import Setting
from shedjoin_lab.papers.das2003 import claims as das
from shedjoin_lab.papers.das2003.synthetic import most_by_probability
from shedjoin_lab.papers.importance2006 import claims as importance
from shedjoin_lab.papers.importance2006.methods import METHODS
from shedjoin_lab.papers.importance2006.synthetic import workload_of
from shedjoin_lab.store import ID, Store


def made_up(figure: Figure, **measured: Any) -> list[Row]:
    """Rows for all parameters of a figure; each measured column is a function of the parameters."""
    return [
        {ID: identity(params), **params, **{name: value(params) for name, value in measured.items()}}
        for params in figure.parameters(Scale(seeds=2))
    ]


def memory_curve(levels: dict[str, float]) -> Any:
    """Matches of each method: its level times M / 2w of EXACT's 1,000,000."""

    def matches(params: dict[str, Any]) -> int:
        if params["method"] == "EXACT":
            return 1_000_000
        return round(1_000_000 * levels[params["method"]] * params["memory"] / (2 * params["window"]))

    return matches


#: All alike, to be changed one by one.
LEVELS = {"OPT": 1.4, "RAND": 1.0, "PROB": 1.0, "LIFE": 1.0}


def claim(paper: str, name: str) -> Claim:
    (found,) = [one for one in claims_of(paper) if one.name == name]
    return found


def verdict(tmp_path: Path, paper: str, name: str, figures: dict[str, list[Row]]) -> str:
    store = Store(tmp_path)
    for figure, rows in figures.items():
        store.add(find(paper, figure), rows)
    return judge(paper, claim(paper, name), store).verdict


@pytest.mark.parametrize(
    ("name", "levels", "expected"),
    [
        ("prob-above-rand", {**LEVELS, "PROB": 1.3, "LIFE": 1.05}, HOLDS),
        ("prob-above-rand", {**LEVELS, "PROB": 1.2, "LIFE": 1.05}, FAILS),
        ("prob-above-life", {**LEVELS, "PROB": 1.3}, HOLDS),
        ("prob-above-life", {**LEVELS, "PROB": 1.3, "LIFE": 1.2}, FAILS),
        ("life-near-rand", {**LEVELS, "PROB": 1.3, "LIFE": 1.05}, HOLDS),
        ("life-near-rand", {**LEVELS, "PROB": 1.3, "LIFE": 1.2}, FAILS),
        ("window-alike", {**LEVELS, "PROB": 1.3, "LIFE": 1.2}, HOLDS),
        ("prob-near-opt", {**LEVELS, "OPT": 1.0, "PROB": 0.96}, HOLDS),
        ("prob-near-opt-permuted-ranks", {**LEVELS, "OPT": 1.0, "PROB": 0.89}, FAILS),
    ],
)
def test_memory_claims_follow_the_rows(tmp_path: Path, name: str, levels: dict[str, float], expected: str) -> None:
    rows = {figure: made_up(find("das2003", figure), matches=memory_curve(levels)) for figure in ("fig03", "fig04")}
    assert verdict(tmp_path, "das2003", name, rows) == expected


@pytest.mark.parametrize(("bend", "expected"), [(1.0, HOLDS), (1.3, FAILS)])
def test_rand_must_be_linear(tmp_path: Path, bend: float, expected: str) -> None:
    levels = {**LEVELS, "RAND": bend}
    names = ("fig03", "fig04", "fig05")
    rows = {figure: made_up(find("das2003", figure), matches=memory_curve(levels)) for figure in names}
    assert verdict(tmp_path, "das2003", "rand-linear", rows) == expected


@pytest.mark.parametrize(("life", "expected"), [(1.02, HOLDS), (1.2, FAILS)])
def test_uniform_keys_must_level_the_methods(tmp_path: Path, life: float, expected: str) -> None:
    rows = made_up(find("das2003", "fig05"), matches=memory_curve({**LEVELS, "LIFE": life}))
    assert verdict(tmp_path, "das2003", "uniform-equal", {"fig05": rows}) == expected


@pytest.mark.parametrize(("gain", "expected"), [(1.09, HOLDS), (1.11, FAILS), (0.9, FAILS)])
def test_variable_shares_may_gain_up_to_ten_percent(tmp_path: Path, gain: float, expected: str) -> None:
    rows = made_up(
        find("das2003", "fixed_vs_variable"),
        matches=lambda p: round(1000 * (gain if p["method"] == "PROBV" else 1.0)),
        left_share=lambda p: 0.5,
    )
    assert verdict(tmp_path, "das2003", "variable-at-most-10", {"fixed_vs_variable": rows}) == expected


@pytest.mark.parametrize(("share", "expected"), [(0.75, HOLDS), (0.95, PARTLY), (0.4, FAILS)])
def test_the_more_skewed_stream_must_have_more(tmp_path: Path, share: float, expected: str) -> None:
    rows = made_up(
        find("das2003", "fixed_vs_variable"),
        matches=lambda p: 1000,
        left_share=lambda p: share if p["skew_left"] > p["skew_right"] else 1 - share,
    )
    assert verdict(tmp_path, "das2003", "skewed-stream-share", {"fixed_vs_variable": rows}) == expected


@pytest.mark.parametrize(("variable", "expected"), [(1.05, HOLDS), (1.15, FAILS)])
def test_real_streams_of_other_years_are_shown_and_not_judged(tmp_path: Path, variable: float, expected: str) -> None:
    rows = made_up(
        find("das2003", "fig07"), matches=lambda p: round(10_000 * (variable if p["method"] == "PROBV" else 1.0))
    )
    assert verdict(tmp_path, "das2003", "real-fixed-variable", {"fig07": rows}) == UNTESTABLE
    assert verdict(tmp_path, "das2003", "real-fixed-variable-control", {"fig07": rows}) == expected


def test_the_bound_by_probabilities() -> None:
    row = {
        "window": 400,
        "memory": 400,
        "domain": 50,
        "skew_left": 0.0,
        "skew_right": 0.0,
        "ranks": "correlated",
        "seed": 0,
    }
    assert most_by_probability(row) == pytest.approx(0.5)  # uniform keys: nothing to choose by
    assert most_by_probability({**row, "memory": 800}) == pytest.approx(1.0)
    half = most_by_probability({**row, "skew_left": 1.0, "skew_right": 1.0})
    assert 0.5 < half < 1.0


ORDERED = {"OPT": 0.9, "DGL": 0.6, "DIMPPROB": 0.5, "SIMPPROB": 0.4, "PROB": 0.3, "SIMP": 0.2, "RAND": 0.1}


@pytest.mark.parametrize(
    ("levels", "expected"),
    [(ORDERED, HOLDS), ({**ORDERED, "SIMPPROB": 0.55}, PARTLY), ({**ORDERED, "SIMPPROB": 0.502}, HOLDS)],
    ids=["in order", "swapped", "tie"],
)
def test_the_order_must_hold_everywhere(tmp_path: Path, levels: dict[str, float], expected: str) -> None:
    figure = find("importance2006", "fig09")
    rows = made_up(figure, importance=lambda p: 1000.0 * {**levels, "EXACT": 1.0}[p["method"]])
    assert verdict(tmp_path, "importance2006", "order-memory", {"fig09": rows}) == expected


@pytest.mark.parametrize(("off", "expected"), [(0.0, HOLDS), (30.0, FAILS)])
def test_margins_are_compared_with_the_papers(tmp_path: Path, off: float, expected: str) -> None:
    levels = {"DGL": 100.0, "OPT": 150.0, "EXACT": 200.0} | {
        rival: 100 - lead + off for rival, lead in importance.MARGINS.items()
    }
    rows = made_up(find("importance2006", "fig09"), importance=lambda p: levels[p["method"]])
    assert verdict(tmp_path, "importance2006", "margins", {"fig09": rows}) == expected


@pytest.mark.parametrize(("lead", "expected"), [(1.02, HOLDS), (0.97, FAILS)])
def test_correlated_lead(tmp_path: Path, lead: float, expected: str) -> None:
    rows = made_up(
        find("importance2006", "fig11"),
        importance=lambda p: 100.0 * (lead if p["method"] in ("DIMPPROB", "SIMPPROB") else 1.0),
    )
    assert verdict(tmp_path, "importance2006", "correlated", {"fig11": rows}) == expected


def test_without_rows_a_claim_says_what_to_run(tmp_path: Path) -> None:
    line = judge("das2003", claim("das2003", "prob-above-rand"), Store(tmp_path))
    assert (line.verdict, line.ours) == (UNMEASURED, "")
    assert line.why == "`shedjoin lab run das2003 fig03` and `shedjoin lab run das2003 fig04` first"


def test_no_claim_waits_for_anything_but_a_run(tmp_path: Path) -> None:
    lines = evaluate(list(PAPERS), Store(tmp_path))
    assert all(line.verdict == UNMEASURED and line.why.startswith("`shedjoin lab run ") for line in lines)


def test_rows_stored_before_there_was_opt_say_what_is_missing(tmp_path: Path) -> None:
    rows = made_up(find("das2003", "fig06"), matches=lambda p: 1)
    store = Store(tmp_path)
    store.add(find("das2003", "fig06"), [row for row in rows if row["method"] != "OPT"])
    line = judge("das2003", claim("das2003", "prob-96-of-opt"), store)
    assert (line.verdict, line.why) == (UNMEASURED, "rows are missing: `shedjoin lab run das2003 fig06` goes on")


@pytest.mark.parametrize(
    ("name", "prob", "expected"),
    [
        ("prob-96-of-opt", lambda p: 0.97, HOLDS),
        ("prob-96-of-opt", lambda p: 0.97 if p["skew_left"] < 2 else 0.95, PARTLY),
        ("prob-96-of-opt-permuted-ranks", lambda p: 0.95 if p["ranks"] == "uncorrelated" else 0.97, FAILS),
        ("correlation-alike", lambda p: 0.95 if p["ranks"] == "anti" else 0.97, HOLDS),
        ("correlation-alike", lambda p: 0.85 if p["ranks"] == "anti" else 0.97, PARTLY),
    ],
)
def test_shares_of_opt_against_skew(tmp_path: Path, name: str, prob: Any, expected: str) -> None:
    rows = made_up(find("das2003", "fig06"), matches=lambda p: 1000 * (prob(p) if p["method"] == "PROB" else 1))
    assert verdict(tmp_path, "das2003", name, {"fig06": rows}) == expected


@pytest.mark.parametrize(("rising", "expected"), [(0.01, HOLDS), (-0.01, FAILS)])
def test_a_growing_domain_brings_opt_to_exact(tmp_path: Path, rising: float, expected: str) -> None:
    levels = {"EXACT": lambda d: 1.0, "OPT": lambda d: 0.9 + rising * d, "PROB": lambda d: 0.8, "RAND": lambda d: 0.5}
    place = {10: 1, 50: 2, 200: 9.8}
    rows = {
        name: made_up(find("das2003", name), matches=lambda p: 1000 * levels[p["method"]](place[p["domain"]]))
        for name in ("fig09", "fig10", "fig11")
    }
    assert verdict(tmp_path, "das2003", "domain-parts", rows) == expected
    assert verdict(tmp_path, "das2003", "domain-200-exact", rows) == expected


PAPERS_ERRORS = {
    ("SJA", 2): 75.3,
    ("ESJA", 2): 29.7,
    ("ODJA", 2): 29.7,
    ("SJA", 10): 28.0,
    ("ESJA", 10): 1.0,
    ("ODJA", 10): 1.0,
}


@pytest.mark.parametrize(("off", "expected"), [(0.0, (HOLDS, HOLDS, HOLDS)), (12.0, (PARTLY, FAILS, FAILS))])
def test_errors_are_compared_with_the_papers(tmp_path: Path, off: float, expected: str) -> None:
    def importance_of(p: dict[str, Any]) -> float:
        error = 0.0 if p["method"] == "EXACT" else PAPERS_ERRORS.get((p["method"], p["memory"]), 50.0)
        return 100.0 - error - (off if (p["method"], p["memory"]) == ("ESJA", 2) else 0.0)

    figure = find("importance2006", "fig02")
    rows = made_up(figure, importance=importance_of, matches=lambda p: 10 + (off == 0 and p["method"] == "SJA"))
    names = ("sja-error", "sja-tuples", "odja-is-esja")
    assert tuple(verdict(tmp_path, "importance2006", name, {"fig02": rows}) for name in names) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(6.0, HOLDS), (2.0, PARTLY), (0.5, FAILS)])
@pytest.mark.parametrize(("esja", "ending"), [("ESJA", ""), ("ESJA, printed", "-printed")])
def test_offline_times_are_compared(tmp_path: Path, esja: str, ending: str, ratio: float, expected: str) -> None:
    rows = {
        name: made_up(find("importance2006", name), cpu_seconds=lambda p: 0.1 * (ratio if p["method"] == esja else 1.0))
        for name in ("fig03", "fig04")
    }
    assert verdict(tmp_path, "importance2006", f"odja-faster-small{ending}", rows) == expected


@pytest.mark.parametrize(("most", "expected"), [(45.3, HOLDS), (25.3, PARTLY)])
def test_memory_is_compared_at_both_ends(tmp_path: Path, most: float, expected: str) -> None:
    def kilobytes(p: dict[str, Any]) -> float:
        return (25.3 if p["rows"] == 800 else most) if p["method"].startswith("ESJA") else 1.0

    rows = {"fig07": made_up(find("importance2006", "fig07"), top_kilobytes=kilobytes)}
    for name in ("odja-memory", "odja-memory-printed"):
        assert verdict(tmp_path, "importance2006", name, rows) == expected


@pytest.mark.parametrize(("half", "methods"), [(1, ("ESJA, printed", "ODJA, two instants")), (3, ("ESJA, printed",))])
def test_what_the_paper_measured_finds_the_optimum(half: int, methods: tuple[str, ...]) -> None:
    for seed in range(4):
        params = {"rows": 40, "window": 7, "domain": 4, "skew_left": 1.0, "skew_right": 0.0, "importance_of": "pareto"}
        workload = workload_of({**params, "seed": seed})
        setting = Setting(7, 2 * half, 0, seed)
        best = METHODS["ESJA"](workload, setting).importance
        for name in methods:
            assert METHODS[name](workload, setting).importance == pytest.approx(best)


def test_rand_that_drops_input_keeps_the_square() -> None:
    params = {"rows": 4000, "window": 20, "domain": 4, "skew_left": 0.0, "skew_right": 0.0, "importance_of": "one"}
    workload = workload_of({**params, "seed": 1})
    exact, some = (METHODS[name](workload, Setting(20, 20, 0, 1)).matches for name in ("EXACT", "RAND, input"))
    assert some / exact == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(("grown", "expected"), [(3.2, HOLDS), (2.0, FAILS)])
def test_opt_grows_with_the_window(tmp_path: Path, grown: float, expected: str) -> None:
    rows = made_up(find("importance2006", "fig08"), importance=lambda p: grown if p["window"] == 800 else 1.0)
    assert verdict(tmp_path, "importance2006", "opt-window", {"fig08": rows}) == expected


@pytest.mark.parametrize(("opt", "expected"), [(0.995, HOLDS), (0.85, PARTLY)])
def test_a_growing_domain_parts_online_methods_from_opt(tmp_path: Path, opt: float, expected: str) -> None:
    def importance_of(p: dict[str, Any]) -> float:
        return {"EXACT": 1.0, "OPT": opt if p["domain"] > 50 else 0.8}.get(p["method"], 0.4)

    rows = made_up(find("importance2006", "fig10"), importance=importance_of)
    assert verdict(tmp_path, "importance2006", "domain-opt", {"fig10": rows}) == expected


def test_a_reason_is_shown_only_with_a_claim_that_fails(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(find("das2003", "fig05"), made_up(find("das2003", "fig05"), matches=lambda p: 1))
    for holds, why in ((True, ""), (False, "because")):
        made = Claim(
            "any", "says", "1", ("fig05",), lambda rows, holds=holds: Finding(f"{len(rows)} rows", holds), "because"
        )
        assert judge("das2003", made, store).why == why


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_names_figures_that_exist(paper: str) -> None:
    claims = claims_of(paper)
    assert len({one.name for one in claims}) == len(claims)
    for one in claims:
        assert all(find(paper, figure) for figure in one.figures)


def test_the_table_has_a_line_a_claim(tmp_path: Path) -> None:
    lines = evaluate(["das2003"], Store(tmp_path))
    assert as_markdown(lines).count("\n") == len(das.CLAIMS) + 2


def test_a_verdict_says_how_many_seeds_alone_come_to_it(tmp_path: Path) -> None:
    """EXACT, run once, stands for every seed; a claim about nothing random has no seeds to ask."""
    rows = made_up(find("das2003", "fig03"), matches=lambda p: 10 if p["method"] == "PROB" and p["seed"] == 0 else 1)
    once = [row for row in rows if row["method"] != "EXACT" or row["seed"] == 0]
    seeds = len({row["seed"] for row in rows})

    def check(some: list[Row]) -> Finding:
        return Finding("", sum(int(str(row["matches"])) for row in some) > len(some))

    assert seeds > 1
    assert seeds_that_agree(check, [once], check(once).verdict) == f"1 of {seeds}"
    assert {row["method"] for row in of_seed(once, 1)} == {row["method"] for row in rows}
    assert seeds_that_agree(check, [[row for row in once if row["seed"] == 0]], HOLDS) == ""


@pytest.mark.parametrize("paper", sorted(PAPERS))
def test_a_figure_that_was_not_run_to_its_end_is_not_judged(tmp_path: Path, paper: str) -> None:
    store = Store(tmp_path)
    for figure in {figure for one in claims_of(paper) for figure in one.figures}:
        store.add(find(paper, figure), made_up(find(paper, figure))[:1])
    lines = evaluate([paper], store)
    assert {line.verdict for line in lines} <= {UNMEASURED}
    assert all(line.why for line in lines)
