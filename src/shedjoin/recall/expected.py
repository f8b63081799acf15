"""Expected results: what new rows complete in the exact join on one key, by key, given the rows that came before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.recall.completions import MAX, MIN, Workspace, count_completions

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Rows = dict[str, NDArray[Any]]
COLUMNS = {"stream": np.int64, "key": np.int64, "ts": np.int64, "importance": np.float64}


def rows_of(batch: Batch, chosen: NDArray[np.bool_]) -> Rows:
    """The columns of chosen rows that counting needs."""
    rows = {"stream": batch.stream, "key": batch.key, "ts": batch.ts, "importance": batch.importance}
    return {name: column[chosen] for name, column in rows.items()}


def select(rows: Rows, chosen: NDArray[np.bool_] | Integers | slice) -> Rows:
    """Chosen rows, by a mask, their places or a slice."""
    return {name: column[chosen] for name, column in rows.items()}


def concat(old: Rows, new: Rows) -> Rows:
    """Old rows, then new ones."""
    return {name: np.concatenate([old[name], new[name]]) for name in COLUMNS}


def steps(old: Rows, new: Rows, streams: int, code: int) -> float:
    """About how many steps counting takes: a few a row, and more for the min or max of importances that differ."""
    size = old["key"].size + new["key"].size
    if code not in (MIN, MAX) or not size:
        return float(size)
    importance = np.concatenate([old["importance"], new["importance"]])
    return float(size if (importance == importance[0]).all() else size * 3**streams * math.log2(size + 1))


def expected_results(old: Rows, new: Rows, lengths: Integers, code: int) -> tuple[Integers, Numbers]:
    """The keys of new rows, and the results that they complete with their importance.

    These are the results of old and new rows whose newest row is no older than the oldest new row, less the results of old
    rows alone: a row that lags completes results with newer rows that arrived before it.
    """
    keys = np.unique(new["key"])
    if not keys.size:
        return keys, np.zeros((2, 0))
    first = np.full(keys.size, np.iinfo(np.int64).max)
    np.minimum.at(first, np.searchsorted(keys, new["key"]), new["ts"])
    old = _within_reach(old, keys, first, int(lengths.max()))
    found = _results(concat(old, new), keys, first, lengths, code)
    if (old["ts"] >= first[np.searchsorted(keys, old["key"])]).any():
        found -= _results(old, keys, first, lengths, code)
    return keys, found


def _within_reach(old: Rows, keys: Integers, first: Integers, longest: int) -> Rows:
    """Rows of these keys that can be in a result with a row from `first` on."""
    place = np.searchsorted(keys, old["key"]).clip(max=keys.size - 1)
    return select(old, (keys[place] == old["key"]) & (old["ts"] > first[place] - longest))


def _results(rows: Rows, keys: Integers, first: Integers, lengths: Integers, code: int) -> Numbers:
    """For each key the results whose newest row is from `first` on, and their importance."""
    order = np.lexsort((rows["ts"], rows["key"]))  # stable: rows of one time stay in order of arrival
    rows = select(rows, order)
    which = np.searchsorted(keys, rows["key"])
    bounds = np.searchsorted(which, np.arange(keys.size + 1))
    since = bounds[:-1] + np.bincount(which, rows["ts"] < first[which], minlength=keys.size).astype(np.int64)
    by_importance = -rows["importance"] if code == MAX else rows["importance"]
    rank = np.empty(which.size, np.int64)
    rank[np.lexsort((by_importance, which))] = np.arange(which.size)
    rank -= bounds[which]
    found = np.zeros((2, keys.size))
    columns = rows["stream"], rows["ts"], rows["importance"], rank
    workspace = Workspace.of(lengths.size, int(np.diff(bounds).max()), code)
    count_completions(bounds.astype(np.int64), since, *columns, lengths, code, workspace, found[0], found[1])
    return found
