"""Miniatures: the same join on a sample of its rows, with the same part of its memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES, Batch
from shedjoin.budget import Budget
from shedjoin.engine.plan import Plan
from shedjoin.errors import SpecError
from shedjoin.policies import Dgl, Policy
from shedjoin.predicates.rows import GOLDEN, splitmix64
from shedjoin.window import RowWindow, Window

#: What a miniature should hold, and below what it says nothing.
TUPLES, LEAST = 512, 64
#: The smallest part of the rows that is looked at.
RAREST = 1 / 512


def tuples_of(budget: Budget) -> float:
    """How many tuples a budget has room for, roughly."""
    return budget.total / (1 if budget.unit == "tuples" else ROW_BYTES + budget.row_bytes)


def rate_of(memory: float, budget: Budget, candidates: int) -> float | None:
    """The part of the rows that each of several miniatures gets; None: it would be too small to say anything."""
    tuples = tuples_of(budget)
    rate = min(1.0, memory / candidates, max(TUPLES / tuples, RAREST))
    return rate if rate == 1.0 or rate * tuples >= LEAST else None


def scaled(budget: Budget, rate: float, streams: int) -> Budget | None:
    """A part of a budget; None: it has no room for a row of each stream."""
    made = budget.with_total(max(int(budget.total * rate), 1))
    try:
        made.caps(streams, ROW_BYTES)
    except SpecError:
        return None
    return made


def stretch_of(budget: Budget | None, rate: float, *, shortest: int, sampled: int) -> int:
    """Rows between two looks: half of what the budget has room for, but enough to say something."""
    tuples = 0.0 if budget is None else tuples_of(budget)
    return int(max(tuples / 2, sampled / rate if rate > 0 else 0.0, shortest))


def miniature_of(plan: Plan, rate: float) -> Plan:
    """The join of a miniature, by the policy of the plan. Nothing limits its CPU, and results come at once."""
    dials = replace(plan.dials, lazy=False, cpu=None, queue=None, selective=False, dual=False, best_speed=False)
    return replace(
        plan,
        windows=tuple(_scaled_window(window, rate) for window in plan.windows),
        selective=None,
        deadline=None,
        admission=None,
        evaluate_every=0,
        expire_every=0,
        counted_elsewhere=False,
        dials=dials,
    )


def in_miniature(policy: Policy, rate: float) -> Policy:
    """The same policy for fewer rows. DGL forgets with each instant, of which a miniature has fewer."""
    return replace(policy, loss=max(policy.loss ** (1 / rate), 1e-6)) if isinstance(policy, Dgl) else policy


def _scaled_window(window: Window, rate: float) -> Window:
    return RowWindow(max(round(window.rows * rate), 1)) if isinstance(window, RowWindow) else window


class Sampler:
    """Chooses rows: all of a few keys, where all streams share one; otherwise each by a draw of its own."""

    def __init__(self, plan: Plan, rate: float, seed: int) -> None:
        self._places: NDArray[np.int64] | None = None
        if plan.predicate is None:
            whole = next((part for part in plan.parts if len(part) == plan.streams), None)
            if whole is not None:
                self._places = np.array([whole[stream] for stream in range(plan.streams)])
        self._below = np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
        self._salt = splitmix64(np.array([seed], np.uint64) * GOLDEN)[0]

    @property
    def by_key(self) -> bool:
        return self._places is not None

    def chosen(self, batch: Batch, before: int) -> NDArray[np.int64]:
        """The places of the rows of a batch that are in the sample. `before`: rows that came before it."""
        if self._places is None:
            values = np.arange(before, before + len(batch))
        elif batch.key.ndim == 1:
            values = batch.key
        else:
            values = batch.key[np.arange(len(batch)), self._places[batch.stream]]
        with np.errstate(over="ignore"):
            draws = splitmix64((values.view(np.uint64) ^ self._salt) * GOLDEN)
        return np.flatnonzero((draws < self._below) & ~batch.null)
