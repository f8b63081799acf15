"""The priorities of stored tuples, built from the columns of a snapshot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import loop, protocol, push_buffers
from shedjoin.engine.codes import (
    AGE,
    CUMULATIVE,
    FOLLOWING,
    KEEP,
    KEY,
    LIFE,
    LOGSUM,
    PRODUCT,
    RANDOM,
    ROW,
    SAMPLE,
    SCHEDULE,
    TUPLE,
)
from shedjoin.engine.handle import Handle
from shedjoin.engine.memory import is_keyed, power_of_two
from shedjoin.engine.records import (
    CELL_RECORD,
    NONE,
    THRESHOLD_RECORD,
)
from shedjoin.engine.stages import ages, sampling
from shedjoin.engine.stages.sketch import GOLDEN
from shedjoin.engine.stored import Columns, Integers, cards_of, count_bytes
from shedjoin.engine.structures import heap

# The hash as plain Python, which takes whole arrays.
_mix = getattr(sampling.mix, "py_func", sampling.mix)


def build_order(
    cfg: NDArray[Any],
    state: Handle,
    items: Integers,
    prio: NDArray[np.float64] | None = None,
    place: NDArray[Any] | None = None,
) -> None:
    """Put stored tuples, in the order of their arrival, into the order of a policy, whose arrays are empty.

    Priorities that are not given are fixed as if all tuples arrived now.
    """
    organisation = int(cfg[0]["organisation"])
    state["heap_size"] = state["sorted"] = 0
    state["bound"] = -np.inf
    if not is_keyed(cfg) and cfg[0]["weighed"] and not cfg[0]["alone"] and organisation not in (KEY, LIFE):
        _run_order(cfg, state, items[:0])  # cells know their chances then
    if organisation == KEEP:
        return
    pool, cards = state.arrays["pool"][items], cards_of(cfg, state, items)
    if organisation in (KEY, LIFE):
        _build_groups(cfg, state, items, pool, cards)
    elif organisation == RANDOM:
        for stream in range(int(cfg[0]["streams"])):
            mine = np.flatnonzero(pool["stream"] == stream)
            order = mine if place is None else mine[np.argsort(place[mine])]
            state.arrays["dense"][stream, : mine.size] = items[order]
            state.arrays["place"][items[order]] = np.arange(mine.size)
            state["heap_size"][stream] = mine.size
        return
    elif organisation == SCHEDULE:
        prio = state.arrays["until"][state.arrays["until_from"][pool["stream"]] + cards["seq"]].astype(np.float64)
    if organisation == AGE:
        step = cfg[0]["age_step"][: state.arrays["cohorts"].shape[0]]
        state["age_now"][: step.size] = state["base"][: step.size] // step
        if prio is not None:
            _build_cohorts(cfg, state, items, prio, pool, cards)
            return
    if prio is not None:
        rank = np.zeros(items.size) if organisation == SCHEDULE else cards["importance"]
        _build_heaps(state, pool["stream"], items, prio, rank)
        if organisation == CUMULATIVE:
            state.arrays["prio"][items] = prio
        return
    _run_order(cfg, state, items if organisation in (TUPLE, SAMPLE, *FOLLOWING) else items[:0])


def _build_heaps(
    state: Handle, number: NDArray[Any], items: Integers, prio: NDArray[np.float64], rank: NDArray[np.float64]
) -> None:
    """Lazily sorted heaps, by the number of each tuple's, of which only priorities of -infinity, their bound, are sorted yet."""
    arrival = state.arrays["pool"]["arrival"]
    for one in range(state.arrays["heap"].shape[0]):
        mine = np.flatnonzero(number == one)
        mine = mine[np.lexsort((rank[mine], prio[mine] > -np.inf))]  # stable: of equal ranks the earlier arrival first
        state["sorted"][one] = int((prio[mine] == -np.inf).sum())
        there = state.arrays["heap"][one, heap.TOP : heap.TOP + mine.size]
        there["prio"], there["rank"], there["item"] = prio[mine], rank[mine], items[mine]
        there["arrival"] = arrival[items[mine]]
        state.arrays["place"][items[mine]] = np.arange(heap.TOP, heap.TOP + mine.size)
        state["heap_size"][one] = mine.size


def build_samples(cfg: NDArray[Any], state: Handle, items: Integers, columns: Columns) -> None:
    """Sample: both parts of memory, and what was evicted."""
    streams = int(cfg[0]["streams"])
    stream, weight, since = columns["tuple stream"].astype(np.int64), columns["tuple weight"], columns["tuple since"]
    kept = since == sampling.KEPT
    _run_order(cfg, state, items[:0])
    state.arrays["prio"][items], state.arrays["since"][items] = weight, since
    prio = np.where(kept, weight, weight / _lots(int(state["salt"]), stream, columns["tuple seq"]))
    _build_heaps(state, np.where(kept, streams + stream, stream), items, prio, np.zeros(items.size))
    for one in range(streams):
        stamps = columns[f"threshold stamp {one}"]
        state["threshold_count"][one] = stamps.size
    room = power_of_two(1 + int(state["threshold_count"].max()))
    thresholds = np.zeros((streams, max(room, state.arrays["thresholds"].shape[1])), THRESHOLD_RECORD)
    for one in range(streams):
        for name in ("stamp", "prio"):
            thresholds[name][one, : int(state["threshold_count"][one])] = columns[f"threshold {name} {one}"]
    state.hold(thresholds=thresholds)
    count_bytes(cfg, state, items)
    state.arrays["moments"][:] = columns["sampling moments"]


def _lots(salt: int, stream: Integers, seq: Integers) -> NDArray[np.float64]:
    """As `sampling.lot`, of many rows."""
    with np.errstate(over="ignore"):
        row = _mix(seq.astype(np.uint64) * np.uint64(16) + stream.astype(np.uint64) + GOLDEN)
        bits = (_mix(np.uint64(salt) + row) >> np.uint64(11)).astype(np.int64)
    made: NDArray[np.float64] = (bits + 1) * 2.0**-53
    return made


def _build_groups(cfg: NDArray[Any], state: Handle, items: Integers, pool: NDArray[Any], cards: NDArray[Any]) -> None:
    """Which tuple of each group goes first, and the pairing heap of the others below it."""
    groups = state.arrays["buckets"]
    groups["low"] = NONE
    group = pool["group"].astype(np.int64)
    if cfg[0]["fifo"]:
        order = np.argsort(group, kind="stable")
        _, first = np.unique(group[order], return_index=True)
        groups["low"][group[order[first]]] = items[order[first]]
        if not is_keyed(cfg) and not cfg[0]["alone"]:
            _build_links(state, items[order], group[order])
        return
    numbers = state.arrays["window_number"][items] if cfg[0]["let_in"] else cards["seq"]
    rank = np.array(
        [_rank_of(cfg, *one) for one in zip(pool["stream"], cards["importance"], cards["ts"], numbers, strict=True)]
    )
    root, low = _build_pairing_heaps(state, items, group, rank, pool["arrival"])
    groups["low"][root] = low


def _build_pairing_heaps(
    state: Handle, items: Integers, group: Integers, rank: NDArray[np.float64], arrival: Integers
) -> tuple[Integers, Integers]:
    """A pairing heap of the tuples of each group; returns the groups and the root of each."""
    order = np.lexsort((arrival, rank, group))
    items, group, more = items[order], group[order], state.arrays["more"]
    more["rank"][items], more["arrival"][items] = rank[order], arrival[order]
    first = np.append(True, group[1:] != group[:-1])[: group.size]
    last = np.append(first[1:], True)[: group.size]
    before, after = np.append(NONE, items[:-1]), np.append(items[1:], NONE)
    # The lowest is the root, and all others hang below it side by side.
    more["child"][items] = np.where(first & ~last, after, NONE)
    more["sibling"][items] = np.where(~first & ~last, after, NONE)
    more["back"][items] = np.where(first, NONE, before)
    more["ahead"][items] = NONE
    return group[first], items[first]


def _build_cohorts(
    cfg: NDArray[Any],
    state: Handle,
    items: Integers,
    prio: NDArray[np.float64],
    pool: NDArray[Any],
    cards: NDArray[Any],
) -> None:
    """The tuples of each age, as they were weighed."""
    stream = pool["stream"].astype(np.int64)
    numbers = state.arrays["window_number"][items] if cfg[0]["let_in"] else cards["seq"]
    window = cfg[0]["window"][stream]
    end = np.where(cfg[0]["kind"][stream] == ROW, numbers + window + 1, cards["ts"] + window)
    step = end // cfg[0]["age_step"][stream]
    left = step - state["age_now"][stream]
    place = np.where(left < 0, ages.PAST, np.where(left < ages.PLACES, step & (ages.PLACES - 1), ages.FAR))
    place = np.where(place < ages.PLACES, place + ages.PLACES * state.arrays["since"][items], place)
    state["age_top"][: state.arrays["cohorts"].shape[0]] = ages.PLACES - 1
    state.arrays["prio"][items], state.arrays["place"][items] = prio, place
    rank = np.where(place == ages.FAR, end.astype(np.float64), prio)
    group, cohorts = stream * ages.COHORTS + place, state.arrays["cohorts"].reshape(-1)
    named, root = _build_pairing_heaps(state, items, group, rank, pool["arrival"])
    cohorts["root"][named] = root
    cohorts["prio"][named], cohorts["arrival"][named] = (
        state.arrays["prio"][root],
        state.arrays["more"]["arrival"][root],
    )
    np.add.at(cohorts["count"], group, 1)
    np.add.at(cohorts["expected"], group, (np.minimum(prio, ages.MOST_EXPECTED) * ages.UNIT).astype(np.int64))
    np.add.at(state["heap_size"], stream, 1)


def _build_links(state: Handle, items: Integers, group: Integers) -> None:
    """The queue of each cell, oldest first."""
    link, cells = state.arrays["link"].reshape(-1, 2), state.arrays["buckets"].view(CELL_RECORD)
    first = np.append(True, group[1:] != group[:-1])[: group.size]
    last = np.append(first[1:], True)[: group.size]
    link[items, 0] = np.where(first, NONE, np.append(NONE, items[:-1]))
    link[items, 1] = np.where(last, NONE, np.append(items[1:], NONE))
    cells["tail"][group[last]] = items[last]


def _rank_of(cfg: NDArray[Any], stream: int, importance: float, ts: int, seq: int) -> float:
    """As `priority.rank_of`: kernels and Python take the same logarithm, numpy does not."""
    window = int(cfg[0]["window"][stream])
    end = int(seq) + window + 1 if cfg[0]["kind"][stream] == ROW else int(ts) + window
    if cfg[0]["organisation"] == LIFE:
        return float(end)
    if cfg[0]["combine"] == PRODUCT:
        return float(importance) if cfg[0]["importance"] else 1.0
    age = float(cfg[0]["life"]) * (end / int(cfg[0]["range"][stream]))
    weight = float(cfg[0]["importance"])
    if cfg[0]["combine"] == LOGSUM:
        return weight * math.log(importance) + age
    return weight * float(importance) + age


def _run_order(cfg: NDArray[Any], state: Handle, items: Integers) -> None:
    """Let the kernels put groups, or tuples, in order."""
    buffers = push_buffers.make(cfg, state)
    buffers.hold(out_fresh=items.astype(np.int64))
    buffers["turn"], buffers["fresh"] = protocol.ORDER, items.size
    loop.advance(cfg, state, buffers)
