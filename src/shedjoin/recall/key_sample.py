"""A sample of keys: which keys are in it, with which probability, and what they miss.

All keys are in the sample as long as there is room. Then a key stays with a probability p that is proportional to the square
of its number of rows. A random draw decides, which depends on the key and the seed only. See `shedjoin.recall.many`.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from shedjoin.predicates.rows import GOLDEN, splitmix64
from shedjoin.recall.expected import Integers, Numbers, Rows, select

#: The time at which a key was last seen is kept by hash, in this many cells.
CELLS = 1 << 15
#: When the sample shrinks, the number of rows at which a key stays for certain grows by this factor.
MORE = 1.25
#: What is kept of a sampled key: missing results and importance, in total and decayed.
KINDS = 4


class KeySample:
    """The sampled keys, and what they miss."""

    def __init__(self, seed: int) -> None:
        digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8).digest()
        self._seed = np.uint64(int.from_bytes(digest, "little"))
        self.certain = 1.0  # keys with this many rows stay for certain
        self.keys = np.empty(0, np.int64)  # sorted; empty while all keys are in
        self.p = np.empty(0)
        self.missing = np.zeros((KINDS, 0))  # what each of them misses under its present p
        self.settled = np.zeros((KINDS, 3))  # what was missed before: sums of z, (1 - p) z^2, (1 - p) z^3
        self.last_seen = np.empty(0, np.int64)  # the latest time of the keys of a cell; empty while all keys are in

    @property
    def base(self) -> float:
        """The probability of a key with one row; 1 while all keys are in."""
        return 1.0 / self.certain**2

    @property
    def has_all(self) -> bool:
        """Whether all keys are in."""
        return self.certain == 1.0

    def draws(self, keys: Integers) -> Numbers:
        """The random draw of each key, in [0, 1) (splitmix64)."""
        with np.errstate(over="ignore"):
            x = splitmix64((keys.view(np.uint64) ^ self._seed) * GOLDEN)
        return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def places(self, keys: Integers) -> Integers:
        """The places of keys in the sample; the size of the sample for keys that are not in it."""
        place = np.searchsorted(self.keys, keys).clip(max=max(self.keys.size - 1, 0))
        found = self.keys[place] == keys if self.keys.size else np.zeros(keys.size, np.bool_)
        return np.where(found, place, self.keys.size)

    # -------------------------------------------------------------------------------------------- which keys are in

    def admit(self, rows: Rows, edge: int) -> Rows:
        """Sample new keys, and select the rows of sampled keys. Keys last seen at `edge` or before have no stored rows."""
        if self.has_all:
            return rows
        keys, counts = np.unique(rows["key"], return_counts=True)
        chance = np.minimum((counts / self.certain) ** 2, 1.0)
        chance[(chance < 1.0) & (self.last_seen[self._cells(keys)] > edge)] = self.base
        place = self.places(keys)
        sampled = place < self.keys.size
        self._raise(place[sampled], chance[sampled])
        new = ~sampled & (self.draws(keys) < chance)
        self._insert(keys[new], chance[new])
        return select(rows, self.places(rows["key"]) < self.keys.size)

    def see(self, rows: Rows) -> None:
        """Note the times of the keys of a push."""
        if self.last_seen.size:
            np.maximum.at(self.last_seen, self._cells(rows["key"]), rows["ts"])

    def shrink(self, row_keys: Integers, clock: int) -> None:
        """Lower the probabilities of keys with few rows, and remove keys. `row_keys` has the key of every row."""
        keys, counts = np.unique(row_keys, return_counts=True)
        if self.has_all:  # all keys were known until now, so everything is settled
            self.last_seen = np.full(CELLS, clock)
            self.keys, self.p, self.missing = keys, np.ones(keys.size), np.zeros((KINDS, keys.size))
        place = np.searchsorted(keys, self.keys).clip(max=max(keys.size - 1, 0))
        has = np.where(keys[place] == self.keys, counts[place], 0) if keys.size else np.zeros(self.keys.size)
        self.certain *= MORE
        self.p = np.minimum(self.p, (has / self.certain) ** 2)
        self.remove(~((self.draws(self.keys) < self.p) & (has > 0)))

    def remove(self, gone: NDArray[np.bool_]) -> None:
        """Remove keys, and settle what they missed."""
        self.settled += _moments(self.missing[:, gone], self.p[gone])
        self.keys, self.p = self.keys[~gone], self.p[~gone]
        # C order, as after loading: a restart must not change the order of summation.
        self.missing = np.ascontiguousarray(self.missing[:, ~gone])

    def _cells(self, keys: Integers) -> Integers:
        return (self.draws(keys ^ np.int64(-1)) * CELLS).astype(np.int64)

    def _raise(self, place: Integers, chance: Numbers) -> None:
        """Raise the probability of keys that would enter with a higher one now. What they missed so far is settled."""
        more = chance > self.p[place]
        place, chance = place[more], chance[more]
        self.settled += _moments(self.missing[:, place], self.p[place])
        self.missing[:, place] = 0.0
        self.p[place] = chance

    def _insert(self, keys: Integers, p: Numbers) -> None:
        at = np.searchsorted(self.keys, keys)
        self.keys, self.p = np.insert(self.keys, at, keys), np.insert(self.p, at, p)
        self.missing = np.ascontiguousarray(np.insert(self.missing, at, 0.0, axis=1))

    # ----------------------------------------------------------------------------------------------- what they miss

    def add_missing(self, keys: Integers, exact: Numbers, delivered: Numbers, recent_weight: float) -> None:
        """Add what a push misses: exact results less delivered ones, by place (in one sum while all keys are in)."""
        if self.has_all:
            missing = _missing(exact.sum(axis=1), delivered[:, 0])
            self.settled[:, 0] += np.concatenate([missing, recent_weight * missing])
            return
        expected: Numbers = np.zeros((2, self.keys.size))
        expected[:, self.places(keys)] = exact
        missing = _missing(expected, delivered[:, : self.keys.size]) / self.p
        missing = np.concatenate([missing, recent_weight * missing])
        sure = self.p == 1.0
        self.settled[:, 0] += missing[:, sure].sum(axis=1)
        self.missing += np.where(sure, 0.0, missing)

    def rescale_recent(self, by: float) -> None:
        """Divide the decayed sums by a number, before they overflow."""
        for power in (1, 2, 3):
            self.settled[2:, power - 1] /= by**power
        self.missing[2:] /= by

    def moments(self) -> Numbers:
        """Sums over all keys of z, (1 - p) z^2 and (1 - p) z^3, of each kind."""
        total: Numbers = self.settled + _moments(self.missing, self.p)
        return total


def _moments(z: Numbers, p: Numbers) -> Numbers:
    return np.stack([z.sum(axis=1), ((1.0 - p) * z**2).sum(axis=1), ((1.0 - p) * z**3).sum(axis=1)], axis=1)


def _missing(exact: Numbers, delivered: Numbers) -> Numbers:
    """Missing results and importance. Where no result is missing, rounding must not leave any importance."""
    missing = np.maximum(exact - delivered, 0.0)
    missing[1] = np.where(missing[0] > 0.0, missing[1], 0.0)
    return missing
