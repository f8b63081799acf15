"""Making the arrays of a state, and larger ones when a join outgrows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import heap, keytable, kinetic, learn, mem, neighbours, shelf, weigh
from shedjoin.engine.codes import CUMULATIVE, DECAYED, IN_WINDOW, KEY, LEARNED, LIFE, RANDOM, SCHEDULE, TUPLE
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.jit import entry
from shedjoin.engine.plan import Plan
from shedjoin.engine.state import (
    EXPIRY_RECORD,
    HEAP_RECORD,
    KEY_RECORD,
    LEAF_RECORD,
    MATCH_RECORD,
    MORE_RECORD,
    NEVER,
    NONE,
    SEEN_RECORD,
    SHELF_RECORD,
    SIDES_RECORD,
    STATE_RECORD,
    TRAIL_RECORD,
    TUPLE_RECORD,
)

Arrays = dict[str, NDArray[Any]]
Shapes = dict[str, tuple[int, ...]]
#: The pool, the table of keys and the ring of expiry are never smaller, and always a power of two.
LEAST = 1024
#: Room for this much of a budget is made at once, for more as it is needed: a cap is no forecast.
AT_ONCE = 1 << 14


def allocate(plan: Plan, how: NDArray[Any], seed: int) -> Handle:
    """The empty memory of a new join."""
    known = sum(table[0].size for table in plan.tables if table is not None)
    capped = plan.budget.tuples or 0 if plan.budget is not None else 0
    tuples, keys = power_of_two(LEAST + min(capped, AT_ONCE)), power_of_two(LEAST + known)
    st = Handle(STATE_RECORD)
    st.hold(**_pool_arrays(how, tuples, plan.lateness > 0), **_key_arrays(how, keys), **_heap_arrays(how, tuples, keys))
    until = plan.schedule or (np.zeros(1, np.int64), np.zeros(1, np.int64))
    st.hold(
        shelf=_cache_lines(4096, SHELF_RECORD),
        expiry=np.zeros((STREAMS, LEAST), EXPIRY_RECORD),
        seen=np.zeros((STREAMS, LEAST if remembers_arrivals(how) else 1), SEEN_RECORD),
        sketch=np.zeros(STREAMS * plan.weigher.depth * plan.weigher.width, np.int64),
        model=_first_model(model_shape(how)),
        until0=until[0],
        until1=until[1],
    )
    measure(st)
    st["clock"] = st["base"] = NEVER
    st["bound"] = -np.inf
    st["free_shelf"] = NONE
    st["free_count"], st["free_key_count"] = tuples, keys
    st["random"] = first_random_state(seed)
    for stream, table in enumerate(plan.tables):
        if table is not None:
            _preload(st.for_kernel(), stream, *table)
    return st


def measure(st: Handle) -> None:
    """Tell the kernels how long the arrays are."""
    for name, array in st.arrays.items():
        st.resize(**{name: array.shape[-1]})


def power_of_two(least: int) -> int:
    """The smallest power of two from `least` on."""
    return 1 << (least - 1).bit_length()


def first_random_state(seed: int) -> int:
    """splitmix64's first output, so that seeds that look alike start far apart."""
    mask = 2**64 - 1
    x = (seed + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return (x ^ (x >> 31)) or 1


def _free_stack(first: int, size: int) -> NDArray[np.int32]:
    """Places first .. size - 1, the lowest on top."""
    return np.arange(size - 1, first - 1, -1, dtype=np.int32)


def _cache_lines(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start where a cache line does."""
    memory = np.zeros(size * dtype.itemsize + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip : skip + size * dtype.itemsize].view(dtype)


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that starts where a cache line does."""
    copy = _cache_lines(array.size, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _heaps(shape: tuple[int, ...]) -> NDArray[Any]:
    """An empty heap for each stream, aligned so that siblings share cache lines."""
    return _cache_lines(shape[0] * shape[1], HEAP_RECORD).reshape(shape)


def empty_matches(shape: tuple[int, ...]) -> NDArray[Any]:
    """A tournament for each stream that no key plays in."""
    match = _cache_lines(shape[0] * shape[1], MATCH_RECORD).reshape(shape)
    match["doubt"] = kinetic.SURE
    match["winner"] = NONE
    return match


def _heap_shape(entries: int) -> tuple[int, int]:
    return STREAMS, entries + heap.TOP + 1  # a multiple of four for every power of two from four on


def shapes(how: NDArray[Any], tuples: int, keys: int, strays: bool) -> Shapes:
    """The shapes of the arrays that belong to a pool and a table of keys of these sizes."""
    return _pool_shapes(how, tuples, strays) | _key_shapes(how, keys) | _heap_shapes(how, tuples, keys)


def _pool_shapes(how: NDArray[Any], size: int, strays: bool) -> Shapes:
    organisation = how[0]["organisation"]
    leaves = size if organisation == LIFE else 1
    more = organisation in (KEY, LIFE) and not how[0]["fifo"]
    cumulative = size if organisation == CUMULATIVE else 1
    return {
        "pool": (size,),
        "more": (size if more else 1,),
        "free": (size,),
        "stray": _heap_shape(size if strays else 1),
        "stray_place": (size if strays else 1,),
        "dense": (STREAMS, size if organisation in (RANDOM, LIFE) else 1),
        "cumulated": (cumulative,),
        "touched": (cumulative,),
        "match": (STREAMS, 2 * leaves),
        "leaf": (STREAMS, leaves),
    }


def remembers_arrivals(how: NDArray[Any]) -> bool:
    """Whether the estimator has a memory of arrivals."""
    return how[0]["estimator"] in (IN_WINDOW, LEARNED)


def model_shape(how: NDArray[Any]) -> tuple[int, int]:
    """The shape of what Prospect has learned."""
    return STREAMS, learn.NUMBERS if how[0]["estimator"] == LEARNED else 1


def _first_model(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A model that has learned nothing yet."""
    model = np.zeros(shape)
    if shape[1] > 1:
        for feature in range(learn.FEATURES):
            model[:, learn.COEFFICIENT + feature] = learn.first_guess(feature)
        model[0, learn.NEAR + neighbours.TURNS] = 1.0 / neighbours.PLACES
    return model


def _key_shapes(how: NDArray[Any], size: int) -> Shapes:
    return {
        "keys": (size,),
        "sides": (size,),
        "mass": (STREAMS, size if how[0]["estimator"] == DECAYED else 1),
        "trail": (STREAMS, size if how[0]["estimator"] == LEARNED else 1),
        "buckets": (2 * size,),
        "free_keys": (size,),
        "probed": (STREAMS, size if how[0]["organisation"] == CUMULATIVE else 1),
    }


def _heap_shapes(how: NDArray[Any], tuples: int, keys: int) -> Shapes:
    organisation = int(how[0]["organisation"])
    entries = {KEY: keys, TUPLE: tuples, CUMULATIVE: tuples, SCHEDULE: tuples}.get(organisation, 1)
    return {
        "heap": _heap_shape(entries),
        "place": (STREAMS, {RANDOM: tuples, LIFE: keys}.get(organisation, entries)),
    }


def _pool_arrays(how: NDArray[Any], size: int, strays: bool) -> Arrays:
    shape = _pool_shapes(how, size, strays)
    return {
        "pool": _cache_lines(size, TUPLE_RECORD),
        "more": np.zeros(shape["more"], MORE_RECORD),
        "free": _free_stack(0, size),
        "stray": _heaps(shape["stray"]),
        "stray_place": np.full(shape["stray_place"], NONE, np.int32),
        "dense": np.tile(np.arange(shape["dense"][1], dtype=np.int32), (STREAMS, 1)),
        "cumulated": np.zeros(shape["cumulated"]),
        "touched": np.zeros(shape["touched"], np.int64),
        "match": empty_matches(shape["match"]),
        "leaf": np.zeros(shape["leaf"], LEAF_RECORD),
    }


def _key_arrays(how: NDArray[Any], size: int) -> Arrays:
    shape = _key_shapes(how, size)
    return {
        "keys": np.zeros(size, KEY_RECORD),
        "sides": _cache_lines(size, SIDES_RECORD),
        "mass": np.zeros(shape["mass"]),
        "trail": _cache_lines(STREAMS * shape["trail"][1], TRAIL_RECORD).reshape(shape["trail"]),
        "buckets": np.full(shape["buckets"], NONE, np.int32),
        "free_keys": _free_stack(0, size),
        "probed": np.full(shape["probed"], NONE, np.int64),
    }


def _heap_arrays(how: NDArray[Any], tuples: int, keys: int) -> Arrays:
    shape = _heap_shapes(how, tuples, keys)
    return {"heap": _heaps(shape["heap"]), "place": np.full(shape["place"], NONE, np.int32)}


def exchange(st: Handle, new: Arrays, *, but: tuple[str, ...] = ()) -> Arrays:
    """Put larger arrays behind the handle, the old contents at their beginning; returns the old arrays."""
    old = {name: st.arrays[name] for name in new}
    for name, array in new.items():
        if name not in but:
            array[tuple(slice(0, length) for length in old[name].shape)] = old[name]
    st.hold(**new)
    measure(st)
    return old


def grow_pool(how: NDArray[Any], st: Handle, room: int) -> None:
    """Room for at least `room` more tuples."""
    before = st.arrays["pool"].size
    size = power_of_two(max(2 * before, before - int(st["free_count"]) + room))
    strays = st.arrays["stray_place"].size > 1
    new = _pool_arrays(how, size, strays) | _heap_arrays(how, size, st.arrays["keys"].size)
    old = exchange(st, new, but=("free", "match"))
    stack_more(st, "free", "free_count", old["free"])
    if how[0]["organisation"] == LIFE:
        st.arrays["match"][:, size : size + before] = old["match"][:, before:]
        replay_tournaments(st)


def grow_keys(how: NDArray[Any], st: Handle, room: int) -> None:
    """Room for at least `room` more keys."""
    before = st.arrays["keys"].size
    size = power_of_two(max(2 * before, before - int(st["free_key_count"]) + room))
    new = _key_arrays(how, size) | _heap_arrays(how, st.arrays["pool"].size, size)
    old = exchange(st, new, but=("free_keys", "buckets"))
    stack_more(st, "free_keys", "free_key_count", old["free_keys"])
    _rehash(st.arrays["keys"], old["buckets"], st.arrays["buckets"])


def stack_more(st: Handle, stack: str, count: str, old: NDArray[np.int32]) -> None:
    """New places go below the old ones: low places are used first."""
    free = st.arrays[stack]
    held, added = int(st[count]), free.size - old.size
    free[:added] = _free_stack(old.size, free.size)
    free[added : added + held] = old[:held]
    st[count] = held + added


def grow_seen(st: Handle, room: int) -> None:
    """Room for at least `room` more arrivals in InWindow's memory."""
    old = st.arrays["seen"]
    size = power_of_two(max(2 * old.shape[1], int(st["seen_size"].max()) + room))
    seen = np.zeros((len(old), size), SEEN_RECORD)
    for stream in range(len(old)):
        held = int(st["seen_size"][stream])
        seen[stream, :held] = np.roll(old[stream], -int(st["seen_head"][stream]))[:held]
    st["seen_head"] = 0
    st.hold(seen=seen)
    measure(st)


def grow_expiry(st: Handle, room: int) -> None:
    """Room for at least `room` more tuples in the order of expiry."""
    old = st.arrays["expiry"]
    span = st["ring_to"] - st["ring_from"]
    size = power_of_two(max(2 * old.shape[1], int(span.max()) + room))
    expiry = np.zeros((STREAMS, size), EXPIRY_RECORD)
    for stream in range(STREAMS):
        counters = np.arange(int(st["ring_from"][stream]), int(st["ring_to"][stream]))
        expiry[stream, counters & (size - 1)] = old[stream, counters & (old.shape[1] - 1)]
        items, places = expiry[stream, counters & (size - 1)]["item"], counters & (size - 1)
        there = items != NONE
        st.arrays["pool"]["queued"][items[there]] = places[there]
    st.hold(expiry=expiry)
    measure(st)


def grow_shelves(st: Handle, room: int) -> None:
    """A new arena for the shelves, with room for at least one more of `room` places."""
    old = Handle(STATE_RECORD)
    old.hold(shelf=st.arrays["shelf"])
    size = power_of_two(2 * (_needed(st.for_kernel()) + room))
    st.hold(shelf=_cache_lines(size, SHELF_RECORD))
    measure(st)
    _repack(st.for_kernel(), old.for_kernel())


def replay_tournaments(st: Handle) -> None:
    """Play LIFE's tournaments again, from the leaves up."""
    _replay(st.for_kernel())


def make_room_for_keys(how: NDArray[Any], st: Handle, room: int) -> None:
    """Forget what can be forgotten; grow when that is not plenty."""
    _sweep(how, st.for_kernel())
    if int(st["free_key_count"]) < max(room, st.arrays["keys"].size // 2):
        grow_keys(how, st, room)


@entry
def _sweep(settings, state):  # type: ignore[no-untyped-def]
    weigh.sweep(settings[0], state[0])
    return keytable.forget_idle(state[0])


@entry
def _rehash(keys, old, new):  # type: ignore[no-untyped-def]
    for i in range(old.size):
        slot = old[i]
        while slot != NONE:
            following = keys[slot]["next"]
            bucket = keytable.bucket_of(keys[slot]["key"], new.size)
            keys[slot]["next"] = new[bucket]
            new[bucket] = slot
            slot = following


@entry
def _needed(state):  # type: ignore[no-untyped-def]
    return shelf.needed(state[0])


@entry
def _repack(state, source):  # type: ignore[no-untyped-def]
    shelf.repack(state[0], source[0])


@entry
def _replay(state):  # type: ignore[no-untyped-def]
    st = state[0]
    for stream in range(STREAMS):
        kinetic.replay_all(st, stream)


@entry
def _preload(state, stream, keys, weights):  # type: ignore[no-untyped-def]
    """Keys of a table are known from the start and never forgotten."""
    st = state[0]
    for i in range(keys.size):
        slot = keytable.find_or_add(st, keys[i])
        mem.keys(st, slot)["held"] = 1
        mem.sides(st, slot)["weight"][stream] = weights[i]
