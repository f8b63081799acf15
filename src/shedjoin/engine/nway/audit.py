"""The audit of an n-way join's state that comes from outside; what can be made anew is made anew rather than audited.

Kernels use numbers out of their arrays as places in other arrays. After the audit it is safe to run whatever passes. Cells,
slots and the order of cells follow from the tuples and the weights, so that they are built again.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine.codes import CUMULATIVE, IN_WINDOW, KEY, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.consistent import check_heap, check_queue, check_raised, not_on_stack, require, within
from shedjoin.engine.handle import Handle
from shedjoin.engine.memory import LEAST, measure
from shedjoin.engine.nway import memory
from shedjoin.engine.nway.arrays import shapes
from shedjoin.engine.nway.plan import NPlan
from shedjoin.engine.nway.state import COUNTERS, MOST
from shedjoin.engine.state import NEVER, NONE

#: No join has counted so far: sums of two such numbers do not overflow.
ENDLESS = 2**62
Arrays = dict[str, NDArray[Any]]


def audit(plan: NPlan, how: NDArray[Any], st: Handle, fresh: Arrays) -> None:
    """Make sure that kernels can run on this state; raises SnapshotError, with what is wrong, where they cannot.

    `fresh` are the arrays of a new join: what never changes must be as it is there.
    """
    _check_shapes(plan, how, st, fresh)
    measure(st)
    _check_numbers(plan, st)
    used = not_on_stack(st.arrays["free"], int(st["free_count"]), "places in the pool")
    _check_pool(plan, st, used)
    _check_expiry(plan, st, used)
    _check_rings(plan, how, st, used)
    _check_order(plan, how, st, used)
    if how[0]["weighed"]:
        _check_slots(plan, how, st)
        memory.rebuild_cells(how, st)
    _check_pending(how, st, used)


def _check_shapes(plan: NPlan, how: NDArray[Any], st: Handle, fresh: Arrays) -> None:
    shape = {name: array.shape for name, array in st.arrays.items()}
    sizes = {
        name: shape[name][-1] if shape[name] else 0 for name in ("pool", "slots", "cells", "expiry", "seen", "marks")
    }
    growing = ["pool", "expiry"] + ["slots", "cells"] * int(how[0]["weighed"])
    growing += ["seen"] * int(how[0]["estimator"] == IN_WINDOW)
    for name in growing:
        fits = sizes[name] >= LEAST and sizes[name] & (sizes[name] - 1) == 0
        require(fits, f"{name} has {sizes[name]} places, not a power of two from {LEAST} on")
    expected = shapes(plan, how, sizes["pool"], sizes["slots"], sizes["cells"])
    expected |= {
        "expiry": (plan.streams, sizes["expiry"]),
        "seen": (plan.streams, sizes["seen"] if how[0]["estimator"] == IN_WINDOW else 1),
    }
    for name in ("levels", "part_of", "sketch", "until", "until_from", "indexes"):
        expected[name] = fresh[name].shape
    for name, right in expected.items():
        require(shape[name] == right, f"{name} has the shape {shape[name]} where {right} belongs")
    require(sizes["marks"] >= 64 * MOST and sizes["marks"] % MOST == 0, f"marks has {sizes['marks']} places")
    for name in ("part_of", "until", "until_from"):
        require(np.array_equal(st.arrays[name], fresh[name]), f"{name} is not this join's")


def _check_numbers(plan: NPlan, st: Handle) -> None:
    """The counters that belong to no array."""
    for name in (*COUNTERS, "tick", "arrival", "peak_tuples", "peak_bytes"):
        require(0 <= st[name] <= ENDLESS, f"{name} is {int(st[name])}")
    arrived, clocks = st["arrived"][: plan.streams], st["clock"][: plan.streams]
    require(within(arrived, 0, LATEST + 1), f"{arrived.tolist()} rows have arrived")
    require((clocks == NEVER) | within(clocks, -LATEST, LATEST + 1), f"the clocks show {clocks.tolist()}")
    require(st["touched_count"] == 0, "tuples are touched between two instants")
    require(st["random"] != 0, "the random state is 0, which it never becomes")
    require(not np.isnan(st["importance"]), "the summed importance is not a number")
    require(0 <= st["lift_tick"] <= st["tick"], f"priorities are lifted from the instant {int(st['lift_tick'])} on")
    for stream, window in enumerate(plan.windows):
        require(st["kind"][stream] == plan.kinds[stream], f"stream {stream} has another kind of window")
        require(st["window"][stream] == window.size, f"stream {stream} has another window")
        mine = [number for number, index in enumerate(plan.indexes) if index.stream == stream]
        indexed = (int(st["first_index"][stream]), int(st["end_index"][stream]))
        require(indexed == (mine[0], mine[-1] + 1), f"stream {stream} has other indexes")
        require(st["factors"][stream] == plan.graph.factors(stream), f"stream {stream} has other factors")
    if plan.schedule is not None:
        known = [until.size for until in plan.schedule]
        require(arrived <= known, "more rows have arrived than Replay knows")


def _check_pool(plan: NPlan, st: Handle, used: NDArray[np.bool_]) -> None:
    pool, card = st.arrays["pool"][used], st.arrays["card"][used]
    require(within(pool["stream"], 0, plan.streams), "a tuple is of no stream")
    require(pool["met"] == 0, "a tuple is touched between two instants")
    require(pool["bytes"] > 0, "a tuple takes no bytes")
    require((card["seq"] >= 0) & (card["seq"] < st["arrived"][pool["stream"]]), "a tuple has a row number to come")
    require(within(card["ts"], -LATEST, LATEST + 1), "a tuple's time is out of range")
    require(np.isfinite(card["importance"]) & (card["importance"] > 0), "a tuple's importance is out of range")
    for stream in range(MOST):
        mine = pool["stream"] == stream
        require(int(mine.sum()) == st["resident"][stream], f"{int(st['resident'][stream])} tuples of stream {stream}")
        require(int(pool["bytes"][mine].sum()) == st["stored_bytes"][stream], f"the bytes of stream {stream} differ")


def _check_expiry(plan: NPlan, st: Handle, used: NDArray[np.bool_]) -> None:
    """Every tuple stands once in the order of expiry: in the ring, or in the heap of those that came out of order."""
    pool, ring = st.arrays["pool"], st.arrays["expiry"]
    room = ring.shape[1]
    for stream in range(plan.streams):
        first, to = int(st["ring_from"][stream]), int(st["ring_to"][stream])
        require(
            0 <= first <= to <= ENDLESS and to - first <= room, f"the ring of stream {stream} is from {first} to {to}"
        )
        places = (first + np.arange(to - first)) & (room - 1)
        items = ring[stream, places]["item"]
        there = items != NONE
        require(to == first or there[0], f"the ring of stream {stream} begins with a gap")
        inside, at = items[there], places[there]
        require(within(inside, 0, pool.size), "a tuple that expires is none")
        require(used[inside] & (pool["stream"][inside] == stream), "a tuple that expires is not stored")
        require(pool["queued"][inside] == at, "a tuple is said to stand elsewhere in the order of expiry")
        strays = check_heap(
            st.arrays["stray"][stream], st.arrays["stray_place"], int(st["stray_size"][stream]), "the strays' heap"
        )
        require(used[strays] & (pool["stream"][strays] == stream) & (pool["queued"][strays] == NONE), "a stray is none")
        total = inside.size + np.unique(strays).size
        require(total == st["resident"][stream], f"{total} tuples of stream {stream} expire")


def _check_rings(plan: NPlan, how: NDArray[Any], st: Handle, used: NDArray[np.bool_]) -> None:
    """Rings do not overlap, and every tuple stands where its value belongs, once in each index of its stream."""
    top, ring = int(st["ring_top"]), st.arrays["ring"]
    require(0 <= top <= ring.size, f"{top} of {ring.size} places of the arena are in use")
    st.hold(ring_key=ring["key"].copy())
    measure(st)
    buckets = st.arrays["buckets"]
    _check_indexes(plan, st)
    b = {name: buckets[name].astype(np.int64) for name in ("base", "room", "first", "span", "count")}
    live = b["room"] > 0
    require((b["room"] & (b["room"] - 1) == 0) & (b["room"] != 1) & (b["room"] >= 0), "a ring is of no power of two")
    require(~live | ((b["base"] >= 0) & (b["base"] + b["room"] <= top)), "a ring lies outside of the arena")
    require(~live | within(b["first"], 0, ENDLESS) & (b["first"] < b["room"]), "a ring begins outside of itself")
    require((b["count"] >= 0) & (b["count"] <= b["span"]) & (b["span"] <= b["room"]), "a ring holds more than it has")
    require((b["count"] > 0) | (b["span"] == 0), "an empty ring has a span")
    pieces = [(int(base), int(room)) for base, room in zip(b["base"][live], b["room"][live], strict=True)]
    pieces += _free_pieces(st, top)
    pieces.sort()
    apart = all(base + room <= other for (base, room), (other, _) in itertools.pairwise(pieces))
    require(apart, "two rings overlap")
    _check_entries(plan, how, st, used, b)


def _check_indexes(plan: NPlan, st: Handle) -> None:
    first = 0
    for index, there in zip(plan.indexes, st.arrays["indexes"], strict=True):
        many = int(there["many"])
        fits = many == index.buckets if index.buckets is not None else many >= 1 and many & (many - 1) == 0
        same = (int(there["stream"]), int(there["attr"]), int(there["modular"])) == (
            index.stream,
            index.attr,
            int(index.buckets is not None),
        )
        require(fits and same and int(there["first"]) == first, "an index is not this join's")
        first += many
    require(st.arrays["buckets"].shape == (first,), f"{first} buckets are indexed")


def _free_pieces(st: Handle, top: int) -> list[tuple[int, int]]:
    """The empty rings of all lists."""
    ring = st.arrays["ring"]
    pieces: list[tuple[int, int]] = []
    for number, head in enumerate(st["free_ring"].tolist()):
        room = 2 << number
        while head != NONE:
            require(head >= 0 and head + room <= top and len(pieces) <= top, "the lists of empty rings lead astray")
            pieces.append((head, room))
            head = int(ring[head]["item"])
    return pieces


def _check_entries(plan: NPlan, how: NDArray[Any], st: Handle, used: NDArray[np.bool_], b: Arrays) -> None:
    width, spots = int(how[0]["width"]), int(how[0]["spots"])
    pool, attr, ring = st.arrays["pool"], st.arrays["attr"].reshape(-1, width), st.arrays["ring"]
    which = dict.fromkeys(range(plan.streams), 0)
    for there in st.arrays["indexes"]:
        stream, first, many = int(there["stream"]), int(there["first"]), int(there["many"])
        number = np.repeat(np.arange(first, first + many), b["span"][first : first + many])
        step = np.arange(number.size) - np.repeat(
            np.cumsum(b["span"][first : first + many]) - b["span"][first : first + many],
            b["span"][first : first + many],
        )
        places = b["base"][number] + ((b["first"][number] + step) & (b["room"][number] - 1))
        entry = ring[places]
        held = entry["item"] != NONE
        counts = np.bincount(number[held] - first, minlength=many)
        require(np.array_equal(counts, b["count"][first : first + many]), "a bucket counts other tuples than it holds")
        ends = (step == 0) | (step == b["span"][number] - 1)
        require(held | ~ends, "a bucket begins or ends with a gap")
        x, entry, places, number = entry["item"][held], entry[held], places[held], number[held]
        require(within(x, 0, pool.size), "a bucket holds a tuple that there is not")
        require(used[x] & (pool["stream"][x] == stream), "a bucket holds a tuple that is not stored")
        require(
            st.arrays["spot"][x.astype(np.int64) * spots + which[stream]] == places,
            "a tuple is said to stand elsewhere",
        )
        require(x.size == st["resident"][stream], "an index holds more or fewer tuples than are stored")
        column = int(there["attr"])
        require(
            column < 0 or np.array_equal(entry["key"], attr[x, column]), "a bucket holds another value than its tuple"
        )
        require(
            number == first + _bucket_of(entry["key"], many, bool(there["modular"])), "a tuple is in the wrong bucket"
        )
        which[stream] += 1


def _bucket_of(key: NDArray[np.int64], many: int, modular: bool) -> NDArray[np.int64]:
    """`rings.bucket_of` for many values."""
    if many == 1:
        return np.zeros(key.size, np.int64)
    if modular:
        return key % many
    with np.errstate(over="ignore"):
        mixed = (key ^ (key >> 32)) * np.int64(0x9E3779B97F4A7C1)
    return ((mixed >> 24) ^ mixed) & (many - 1)


def _check_order(plan: NPlan, how: NDArray[Any], st: Handle, used: NDArray[np.bool_]) -> None:
    """What orders tuples; what orders cells is built again."""
    organisation, pool = int(how[0]["organisation"]), st.arrays["pool"]
    if organisation in (KEY, LIFE):
        return
    for stream in range(plan.streams):
        size, place = int(st["heap_size"][stream]), st.arrays["place"][stream]
        if organisation in (TUPLE, CUMULATIVE, SCHEDULE):
            front, bound = int(st["front"][stream]), float(st["bound"][stream])
            items = check_queue(st.arrays["heap"][stream], place, size, front, bound, "the queue of tuples")
            if organisation == CUMULATIVE:
                check_raised(st, stream)
        elif organisation == RANDOM:
            require(0 <= size <= place.size, f"a list has {size} tuples")
            items = st.arrays["dense"][stream, :size]
            require(within(items, 0, pool.size), "a list holds a tuple that there is not")
            require(place[items] == np.arange(size), "a tuple is said to stand elsewhere in its list")
        else:
            continue
        require(used[items] & (pool["stream"][items] == stream), "what is ordered is not stored")
        require(np.unique(items).size == size == st["resident"][stream], "not all tuples are ordered")


def _check_slots(plan: NPlan, how: NDArray[Any], st: Handle) -> None:
    used = not_on_stack(st.arrays["free_slots"], int(st["free_slot_count"]), "slots of values")
    slots, parts = st.arrays["slots"], len(plan.graph.parts)
    require(within(slots["part"][used], 0, max(parts, 1)), "a value is of no attribute")
    require(~np.isnan(st.arrays["weight"]), "a weight is not a number")
    require(~np.isnan(st.arrays["mass"]), "a count is not a number")
    _check_values(plan, how, st, used)
    if how[0]["estimator"] != IN_WINDOW:
        return
    seen = st.arrays["seen"]
    room = seen.shape[1]
    for stream in range(plan.streams):
        head, size = int(st["seen_head"][stream]), int(st["seen_size"][stream])
        require(0 <= head < room and 0 <= size <= room, f"{size} rows were seen from {head} on")
        places = (head + np.arange(size)) & (room - 1)
        remembered = seen[stream, places]["slot"]
        require(within(remembered, 0, slots.size), "a row that was seen has no value")
        require(used[remembered], "a row that was seen has a value that is not known")


def _check_values(plan: NPlan, how: NDArray[Any], st: Handle, used: NDArray[np.bool_]) -> None:
    """Every value of a stored tuple has its slot."""
    stored = not_on_stack(st.arrays["free"], int(st["free_count"]), "places in the pool")
    pool, slots = st.arrays["pool"], st.arrays["slots"][used]
    attr = st.arrays["attr"].reshape(-1, int(how[0]["width"]))
    for number, part in enumerate(plan.graph.parts):
        known = slots["key"][slots["part"] == number]
        for stream, column in part.items():
            values = attr[stored & (pool["stream"] == stream), column]
            require(np.isin(values, known), "a stored tuple has a value that is not known")


def _check_pending(how: NDArray[Any], st: Handle, used: NDArray[np.bool_]) -> None:
    count = int(st["pending_count"])
    require(0 <= count <= (st.arrays["pending"].size if how[0]["evaluate_every"] else 0), f"{count} tuples are pending")
    items = st.arrays["pending"][:count]
    require(within(items, 0, used.size), "a pending tuple is none")
    require(used[items], "a pending tuple is not stored")
    first = int(st["first_mark"])
    require(0 <= first <= st["tick"], f"the first mark is of instant {first}")
    if how[0]["evaluate_every"]:
        require(
            (int(st["tick"]) - first) * MOST <= st.arrays["marks"].size, "more instants are pending than are marked"
        )
        ticks = st.arrays["card"]["tick"][items]
        require((ticks >= first) & (ticks < st["tick"]), "a pending tuple came in no marked instant")
