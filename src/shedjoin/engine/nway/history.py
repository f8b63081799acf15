"""How many results rows complete in the exact join of one key, counted without making them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import IMPORTANCE
from shedjoin.engine.jit import entry, inlined

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
MIN, MAX, SUM, PRODUCT = (IMPORTANCE[name] for name in ("min", "max", "sum", "product"))


@inlined
def _belongs(x, y, newest, stream, ts, lengths):
    """Whether a row can be in a result of which y came last and `newest` has the latest time."""
    if x == y or x == newest:
        return True
    if stream[x] == stream[y] or stream[x] == stream[newest] or ts[newest] - ts[x] >= lengths[stream[x]]:
        return False
    return ts[x] < ts[newest] or (ts[x] == ts[newest] and x < newest)


@inlined
def _others(count, stream):
    """Combinations of one row of each stream but this."""
    made = 1.0
    for j in range(count.size):
        if j != stream:
            made *= count[j]
    return made


@inlined
def _worth(code, count, worth):
    """The summed importance of all combinations, from the number of rows and their summed importance of each stream."""
    made = 1.0
    if code == PRODUCT:
        for j in range(worth.size):
            made *= worth[j]
        return made
    made = 0.0
    for j in range(worth.size):
        made += worth[j] * _others(count, j)
    return made if code == SUM else made / worth.size


@entry
def complete(
    bounds: Integers,
    fresh: Integers,
    stream: Integers,
    ts: Integers,
    importance: Numbers,
    order: Integers,
    lengths: Integers,
    code: int,
    count: Numbers,
    worth: Numbers,
    found: Numbers,
    value: Numbers,
) -> None:
    """For each new row the results of which it is the last to come, and their summed importance.

    Rows of key k are those from bounds[k] up to bounds[k + 1], in the order in which they came; new from fresh[k] on. `order` has
    the same rows by falling importance (rising for max). Of the rows of a result the one with the latest time, of equal ones the
    last that came, is looked for first: then every other row is in or out by itself, and combinations are products.
    """
    for k in range(fresh.size):
        for y in range(fresh[k], bounds[k + 1]):
            found[y] = value[y] = 0.0
            for newest in range(bounds[k], y + 1):
                if newest != y and (stream[newest] == stream[y] or ts[newest] <= ts[y]):
                    continue
                if ts[newest] - ts[y] >= lengths[stream[y]]:
                    continue
                count[:] = 0.0
                worth[:] = 0.0
                for place in range(bounds[k], bounds[k + 1]):
                    x = order[place]
                    if x <= y and _belongs(x, y, newest, stream, ts, lengths):
                        if code == MIN or code == MAX:  # of all so far, this one decides
                            value[y] += importance[x] * _others(count, stream[x])
                        count[stream[x]] += 1.0
                        worth[stream[x]] += importance[x]
                found[y] += _others(count, -1)
                if code != MIN and code != MAX:
                    value[y] += _worth(code, count, worth)
