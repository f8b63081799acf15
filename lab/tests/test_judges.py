"""Every judge of every paper, on rows that are made up: no verdict is built in."""

from __future__ import annotations

import math
import zlib
from functools import cache

import pytest

from shedjoin_lab.catalogue import PAPERS, find
from shedjoin_lab.claims import Claim, claims_of
from shedjoin_lab.experiment import Figure, Row, Scale

#: Our own experiments, whose judges have tests of their own.
OWN = ("prospect", "estimates")
CLAIMS = [(paper, claim) for paper in PAPERS if paper not in OWN for claim in claims_of(paper)]
#: What a paper's judges look at.
COLUMNS = {
    "das2003": ("matches", "left_share", "left_tuples", "right_tuples"),
    "importance2006": ("importance", "matches", "cpu_seconds", "top_kilobytes", "wall_least_seconds"),
    "golab2003": ("matches", "cost", "rate", "share", "fifth", "place_of_4"),
    "dual2006": ("rate", "subset", "best"),
    "open": ("incomplete", "share", "expected", "rate", "precision", "certain", "wrong", "lots"),
    "gedik2007": ("phi", "share", "output", "utility", "dropped", "r", "r1", "r2", "arriving", "matches"),
}
#: How strongly the methods and settings of a made-up world differ.
STRENGTHS = (0.0, 0.5, 2.0, 0.02)
#: Claims that no made-up world fulfils: they hold numbers against ones that were counted or computed.
EXACT = {"flights-exact", "ships-exact", "costs-as-printed", "no-expired-tuple"}
#: Claims of many numbers, which chance does not hit: they have tests of their own.
MANY = {"correlation-alike", "odja-memory", "odja-memory-printed", "plan-ratios", "best-tau-grows", "utility-skew"}


@cache
def world(paper: str, name: str, seed: int, strength: float) -> list[Row]:
    """Rows for all parameters; each measured number is a product of effects of the parameters."""
    figure = find(paper, name)
    rows: list[Row] = []
    for params in figure.parameters(Scale(seeds=1)):
        for place in _within(figure, params):
            row = {**params, **place}
            measured = (column for column in COLUMNS[paper] if column not in row)
            rows.append(row | {column: _measured(row, column, seed, strength) for column in measured})
    return rows


def _within(figure: Figure, params: Row) -> list[Row]:
    """What a figure measures of one row of parameters: some measure over time, or over ages."""
    if params.get("every"):
        return [{"time": time} for time in range(0, 120, int(str(params["every"])))]
    if (figure.paper, figure.name) == ("gedik2007", "fig06"):
        return [{"age": age} for age in range(20)]
    if (figure.paper, figure.name) == ("das2003", "fig08"):
        return [{"ts": ts} for ts in (0, 20_000)]
    return [{}]


def _measured(row: Row, column: str, seed: int, strength: float) -> float:
    effects = sum(_effect(seed, column, name, value) for name, value in row.items() if name not in ("seed", "rows"))
    level = {"best": 100.0, "matches": 1e6, "importance": 1e6}.get(column, 0.5)
    return level if column == "best" else level * math.exp(strength * effects)


@cache
def _effect(*of: object) -> float:
    """A number between -1 and 1 that is always the same."""
    return zlib.crc32(repr(of).encode()) / 2**31 - 1.0


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=[f"{paper}.{claim.name}" for paper, claim in CLAIMS])
def test_other_rows_give_another_verdict(paper: str, claim: Claim) -> None:
    verdicts = set()
    for seed in range(60):
        rows = [world(paper, figure, seed, STRENGTHS[seed % len(STRENGTHS)]) for figure in claim.figures]
        verdicts.add(claim.check(*rows).verdict)
        if len(verdicts) > 1:
            return
    assert claim.name in EXACT | MANY
