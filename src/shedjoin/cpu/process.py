"""One row through the join: clocks, expiry, probe, store."""

from __future__ import annotations

from shedjoin.cpu import needs
from shedjoin.cpu import state as cs
from shedjoin.cpu.codes import BY_IMPORTANCE, BY_MATCHES, LOWEST, NEVER
from shedjoin.cpu.memory import compete, effective, enter_heap, expire
from shedjoin.cpu.select import probe, worth
from shedjoin.cpu.shed_log import has_no_room, record
from shedjoin.engine.codes import LATE, PARTIAL
from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import state as mem
from shedjoin.predicates import store
from shedjoin.predicates.terms import Card, Value, rule_of


@kernel
def is_own(how, number_in_stream):
    """Whether a row is stored and counted here. In a join that is split over several engines, each row is so in one of
    them, and probes all."""
    return number_in_stream % how["parts"] == how["part"]


@inlined
def _begin(how, st, io, ts):
    """At the border of an instant, those of the last one compete for memory. Returns DONE or what is needed."""
    if has_no_room(io):
        return needs.SHED
    if ts != st["last_ts"]:
        if not compete(how, st, io):
            return needs.SHED
        st["last_ts"] = ts
        st["processed"] += 1
        if has_no_room(io):
            return needs.SHED
    return needs.DONE


@inlined
def _room(how, st, io, stream, value, own):
    """What must be there before a row can probe and be stored."""
    if how["emit"] and io["out_left_room"] - io["pairs"] < st["resident"][1 - stream]:
        io["wanted"] = st["resident"][1 - stream]
        return needs.PAIRS
    if own:
        part = store.wanting(st, rule_of(how), stream, value)
        if part != store.ENOUGH:
            io["part"], io["wanted"] = part, value.size + 1
            return needs.STORE
    return needs.DONE


@inlined
def _give(how, st, io, stream, card, hits):
    """Write the results of a probe."""
    found, rows, times, worths = mem.hit_of(st), mem.row_of(st), mem.ts_of(st), mem.importance_of(st)
    left, right, out = cs.out_left_of(io), cs.out_right_of(io), cs.out_worth_of(io)
    at = io["pairs"]
    for h in range(hits):
        slot = found[h]
        value = worth(how, card.importance, worths[slot])
        if max(card.ts, times[slot]) >= how["warmup"]:
            st["matches"] += 1
            st["importance_sum"] += value
            if how["emit"]:
                left[at] = card.row if stream == 0 else rows[slot]
                right[at] = rows[slot] if stream == 0 else card.row
                out[at] = value
                at += 1
    io["pairs"] = at
    st["results"] += hits


@inlined
def _meet(how, st, io, stream, card, value):
    """A row probes the opposite window; returns how many partners it found."""
    effort = io["effort"]
    effort[0] = 0
    effort[1] = 0
    partial = st["partial"]
    hits = probe(how, st, stream, card, value, effort)
    if st["partial"] != partial:
        record(st, io, stream, card.row, card.ts, PARTIAL)
    st["compared"] += effort[0]
    st["looked_up"] += effort[1]
    st["worked"] += how["probe_cost"] + how["compare_cost"] * effort[0] + how["lookup_cost"] * effort[1]
    _give(how, st, io, stream, card, hits)
    return hits


@inlined
def _store(how, st, stream, card, value, hits, waiting_prio):
    """A row enters its window. `waiting_prio`: its priority while it waited in the queue."""
    if card.ts < st["floor"][stream]:
        st["expired"] += 1  # over before it could be stored: no later row may meet it
        return
    slot = store.put(st, rule_of(how), stream, card, value)
    if how["victim"] == LOWEST:
        prio = card.importance
        if how["priority"] == BY_MATCHES:
            prio = card.importance * hits
        elif how["priority"] != BY_IMPORTANCE:
            prio = waiting_prio
        enter_heap(how, st, stream, slot, prio)


@kernel
def process(how, st, io, row):
    """One row through the join. Returns DONE, or what it needs, with nothing done yet."""
    stream, ts = cs.stream_of(io)[row], cs.row_ts_of(io)[row]
    need = _begin(how, st, io, ts)
    if need != needs.DONE:
        return need
    number = cs.row_number_in_stream_of(io)[row]
    own = is_own(how, number)
    clock = effective(how, st, stream)
    if clock != NEVER and ts < clock - how["lateness"]:
        if own:
            st["late"] += 1
            record(st, io, stream, number, ts, LATE)
        return needs.DONE
    at, null = cs.offsets_of(io)[row], cs.null_of(io)[row]
    size = cs.offsets_of(io)[row + 1] - at
    value = Value(cs.row_number_of(io)[row], cs.row_items_of(io), cs.row_weights_of(io), at, size)
    if not null:
        need = _room(how, st, io, stream, value, own)
        if need != needs.DONE:
            return need
    st["taken"][stream] = number + 1
    st["clock"][stream] = max(st["clock"][stream], ts)
    expire(how, st)
    st["worked"] += how["update_cost"]
    if null:
        st["null"] += own
        return needs.DONE
    card = Card(ts, cs.row_seq_of(io)[row], number, cs.row_kind_of(io)[row], cs.row_importance_of(io)[row])
    hits = _meet(how, st, io, stream, card, value)
    if own:
        _store(how, st, stream, card, value, hits, cs.row_prio_of(io)[row])
    return needs.DONE
