"""A guess at what keys outside the sample miss, so that the limits are not too narrow.

The variance of a sample of keys is estimated from the keys in it. If it lacks a few keys with very many rows, this estimate
is too small, and so are the limits. But for every key it is known how many rows a push brings and how many results were
delivered. If rows arrive evenly, a key with f_s new rows of stream s and windows of length w_s completes this many results:
the sum over s of f_s times the product of f_j w_j / (time of the push) over the other streams j. What was not delivered of
these is what the key may miss, m. A key that the sample has with probability p adds (1 - p) / p m^2 to the variance. The
guess is used for nothing but a lower bound on the width of the limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
#: How many keys are remembered: those that may miss most.
HEAVIEST = 256


class UnsampledKeys:
    """Keys outside the sample, and what they may miss: results and importance, in total and decayed."""

    def __init__(self, kinds: int) -> None:
        self.keys = np.empty(0, np.int64)
        self.p = np.empty(0)
        self.missing = np.zeros((kinds, 0))
        self._push: dict[str, NDArray[Any]] = {}

    def begin(self, keys: Integers, p: Numbers, new: Numbers, stored: Numbers) -> None:
        """Begin a push. `keys` are sorted; `new` and `stored` have the rows of each stream and key, in the push and windows."""
        expected = np.zeros(keys.size)
        for stream in range(new.shape[0]):
            expected += new[stream] * np.delete(stored, stream, axis=0).prod(axis=0)
        self._push = {"keys": keys, "p": p, "expected": expected, "delivered": np.zeros(keys.size)}

    def deliver(self, keys: Integers) -> None:
        """Count delivered results by their keys."""
        known = self._push.get("keys")
        if known is None or not known.size or not keys.size:
            return
        place = np.searchsorted(known, keys).clip(max=known.size - 1)
        self._push["delivered"] += np.bincount(place[known[place] == keys], minlength=known.size)

    def end(self, each: float, recent_weight: float) -> None:
        """Add what the keys of the push may miss; `each` is the mean importance of a result."""
        if not self._push:
            return
        missing = np.maximum(self._push["expected"] - self._push["delivered"], 0.0)
        heaviest = np.argsort(missing)[-HEAVIEST:]
        heaviest = np.sort(heaviest[missing[heaviest] > 0.0])
        kinds = np.array([[1.0], [each], [recent_weight], [recent_weight * each]])
        new, amounts = self._push["keys"][heaviest], missing[heaviest] * kinds
        keys = np.union1d(self.keys, new)
        p, total = np.ones(keys.size), np.zeros((self.missing.shape[0], keys.size))
        for some, chance, amount in ((self.keys, self.p, self.missing), (new, self._push["p"][heaviest], amounts)):
            place = np.searchsorted(keys, some)
            p[place] = np.minimum(p[place], chance)
            total[:, place] += amount
        stays = np.sort(np.argsort(total[0])[-HEAVIEST:])
        # C order, as after loading: a restart must not change the order of summation.
        self.keys, self.p, self.missing = keys[stays], p[stays], np.ascontiguousarray(total[:, stays])
        self._push = {}

    def moments(self) -> Numbers:
        """What these keys add to the variance and to the third moment, of each kind."""
        p = np.maximum(self.p, 1e-12)
        square = ((1.0 - p) / p * self.missing**2).sum(axis=1)
        cube = ((1.0 - p) / p**2 * self.missing**3).sum(axis=1)
        return np.stack([square, cube], axis=1)
