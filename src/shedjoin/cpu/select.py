"""Selective processing: which part of the opposite window a row is compared with (gedik2007, Algorithm 3).

Basic windows are cut at multiples of their length on the time axis. Seen from a row they have an *age*: 0 for the one that
the row's own time lies in, 1 for the one before; negative where the other stream runs ahead.
"""

from __future__ import annotations

import numpy as np

from shedjoin.cpu import state as cs
from shedjoin.engine.jit import inlined, kernel
from shedjoin.predicates import lists, search
from shedjoin.predicates import state as mem
from shedjoin.predicates.search import FIRST_SEQ
from shedjoin.predicates.terms import Span, rule_of


@kernel
def draw(st):
    """A random number from 0 up to 1: xorshift64, as in the two-way loop."""
    x = np.uint64(st["random"])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    st["random"] = x
    return np.float64(np.int64(x >> np.uint64(11))) * 2.0**-53


@inlined
def _cell(ts, basic):
    """Which basic window of the time axis a time lies in."""
    return ts // basic


@kernel
def worth(how, mine, other):
    """The importance of an output."""
    kind = how["output_importance"]
    if kind == 0:
        return min(mine, other)
    if kind == 1:
        return max(mine, other)
    if kind == 2:
        return mine + other
    if kind == 3:
        return mine * other
    return 0.5 * (mine + other)


@kernel
def _learn(how, st, stream, card, span, hits):
    """After a complete comparison: where the partners were, and what they were worth."""
    lo, hi = span.lo_ts, span.hi_ts
    other = 1 - stream
    basic, ahead = how["basic"], how["ahead"]
    met, seen = cs.met_of(st), cs.seen_of(st)
    found, times, worths = mem.hit_of(st), mem.ts_of(st), mem.importance_of(st)
    cell = _cell(card.ts, basic)
    gain = 0.0
    for h in range(hits):
        met[other, cell - _cell(times[found[h]], basic) + ahead] += 1.0
        gain += worth(how, card.importance, worths[found[h]])
    first = before = lists.lower(st, other, lo, FIRST_SEQ)
    for age in range(how["ages"] - 1, -1, -1):
        end = min(max((cell - age + ahead + 1) * basic, lo), hi)
        after = lists.lower(st, other, end, FIRST_SEQ)
        seen[other, age] += after - before
        before = after
    cs.gain_of(st)[other, card.kind] += gain
    cs.kind_seen_of(st)[other, card.kind] += before - first


@kernel
def _choose(how, st, stream, ts, span, allowed):
    """Mark what is to be looked at: for each age, from which entry of the list of all tuples to which."""
    other = 1 - stream
    basic, ahead, ages = how["basic"], how["ahead"], how["ages"]
    rank, start, stop, take = cs.rank_of(st), cs.from_of(st), cs.to_of(st), cs.take_of(st)
    take[:] = 0
    cell = _cell(ts, basic)
    for place in range(ages):
        age = rank[other, place]
        begin = (cell - age + ahead) * basic
        a = lists.lower(st, other, max(begin, span.lo_ts), FIRST_SEQ)
        b = lists.lower(st, other, min(begin + basic, span.hi_ts), FIRST_SEQ)
        if b <= a:
            continue
        if b - a > allowed:
            # The newest of them, and then enough. A part of a tuple is a chance.
            some = np.int64(allowed + draw(st))
            start[age], stop[age] = b - some, b
            take[age] = min(some, 1)
            return
        start[age], stop[age], take[age] = a, b, 1
        allowed -= b - a


@kernel
def _search_chosen(how, st, stream, hi, value, effort):
    """Search what was chosen, neighbours together."""
    other = 1 - stream
    start, stop, take = cs.from_of(st), cs.to_of(st), cs.take_of(st)
    times, seqs = mem.entry_ts_of(st), mem.entry_seq_of(st)
    end_of_list = mem.start_of(st)[other] + mem.head_of(st)[other] + mem.length_of(st)[other]
    n = 0
    age = how["ages"] - 1
    while age >= 0:  # from the oldest on
        if take[age] == 0:
            age -= 1
            continue
        a, b = start[age], stop[age]
        age -= 1
        while age >= 0 and take[age] == 1 and start[age] == b:
            b = stop[age]
            age -= 1
        hi_ts, hi_seq = hi, np.int64(FIRST_SEQ)
        if b < end_of_list:
            hi_ts, hi_seq = times[b], seqs[b]
        n = search.search(st, rule_of(how), other, Span(times[a], seqs[a], hi_ts, hi_seq), value, n, effort)
    return n


@kernel
def probe(how, st, stream, card, value, effort):
    """Compare a row with as much of the opposite window as there is CPU for; returns how many partners were found."""
    other, rule = 1 - stream, rule_of(how)
    own, opposite = how["size0"], how["size1"]
    if stream == 1:
        own, opposite = opposite, own
    span = Span(card.ts - opposite + 1, FIRST_SEQ, card.ts + own, FIRST_SEQ)
    st["probed"] += 1
    if how["basic"] == 0:
        return search.search(st, rule, other, span, value, 0, effort)
    fraction = st["fractions"][other]
    if how["utility"]:
        fraction = cs.kind_fraction_of(st)[other, card.kind]
    learns = how["correlation"] or how["direction"] or how["utility"]
    if learns and draw(st) < st["fraction"] * how["sample"]:
        st["sampled"] += 1
        st["samples"][other] += 1
        hits = search.search(st, rule, other, span, value, 0, effort)
        _learn(how, st, stream, card, span, hits)
        return hits
    if fraction >= 1.0:
        return search.search(st, rule, other, span, value, 0, effort)
    st["partial"] += 1
    there = lists.lower(st, other, span.hi_ts, FIRST_SEQ) - lists.lower(st, other, span.lo_ts, FIRST_SEQ)
    _choose(how, st, stream, card.ts, span, fraction * there)
    return _search_chosen(how, st, stream, span.hi_ts, value, effort)
