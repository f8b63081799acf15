"""The probe of n streams: nested loops through the other windows in the order of the plan, with nothing kept in between.

A probe can stop when the output is full and go on from there: where it is in each of its loops stands in `levels`.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import CUMULATIVE, KEYED, MOST, ROW
from shedjoin.engine.graph import AT_LEAST, AT_MOST, EQUAL, LESS, MORE, UNEQUAL
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.layouts.indexed import bucket_of
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority, select
from shedjoin.engine.stages.times import reach

FAR = 2**62


@inlined
def holds(op, mine, other, band):
    if op == EQUAL:
        return mine == other
    if op == LESS:
        return mine < other
    if op == AT_MOST:
        return mine <= other
    if op == MORE:
        return mine > other
    if op == AT_LEAST:
        return mine >= other
    if op == UNEQUAL:
        return mine != other
    return mine - other <= band and other - mine <= band


@inlined
def _checked(how, st, step, x):
    """Whether a tuple satisfies the predicates that its bucket does not see to."""
    for number in range(step["first_check"], step["first_check"] + step["checks"]):
        check = mem.checks(st, number)
        mine = mem.attr(st, x * how["width"] + check["attr"])
        other = mem.attr(st, mem.levels(st, check["level"])["item"] * how["width"] + check["other_attr"])
        if not holds(check["op"], mine, other, check["band"]):
            return False
    return True


@kernel
def set_limits(how, st, io, stream, x):
    """Which row numbers a new tuple may meet: those that were there when it came, and in their row windows."""
    lazy = how["evaluate_every"] > 0
    tick = mem.came(st, x) if lazy else st["tick"]
    mark = (tick - st["first_mark"]) * MOST
    last = not lazy or tick + 1 == st["tick"]
    for other in range(how["streams"]):
        before = mem.marks(st, mark + other) if lazy else io["old_seq"][other]
        after = st["arrived"][other] if last else mem.marks(st, mark + MOST + other)
        by_rows = mem.window_kind(how, other) == ROW
        st["lo"][other] = min(after - mem.window_size(how, other), before) if by_rows else 0
        st["hi"][other] = after if other < stream else before
        if not lazy:  # what is stored has come before
            st["hi"][other] = FAR


@inlined
def _within_limits(how, st, origin, depth):
    """Whether all that is bound above the new tuple was there when it came."""
    for level in range(depth):
        stream = mem.steps(st, origin * how["streams"] + level)["stream"]
        seq = mem.levels(st, level)["seq"]
        if seq < st["lo"][stream] or seq >= st["hi"][stream]:
            return False
    return True


@inlined
def _passes(how, st, io, step, origin, depth, fresh, x):
    """Whether a tuple satisfies what its bucket and the times do not see to.

    A new tuple in a loop below others (`fresh`) sets limits to all that is bound above it.
    """
    if step["checks"] > 0 and not _checked(how, st, step, x):
        return False
    if fresh:
        set_limits(how, st, io, step["stream"], x)
        return _within_limits(how, st, origin, depth)
    return True


@inlined
def _bucket(how, st, number):
    """A bucket of a window: of its key, or of one of its indexes."""
    return mem.buckets(st, number) if how["layout"] == KEYED else mem.index_buckets(st, number)


@inlined
def _enter_bucket(how, st, io, step, level, bucket):
    """Start at the beginning of a bucket; the loop over new tuples starts where they begin."""
    level["bucket"] = bucket
    level["at"] = 0
    if step["fresh"]:
        b = _bucket(how, st, bucket)
        at = b["span"]
        while at > 0:
            e = mem.entries(st, b["base"] + ((b["first"] + at - 1) & (b["room"] - 1)))
            if e["item"] != NONE and e["seq"] < io["fresh_from"]:
                break
            at -= 1
        level["at"] = at


@inlined
def _open(how, st, io, origin, depth):
    """Begin the loop of a depth."""
    step, level = mem.steps(st, origin * how["streams"] + depth), mem.levels(st, depth)
    if how["layout"] == KEYED:
        bucket = io["value"] + step["stream"]
        level["last"] = bucket
    else:
        index = mem.indexes(st, step["index"])
        if step["by_bucket"]:
            item = mem.levels(st, step["source_level"])["item"]
            level["key"] = mem.attr(st, item * how["width"] + step["source_attr"])
            bucket = bucket_of(index, level["key"])
            level["last"] = bucket
        else:
            bucket = index["first"]
            level["last"] = bucket + index["many"] - 1
    _enter_bucket(how, st, io, step, level, bucket)


@inlined
def _combined(code, worth, importance):
    if code == 0:
        return min(worth, importance)
    return max(worth, importance)


@inlined
def _skip(st, base, first, mask, at, span, key):
    """The next place in a ring whose value is the one looked for; `span` when there is none.

    In two straight runs, before and after the ring comes round: this is where nested loops spend their time.
    """
    turn = min(mask + 1 - first, span)
    while at < turn and mem.entry_key(st, base + first + at) != key:
        at += 1
    if at < turn:
        return at
    while at < span and mem.entry_key(st, base + first + at - mask - 1) != key:
        at += 1
    return at


@inlined
def _count_looks(how, st, compared):
    """Tuples that a loop looked at; where work is counted by what a row shares with them, `work` counts."""
    if how["counts_work"] == 0:
        st["compared"] += compared


@inlined
def _time(how, st, io):
    """When the row came that probes."""
    return storage.card(how, st, int(io["tuple"]))["ts"]


@kernel
def _learn(how, st, io, origin, depth, found):
    """The tuples that are bound above the innermost loop are part of results of a row that is learned from."""
    for upper in range(depth):
        stream = mem.steps(st, origin * how["streams"] + upper)["stream"]
        if stream != origin:
            card = storage.card(how, st, int(mem.levels(st, upper)["item"]))
            select.meet(how, st, stream, _time(how, st, io), card["ts"], card["seq"], found)


@kernel
def _bind(how, st, io, origin, depth):
    """Bind the next tuple of a loop that is not the innermost; False when there is none left."""
    step, level = mem.steps(st, origin * how["streams"] + depth), mem.levels(st, depth)
    hi, end = -FAR, FAR
    worth = 0.0
    if depth > 0:
        above = mem.levels(st, depth - 1)
        hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, key = step["stream"], level["key"]
    by_bucket = step["by_bucket"] and how["layout"] != KEYED  # a bucket of a key holds nothing else
    window = reach(how, stream)
    limited = how["limited"] and step["limited"]
    fresh = step["fresh"] and depth > 0 and how["limited"]
    in_part = how["basic"] > 0 and stream != origin
    compared = 0
    while True:
        b = _bucket(how, st, level["bucket"])
        base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
        at = level["at"]
        while at < span:
            if by_bucket:
                begun = at
                at = _skip(st, base, first, mask, at, span, key)
                compared += at - begun
                if at == span:
                    break
            e = mem.entries(st, base + ((first + at) & mask))
            at += 1
            if e["item"] == NONE:
                continue
            compared += 1
            now = max(hi, e["ts"])
            until = min(end, e["ts"] + window)
            if now >= until:
                continue
            if limited and (e["seq"] < st["lo"][stream] or e["seq"] >= st["hi"][stream]):
                continue
            if in_part and not select.is_inside(how, st, stream, e["ts"], e["seq"]):
                at = select.skip(how, st, stream, base, first, mask, at - 1, span)
                continue
            if not _passes(how, st, io, step, origin, depth, fresh, int(e["item"])):
                continue
            level["at"] = at
            level["item"] = e["item"]
            level["seq"] = e["seq"]
            level["importance"] = e["importance"]
            level["hi"] = now
            level["end"] = until
            level["worth"] = (
                e["importance"] if depth == 0 else _combined(how["output_importance"], worth, e["importance"])
            )
            _count_looks(how, st, compared)
            return True
        if level["bucket"] == level["last"]:
            _count_looks(how, st, compared)
            return False
        _enter_bucket(how, st, io, step, level, level["bucket"] + 1)


@kernel
def _sum_up(how, st, origin, importance):
    """The importance of a result that is a sum, a product or a mean: in the order of streams, whatever the plan."""
    n, code = how["streams"], how["output_importance"]
    total = 1.0 if code == 3 else 0.0
    for stream in range(n):
        one = importance
        for level in range(n - 1):
            if mem.steps(st, origin * n + level)["stream"] == stream:
                one = mem.levels(st, level)["importance"]
        total = total * one if code == 3 else total + one
    return total / n if code == 4 else total


@inlined
def touch(st, x):
    """Note a stored tuple that is part of an output of this instant, once."""
    t = mem.pool(st, x)
    if t["met"] == 0:
        t["met"] = 1
        priority.touch(st, x)


@inlined
def _give(how, st, io, origin, out, room):
    """Write what is bound above the innermost loop as result number `out`."""
    n = how["streams"]
    for upper in range(n - 1):
        to = mem.steps(st, origin * n + upper)["stream"]
        mem.set_out_rows(io, to * room + out, mem.levels(st, upper)["seq"])


@kernel
def _innermost(how, st, io, origin):
    """The innermost loop: every tuple that fits makes a result. False when the output is full."""
    n = how["streams"]
    depth = n - 1
    step, level, above = mem.steps(st, origin * n + depth), mem.levels(st, depth), mem.levels(st, n - 2)
    hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, key, code = step["stream"], level["key"], how["output_importance"]
    by_bucket = step["by_bucket"] and how["layout"] != KEYED
    window = reach(how, stream)
    limited = how["limited"] and step["limited"]
    emit, warmup, room = how["emit"], how["warmup"], io["out_worth_room"]
    cumulative = how["organisation"] == CUMULATIVE
    fresh = step["fresh"] and how["limited"]
    lo_seq, hi_seq = st["lo"][stream], st["hi"][stream]
    out = io["results"]
    in_part = how["basic"] > 0 and stream != origin
    learns = how["basic"] > 0 and io["sampling"] == 1
    compared, shared, found, counted, total = 0, 0, 0, 0, 0.0
    full = False
    while True:
        b = _bucket(how, st, level["bucket"])
        base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
        at = level["at"]
        while at < span:
            if by_bucket:
                passed = at
                at = _skip(st, base, first, mask, at, span, key)
                compared += at - passed
                if at == span:
                    break
            e = mem.entries(st, base + ((first + at) & mask))
            at += 1
            if e["item"] == NONE:
                continue
            compared += 1
            now = max(hi, e["ts"])
            if now >= min(end, e["ts"] + window):
                continue
            if limited and (e["seq"] < lo_seq or e["seq"] >= hi_seq):
                continue
            if in_part and not select.is_inside(how, st, stream, e["ts"], e["seq"]):
                at = select.skip(how, st, stream, base, first, mask, at - 1, span)
                continue
            shared += 1
            if not _passes(how, st, io, step, origin, depth, fresh, int(e["item"])):
                continue
            if emit and out == room:
                at -= 1
                compared -= 1
                shared -= 1
                full = True
                break
            found += 1
            if now >= warmup:
                counted += 1
                one = _combined(code, worth, e["importance"]) if code < 2 else _sum_up(how, st, origin, e["importance"])
                total += one
                if emit:
                    _give(how, st, io, origin, out, room)
                    mem.set_out_rows(io, stream * room + out, e["seq"])
                    mem.set_out_worth(io, out, one)
                    out += 1
            if cumulative:
                touch(st, int(e["item"]))
            if learns:
                st["gained"] += (
                    _combined(code, worth, e["importance"]) if code < 2 else _sum_up(how, st, origin, e["importance"])
                )
                if stream != origin:
                    select.meet(how, st, stream, _time(how, st, io), e["ts"], e["seq"], 1)
        level["at"] = at
        if full or level["bucket"] == level["last"]:
            break
        _enter_bucket(how, st, io, step, level, level["bucket"] + 1)
    if cumulative and found > 0:
        for upper in range(depth):
            touch(st, int(mem.levels(st, upper)["item"]))
    if learns and found > 0:
        _learn(how, st, io, origin, depth, found)
    _count_looks(how, st, compared)
    if how["counts_work"] and n == 2 and step["shared"]:
        st["compared"] += shared
    st["results"] += found
    st["matches"] += counted
    st["importance"] += total
    io["results"] = out
    return not full


@kernel
def begin(how, st, io, origin, x):
    """Start a probe. x: the new tuple, where it comes first; -1: the outermost loop is over a window."""
    io["probing"] = 1
    io["origin"] = origin
    if x == NONE:
        io["depth"] = 0
        _open(how, st, io, origin, 0)
        return
    card, level = storage.card(how, st, x), mem.levels(st, 0)
    level["item"] = x
    level["seq"] = card["seq"]
    level["importance"] = card["importance"]
    level["hi"] = card["ts"]
    level["end"] = min(card["ts"] + reach(how, origin), FAR)
    level["worth"] = card["importance"]
    if how["limited"]:
        set_limits(how, st, io, origin, x)
    io["depth"] = 1
    _open(how, st, io, origin, 1)


@kernel
def go_on(how, st, io):
    """Probe until the end (True) or until the output is full (False)."""
    n, origin = how["streams"], io["origin"]
    # The new tuple itself is no loop.
    top = 1 if mem.steps(st, origin * n)["fresh"] else 0
    depth = io["depth"]
    while depth >= top:
        if depth == n - 1:
            if not _innermost(how, st, io, origin):
                io["depth"] = depth
                return False
            depth -= 1
        elif _bind(how, st, io, origin, depth):
            depth += 1
            _open(how, st, io, origin, depth)
        else:
            depth -= 1
    io["probing"] = 0
    return True


@kernel
def all_there(how, st, v, stream):
    """Whether every other stream has tuples of a key: without them there is nothing to find."""
    for other in range(how["streams"]):
        if other != stream and mem.buckets(st, v * how["streams"] + other)["count"] == 0:
            return False
    return True
