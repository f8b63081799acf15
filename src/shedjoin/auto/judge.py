"""Find a candidate that is clearly better than the policy in use, for some time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: By how many standard errors a candidate must be ahead.
CLEARLY = 2.5


def better(scores: Sequence[Sequence[float]], now: int, *, gain: float, least: int) -> int | None:
    """The candidate that found the most, if it leads the one in use clearly and also lately; None: nothing changes.

    Parameters
    ----------
    scores
        What each candidate (column) found in each of the last stretches (row).
    now
        The candidate in use.
    gain
        How much more, as a part, the other must have found. The way back to candidate 0, which the join began with, needs no
        more.
    least
        How many stretches must have passed.
    """
    found = np.array(scores)
    if len(found) < least:
        return None
    ahead = found - found[:, [now]]
    total, lately = ahead.sum(axis=0), ahead[len(ahead) // 2 :].sum(axis=0)
    noise = ahead.std(axis=0, ddof=1) * np.sqrt(len(ahead)) if len(ahead) > 1 else np.zeros(found.shape[1])
    needed = np.full(found.shape[1], gain * found[:, now].sum())
    needed[0] = 0.0
    leads = (total > 0.0) & (total >= needed) & (lately > 0.0) & (total > CLEARLY * noise)
    return int(np.argmax(np.where(leads, total, -np.inf))) if leads.any() else None
