"""Means, spreads and shares."""

from __future__ import annotations

import math

import pytest

from shedjoin.errors import DataError
from shedjoin.plots.summary import Mean
from shedjoin_lab.summary import mean, shares, shares_of_opt

ROWS = [
    {"method": "EXACT", "seed": 0, "memory": None, "matches": 100},
    {"method": "EXACT", "seed": 1, "memory": None, "matches": 200},
    {"method": "RAND", "seed": 0, "memory": 5, "matches": 50},
    {"method": "RAND", "seed": 1, "memory": 5, "matches": 50},
    {"method": "RAND", "seed": 2, "memory": 5, "matches": 50},
]


def test_shares_are_of_the_same_seed() -> None:
    shared = shares(ROWS, "matches", ["seed"])
    assert [row["share"] for row in shared] == [1.0, 1.0, 0.5, 0.25]  # seed 2 has no EXACT yet
    assert mean(shared, "share", method="RAND") == Mean(0.375, pytest.approx(math.sqrt(2) / 8), 2)


def test_a_share_of_nothing_is_not_a_number() -> None:
    rows = [{"method": "EXACT", "seed": 0, "matches": 0}]
    assert math.isnan(float(str(shares(rows, "matches", ["seed"])[0]["share"])))


def test_missing_rows_and_numbers_are_told() -> None:
    with pytest.raises(DataError, match="no stored row has method=LIFE"):
        mean(ROWS, "matches", method="LIFE")
    with pytest.raises(DataError, match="no number in 'memory' but None"):
        mean(ROWS, "memory", method="EXACT")


def test_shares_of_opt_are_of_the_same_memory_and_exact_has_one_for_each() -> None:
    rows = [
        {"method": "EXACT", "seed": 0, "memory": None, "matches": 100},
        {"method": "OPT", "seed": 0, "memory": 5, "matches": 50},
        {"method": "OPT", "seed": 0, "memory": 9, "matches": 80},
        {"method": "RAND", "seed": 0, "memory": 5, "matches": 20},
        {"method": "RAND", "seed": 1, "memory": 5, "matches": 20},  # OPT of this seed has not been run yet
    ]
    shared = shares_of_opt(rows, "matches", ["seed"])
    found = [(row["method"], row["memory"], row["share"]) for row in shared]
    assert found == [("EXACT", 5, 2.0), ("EXACT", 9, 1.25), ("OPT", 5, 1.0), ("OPT", 9, 1.0), ("RAND", 5, 0.4)]
    with pytest.raises(DataError, match="no stored row has method=OPT"):
        shares_of_opt(rows[:1], "matches", ["seed"])
