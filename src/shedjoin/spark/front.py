"""Front shedding (dual2006's k_f): random rows are dropped before they are sent to shards.

The choice depends only on the seed, the micro-batch, the task and the row's position in it: a repeated task drops the same
rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.spark.hashing import spread
from shedjoin.spark.keys import per_stream


def front_of(value: Any, names: Sequence[str]) -> tuple[float, ...]:
    """The share of each stream that is dropped.

    Examples
    --------
    >>> front_of({"right": 0.5}, ("left", "right")), front_of(None, ("left", "right"))
    ((0.0, 0.5), (0.0, 0.0))
    """
    shares = [0.0 if one is None else one for one in per_stream("front", value, names)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and 0.0 <= one <= 1.0 for one in shares):
        what = "a pair of them" if len(names) == 2 else "one each"
        raise SpecError(f"front must be a share from 0 to 1, or {what} ({', '.join(names)}), not {value!r}")
    return tuple(float(one) for one in shares)


class Front:
    """Draws lots for the rows of one task.

    Parameters
    ----------
    share
        Of rows that are dropped.
    drawn_for
        The seed, the stream, the micro-batch and the task.

    Examples
    --------
    >>> once, again = Front(0.5, 7, 0, 3, 1), Front(0.5, 7, 0, 3, 1)
    >>> whole = once.dropped(1000)
    >>> bool((whole == np.concatenate([again.dropped(400), again.dropped(600)])).all()), 450 < int(whole.sum()) < 550
    (True, True)
    """

    def __init__(self, share: float, *drawn_for: int) -> None:
        self.share = share
        self._first = int.from_bytes(hashlib.blake2b(repr(drawn_for).encode(), digest_size=8).digest(), "little")
        self._place = 0

    def dropped(self, rows: int) -> NDArray[np.bool_]:
        """Which of the next rows are dropped."""
        places = np.arange(self._place, self._place + rows, dtype=np.uint64)
        self._place += rows
        with np.errstate(over="ignore"):
            lots = spread(((places + np.uint64(self._first)) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64))
        return np.asarray((lots >> np.uint64(11)).astype(np.float64) * 2.0**-53 < self.share)
