"""What keys that are not in the sample may miss: a guess, for limits that know what they do not know.

The variance of a sample of keys is estimated from the keys that are in it. When a few keys with very many rows are not, the
sample knows nothing of what it lacks: its limits would be narrow and wrong. But of every key it is known how many rows a push
brings and how many results were delivered. Of rows that come evenly, a key with f_s new rows of stream s and windows of w_s
completes sum over s of f_s times the product of f_j w_j / (time of the push) over the other streams. What of that was not
delivered is what the key may miss, m; if it was in the sample with probability p, it adds (1 - p) / p m^2 to the variance. The
guess decides nothing but how wide the limits are at least.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
#: So many keys, those that may miss most, are remembered.
HEAVIEST = 256


class Outside:
    """Keys outside of a sample: what they may miss, results and importance, and the same of late."""

    def __init__(self, kinds: int) -> None:
        self.keys = np.empty(0, np.int64)
        self.p = np.empty(0)
        self.missed = np.zeros((kinds, 0))
        self._push: dict[str, NDArray[Any]] = {}

    def begin(self, keys: Integers, p: Numbers, fresh: Numbers, stored: Numbers) -> None:
        """Keys of a push that are not in the sample, in order; new rows, and rows in the windows, of each stream and key."""
        due = np.zeros(keys.size)
        for stream in range(fresh.shape[0]):
            due += fresh[stream] * np.delete(stored, stream, axis=0).prod(axis=0)
        self._push = {"keys": keys, "p": p, "due": due, "there": np.zeros(keys.size)}

    def take(self, keys: Integers) -> None:
        """Results of these keys were delivered."""
        known = self._push.get("keys")
        if known is None or not known.size or not keys.size:
            return
        place = np.searchsorted(known, keys).clip(max=known.size - 1)
        self._push["there"] += np.bincount(place[known[place] == keys], minlength=known.size)

    def end(self, each: float, fade: float) -> None:
        """Add up what the push missed; `each` is the importance of a result."""
        if not self._push:
            return
        missed = np.maximum(self._push["due"] - self._push["there"], 0.0)
        some = np.argsort(missed)[-HEAVIEST:]
        some = np.sort(some[missed[some] > 0.0])
        new, mine = self._push["keys"][some], missed[some] * np.array([[1.0], [each], [fade], [fade * each]])
        keys = np.union1d(self.keys, new)
        p, whole = np.ones(keys.size), np.zeros((self.missed.shape[0], keys.size))
        for found, chance, amount in ((self.keys, self.p, self.missed), (new, self._push["p"][some], mine)):
            place = np.searchsorted(keys, found)
            p[place] = np.minimum(p[place], chance)
            whole[:, place] += amount
        stays = np.sort(np.argsort(whole[0])[-HEAVIEST:])
        # Row by row in memory, as it is read back: sums are then the same to the last bit.
        self.keys, self.p, self.missed = keys[stays], p[stays], np.ascontiguousarray(whole[:, stays])
        self._push = {}

    def moments(self) -> Numbers:
        """What they add to the variance, and to the third moment, of each kind."""
        p = np.maximum(self.p, 1e-12)
        square = ((1.0 - p) / p * self.missed**2).sum(axis=1)
        cube = ((1.0 - p) / p**2 * self.missed**3).sum(axis=1)
        return np.stack([square, cube], axis=1)
