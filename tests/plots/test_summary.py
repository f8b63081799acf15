"""Means and their spreads, in words."""

from __future__ import annotations

from shedjoin.plots.summary import Mean


def test_spread_is_shown_only_where_there_is_one() -> None:
    assert str(Mean.of([0.5])) == "0.500"
    assert Mean.of([0.5, 0.6]).percent() == "55.0 ± 7.1%"
