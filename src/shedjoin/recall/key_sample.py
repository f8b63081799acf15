"""A sample of keys, and what they miss: which keys are in, with which probability, and sums that estimate all keys.

All keys are in until there is no more room. From then on a key stays with a probability p in proportion to the square of the
rows it has, decided by a lot that depends on nothing but the key and the seed; see `shedjoin.recall.many`.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from shedjoin.recall.expected import Integers, Numbers, Rows, some

#: When a key was last seen is known by hash in so many cells.
CELLS = 1 << 15
#: When keys have to go, those that stay for certain have this many times as many rows as before.
MORE = 1.25
#: What is kept of a sampled key: results and importance that it misses, and the same of late.
KINDS = 4


class KeySample:
    """Keys that are watched, and what they miss."""

    def __init__(self, seed: int) -> None:
        digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8).digest()
        self._seed = np.uint64(int.from_bytes(digest, "little"))
        self.certain = 1.0  # a key with so many rows is in for certain
        self.keys = np.empty(0, np.int64)  # in order, once not all are in
        self.p = np.empty(0)
        self.open = np.zeros((KINDS, 0))  # what each of them misses
        self.closed = np.zeros((KINDS, 3))  # what is settled: sums of z, (1 - p) z^2, (1 - p) z^3
        self.seen = np.empty(0, np.int64)  # the latest time of the keys of a cell, once keys are sampled

    @property
    def base(self) -> float:
        """The probability with which a key that is new comes in; 1: all do."""
        return 1.0 / self.certain**2

    @property
    def whole(self) -> bool:
        """Whether all keys are in."""
        return self.certain == 1.0

    def lots(self, keys: Integers) -> Numbers:
        """A number from 0 to 1 for each key, always the same."""
        with np.errstate(over="ignore"):
            x = (keys.view(np.uint64) ^ self._seed) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
        return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def places(self, keys: Integers) -> Integers:
        """The places of keys in the sample; one past its end for those that are not in it."""
        place = np.searchsorted(self.keys, keys).clip(max=max(self.keys.size - 1, 0))
        there = self.keys[place] == keys if self.keys.size else np.zeros(keys.size, np.bool_)
        return np.where(there, place, self.keys.size)

    # ------------------------------------------------------------------------------------------------- who is in

    def only(self, rows: Rows, edge: int) -> Rows:
        """Rows of keys of the sample; keys that are new may come into it. Keys last seen up to `edge` have no rows."""
        if self.whole:
            return rows
        keys, counts = np.unique(rows["key"], return_counts=True)
        chance = np.minimum((counts / self.certain) ** 2, 1.0)
        chance[(chance < 1.0) & (self.seen[self._cells(keys)] > edge)] = self.base
        place = self.places(keys)
        there = place < self.keys.size
        self._raise(place[there], chance[there])
        new = ~there & (self.lots(keys) < chance)
        self._admit(keys[new], chance[new])
        return some(rows, self.places(rows["key"]) < self.keys.size)

    def saw(self, rows: Rows) -> None:
        """Remember when keys were seen."""
        if self.seen.size:
            np.maximum.at(self.seen, self._cells(rows["key"]), rows["ts"])

    def lower(self, rows: Integers, clock: int) -> None:
        """Fewer keys, as far as they have few rows (`rows` has a key for each). What those that go have missed is settled."""
        keys, counts = np.unique(rows, return_counts=True)
        if self.whole:  # until now, all keys were known: nothing is open
            self.seen = np.full(CELLS, clock)
            self.keys, self.p, self.open = keys, np.ones(keys.size), np.zeros((KINDS, keys.size))
        place = np.searchsorted(keys, self.keys).clip(max=max(keys.size - 1, 0))
        has = np.where(keys[place] == self.keys, counts[place], 0) if keys.size else np.zeros(self.keys.size)
        self.certain *= MORE
        self.p = np.minimum(self.p, (has / self.certain) ** 2)
        self.close(~((self.lots(self.keys) < self.p) & (has > 0)))

    def close(self, gone: NDArray[np.bool_]) -> None:
        """These keys leave."""
        self.closed += _moments(self.open[:, gone], self.p[gone])
        self.keys, self.p = self.keys[~gone], self.p[~gone]
        # Row by row in memory, as it is read back: sums are then the same to the last bit.
        self.open = np.ascontiguousarray(self.open[:, ~gone])

    def _cells(self, keys: Integers) -> Integers:
        return (self.lots(keys ^ np.int64(-1)) * CELLS).astype(np.int64)

    def _raise(self, place: Integers, chance: Numbers) -> None:
        """Keys that would come in now with a higher probability than they did. What they missed so far is settled."""
        more = chance > self.p[place]
        place, chance = place[more], chance[more]
        self.closed += _moments(self.open[:, place], self.p[place])
        self.open[:, place] = 0.0
        self.p[place] = chance

    def _admit(self, keys: Integers, p: Numbers) -> None:
        at = np.searchsorted(self.keys, keys)
        self.keys, self.p = np.insert(self.keys, at, keys), np.insert(self.p, at, p)
        self.open = np.ascontiguousarray(np.insert(self.open, at, 0.0, axis=1))

    # --------------------------------------------------------------------------------------------- what they miss

    def settle(self, keys: Integers, exact: Numbers, delivered: Numbers, fade: float) -> None:
        """What is missing of a push: exact results less those that were delivered, by place (all together while all are in)."""
        if self.whole:
            missed = _less(exact.sum(axis=1), delivered[:, 0])
            self.closed[:, 0] += np.concatenate([missed, fade * missed])
            return
        due: Numbers = np.zeros((2, self.keys.size))
        due[:, self.places(keys)] = exact
        missed = _less(due, delivered[:, : self.keys.size]) / self.p
        missed = np.concatenate([missed, fade * missed])
        sure = self.p == 1.0
        self.closed[:, 0] += missed[:, sure].sum(axis=1)
        self.open += np.where(sure, 0.0, missed)

    def fade(self, by: float) -> None:
        """What is of late counts so much less."""
        for power in (1, 2, 3):
            self.closed[2:, power - 1] /= by**power
        self.open[2:] /= by

    def moments(self) -> Numbers:
        """Sums over all keys, for limits: z, (1 - p) z^2, (1 - p) z^3 of each kind."""
        total: Numbers = self.closed + _moments(self.open, self.p)
        return total


def _moments(z: Numbers, p: Numbers) -> Numbers:
    return np.stack([z.sum(axis=1), ((1.0 - p) * z**2).sum(axis=1), ((1.0 - p) * z**3).sum(axis=1)], axis=1)


def _less(exact: Numbers, delivered: Numbers) -> Numbers:
    """Results and importance that are missing: no importance without results, however sums were rounded."""
    missed = np.maximum(exact - delivered, 0.0)
    missed[1] = np.where(missed[0] > 0.0, missed[1], 0.0)
    return missed
