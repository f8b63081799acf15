"""The loop of a join with dual windows (dual2006): queue, aux-window, join-window.

A row waits in the queue, then stands in the aux-window while the histograms tell how many partners it will meet, then
probes the other join-window, or not, and enters its own in any case.
"""

from __future__ import annotations

import numpy as np

from shedjoin.cpu import dual_state as ds
from shedjoin.cpu import needs
from shedjoin.cpu.codes import FOREVER
from shedjoin.cpu.dual_codes import DROP_COUNTED, DROP_RANDOM, DROP_TABLE
from shedjoin.cpu.select import draw, worth
from shedjoin.cpu.shed_log import has_no_room
from shedjoin.engine.codes import DROPPED, UNPROBED
from shedjoin.engine.handle import STREAMS
from shedjoin.engine.jit import entry, kernel
from shedjoin.predicates import lists, search, store
from shedjoin.predicates import state as mem
from shedjoin.predicates.codes import LISTS, SAME
from shedjoin.predicates.search import FIRST_SEQ
from shedjoin.predicates.terms import Card, Rule, Span, Value


@kernel
def _log(st, io, stream, number, ts, why):
    log, at = ds.shed_of(io), io["shed"]
    log[at, 0] = stream
    log[at, 1] = number
    log[at, 2] = ts
    log[at, 3] = 0
    log[at, 4] = ts
    log[at, 5] = st["processed"]
    log[at, 6] = why
    log[at, 7] = st["entered"][0]
    log[at, 8] = st["entered"][1]
    io["shed"] = at + 1


@kernel
def _counter(st, stream, key):
    """Where the histogram of a stream counts a value; there must be room for a new one."""
    keys, tags = ds.hist_key_of(st), ds.hist_tag_of(st)
    mask = keys.size - 1
    at = np.int64(lists.mix(key, stream) & np.uint64(mask))
    while tags[at] != 0 and not (tags[at] == stream + 1 and keys[at] == key):
        at = (at + 1) & mask
    if tags[at] == 0:
        tags[at] = stream + 1
        keys[at] = key
        ds.hist_count_of(st)[at] = 0
        st["hist_used"] += 1
    return at


@kernel
def _tally(tree, value, change):
    """Add to the count of rows that expect so many partners: a Fenwick tree."""
    i = value + 1
    while i < tree.size:
        tree[i] += change
        i += i & -i


@kernel
def _fewer(tree, value):
    """How many rows expect fewer."""
    i, total = value, 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@kernel
def sheds(st, stream, expected):
    """Rear-shedding: whether a row that leaves the aux-window, and expects so many partners, does not probe.

    Of the rows now in the aux-window the share k_r is shed, those with the fewest partners; at the border, lots are drawn.
    """
    tree = ds.tree_of(st)[stream]
    there = st["in_aux"][stream]
    border = st["rear"] * there
    fewer = _fewer(tree, expected)
    if fewer >= border:
        return False
    equal = _fewer(tree, expected + 1) - fewer
    if fewer + equal <= border:
        return True
    return draw(st) * equal < border - fewer


@kernel
def _enter_aux(how, st, io, row):
    """From the queue into the aux-window."""
    stream, key, ts = ds.stream_of(io)[row], ds.key_of(io)[row], ds.ts_of(io)[row]
    room = ds.aux_key_of(st).size
    at = st["aux_to"] % room
    expected = min(ds.hist_count_of(st)[_counter(st, 1 - stream, key)], ds.tree_of(st).shape[1] - 2)
    ds.aux_key_of(st)[at] = key
    ds.aux_ts_of(st)[at] = ts
    ds.aux_stream_of(st)[at] = stream
    ds.aux_row_of(st)[at] = ds.number_of(io)[row]
    ds.aux_worth_of(st)[at] = ds.importance_of(io)[row]
    ds.aux_expected_of(st)[at] = expected
    st["aux_to"] += 1
    st["in_aux"][stream] += 1
    _tally(ds.tree_of(st)[stream], expected, 1)
    # The histogram holds what the join-window will hold when this row's successors probe it.
    ds.hist_count_of(st)[_counter(st, stream, key)] += 1
    ring = ds.ring_key_of(st).shape[1]
    ds.ring_key_of(st)[stream, st["ring_to"][stream] % ring] = key
    ds.ring_ts_of(st)[stream, st["ring_to"][stream] % ring] = ts
    st["ring_to"][stream] += 1
    for one in range(STREAMS):
        size = how["size0"] if one == 0 else how["size1"]
        while st["ring_from"][one] < st["ring_to"][one]:
            place = st["ring_from"][one] % ring
            if how["timed"]:
                if ds.ring_ts_of(st)[one, place] > ts - size:
                    break
            elif st["ring_to"][one] - st["ring_from"][one] <= size:
                break
            ds.hist_count_of(st)[_counter(st, one, ds.ring_key_of(st)[one, place])] -= 1
            st["ring_from"][one] += 1


@kernel
def _same_instant(st, at, stream):
    """Rows of a stream right behind this one in the aux-window, of the same time."""
    room = ds.aux_key_of(st).size
    ts = ds.aux_ts_of(st)[at % room]
    i, count = at + 1, 0
    while i < st["aux_to"] and ds.aux_ts_of(st)[i % room] == ts:
        if ds.aux_stream_of(st)[i % room] == stream:
            count += 1
        i += 1
    return count


@kernel
def _leave_aux(how, st, io):
    """The first row of the aux-window probes or not, and enters the join-window. Returns DONE or what it needs."""
    room = ds.aux_key_of(st).size
    at = st["aux_from"] % room
    stream, ts = ds.aux_stream_of(st)[at], ds.aux_ts_of(st)[at]
    other = 1 - stream
    # A key is a set of one item.
    rule, value = Rule(SAME, 0.0, LISTS), Value(float(ts), ds.aux_key_of(st), ds.aux_worth_of(st), at, 1)
    if how["emit"] and io["out_left_room"] - io["pairs"] < st["resident"][other]:
        io["wanted"] = st["resident"][other]
        return needs.PAIRS
    part = store.wanting(st, rule, stream, value)
    if part != store.ENOUGH:
        io["part"] = part
        return needs.STORE
    expected = ds.aux_expected_of(st)[at]
    shed = how["rear"] and sheds(st, stream, expected)
    _tally(ds.tree_of(st)[stream], expected, -1)
    st["in_aux"][stream] -= 1
    number, importance = ds.aux_row_of(st)[at], ds.aux_worth_of(st)[at]
    # In a row window "time" is the row's number among those that entered.
    stamp = ts if how["timed"] else st["entered"][stream]
    if ts != st["instant"]:
        st["instant"] = ts
        st["instant_first"][0] = st["entered"][0]
        st["instant_first"][1] = st["entered"][1]
    for one in range(STREAMS):
        size = how["size0"] if one == 0 else how["size1"]
        floor = ts - size + 1
        if not how["timed"]:
            # The whole instant counts, and rows of one instant always meet.
            coming = 1 if one == stream else 0
            floor = st["entered"][one] + coming + _same_instant(st, st["aux_from"], one) - size
            floor = min(floor, st["instant_first"][one])
        st["expired"] += store.expire(st, one, floor)
    if shed:
        st["unprobed"] += 1
        _log(st, io, stream, number, ts, UNPROBED)
    else:
        st["probed"] += 1
        effort = io["effort"]
        everything = Span(st["floor"][other], FIRST_SEQ, FOREVER, FIRST_SEQ)
        hits = search.search(st, rule, other, everything, value, 0, effort)
        _give(how, st, io, stream, number, ts, importance, hits)
    store.put(st, rule, stream, Card(stamp, st["arrival"], number, 0, importance), value)
    st["arrival"] += 1
    st["entered"][stream] += 1
    st["aux_from"] += 1
    st["work"] += how["update_cost"] + (0.0 if shed else how["probe_cost"])
    return needs.DONE


@kernel
def _give(how, st, io, stream, number, ts, importance, hits):
    found, rows, worths = mem.hit_of(st), mem.row_of(st), mem.importance_of(st)
    left, right, out = ds.out_left_of(io), ds.out_right_of(io), ds.out_worth_of(io)
    at = io["pairs"]
    for h in range(hits):
        slot = found[h]
        value = worth(how, importance, worths[slot])
        if ts >= how["warmup"]:
            st["matches"] += 1
            st["importance_sum"] += value
            if how["emit"]:
                left[at] = number if stream == 0 else rows[slot]
                right[at] = rows[slot] if stream == 0 else number
                out[at] = value
                at += 1
    io["pairs"] = at
    st["results"] += hits


@kernel
def _is_over(how, st, ts):
    """Whether the aux-window holds more than it should. No row leaves it before its whole instant has come."""
    if st["aux_from"] == st["aux_to"]:
        return False
    first = ds.aux_ts_of(st)[st["aux_from"] % ds.aux_key_of(st).size]
    if first == ts:
        return False
    if how["timed"]:
        return first <= ts - max(how["size0"], how["size1"])
    return st["aux_to"] - st["aux_from"] > how["size0"] + how["size1"]


@kernel
def _room(st, io):
    """What must be there before a row can be looked at."""
    if has_no_room(io):
        return needs.SHED
    if 2 * (st["hist_used"] + 4) > ds.hist_key_of(st).size:  # looking a value up makes a counter
        return needs.TABLE
    ring = ds.ring_key_of(st).shape[1]
    full = st["aux_to"] - st["aux_from"] + 1 >= ds.aux_key_of(st).size
    for one in range(STREAMS):
        full = full or st["ring_to"][one] - st["ring_from"][one] + 1 >= ring
    return needs.RINGS if full else needs.DONE


@kernel
def _process(how, st, io, row):
    """One row out of the queue: into the aux-window, and out of it whoever no longer fits.

    May be called again for the same row after a need: `io["inside"]` says that it has entered already.
    """
    if not io["inside"]:
        need = _room(st, io)
        if need != needs.DONE:
            return need
        _enter_aux(how, st, io, row)
        io["inside"] = 1
        st["processed"] += 1
    while _is_over(how, st, ds.ts_of(io)[row]):
        if has_no_room(io):
            return needs.SHED
        need = _leave_aux(how, st, io)
        if need != needs.DONE:
            return need
    io["inside"] = 0
    return needs.DONE


@kernel
def _victim(how, st, io):
    """The place in the line of who goes from a full queue: by lot, or who can expect the fewest partners.

    Among equals lots are drawn: were it the oldest, two streams in step could lose the rows of one of them alone.
    """
    first, end = io["line_from"], io["line_to"]
    if how["drop"] == DROP_RANDOM:
        return first + np.int64(draw(st) * (end - first))
    line, best, lowest, equal = ds.line_of(io), first, np.inf, 0
    for i in range(first, end):  # a queue is short
        row = line[i]
        if how["drop"] == DROP_TABLE:
            expected = ds.chance_of(io)[row]
        else:
            expected = float(ds.hist_count_of(st)[_counter(st, 1 - ds.stream_of(io)[row], ds.key_of(io)[row])])
        if expected < lowest:
            best, lowest, equal = i, expected, 1
        elif expected == lowest:
            equal += 1
            if draw(st) * equal < 1.0:
                best = i
    return best


@kernel
def _arrive(how, st, io, row):
    """Front-shedding by lot, then the queue, which may be full."""
    stream, ts = ds.stream_of(io)[row], ds.ts_of(io)[row]
    st["rows"] += 1
    st["came"][stream] += 1
    line = ds.line_of(io)
    if how["front"] and draw(st) < st["front"]:
        st["dropped"] += 1
        _log(st, io, stream, ds.number_of(io)[row], ts, DROPPED)
        return
    line[io["line_to"]] = row
    io["line_to"] += 1
    if how["queue_cap"] > 0 and io["line_to"] - io["line_from"] > how["queue_cap"]:
        out = _victim(how, st, io)
        gone = line[out]
        for i in range(out, io["line_to"] - 1):  # those behind move up
            line[i] = line[i + 1]
        io["line_to"] -= 1
        st["dropped"] += 1
        _log(st, io, ds.stream_of(io)[gone], ds.number_of(io)[gone], ds.ts_of(io)[gone], DROPPED)


@entry
def advance(settings, state, traffic):
    """Run rows until all have arrived (and, on a flush, left the queue and the aux-window), or until something is needed."""
    how, st, io = settings[0], state[0], traffic[0]
    slow = how["capacity"] > 0.0
    while True:
        arrives = io["at"] < io["end"]
        until = ds.ts_of(io)[io["at"]] if arrives else np.int64(FOREVER)
        if arrives or io["flush"] or not slow:
            while io["line_from"] < io["line_to"] and (not slow or st["cpu_free"] < until):
                row = ds.line_of(io)[io["line_from"]]
                need = _process(how, st, io, row)
                if need != needs.DONE:
                    return need
                io["line_from"] += 1
                st["worked"] += st["work"]
                if slow:
                    st["cpu_free"] = max(st["cpu_free"], float(ds.ts_of(io)[row])) + st["work"] / how["capacity"]
                st["work"] = 0.0
        if not arrives:
            break
        if has_no_room(io):
            return needs.SHED
        if how["drop"] == DROP_COUNTED and 2 * (st["hist_used"] + how["queue_cap"] + 4) > ds.hist_key_of(st).size:
            io["wanted"] = how["queue_cap"]
            return needs.TABLE
        if how["period"] > 0 and until >= st["next_adapt"]:
            io["now"] = until
            return needs.ADAPT
        _arrive(how, st, io, io["at"])
        io["at"] += 1
    while io["flush"] and st["aux_from"] < st["aux_to"]:
        if has_no_room(io):
            return needs.SHED
        need = _leave_aux(how, st, io)
        if need != needs.DONE:
            return need
    return needs.DONE


@entry
def refill(state, counted):
    """Counts (value, stream, count) into an empty histogram."""
    st = state[0]
    for i in range(counted.shape[0]):
        at = _counter(st, counted[i, 1], counted[i, 0])
        ds.hist_count_of(st)[at] = counted[i, 2]


@entry
def count_shed(state, stream, expected, times):
    """How often a row that expects so many partners would be shed, in so many trials."""
    count = 0
    for _ in range(times):
        count += sheds(state[0], stream, expected)
    return count
