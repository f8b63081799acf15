"""The walk of new tuples through the other windows: nested loops in the order of the plan, with nothing kept in between.

A walk can stop when the output is full and go on from there: where it is in each of its loops stands in `levels`.
"""

from __future__ import annotations

from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import CUMULATIVE, ROW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.nway import mem, rings
from shedjoin.engine.nway.graph import AT_LEAST, AT_MOST, EQUAL, LESS, MORE, UNEQUAL
from shedjoin.engine.nway.state import MOST
from shedjoin.engine.state import NONE

FAR = 2**62


@inlined
def _window(st, stream):
    """How long a tuple can be met after its time; a row window sets no such end."""
    return FAR if st["kind"][stream] == ROW else st["window"][stream]


@inlined
def _end(st, stream, ts):
    return FAR if st["kind"][stream] == ROW else ts + st["window"][stream]


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


@inlined
def set_limits(how, st, stream, tick):
    """Which row numbers a new tuple may meet: those that were there when it came, and in their row windows."""
    n = how["streams"]
    mark = (tick - st["first_mark"]) * MOST
    last = tick + 1 == st["tick"] or how["evaluate_every"] == 0
    for other in range(n):
        before = mem.marks(st, mark + other) if how["evaluate_every"] > 0 else st["before"][other]
        after = st["arrived"][other] if last else mem.marks(st, mark + MOST + other)
        st["lo"][other] = min(after - st["window"][other], before) if st["kind"][other] == ROW else 0
        st["hi"][other] = after if other < stream else before
    if how["evaluate_every"] == 0:
        for other in range(n):  # what is stored has come before
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
def _passes(how, st, step, origin, depth, fresh, x):
    """Whether a tuple satisfies what its bucket and the times do not see to.

    A new tuple in a loop below others (`fresh`) sets limits to all that is bound above it.
    """
    if step["checks"] > 0 and not _checked(how, st, step, x):
        return False
    if fresh:
        set_limits(how, st, step["stream"], mem.card(st, x)["tick"])
        return _within_limits(how, st, origin, depth)
    return True


@inlined
def _enter_bucket(st, io, step, level, bucket):
    """Start at the beginning of a bucket; the loop over new tuples starts where they begin."""
    level["bucket"] = bucket
    level["at"] = 0
    if step["fresh"]:
        b = mem.buckets(st, bucket)
        at = b["span"]
        while at > 0:
            e = mem.ring(st, b["base"] + ((b["first"] + at - 1) & (b["room"] - 1)))
            if e["item"] != NONE and e["seq"] < io["fresh_from"]:
                break
            at -= 1
        level["at"] = at


@inlined
def _open(how, st, io, origin, depth):
    """Begin the loop of a depth."""
    step, level = mem.steps(st, origin * how["streams"] + depth), mem.levels(st, depth)
    index = mem.indexes(st, step["index"])
    if step["by_bucket"]:
        item = mem.levels(st, step["source_level"])["item"]
        level["key"] = mem.attr(st, item * how["width"] + step["source_attr"])
        bucket = rings.bucket_of(index, level["key"])
        level["last"] = bucket
    else:
        bucket = index["first"]
        level["last"] = bucket + index["many"] - 1
    _enter_bucket(st, io, step, level, bucket)


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
    while at < turn and mem.ring_key(st, base + first + at) != key:
        at += 1
    if at < turn:
        return at
    while at < span and mem.ring_key(st, base + first + at - mask - 1) != key:
        at += 1
    return at


@kernel
def _bind(how, st, io, origin, depth):
    """Bind the next tuple of a loop that is not the innermost; False when there is none left."""
    step, level = mem.steps(st, origin * how["streams"] + depth), mem.levels(st, depth)
    hi, end = -FAR, FAR
    worth = 0.0
    if depth > 0:
        above = mem.levels(st, depth - 1)
        hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, by_bucket, key = step["stream"], step["by_bucket"], level["key"]
    window = _window(st, stream)
    limited = how["limited"] and step["limited"]
    fresh = step["fresh"] and depth > 0 and how["limited"]
    compared = 0
    while True:
        b = mem.buckets(st, level["bucket"])
        base, first, mask, span = b["base"], b["first"], b["room"] - 1, b["span"]
        at = level["at"]
        while at < span:
            if by_bucket:
                begun = at
                at = _skip(st, base, first, mask, at, span, key)
                compared += at - begun
                if at == span:
                    break
            e = mem.ring(st, base + ((first + at) & mask))
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
            if not _passes(how, st, step, origin, depth, fresh, int(e["item"])):
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
            st["compared"] += compared
            return True
        if level["bucket"] == level["last"]:
            st["compared"] += compared
            return False
        _enter_bucket(st, io, step, level, level["bucket"] + 1)


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
def _touch(st, x):
    """Note a stored tuple that is part of an output of this instant, once."""
    t = tuples.pool(st, x)
    if t["met"] == 0:
        t["met"] = 1
        tuples.touched(st)[st["touched_count"]] = x
        st["touched_count"] += 1


@inlined
def _give(how, st, io, origin, out, first):
    """Write what is bound above the innermost loop as result number `out`: the same for all of one run of that loop."""
    n = how["streams"]
    place = out * n
    if first:
        for upper in range(n - 1):
            to = mem.steps(st, origin * n + upper)["stream"]
            mem.set_out_rows(io, place + to, mem.levels(st, upper)["seq"])
    else:  # like the one before
        for column in range(n):
            mem.set_out_rows(io, place + column, mem.out_rows(io, place - n + column))


@kernel
def _innermost(how, st, io, origin):
    """The innermost loop: every tuple that fits makes a result. False when the output is full."""
    n = how["streams"]
    depth = n - 1
    step, level, above = mem.steps(st, origin * n + depth), mem.levels(st, depth), mem.levels(st, n - 2)
    hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, by_bucket, key, code = step["stream"], step["by_bucket"], level["key"], how["output_importance"]
    window = _window(st, stream)
    limited = how["limited"] and step["limited"]
    emit, warmup, room = how["emit"], how["warmup"], io["out_worth_room"]
    cumulative = how["organisation"] == CUMULATIVE
    fresh = step["fresh"] and how["limited"]
    lo_seq, hi_seq = st["lo"][stream], st["hi"][stream]
    out = io["results"]
    begun = out
    compared, found, counted, total = 0, 0, 0, 0.0
    full = False
    while True:
        b = mem.buckets(st, level["bucket"])
        base, first, mask, span = b["base"], b["first"], b["room"] - 1, b["span"]
        at = level["at"]
        while at < span:
            if by_bucket:
                passed = at
                at = _skip(st, base, first, mask, at, span, key)
                compared += at - passed
                if at == span:
                    break
            e = mem.ring(st, base + ((first + at) & mask))
            at += 1
            if e["item"] == NONE:
                continue
            compared += 1
            now = max(hi, e["ts"])
            if now >= min(end, e["ts"] + window):
                continue
            if limited and (e["seq"] < lo_seq or e["seq"] >= hi_seq):
                continue
            if not _passes(how, st, step, origin, depth, fresh, int(e["item"])):
                continue
            if emit and out == room:
                at -= 1
                compared -= 1
                full = True
                break
            found += 1
            if now >= warmup:
                counted += 1
                one = _combined(code, worth, e["importance"]) if code < 2 else _sum_up(how, st, origin, e["importance"])
                total += one
                if emit:
                    _give(how, st, io, origin, out, out == begun)
                    mem.set_out_rows(io, out * n + stream, e["seq"])
                    mem.set_out_worth(io, out, one)
                    out += 1
            if cumulative:
                _touch(st, int(e["item"]))
        level["at"] = at
        if full or level["bucket"] == level["last"]:
            break
        _enter_bucket(st, io, step, level, level["bucket"] + 1)
    if cumulative and found > 0:
        for upper in range(depth):
            _touch(st, int(mem.levels(st, upper)["item"]))
    st["compared"] += compared
    st["results"] += found
    st["matches"] += counted
    st["importance"] += total
    io["results"] = out
    return not full


@inlined
def begin(how, st, io, origin, x):
    """Start a walk. x: the new tuple, where it comes first; -1: the outermost loop is over a window."""
    io["walking"] = 1
    io["origin"] = origin
    if x == NONE:
        io["depth"] = 0
        _open(how, st, io, origin, 0)
        return
    card, level = mem.card(st, x), mem.levels(st, 0)
    level["item"] = x
    level["seq"] = card["seq"]
    level["importance"] = card["importance"]
    level["hi"] = card["ts"]
    level["end"] = _end(st, origin, card["ts"])
    level["worth"] = card["importance"]
    if how["limited"]:
        set_limits(how, st, origin, card["tick"])
    io["depth"] = 1
    _open(how, st, io, origin, 1)


@kernel
def go_on(how, st, io):
    """Walk until the end (True) or until the output is full (False)."""
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
    io["walking"] = 0
    return True
