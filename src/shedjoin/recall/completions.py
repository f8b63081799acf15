"""Count the results that new rows complete in the exact join on one key, without enumerating them.

Every result has a newest row: the row with the latest time and, of equal times, the last to arrive. Given the newest row,
each other row is inside or outside its window on its own, so the number of combinations is a product of counts. Rows are
processed in order of time, with the number of rows of each stream inside their windows. That takes a few steps a row,
however many rows a key has.

The minimum importance of a combination is not a product. It is kept in a tree over the rows of a key, sorted by importance.
A node has, for every set of streams, the summed importance of all combinations of its rows of these streams. The sums of two
children give those of their parent: a combination has the importance of its rows in the first child, if it has any there.
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


class Workspace(NamedTuple):
    """Arrays that the kernel writes to: it allocates none."""

    inside: Numbers  # of each stream, the rows inside their windows
    importance: Numbers  # their summed importance
    passed: Integers  # rows of each stream before this place are outside their windows
    tree: Numbers  # of each node and set of streams, the summed importance of all combinations
    tree_rows: Numbers  # of each node and stream, the number of rows
    products: Numbers  # of each set of streams, the number of combinations in one node

    @classmethod
    def of(cls, streams: int, most: int, code: int) -> Workspace:
        """Room for keys with at most `most` rows."""
        nodes, sets = (2 << max(most - 1, 0).bit_length(), 1 << streams) if code in (MIN, MAX) else (2, 1)
        inside, importance, passed = np.zeros(streams), np.zeros(streams), np.zeros(streams, np.int64)
        return cls(inside, importance, passed, np.zeros((nodes, sets)), np.zeros((nodes, streams)), np.zeros(sets))


@inlined
def _combinations(inside, stream):
    """The number of combinations of one row of each stream other than `stream`."""
    made = 1.0
    for j in range(inside.size):
        if j != stream:
            made *= inside[j]
    return made


@inlined
def _total(code, inside, importance):
    """The summed importance of all combinations (sum, product, mean)."""
    made = 1.0
    if code == PRODUCT:
        for j in range(importance.size):
            made *= importance[j]
        return made
    made = 0.0
    for j in range(importance.size):
        made += importance[j] * _combinations(inside, j)
    return made if code == SUM else made / importance.size


@inlined
def _update_tree(tree, tree_rows, products, leaf, stream, importance, added):
    """Add a row to the tree or remove it: update its leaf and all nodes above."""
    streams, sets = tree_rows.shape[1], tree.shape[1]
    tree[leaf, 1 << stream] = importance if added else 0.0
    tree_rows[leaf, stream] = 1.0 if added else 0.0
    node = leaf >> 1
    while node:
        first, second = 2 * node, 2 * node + 1
        products[0] = 1.0
        for one in range(1, sets):
            last = 0
            while not one >> last & 1:
                last += 1
            products[one] = products[one & (one - 1)] * tree_rows[second, last]
        for one in range(1, sets):
            total = tree[second, one]
            part = one
            while part:
                total += tree[first, part] * products[one ^ part]
                part = (part - 1) & one
            tree[node, one] = total
        for j in range(streams):
            tree_rows[node, j] = tree_rows[first, j] + tree_rows[second, j]
        node >>= 1


@entry
def count_completions(
    bounds: Integers,
    since: Integers,
    stream: Integers,
    ts: Integers,
    importance: Numbers,
    rank: Integers,
    lengths: Integers,
    code: int,
    workspace: Workspace,
    results: Numbers,
    values: Numbers,
) -> None:
    """For each key k, count the results whose newest row is at since[k] or later, and sum their importance.

    The rows of key k are at bounds[k] to bounds[k + 1], by time and then by arrival. `rank` is the place of a row among the
    rows of its key by rising importance (falling for max).
    """
    inside, summed, passed, tree, tree_rows, products = workspace
    streams, sets = lengths.size, products.size
    for k in range(since.size):
        begin, end = bounds[k], bounds[k + 1]
        results[k] = values[k] = 0.0
        inside[:] = 0.0
        summed[:] = 0.0
        passed[:] = begin
        alike, leaves = True, 1  # with equal importances the tree is not needed
        if code == MIN or code == MAX:
            for place in range(begin, end):
                alike = alike and importance[place] == importance[begin]
            while leaves < end - begin:
                leaves *= 2
            if not alike:
                tree[: 2 * leaves] = 0.0
                tree_rows[: 2 * leaves] = 0.0
        for newest in range(begin, end):
            for j in range(streams):
                place = passed[j]
                while place < newest and (stream[place] != j or ts[newest] - ts[place] >= lengths[j]):
                    if stream[place] == j:
                        inside[j] -= 1.0
                        summed[j] = summed[j] - importance[place] if inside[j] else 0.0
                        if not alike:
                            leaf = leaves + rank[place]
                            _update_tree(tree, tree_rows, products, leaf, j, importance[place], False)
                    place += 1
                passed[j] = place
            mine = stream[newest]
            before = tree[1, sets - 1]
            if not alike:
                leaf = leaves + rank[newest]
                _update_tree(tree, tree_rows, products, leaf, mine, importance[newest], True)
            if newest >= since[k]:
                made = _combinations(inside, mine)
                results[k] += made
                if code == MIN or code == MAX:
                    values[k] += importance[newest] * made if alike else tree[1, sets - 1] - before
                else:
                    held, held_importance = inside[mine], summed[mine]
                    inside[mine], summed[mine] = 1.0, importance[newest]
                    values[k] += _total(code, inside, summed)
                    inside[mine], summed[mine] = held, held_importance
            inside[mine] += 1.0
            summed[mine] += importance[newest]
