"""The flow of most gain: by LEMON's network simplex, block after block of time, then made whole and proved.

A network simplex slows down with the length of the line, so the network is cut into blocks of a few windows. Each is
solved with a look ahead
and the flow of its first part is kept. The result is feasible but not yet proved. Its potentials (the prices of
memory) say which arcs
could still be improved: these are few and lie near the seams. What is left is a small flow over the whole, with no
negative costs, that starts
from there; when it is done, flow and potentials are optimal together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shedjoin.offline.ground import Ints
from shedjoin.offline.network import Network

#: A block has at least so many nodes: below, a call costs more than its pivots.
BLOCK = 4000
#: A block's prices are good from here on into its look-ahead (as a share of it), the block's before until here.
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


def solve(network: Network, reach: int, progress: Progress | None = None, within: float = 0.0) -> Flow:
    """The flow of most gain.

    Parameters
    ----------
    reach
        How many instants a tuple is held at most: blocks are about as long.
    progress
        Called with (stage, done, total).
    within
        Leave out the last step where the gap is no larger than this share of the bound already.
    """
    tell = progress or _silent
    flow = _in_blocks(network, reach, tell)
    if flow.complete and flow.bound - flow.value > within * flow.bound:
        try:
            tell("proof", 0, 1)
            flow = _polish(network, flow)
        except KeyboardInterrupt:
            return Flow(flow.flow, flow.value, flow.bound, flow.potential, complete=False)
        tell("proof", 1, 1)
    return flow


def _silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""


def _in_blocks(network: Network, reach: int, tell: Progress) -> Flow:
    seams = _seams(network, reach)
    flow = np.zeros(network.arcs, np.int64)
    potential = np.zeros(network.nodes, np.int64)
    excess = np.maximum(network.supply, 0)
    before: tuple[int, Ints] | None = None
    blocks = len(seams) - 1
    complete = True
    sink = network.nodes - 1
    for block in range(blocks):
        begin, seam, end = seams[block], seams[block + 1], seams[min(block + 2, blocks)]
        try:
            tell("blocks", block, blocks)
            found, prices = _solve_part(network, begin, end, excess[begin:end])
        except KeyboardInterrupt:
            complete = False
            potential[begin:] = potential[begin - 1] if begin else 0
            break
        if before is not None:
            start, old = before
            common = min(start + old.size, end) - begin
            prices = prices + int(np.median(old[begin - start : begin - start + common] - prices[:common]))
        fresh = begin if before is None else begin + int(HANDOVER * (seam - begin))
        potential[fresh:end] = prices[fresh - begin : end - begin]
        if end == sink:
            potential[sink] = prices[-1]
        before = (begin, prices[:-1])
        first, last = np.searchsorted(network.tail, (begin, seam))
        flow[first:last] = found[: last - first]
        heads = network.head[first:last]
        excess += np.bincount(heads, weights=flow[first:last], minlength=network.nodes).astype(np.int64)
    value = int((flow * network.gain).sum())
    everything = int((network.room * network.gain).sum())
    return Flow(flow, value, min(bound_of(network, potential), everything), potential, complete)


def _seams(network: Network, reach: int) -> list[int]:
    """Nodes at which blocks begin, and the sink."""
    span = int(network.time[-1]) + 1
    blocks = max(1, min(span // max(reach, 1), network.nodes // BLOCK))
    borders = np.linspace(0, span, blocks + 1).astype(np.int64)[1:-1]
    places = np.searchsorted(network.time, borders)
    return sorted({0, *(int(place) for place in places), network.nodes - 1})


def _solve_part(network: Network, begin: int, end: int, excess: Ints) -> tuple[Ints, Ints]:
    """The best flow through the nodes from `begin` to before `end`; what flows out of them ends in one sink."""
    first, last = np.searchsorted(network.tail, (begin, end))
    tail, head, gain = network.tail[first:last] - begin, network.head[first:last], network.gain[first:last]
    level = np.append(network.level[begin:end], network.level[head].max(initial=network.level[begin]))
    head = np.minimum(head, end) - begin
    supply = np.append(excess, -excess.sum())
    found, prices = lemon(tail, head, network.room[first:last], level[head] - level[tail] - gain, supply)
    return found, prices - level


def lemon(tail: Ints, head: Ints, room: Ints, cost: Ints, supply: Ints) -> tuple[Ints, Ints]:
    """A flow of least cost and its potentials: cost + potential[tail] - potential[head] >= 0 where there is room left."""
    import pylmcf

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
    value = int((flow * network.gain).sum())
    return Flow(flow, value, bound_of(network, potential), potential)
