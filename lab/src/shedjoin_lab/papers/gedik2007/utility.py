"""Improvement in output utility by utility-based shedding (section 6.5)."""

from __future__ import annotations

from shedjoin_lab.experiment import Row
from shedjoin_lab.summary import number

CAPTION = (
    "Virtual CPU of 156 units a millisecond, a comparison costs 1; 500 tuples a second, windows of 20 s, not indexed. "
    "Utility-based shedding against rate, time-correlation and direction adaptation "
    "without it; an output has the higher utility of its two tuples."
)
_PLACE = ("frequency", "series", "types", "value_skew", "seed")


def improvement(rows: list[Row]) -> list[Row]:
    """UTILITY over ALL in per cent, for equal workloads."""
    base = {tuple(row.get(name) for name in _PLACE): number(row, "utility") for row in rows if row["method"] == "ALL"}
    result = []
    for row in rows:
        whole = base.get(tuple(row.get(name) for name in _PLACE))
        if row["method"] == "UTILITY" and whole:
            result.append({**row, "gain": 100.0 * (number(row, "utility") / whole - 1.0)})
    return result
