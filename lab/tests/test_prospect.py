"""How Prospect is judged: by the best of the others, chosen afterwards; and what it is measured on."""

from __future__ import annotations

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.errors import SpecError
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.agreement import FAILS, HOLDS
from shedjoin_lab.catalogue import find
from shedjoin_lab.experiment import Row, Scale
from shedjoin_lab.papers.prospect import auto, claims, contest
from shedjoin_lab.papers.prospect.iid import KNOWS
from shedjoin_lab.papers.prospect.oracle import KNOWS_AHEAD, KNOWS_NOW, ORACLES, schedules
from shedjoin_lab.papers.prospect.streams import SYNTHETIC, Stage
from shedjoin_lab.workloads import Burst, bursty, drifting, flashing, rotating


def rows(ours: int) -> list[Row]:
    place = {"workload": "any", "part": 0.25, "allocation": "fixed", "seed": 0}
    matches = {"OPT": 200, "RAND": 50, "PROB History": 80, "LIFE History": 100, "PROSPECT": ours}
    return [{**place, "method": method, "matches": count} for method, count in matches.items()]


@pytest.mark.parametrize(("ours", "closed"), [(100, 0.0), (125, 0.25), (200, 1.0), (90, -0.1)])
def test_the_gap_is_that_of_the_best_rival(ours: int, closed: float) -> None:
    (row,) = contest.contests(rows(ours))
    assert row["best"] == "LIFE History"
    assert row["closed"] == pytest.approx(closed)


@pytest.mark.parametrize(("ours", "holds"), [(125, True), (124, False)])
def test_a_quarter_is_asked(ours: int, holds: bool) -> None:
    (quarter, _) = claims.CLAIMS
    assert quarter.check(rows(ours), []).verdict == (HOLDS if holds else FAILS)


@pytest.mark.parametrize(("ours", "holds"), [(991, True), (980, False)])
def test_one_per_cent_may_be_lost(ours: int, holds: bool) -> None:
    params = find("prospect", "iid").parameters(Scale(seeds=1, quick=True))
    made: list[Row] = [
        {**one, "method": method, "matches": count}
        for one in params
        for method, count in ((KNOWS, 1000), ("PROB, History", 995), ("PROSPECT", ours))
    ]
    (_, one_per_cent) = claims.CLAIMS
    assert one_per_cent.check(made).verdict == (HOLDS if holds else FAILS)


def test_a_contest_has_every_rival_and_opt_wins() -> None:
    figure = find("prospect", "gap")
    params = figure.parameters(Scale(seeds=1, quick=True))[0]
    measured = figure.measure(params, None)
    assert figure.measure(params, None) == measured
    by_method = {str(row["method"]): int(str(row["matches"])) for row in measured}
    stage = SYNTHETIC["burst: of keys"](0)
    assert set(by_method) == {"OPT", "PROSPECT", *ORACLES, *(name for name, _ in contest.rivals(stage))}
    assert max(by_method.values()) == by_method["OPT"]
    # Whoever knows the flashes to come does better than whoever knows those of now, or has to learn.
    assert by_method[KNOWS_AHEAD] > max(by_method[KNOWS_NOW], by_method["PROSPECT"])


def test_oracles_are_no_rivals() -> None:
    told = [
        {**rows(100)[0], "method": name, "matches": count} for name, count in ((KNOWS_NOW, 150), (KNOWS_AHEAD, 175))
    ]
    (row,) = contest.contests([*rows(100), *told])
    assert row["best"] == "LIFE History"
    assert (row["known_now"], row["known_ahead"]) == (0.5, 0.75)
    assert contest.contests(rows(100))[0]["known_now"] is None


CHANGING = {
    "drift": drifting(3000, seed=2, domain=6, every=50),
    "apart": drifting(3000, seed=2, domain=6, every=50, together=False),
    "bursts": bursty(2000, seed=2, bursts=[Burst(500, 700, 5), Burst(900, 1000, 3, (1,))], domain=6),
    "flashes": flashing(3000, seed=2, domain=6),
    "rotation": rotating(1500, seed=2, window=100, values=6, rate=2),
}


@pytest.mark.parametrize("name", CHANGING)
def test_true_rates_are_those_that_rows_are_drawn_from(name: str) -> None:
    workload = CHANGING[name]
    assert workload.rates is not None
    for stream, rates in zip(workload.streams, workload.rates(), strict=True):
        assert rates.sum(axis=1) == pytest.approx(np.bincount(stream["ts"]))
        drawn = np.zeros_like(rates)
        np.add.at(drawn, (stream["ts"], stream["key"]), 1.0)
        # Blocks of 50 time units: what was drawn differs from what was expected by no more than draws do.
        blocks = [each.reshape(-1, 50, rates.shape[1]).sum(axis=1) for each in (drawn, rates)]
        surprise = (blocks[0] - blocks[1]) ** 2 / np.maximum(blocks[1], 1e-9)
        assert surprise[blocks[1] > 1.0].mean() < 1.3


def test_where_nothing_changes_to_know_the_rates_of_now_is_prob_with_the_table() -> None:
    streams = bursty(2000, seed=5, bursts=[], domain=30)
    budget = sj.Budget(tuples=60, allocation="fixed")
    by_name = dict(schedules(Stage(streams, 100), 60, "fixed"))

    def pairs(policy: sj.Policy) -> set[tuple[int, int]]:
        run = sj.simulate(sj.JoinSpec(sj.TimeWindow(100), budget, policy), streams.left, streams.right)
        return set(map(tuple, np.column_stack(run.pairs()).tolist()))

    told, table = pairs(by_name[KNOWS_NOW]), pairs(sj.Prob(streams.table()))
    assert len(told & table) > 0.98 * len(table)


def test_without_the_truth_there_is_no_oracle() -> None:
    assert list(schedules(Stage(zipf(100, seed=1), 10), 4, "fixed")) == []
    assert Workload(()).rates is None


def test_flashes_are_of_few_keys_and_seeded() -> None:
    quiet, loud = flashing(4000, seed=3, share=0.0), flashing(4000, seed=3)
    assert np.array_equal(loud.right["key"], flashing(4000, seed=3).right["key"])
    changed = quiet.left["key"] != loud.left["key"]
    assert 0.2 < changed.mean() < 0.5
    # In a flash, one key has about half of the rows.
    most = [np.bincount(loud.left["key"][start : start + 20]).max() for start in range(0, 4000, 20)]
    assert (
        max(most) >= 10 > max(np.bincount(quiet.left["key"][start : start + 20]).max() for start in range(0, 4000, 20))
    )
    with pytest.raises(SpecError, match="share must be from 0 to 1"):
        flashing(10, seed=0, share=2.0)


def test_no_rival_is_told_more_than_prospect_but_by_the_table() -> None:
    names = [name for name, policy in contest.rivals(SYNTHETIC["drift: slow"](1)) if isinstance(policy, sj.Prob)]
    assert "PROB Table" not in names
    assert "PROB Table" in [name for name, _ in contest.rivals(SYNTHETIC["burst: in turn"](1))]


def test_regret_is_behind_the_best_single_policy() -> None:
    figure = find("prospect", "auto")
    (params,) = figure.parameters(Scale(seeds=1, quick=True))
    measured = figure.measure(params, None)
    assert {str(row["method"]) for row in measured} == {auto.AUTO, *auto.SINGLES}
    assert all(0 <= int(str(row["matches"])) <= int(str(row["exact"])) for row in measured)
    matches = {str(row["method"]): int(str(row["matches"])) for row in measured}
    drawn = {str(row["method"]): row for row in figure.derive(measured)}
    best = max(auto.SINGLES, key=lambda name: matches[name])
    assert drawn["RAND"]["best"] == best
    assert drawn["RAND"]["regret"] == pytest.approx(1 - matches["RAND"] / matches[best])
    assert figure.derive([row for row in measured if row["method"] != auto.AUTO]) == []
