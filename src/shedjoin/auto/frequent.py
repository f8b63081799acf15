"""The frequent keys of what has come lately, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
#: A key is frequent if at least this share of the rows has it.
SHARE = 1 / 128
#: How many keys are counted, and of how many rows one is looked at. (A prime: streams may come in turn.)
KNOWN, EACH = 512, 13
#: What a count is worth after another stretch.
FADES = 0.9


class Frequent:
    """Counts of keys, of which those with small counts are forgotten."""

    def __init__(self) -> None:
        self.keys: Integers = np.empty(0, np.int64)
        self.counts: NDArray[np.float64] = np.empty(0)
        self.total = 0.0

    def see(self, keys: Integers, before: int) -> None:
        """Keys of rows; `before` is the number of rows that came earlier."""
        some = keys[-before % EACH :: EACH]
        if not some.size:
            return
        both, places = np.unique(np.concatenate([self.keys, some]), return_inverse=True)
        one = np.concatenate([self.counts, np.ones(some.size)])
        self.keys, self.counts = both, np.bincount(places, one, both.size).astype(np.float64)
        self.total += some.size

    def forget(self) -> None:
        """At the end of a stretch: keep the largest counts, and let all fade."""
        if self.keys.size > KNOWN:
            kept = np.sort(np.argsort(-self.counts, kind="stable")[:KNOWN])
            self.keys, self.counts = self.keys[kept], self.counts[kept]
        self.counts, self.total = self.counts * FADES, self.total * FADES

    def above(self, share: float) -> tuple[Integers, float]:
        """The keys with at least this share of the rows, in order, and the share of all of them."""
        often = self.counts >= max(share * self.total, 1e-9)
        part = float(self.counts[often].sum() / self.total) if self.total else 0.0
        return self.keys[often], part
