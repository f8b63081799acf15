"""Paths that share a memory as a flow network. Nodes are in time order, so a range of time is a range of nodes and arcs.

The line of idle memory runs from instant to instant. At an entry, units leave it for a path; after a stop they may return.
The capacity of the line is the memory, and the flow over any border between two instants adds up to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shedjoin.offline.paths import Paths
from shedjoin.offline.timeline import Ints


@dataclass(frozen=True, slots=True)
class Network:
    """Arcs sorted by (tail, head); nodes numbered in the order of time; gains to be made as large as possible.

    `level` is a potential under which no gain is above 0: for all arcs gain <= level[head] - level[tail].
    """

    tail: Ints
    head: Ints
    room: Ints
    gain: Ints
    supply: Ints
    time: Ints  # of each node
    level: Ints
    line: Ints  # the nodes of idle memory, from the first to the last
    stop_arc: Ints  # the arc of each stop of the paths
    memory: int

    @property
    def nodes(self) -> int:
        return int(self.supply.size)

    @property
    def arcs(self) -> int:
        return int(self.tail.size)

    def paid(self, potential: Ints) -> Ints:
        """What a unit of memory costs up to each instant, by these prices: who leaves a path returns to the line at its next
        node, and pays for all the way up to there."""
        price = np.concatenate(([0], np.cumsum(np.maximum(-np.diff(potential[self.line]), 0))))
        return price[np.searchsorted(self.time[self.line], np.arange(self.time[-1] + 1))]


def network_of(paths: Paths, gain: Ints, memory: int) -> Network:
    """The network of some paths that share a memory of so many tuples; `gain` is what each stop offers, in whole numbers."""
    enter_tick, enter_room, goes_to = paths.entries()
    line = np.unique(enter_tick)
    stops, ends = (
        paths.stop_tick.size,
        line.size,
    )  # the line has a node for each instant at which something may enter, and an end
    follows = np.zeros(stops, np.bool_)  # whether the path goes on after the stop
    follows[:-1] = paths.stop_path[1:] == paths.stop_path[:-1]
    entered = np.zeros(stops, np.bool_)
    entered[goes_to] = True
    # What enters between two stops must not leave before it entered: there the path has a node after the stop, and
    # one before the next.
    apart = np.zeros(stops, np.bool_)
    apart[:-1] = follows[:-1] & entered[1:]
    opened = entered | ~np.concatenate(([False], follows[:-1]))

    back_at = np.searchsorted(line, paths.stop_tick)  # where units return to the line
    before, after = np.full(stops, -1), np.full(stops, -1)
    before[opened] = ends + 1 + np.arange(opened.sum())
    after[follows] = ends + 1 + opened.sum() + np.arange(follows.sum())
    shared = np.flatnonzero(~opened)
    before[shared] = after[shared - 1]

    wire = [
        (np.arange(ends), np.arange(1, ends + 1), np.full(ends, memory)),
        (before, np.where(follows, after, back_at), paths.stop_room),
        (after[follows], back_at[follows], paths.stop_room[follows]),
        (after[apart], before[np.flatnonzero(apart) + 1], paths.stop_room[apart]),
        (np.searchsorted(line, enter_tick), before[goes_to], enter_room),
    ]
    tail, head, room = (np.concatenate(part) for part in zip(*wire, strict=True))
    gains = np.zeros(tail.size, np.int64)
    gains[ends : ends + stops] = gain

    last = int(paths.stop_tick.max(initial=0)) + 1
    height, to_come = _heights(paths, gain, last)
    nodes = int(ends + 1 + opened.sum() + follows.sum())
    time, rank, level = np.empty(nodes, np.int64), np.zeros(nodes, np.int64), np.empty(nodes, np.int64)
    time[:ends], time[ends] = line, last
    time[before[opened]] = paths.stop_tick[opened]
    time[after[follows]] = paths.stop_tick[follows]
    rank[: ends + 1] = 2  # inside an instant: before a stop, after it, on the line
    rank[after[follows]] = 1
    level[: ends + 1] = height[time[: ends + 1]]
    level[before[opened]] = (height[paths.stop_tick] - to_come)[opened]
    level[after[follows]] = (height[paths.stop_tick] - to_come + gain)[follows]
    return _in_order(
        tail, head, np.minimum(room, memory), gains, time, rank, level, ends + 1, slice(ends, ends + stops), memory
    )


def _heights(paths: Paths, gain: Ints, last: int) -> tuple[Ints, Ints]:
    """The most that one unit can have gained by the end of each instant; what each stop's path still offers in its own."""
    sums = np.cumsum(gain)
    new = np.ones(gain.size, np.bool_)
    new[1:] = (np.diff(paths.stop_path) != 0) | (np.diff(paths.stop_tick) != 0)
    begin = np.flatnonzero(new)
    end = np.append(begin[1:], gain.size) - 1
    to_come = sums[end[np.cumsum(new) - 1]] - sums + gain
    best = np.zeros(last + 1, np.int64)
    np.maximum.at(best, paths.stop_tick[begin], to_come[begin])
    return np.cumsum(best), to_come


def _in_order(
    tail: Ints,
    head: Ints,
    room: Ints,
    gain: Ints,
    time: Ints,
    rank: Ints,
    level: Ints,
    line: int,
    stops: slice,
    memory: int,
) -> Network:
    order = np.lexsort((rank, time))
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    sort = np.lexsort((number[head], number[tail]))
    place = np.empty(sort.size, np.int64)
    place[sort] = np.arange(sort.size)
    supply = np.zeros(order.size, np.int64)
    supply[0] += memory  # the first node in time is the beginning of the line: nothing stops before something entered
    supply[-1] -= memory
    return Network(
        tail=number[tail][sort],
        head=number[head][sort],
        room=room[sort],
        gain=gain[sort],
        supply=supply,
        time=time[order],
        level=level[order],
        line=number[:line],
        stop_arc=place[stops],
        memory=memory,
    )
