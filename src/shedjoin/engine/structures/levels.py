"""Counts by level: how many rows of a stream expect how many partners, in order, so that ranks are found without a scan.

Levels stand in order, with a Fenwick tree of their counts behind them. Most rows expect as much as others did, so a new level is
rare: it is put in its place and the tree is made anew. Levels that count nothing go when room is short.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.jit import kernel


@kernel
def find(state, stream, value):
    """The place of the first level that is not below a value."""
    level = mem.level(state)[stream]
    low, high = 0, state["levels_size"][stream]
    while low < high:
        middle = (low + high) >> 1
        if level[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def renew(state, stream):
    """The tree anew, from the counts."""
    count, sums, room = mem.level_count(state)[stream], mem.level_sum(state)[stream], state["level_room"]
    size = state["levels_size"][stream]
    for i in range(1, room):
        sums[i] = count[i - 1] if i <= size else 0
    for i in range(1, room):
        above = i + (i & -i)
        if above < room:
            sums[above] += sums[i]


@kernel
def lacks_room(state, stream):
    """Whether there is no room for a new level, not even without those that count nothing."""
    room = state["level_room"] - 1
    if state["levels_size"][stream] < room:
        return False
    level, count, to = mem.level(state)[stream], mem.level_count(state)[stream], 0
    for i in range(state["levels_size"][stream]):
        if count[i] > 0:
            level[to] = level[i]
            count[to] = count[i]
            to += 1
    state["levels_size"][stream] = to
    renew(state, stream)
    return 2 * to > room


@kernel
def add(state, stream, value, change):
    """One row more (1) or less (-1) on a level; there is room for a new one."""
    level, count = mem.level(state)[stream], mem.level_count(state)[stream]
    at, size = find(state, stream, value), state["levels_size"][stream]
    if at == size or level[at] != value:
        for i in range(size, at, -1):
            level[i] = level[i - 1]
            count[i] = count[i - 1]
        level[at] = value
        count[at] = change
        state["levels_size"][stream] = size + 1
        renew(state, stream)
        return
    count[at] += change
    sums, i = mem.level_sum(state)[stream], at + 1
    while i < state["level_room"]:
        sums[i] += change
        i += i & -i


@kernel
def below(state, stream, at):
    """How many rows are on the levels before a place."""
    sums, i, total = mem.level_sum(state)[stream], at, 0
    while i > 0:
        total += sums[i]
        i -= i & -i
    return total
