"""Other numbers for a policy while its join runs: estimates go on from what they are now, and the order is made anew."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import front, mem, memory, order, pairing, shelf
from shedjoin.engine.codes import CUMULATIVE, DECAYED, KEY, LIFE, PRODUCT, TUPLE
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.jit import entry, kernel
from shedjoin.engine.state import MORE_RECORD, NONE


def adopt(was: NDArray[Any], how: NDArray[Any], st: Handle) -> None:
    """Go on by the settings `how` with a state that was made by the settings `was`; only the policy's numbers differ."""
    if was[0]["half_life"] != how[0]["half_life"]:
        _count_from_now(was, st.for_kernel())
    size = memory.shapes(how, st.arrays["pool"].size, st.arrays["keys"].size, False)["more"][0]
    if st.arrays["more"].size != size:  # inside a key, tuples have ranks now, or have none any more
        st.hold(more=np.zeros(size, MORE_RECORD))
        memory.measure(st)
    _reorder(how, st.for_kernel())
    if how[0]["organisation"] == LIFE:  # matches were played while some weights were old and some were new
        memory.replay_tournaments(st)


@entry
def _count_from_now(settings, state):  # type: ignore[no-untyped-def]
    """Decayed: counts become what they have decayed to; from here on the new half-life holds."""
    how, st = settings[0], state[0]
    if how["estimator"] != DECAYED or st["started"] == 0:
        return
    now = max(st["clock"][0], st["clock"][1])
    left = math.exp2(-order.half_lives(how, st, now))
    as_they_stand = how["organisation"] != KEY or how["combine"] == PRODUCT
    for slot in range(st["keys_room"]):
        for stream in range(STREAMS):
            mem.mass(st)[stream, slot] *= left
            if as_they_stand:
                mem.sides(st, slot)["weight"][stream] = mem.mass(st)[stream, slot]
    st["t0"] = now
    st["epoch"] = 0


@entry
def _reorder(settings, state):  # type: ignore[no-untyped-def]
    how, st = settings[0], state[0]
    organisation = how["organisation"]
    if organisation != TUPLE and organisation != KEY and organisation != CUMULATIVE and organisation != LIFE:
        return
    if organisation != LIFE:  # whose keys have their leaves already
        front.clear(st)
        mem.place(st)[:, :] = NONE
    for bucket in range(st["buckets_room"]):
        slot = int(mem.buckets(st, bucket))
        while slot != NONE:
            for stream in range(STREAMS):
                _reorder_key(how, st, stream, slot)
            slot = int(mem.keys(st, slot)["next"])
    if organisation == CUMULATIVE and st["tick"] > 0:
        st["lift"] = 0.0
        st["lift_tick"] = st["tick"] - 1


@kernel
def _reorder_key(how, st, stream, slot):  # type: ignore[no-untyped-def]
    side = mem.sides(st, slot)
    if how["organisation"] == KEY:
        side["low"][stream] = NONE
    if side["count"][stream] == 0:
        return
    base, first, last_place = int(side["shelf"][stream]), int(side["first"][stream]), int(side["room"][stream]) - 1
    if how["organisation"] != LIFE:
        for k in range(side["span"][stream]):
            x = int(mem.shelf(st, base + ((first + k) & last_place))["item"])
            if x != NONE:
                _reorder_tuple(how, st, stream, slot, x)
    order.reweigh(how, st, stream, slot)


@kernel
def _reorder_tuple(how, st, stream, slot, x):  # type: ignore[no-untyped-def]
    """What is fixed on arrival is fixed as if the tuple arrived now; what was gathered is kept."""
    card, arrival = shelf.of(st, x), mem.pool(st, x)["arrival"]
    if how["organisation"] == TUPLE:
        front.push(st, stream, order.fixed_priority(how, st, x), card["importance"], arrival, x)
    elif how["organisation"] == CUMULATIVE:
        value = mem.cumulated(st)[x] - st["lift"]
        mem.cumulated(st)[x] = value
        front.push(st, stream, value, card["importance"], arrival, x)
    elif how["fifo"]:
        low = mem.sides(st, slot)["low"]
        if low[stream] == NONE:
            low[stream] = x
    else:
        more, low = mem.more(st, x), mem.sides(st, slot)["low"]
        more["rank"] = order.rank_of(how, stream, card["importance"], card["ts"], card["seq"])
        more["arrival"] = arrival
        low[stream] = pairing.insert(st, int(low[stream]), x)
