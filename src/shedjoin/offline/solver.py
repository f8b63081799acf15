"""The flow of most gain: by LEMON's network simplex, block after block of time, then made whole and proved.

A network simplex slows down with the length of the line, so the network is cut into blocks of about half a window. Each is
solved with a look ahead, and the flow of its first part is kept. The result is feasible but not yet proved. Its potentials
(the prices of memory) say which arcs could still be improved: these are few and lie near the seams. What is left is a small
flow over the whole, with no negative costs, that starts from there; when it is done, flow and potentials are optimal
together. Long networks are cut into pieces of many blocks first, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shedjoin.errors import EnvironmentProblem
from shedjoin.offline.network import Network
from shedjoin.offline.timeline import Ints

#: A block has at least so many nodes: below, a call costs more than its pivots.
BLOCK = 4000
#: Blocks, and how far they look ahead, are this part of the time for which a tuple is held at most: longer ones leave less to
#: put right afterwards, and take longer than that saves. Pieces of many blocks look ahead by twice that time.
PART = 2
#: So many blocks are made whole at a time; of longer networks, so many of these pieces, and so on.
FAN = 16
#: Where in its look-ahead a block's prices give way to those of the next: both have seen what lies around.
HANDOVER = 0.5

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Flow:
    """A feasible flow, what it gains, and what no flow can exceed."""

    flow: Ints
    value: int
    bound: int
    potential: Ints
    complete: bool = True  # False when interrupted


def solve(
    network: Network,
    reach: int,
    progress: Progress | None = None,
    within: float = 0.0,
    check: Callable[[], None] | None = None,
) -> Flow:
    """The flow of most gain.

    Parameters
    ----------
    reach
        How many instants a tuple is held at most: blocks are about as long.
    progress
        Called with (stage, done, total).
    within
        Leave out the last step where the gap is no larger than this share of the bound already.
    check
        Called wherever the work can stop; a KeyboardInterrupt from it or from `progress` ends the work with what there is.
    """
    reach = max(reach, 1)
    span = int(network.time[-1] - network.time[0]) + 1
    blocks = max(1, min(PART * span // reach, network.nodes // BLOCK))
    lengths = [span / blocks]
    while span / lengths[0] > 2 * FAN:
        lengths.insert(0, FAN * lengths[0])
    return _solve(network, reach, lengths, _Monitor(progress, check), within)


@dataclass(frozen=True, slots=True)
class _Monitor:
    """Who wants to know how far the work is, and who may want to stop it."""

    progress: Progress | None
    check: Callable[[], None] | None

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.check is not None:
            self.check()
        if self.progress is not None:
            self.progress(stage, done, total)


def _solve(network: Network, reach: int, lengths: list[float], monitor: _Monitor, within: float = 0.0) -> Flow:
    """In pieces of the first length, those in pieces of the next, and so on; at once where a single piece is left."""
    span = int(network.time[-1] - network.time[0]) + 1
    lengths = [length for length in lengths if span >= 2 * length]
    if not lengths:
        return _at_once(network)
    flow = _in_blocks(network, reach, lengths, monitor)
    if flow.complete and flow.bound - flow.value > within * flow.bound:
        try:
            monitor.tell("proof", 0, 1)
            flow = _polish(network, flow)
        except KeyboardInterrupt:
            return replace(flow, complete=False)
    return flow


def _at_once(network: Network) -> Flow:
    cost = network.level[network.head] - network.level[network.tail] - network.gain
    flow, prices = lemon(network.tail, network.head, network.room, cost, network.supply)
    return _flow(network, flow, prices - network.level)


def _flow(network: Network, flow: Ints, potential: Ints, complete: bool = True) -> Flow:
    everything = int((network.room * network.gain).sum())
    bound = min(bound_of(network, potential), everything)
    return Flow(flow, int((flow * network.gain).sum()), bound, potential, complete)


def _in_blocks(network: Network, reach: int, lengths: list[float], monitor: _Monitor) -> Flow:
    """Block after block: each starts from what the one before left in memory, and looks ahead."""
    start, length = int(network.time[0]), lengths[0]
    blocks = max(1, round((int(network.time[-1]) - start + 1) / length))
    seams = [start + round(block * length) for block in range(blocks)]
    ahead = 2 * reach + 1 if length >= 2 * reach else round(min(length, reach)) + 1
    begins = [*np.searchsorted(network.time, seams).tolist(), network.nodes - 1]
    begins[0] = 0
    ends = [int(place) for place in np.searchsorted(network.time[:-1], [seam + ahead for seam in (*seams[1:], 2**62)])]
    flow, potential = np.zeros(network.arcs, np.int64), np.zeros(network.nodes, np.int64)
    excess = np.maximum(network.supply, 0)
    before = 0  # where the prices of the block before end
    for block in range(blocks):
        begin, seam, end = begins[block], begins[block + 1], max(ends[block], begins[block + 1])
        try:
            monitor.tell("blocks", block, blocks)
            part = _part(network, begin, end, excess)
            found = _solve(part, reach, lengths[1:], replace(monitor, progress=None))
        except KeyboardInterrupt:
            found = None
        if found is None or not found.complete:
            potential[before:] = potential[before - 1] if before else 0
            return _flow(network, flow, potential, complete=False)
        prices = found.potential
        if before > begin:
            prices = prices + int(np.median(potential[begin:before] - prices[: before - begin]))
        fresh = begin + int(HANDOVER * (before - begin)) if before > begin else begin
        potential[fresh : end + (end == network.nodes - 1)] = prices[
            fresh - begin : end - begin + (end == network.nodes - 1)
        ]
        before = end
        first, last = np.searchsorted(network.tail, (begin, seam))
        flow[first:last] = found.flow[: last - first]
        excess += np.bincount(network.head[first:last], weights=flow[first:last], minlength=network.nodes).astype(
            np.int64
        )
    return _flow(network, flow, potential)


def _part(network: Network, begin: int, end: int, excess: Ints) -> Network:
    """The nodes from `begin` to before `end` with what flows into them; what flows out ends in one sink.

    A node beyond the end to which more could flow than it can pass on comes before the sink, with the room that it has left.
    """
    first, last = np.searchsorted(network.tail, (begin, end))
    head, room = network.head[first:last], network.room[first:last]
    out = np.flatnonzero(head >= end)
    beyond, into = np.unique(head[out], return_inverse=True)
    left = _passes(network, beyond) - excess[beyond]
    tight = (np.bincount(into, room[out], beyond.size) > left) & (beyond < network.nodes - 1)  # the last takes all
    size, narrow = end - begin, int(tight.sum())
    place = np.where(tight, size + np.cumsum(tight) - 1, size + narrow)
    heads = head - begin
    heads[out] = place[into]
    level = network.level[head].max(initial=network.level[begin])
    after = network.time[end - 1] + 1
    return Network(
        tail=np.concatenate((network.tail[first:last] - begin, size + np.arange(narrow))),
        head=np.concatenate((heads, np.full(narrow, size + narrow))),
        room=np.concatenate((room, left[tight])),
        gain=np.concatenate((network.gain[first:last], np.zeros(narrow, np.int64))),
        supply=np.concatenate((excess[begin:end], np.zeros(narrow, np.int64), [-excess[begin:end].sum()])),
        time=np.concatenate((network.time[begin:end], np.full(narrow + 1, after))),
        level=np.concatenate((network.level[begin:end], network.level[beyond[tight]], [level])),
        line=network.line[:0],
        stop_arc=network.stop_arc[:0],
        memory=network.memory,
    )


def _passes(network: Network, nodes: Ints) -> Ints:
    """How much these nodes can pass on."""
    total = np.concatenate(([0], np.cumsum(network.room)))
    first, last = (np.searchsorted(network.tail, nodes, side=side) for side in ("left", "right"))
    return total[last] - total[first]


def check_solver() -> Any:
    """The solver; a clear word if it is not installed."""
    try:
        import pylmcf
    except ImportError:
        raise EnvironmentProblem(
            "the optimum needs the extra `offline`: pip install 'shedjoin[offline]' (a plan goes without it: optimum=False)"
        ) from None
    return pylmcf


def lemon(tail: Ints, head: Ints, room: Ints, cost: Ints, supply: Ints) -> tuple[Ints, Ints]:
    """A flow of least cost and its potentials: cost + potential[tail] - potential[head] >= 0 where there is room left."""
    pylmcf = check_solver()
    order = np.lexsort((head, tail))
    graph = pylmcf.Graph(int(supply.size), tail[order], head[order])
    graph.set_edge_capacities(room[order])
    graph.set_edge_costs(cost[order])
    graph.set_node_supply(supply)
    graph.solve()
    flow = np.empty(order.size, np.int64)
    flow[order] = graph.result()
    return flow, np.array(graph.raw_potentials(), np.int64)


def bound_of(network: Network, potential: Ints) -> int:
    """What no flow can exceed, by these prices: any prices give a bound (weak duality)."""
    reduced = potential[network.tail] - potential[network.head] - network.gain
    return int((potential * network.supply).sum() - (network.room * np.minimum(reduced, 0)).sum())


def _polish(network: Network, start: Flow) -> Flow:
    """Put every arc where its price wants it, and send what is then out of balance along the cheapest ways."""
    reduced = start.potential[network.tail] - start.potential[network.head] - network.gain
    flow = np.where(reduced == 0, start.flow, np.where(reduced < 0, network.room, 0))
    balance = np.bincount(network.tail, flow, network.nodes) - np.bincount(network.head, flow, network.nodes)
    missing = network.supply - balance.astype(np.int64)
    potential = start.potential
    if missing.any():
        ahead, back = np.flatnonzero(flow < network.room), np.flatnonzero(flow > 0)
        more, prices = lemon(
            np.concatenate((network.tail[ahead], network.head[back])),
            np.concatenate((network.head[ahead], network.tail[back])),
            np.concatenate(((network.room - flow)[ahead], flow[back])),
            np.concatenate((reduced[ahead], -reduced[back])),
            missing,
        )
        flow[ahead] += more[: ahead.size]
        flow[back] -= more[ahead.size :]
        potential = potential + prices
    return _flow(network, flow, potential)
