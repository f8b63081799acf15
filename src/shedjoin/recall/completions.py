"""How many results new rows complete in the exact join of one key, counted without making them.

Every result has a newest row: that of the latest time, of equal ones the last that came. Given that, every other row is in or
out of its window by itself, and combinations are products. So rows are gone through in the order of time, with the number of
rows of each stream that are in their windows: a few steps a row, however many rows a key has.

The least importance of a combination is not a product. It is kept in a tree over the rows of a key, by importance: a node has,
for every set of streams, the sum over all combinations of its rows of these streams; two nodes are put together by who of a
combination is in the one that decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import IMPORTANCE
from shedjoin.engine.jit import entry, inlined

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
MIN, MAX, SUM, PRODUCT = (IMPORTANCE[name] for name in ("min", "max", "sum", "product"))


class Room(NamedTuple):
    """What a kernel writes on: it makes no arrays."""

    here: Numbers  # rows of each stream that are in their windows
    worth: Numbers  # their summed importance
    gone: Integers  # rows of each stream before this place are out
    tree: Numbers  # of each node and set of streams, the importance of all combinations
    rows: Numbers  # of each node and stream, how many there are
    both: Numbers

    @classmethod
    def of(cls, streams: int, most: int, code: int) -> Room:
        """For keys of up to so many rows."""
        nodes, sets = (2 << max(most - 1, 0).bit_length(), 1 << streams) if code in (MIN, MAX) else (2, 1)
        here, worth, gone = np.zeros(streams), np.zeros(streams), np.zeros(streams, np.int64)
        return cls(here, worth, gone, np.zeros((nodes, sets)), np.zeros((nodes, streams)), np.zeros(sets))


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


@inlined
def _put(tree, rows, both, leaf, stream, importance, there):
    """A row comes (or goes): its leaf, and all nodes above it. `both` is room for the combinations of a node."""
    streams, sets = rows.shape[1], tree.shape[1]
    tree[leaf, 1 << stream] = importance if there else 0.0
    rows[leaf, stream] = 1.0 if there else 0.0
    node = leaf >> 1
    while node:
        decides, rest = 2 * node, 2 * node + 1
        both[0] = 1.0
        for one in range(1, sets):
            last = 0
            while not one >> last & 1:
                last += 1
            both[one] = both[one & (one - 1)] * rows[rest, last]
        for one in range(1, sets):
            total = tree[rest, one]
            part = one
            while part:
                total += tree[decides, part] * both[one ^ part]
                part = (part - 1) & one
            tree[node, one] = total
        for j in range(streams):
            rows[node, j] = rows[decides, j] + rows[rest, j]
        node >>= 1


@entry
def complete(
    bounds: Integers,
    since: Integers,
    stream: Integers,
    ts: Integers,
    importance: Numbers,
    rank: Integers,
    lengths: Integers,
    code: int,
    room: Room,
    found: Numbers,
    value: Numbers,
) -> None:
    """For each key the results whose newest row is one from since[k] on, and their summed importance.

    Rows of key k are those from bounds[k] up to bounds[k + 1], by time, and of one time in the order in which they came. `rank`
    is the place of a row among those of its key by rising importance (falling for max).
    """
    count, worth, gone, tree, rows, both = room
    streams, sets = lengths.size, both.size
    for k in range(since.size):
        begin, end = bounds[k], bounds[k + 1]
        found[k] = value[k] = 0.0
        count[:] = 0.0
        worth[:] = 0.0
        gone[:] = begin
        alike, leaves = True, 1
        if code == MIN or code == MAX:
            for place in range(begin, end):
                alike = alike and importance[place] == importance[begin]
            while leaves < end - begin:
                leaves *= 2
            if not alike:
                tree[: 2 * leaves] = 0.0
                rows[: 2 * leaves] = 0.0
        for newest in range(begin, end):
            for j in range(streams):
                place = gone[j]
                while place < newest and (stream[place] != j or ts[newest] - ts[place] >= lengths[j]):
                    if stream[place] == j:
                        count[j] -= 1.0
                        worth[j] = worth[j] - importance[place] if count[j] else 0.0
                        if not alike:
                            _put(tree, rows, both, leaves + rank[place], j, importance[place], False)
                    place += 1
                gone[j] = place
            mine = stream[newest]
            before = tree[1, sets - 1]
            if not alike:
                _put(tree, rows, both, leaves + rank[newest], mine, importance[newest], True)
            if newest >= since[k]:
                made = _others(count, mine)
                found[k] += made
                if code == MIN or code == MAX:
                    value[k] += importance[newest] * made if alike else tree[1, sets - 1] - before
                else:
                    held, summed = count[mine], worth[mine]
                    count[mine], worth[mine] = 1.0, importance[newest]
                    value[k] += _worth(code, count, worth)
                    count[mine], worth[mine] = held, summed
            count[mine] += 1.0
            worth[mine] += importance[newest]
