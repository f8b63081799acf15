"""Means of stored rows, and shares of the exact result, pair by pair of equal seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import shedjoin.plots.summary as plots
from shedjoin.errors import DataError
from shedjoin.plots.summary import Mean, where
from shedjoin_lab.experiment import Row, Scalar


def number(row: Row, column: str) -> float:
    """A measured number of a stored row."""
    with hint_to_rerun():
        return plots.number(row, column)


@contextmanager
def hint_to_rerun() -> Iterator[None]:
    """Add to the error about a missing number how to measure it."""
    try:
        yield
    except DataError as reason:
        raise DataError(f"{reason}: run the figure again with --fresh") from None


def mean(rows: Iterable[Row], column: str, /, **equal: Scalar) -> Mean:
    """Mean and spread of a column over the rows that have these values."""
    return Mean.of(number(row, column) for row in _some(rows, equal))


def _some(rows: Iterable[Row], equal: dict[str, Scalar]) -> list[Row]:
    """The rows that have these values, of which there must be some."""
    chosen = where(rows, **equal)
    if not chosen:
        wanted = ", ".join(f"{name}={value}" for name, value in equal.items())
        raise DataError(f"no stored row has {wanted}: run the figure again")
    return chosen


def by_seed(rows: Iterable[Row], column: str, /, **equal: Scalar) -> dict[Scalar, float]:
    """A column of the rows that have these values, one for each seed."""
    return {row["seed"]: number(row, column) for row in _some(rows, equal)}


def ratio(top: dict[Scalar, float], bottom: dict[Scalar, float]) -> Mean:
    """The ratio of two columns of `by_seed`, seed by seed; what was run with one seed alone stands for all."""
    seeds = top if len(top) >= len(bottom) else bottom
    first, second = (_for_all(values, seeds) for values in (top, bottom))
    shared = [seed for seed in seeds if seed in first and seed in second]
    if not shared:
        raise DataError("no seed was run with both methods: run the figure again")
    return Mean.of(first[seed] / second[seed] for seed in shared)


def _for_all(values: dict[Scalar, float], seeds: Iterable[Scalar]) -> dict[Scalar, float]:
    return dict.fromkeys(seeds, *values.values()) if len(values) == 1 else values


def shares(rows: Sequence[Row], column: str, same: Sequence[str], of: str = "EXACT") -> list[Row]:
    """Each row with `share`: its `column` divided by that of method `of` on the same workload.

    Parameters
    ----------
    same
        The columns in which two rows of the same workload agree, the seed among them.
    of
        The method that is 1.
    """
    whole = {_place(row, same): number(row, column) for row in rows if row["method"] == of}
    result = []
    for row in rows:
        base = whole.get(_place(row, same))
        if base is None:
            continue  # this seed's reference has not been run yet
        result.append({**row, "share": number(row, column) / base if base else math.nan})
    return result


def shares_of_opt(rows: Sequence[Row], column: str, same: Sequence[str]) -> list[Row]:
    """Each row with `share`: its `column` divided by OPT's on the same workload and with the same memory.

    EXACT has no memory setting: it comes once for each of OPT's.
    """
    best = {_place(row, (*same, "memory")): row for row in rows if row["method"] == "OPT"}
    if not best:
        raise DataError("no stored row has method=OPT: run the figure again, only what is missing is run")
    spread = [
        {**row, "memory": opt["memory"]}
        for row in rows
        for opt in (best.values() if row["memory"] is None else [row])
        if _place(row, same) == _place(opt, same)
    ]
    placed = [(row, best.get(_place(row, (*same, "memory")))) for row in spread]
    return [
        {**row, "share": number(row, column) / number(opt, column) if number(opt, column) else math.nan}
        for row, opt in placed
        if opt is not None  # not run yet
    ]


def _place(row: Row, columns: Sequence[str]) -> tuple[Scalar, ...]:
    return tuple(row.get(name) for name in columns)
