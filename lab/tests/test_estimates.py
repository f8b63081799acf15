"""Errors and coverage of sampled counts: a sample of the experiment, and its judges."""

from __future__ import annotations

import pytest

from shedjoin_lab.claims import claims_of
from shedjoin_lab.experiment import Row
from shedjoin_lab.papers.estimates.accuracy import in_per_cent, measured
from shedjoin_lab.papers.estimates.methods import METHODS
from shedjoin_lab.papers.estimates.streams import STREAMS

UNBIASED = ("Sample", "Sample, keep=0.5", "Sample, keep=0.9", "uniform sampling", "oracle")


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    name = "Zipf 1, permuted ranks"
    return {
        method: measured({"workload": name, "part": 0.35, "method": method, "seed": 0}, STREAMS[name](), 20)[0]
        for method in METHODS
    }


@pytest.mark.parametrize("method", UNBIASED)
def test_totals_are_unbiased_and_intervals_hold(rows: dict[str, Row], method: str) -> None:
    row = rows[method]
    bias, square = (float(str(row[name])) for name in ("bias", "square"))
    assert abs(bias) < 4 * (square / 20) ** 0.5
    (told,) = in_per_cent([row])
    assert int(str(told["intervals"])) > 100
    assert 88 <= float(str(told["covered"])) <= 100


def test_sampling_by_weight_has_less_error_and_an_oracle_the_least(rows: dict[str, Row]) -> None:
    error = {method: float(str(in_per_cent([row])[0]["total"])) for method, row in rows.items()}
    assert 2 * error["Sample"] < error["uniform sampling"] < error["universe sampling"]
    assert error["oracle"] < 1.5 * error["Sample"]
    assert float(str(rows["PROB / live recall"]["delivered"])) >= float(str(rows["Sample"]["delivered"]))


def made(method: str, held: int, square: float, delivered: float) -> list[Row]:
    """Rows of a world in which one method differs from uniform sampling and PROB."""
    same = {"held": 95, "known": 100, "square": 1.0, "group_square": 1.0, "delivered": 0.9, "part": 0.1, "seed": 0}
    other = {"held": held, "square": square, "delivered": delivered}
    return [
        {**same, **(other if name == method else {}), "workload": workload, "method": name}
        for workload in ("Zipf 0, equal ranks", "Zipf 1, equal ranks", "Zipf 1, permuted ranks")
        for name in METHODS
    ]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("intervals-hold", made("Sample", 94, 1.0, 0.9), made("Sample", 90, 1.0, 0.9)),
        ("less-than-uniform", made("Sample", 95, 0.25, 0.9), made("Sample", 95, 0.5, 0.9)),
        ("as-good-on-uniform-keys", made("Sample", 95, 1.0, 0.9), made("Sample", 95, 1.2, 0.9)),
        ("recall-near-prob", made("Sample, keep=0.5", 95, 1.0, 0.86), made("Sample, keep=0.5", 95, 1.0, 0.8)),
        (
            "recall-near-prob-with-nine-tenths",
            made("Sample, keep=0.9", 95, 1.0, 0.86),
            made("Sample, keep=0.9", 95, 1.0, 0.8),
        ),
    ],
)
def test_judges_tell_good_rows_from_bad_ones(name: str, good: list[Row], bad: list[Row]) -> None:
    (claim,) = [one for one in claims_of("estimates") if one.name == name]
    assert claim.check(good).verdict == "holds"
    assert claim.check(bad).verdict != "holds"
