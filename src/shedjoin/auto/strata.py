"""Which rows miniatures get: all of frequent keys, a part of the others; and fewer of each if frequent keys have many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.auto.frequent import SHARE, Frequent
from shedjoin.batch import ROW_BYTES, Batch
from shedjoin.budget import Budget
from shedjoin.engine.plan import Plan
from shedjoin.errors import SpecError
from shedjoin.predicates.rows import GOLDEN, splitmix64
from shedjoin.what_if import GROUPS

Integers = NDArray[np.int64]
#: What a tuple counts where frequent keys count less.
UNIT = 1024
#: The share of the sample that frequent keys may have.
HALF = 0.5


def common_places(plan: Plan) -> Integers | None:
    """Which column of keys is the same in all streams, for each of them; None: there is none."""
    if plan.predicate is not None:
        return None
    whole = next((part for part in plan.parts if len(part) == plan.streams), None)
    return None if whole is None else np.array([whole[stream] for stream in range(plan.streams)])


@dataclass(frozen=True)
class Strata:
    """Frequent keys and the others.

    Attributes
    ----------
    places
        See `common_places`.
    thin
        The share of rows, by lot, that is looked at.
    part
        The share of the other keys that are in the sample.
    frequent
        The keys that are all in the sample, in order.
    """

    places: Integers | None
    thin: float
    part: float
    frequent: Integers
    seed: int

    @classmethod
    def of(cls, places: Integers | None, share: float, frequent: Frequent | None, seed: int) -> Strata:
        """A sample of about this share of the rows."""
        none = np.empty(0, np.int64)
        if places is None or not 0.0 < share < 1.0:
            return cls(places, share if places is None else 1.0, 1.0, none, seed)
        keys, often = (none, 0.0) if frequent is None else frequent.above(SHARE)
        thin = min(1.0, HALF * share / often) if often else 1.0
        part = 1.0 if often >= 1.0 else min(1.0, max((share - thin * often) / (thin * (1.0 - often)), 1e-4))
        return cls(places, thin, part, keys, seed)

    @property
    def share(self) -> float:
        """The share of rows of keys that are not frequent, and of the memory."""
        return self.thin * self.part

    @property
    def _by_bytes(self) -> bool:
        return bool(self.frequent.size)

    def misses(self, keys: Integers) -> bool:
        """Whether some of these keys are not among the frequent ones."""
        return self.part < 1.0 and bool(np.setdiff1d(keys, self.frequent).size)

    def budget(self, whole: Budget, factor: float, streams: int) -> Budget:
        """The memory of a miniature; at least room for a row of each stream."""
        part = whole.total * factor * self.share
        made = whole.with_total(max(round(part), streams))
        if whole.unit == "bytes":  # frequent keys count in full here, but should count as a part
            part += whole.key_bytes * self.frequent.size * streams * (1.0 - self.part)
            least = (ROW_BYTES + whole.row_bytes + whole.key_bytes) * streams
            made = replace(made, bytes=max(round(part), least), row_bytes=0)
        elif self._by_bytes:
            made = replace(made, tuples=None, bytes=max(round(part * UNIT), UNIT * streams))
        try:
            made.caps(streams, ROW_BYTES)
        except SpecError:  # unequal shares, of which one has less than a row
            made = replace(made, shares=None, allocation="variable")
        return made

    def whole(self, tuples: int, size: int, budget: Budget) -> float:
        """How much of a budget the rows of a stratum take, by their number and size in the sample."""
        if budget.unit == "bytes":
            return size / self.share
        return size / UNIT / self.share if self._by_bytes else tuples / self.share

    def keys_of(self, batch: Batch) -> Integers:
        """The common key of each row."""
        assert self.places is not None
        if batch.key.ndim == 1:
            return batch.key
        return np.asarray(batch.key[np.arange(len(batch)), self.places[batch.stream]])

    def chosen(self, batch: Batch, before: int) -> Integers:
        """The places of the rows of a batch that are in the sample. `before`: rows that came before it."""
        places: Integers = np.arange(len(batch))
        if self.thin < 1.0:  # these first: they are few
            places = np.flatnonzero(self._draws(places + before, 1) < _below(self.thin))
        if self.part < 1.0:
            keys = self.keys_of(batch)[places]
            wanted = self._draws(keys, 0) < _below(self.part)
            if self.frequent.size:
                wanted |= np.isin(keys, self.frequent)
            places = places[wanted]
        return places[~batch.null[places]]

    def weighed(self, batch: Batch, whole: Budget) -> Batch:
        """The same rows, with what they count against the budget: those of frequent keys as a part of a tuple."""
        if not self._by_bytes:
            return replace(batch, bytes=batch.bytes + whole.row_bytes) if whole.row_bytes else batch
        often = np.isin(self.keys_of(batch), self.frequent)
        sizes = batch.bytes + whole.row_bytes if whole.unit == "bytes" else np.full(len(batch), UNIT)
        return replace(batch, bytes=np.where(often, np.maximum(sizes * self.part, 1.0), sizes).astype(np.int64))

    def groups(self, batch: Batch, stretch: int) -> Integers:
        """Rows of frequent keys are grouped by time, behind the groups of the other keys."""
        by_time = np.full(len(batch), GROUPS + stretch % GROUPS)
        if self.places is None:
            return by_time
        keys = self.keys_of(batch)
        by_key = (self._draws(keys, 2) % np.uint64(GROUPS)).astype(np.int64)
        return np.where(np.isin(keys, self.frequent), by_time, by_key)

    def stands_for(self, streams: int) -> NDArray[np.float64]:
        """How many results of the join a result of a group stands for."""
        weights = np.full(2 * GROUPS, self.thin**-streams)
        weights[:GROUPS] /= self.part
        return weights

    def _draws(self, values: Integers, what: int) -> NDArray[np.uint64]:
        salt = splitmix64(np.array([self.seed], np.uint64) * GOLDEN + np.uint64(what))[0]
        with np.errstate(over="ignore"):
            return np.asarray(splitmix64((np.ascontiguousarray(values).view(np.uint64) ^ salt) * GOLDEN))


def _below(share: float) -> np.uint64:
    return np.uint64(min(int(share * 2.0**64), 2**64 - 1))
