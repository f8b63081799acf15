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
def _checked(cfg, state, step, x):
    """Whether a tuple satisfies the predicates that its bucket does not see to."""
    for number in range(step["first_check"], step["first_check"] + step["checks"]):
        check = mem.checks(state, number)
        mine = mem.attr(state, x * cfg["width"] + check["attr"])
        other = mem.attr(state, mem.levels(state, check["level"])["item"] * cfg["width"] + check["other_attr"])
        if not holds(check["op"], mine, other, check["band"]):
            return False
    return True


@kernel
def set_limits(cfg, state, buffers, stream, x):
    """Which row numbers a new tuple may meet: those that were there when it came, and in their row windows."""
    lazy = cfg["evaluate_every"] > 0
    tick = mem.came(state, x) if lazy else state["tick"]
    mark = (tick - state["first_mark"]) * MOST
    last = not lazy or tick + 1 == state["tick"]
    for other in range(cfg["streams"]):
        before = mem.marks(state, mark + other) if lazy else buffers["old_seq"][other]
        after = state["arrived"][other] if last else mem.marks(state, mark + MOST + other)
        by_rows = mem.window_kind(cfg, other) == ROW
        state["lo"][other] = min(after - mem.window_size(cfg, other), before) if by_rows else 0
        state["hi"][other] = after if other < stream else before
        if not lazy:  # what is stored has come before
            state["hi"][other] = FAR


@inlined
def _within_limits(cfg, state, origin, depth):
    """Whether all that is bound above the new tuple was there when it came."""
    for level in range(depth):
        stream = mem.steps(state, origin * cfg["streams"] + level)["stream"]
        seq = mem.levels(state, level)["seq"]
        if seq < state["lo"][stream] or seq >= state["hi"][stream]:
            return False
    return True


@inlined
def _passes(cfg, state, buffers, step, origin, depth, fresh, x):
    """Whether a tuple satisfies what its bucket and the times do not see to.

    A new tuple in a loop below others (`fresh`) sets limits to all that is bound above it.
    """
    if step["checks"] > 0 and not _checked(cfg, state, step, x):
        return False
    if fresh:
        set_limits(cfg, state, buffers, step["stream"], x)
        return _within_limits(cfg, state, origin, depth)
    return True


@inlined
def _bucket(cfg, state, number):
    """A bucket of a window: of its key, or of one of its indexes."""
    return mem.buckets(state, number) if cfg["layout"] == KEYED else mem.index_buckets(state, number)


@inlined
def _enter_bucket(cfg, state, buffers, step, level, bucket):
    """Start at the beginning of a bucket; the loop over new tuples starts where they begin."""
    level["bucket"] = bucket
    level["at"] = 0
    if step["fresh"]:
        b = _bucket(cfg, state, bucket)
        at = b["span"]
        while at > 0:
            e = mem.entries(state, b["base"] + ((b["first"] + at - 1) & (b["room"] - 1)))
            if e["item"] != NONE and e["seq"] < buffers["fresh_from"]:
                break
            at -= 1
        level["at"] = at


@inlined
def _open(cfg, state, buffers, origin, depth):
    """Begin the loop of a depth."""
    step, level = mem.steps(state, origin * cfg["streams"] + depth), mem.levels(state, depth)
    if cfg["layout"] == KEYED:
        bucket = buffers["value"] + step["stream"]
        level["last"] = bucket
    else:
        index = mem.indexes(state, step["index"])
        if step["by_bucket"]:
            item = mem.levels(state, step["source_level"])["item"]
            level["key"] = mem.attr(state, item * cfg["width"] + step["source_attr"])
            bucket = bucket_of(index, level["key"])
            level["last"] = bucket
        else:
            bucket = index["first"]
            level["last"] = bucket + index["many"] - 1
    _enter_bucket(cfg, state, buffers, step, level, bucket)


@inlined
def _combined(code, worth, importance):
    if code == 0:
        return min(worth, importance)
    return max(worth, importance)


@inlined
def _skip(state, base, first, mask, at, span, key):
    """The next place in a ring whose value is the one looked for; `span` when there is none.

    In two straight runs, before and after the ring comes round: this is where nested loops spend their time.
    """
    turn = min(mask + 1 - first, span)
    while at < turn and mem.entry_key(state, base + first + at) != key:
        at += 1
    if at < turn:
        return at
    while at < span and mem.entry_key(state, base + first + at - mask - 1) != key:
        at += 1
    return at


@inlined
def _count_looks(cfg, state, compared):
    """Tuples that a loop looked at; where work is counted by what a row shares with them, `work` counts."""
    if cfg["counts_work"] == 0:
        state["compared"] += compared


@inlined
def _time(cfg, state, buffers):
    """When the row came that probes."""
    return storage.card(cfg, state, int(buffers["tuple"]))["ts"]


@kernel
def _learn(cfg, state, buffers, origin, depth, found):
    """The tuples that are bound above the innermost loop are part of results of a row that is learned from."""
    for upper in range(depth):
        stream = mem.steps(state, origin * cfg["streams"] + upper)["stream"]
        if stream != origin:
            card = storage.card(cfg, state, int(mem.levels(state, upper)["item"]))
            select.meet(cfg, state, stream, _time(cfg, state, buffers), card["ts"], card["seq"], found)


@kernel
def _bind(cfg, state, buffers, origin, depth):
    """Bind the next tuple of a loop that is not the innermost; False when there is none left."""
    step, level = mem.steps(state, origin * cfg["streams"] + depth), mem.levels(state, depth)
    hi, end = -FAR, FAR
    worth = 0.0
    if depth > 0:
        above = mem.levels(state, depth - 1)
        hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, key = step["stream"], level["key"]
    by_bucket = step["by_bucket"] and cfg["layout"] != KEYED  # a bucket of a key holds nothing else
    window = reach(cfg, stream)
    limited = cfg["limited"] and step["limited"]
    fresh = step["fresh"] and depth > 0 and cfg["limited"]
    in_part = cfg["basic"] > 0 and stream != origin
    compared = 0
    while True:
        b = _bucket(cfg, state, level["bucket"])
        base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
        at = level["at"]
        while at < span:
            if by_bucket:
                begun = at
                at = _skip(state, base, first, mask, at, span, key)
                compared += at - begun
                if at == span:
                    break
            e = mem.entries(state, base + ((first + at) & mask))
            at += 1
            if e["item"] == NONE:
                continue
            compared += 1
            now = max(hi, e["ts"])
            until = min(end, e["ts"] + window)
            if now >= until:
                continue
            if limited and (e["seq"] < state["lo"][stream] or e["seq"] >= state["hi"][stream]):
                continue
            if in_part and not select.is_inside(cfg, state, stream, e["ts"], e["seq"]):
                at = select.skip(cfg, state, stream, base, first, mask, at - 1, span)
                continue
            if not _passes(cfg, state, buffers, step, origin, depth, fresh, int(e["item"])):
                continue
            level["at"] = at
            level["item"] = e["item"]
            level["seq"] = e["seq"]
            level["importance"] = e["importance"]
            level["hi"] = now
            level["end"] = until
            level["worth"] = (
                e["importance"] if depth == 0 else _combined(cfg["output_importance"], worth, e["importance"])
            )
            _count_looks(cfg, state, compared)
            return True
        if level["bucket"] == level["last"]:
            _count_looks(cfg, state, compared)
            return False
        _enter_bucket(cfg, state, buffers, step, level, level["bucket"] + 1)


@kernel
def _sum_up(cfg, state, origin, importance):
    """The importance of a result that is a sum, a product or a mean: in the order of streams, whatever the plan."""
    n, code = cfg["streams"], cfg["output_importance"]
    total = 1.0 if code == 3 else 0.0
    for stream in range(n):
        one = importance
        for level in range(n - 1):
            if mem.steps(state, origin * n + level)["stream"] == stream:
                one = mem.levels(state, level)["importance"]
        total = total * one if code == 3 else total + one
    return total / n if code == 4 else total


@inlined
def touch(state, x):
    """Note a stored tuple that is part of an output of this instant, once."""
    t = mem.pool(state, x)
    if t["met"] == 0:
        t["met"] = 1
        priority.touch(state, x)


@inlined
def _give(cfg, state, buffers, origin, out, room):
    """Write what is bound above the innermost loop as result number `out`."""
    n = cfg["streams"]
    for upper in range(n - 1):
        to = mem.steps(state, origin * n + upper)["stream"]
        mem.set_out_rows(buffers, to * room + out, mem.levels(state, upper)["seq"])


@kernel
def _innermost(cfg, state, buffers, origin):
    """The innermost loop: every tuple that fits makes a result. False when the output is full."""
    n = cfg["streams"]
    depth = n - 1
    step, level, above = mem.steps(state, origin * n + depth), mem.levels(state, depth), mem.levels(state, n - 2)
    hi, end, worth = above["hi"], above["end"], above["worth"]
    stream, key, code = step["stream"], level["key"], cfg["output_importance"]
    by_bucket = step["by_bucket"] and cfg["layout"] != KEYED
    window = reach(cfg, stream)
    limited = cfg["limited"] and step["limited"]
    emit, warmup, room = cfg["emit"], cfg["warmup"], buffers["out_worth_room"]
    cumulative = cfg["organisation"] == CUMULATIVE
    fresh = step["fresh"] and cfg["limited"]
    lo_seq, hi_seq = state["lo"][stream], state["hi"][stream]
    out = buffers["results"]
    in_part = cfg["basic"] > 0 and stream != origin
    learns = cfg["basic"] > 0 and buffers["sampling"] == 1
    compared, shared, found, counted, total = 0, 0, 0, 0, 0.0
    full = False
    while True:
        b = _bucket(cfg, state, level["bucket"])
        base, first, mask, span = int(b["base"]), int(b["first"]), int(b["room"]) - 1, int(b["span"])
        at = level["at"]
        while at < span:
            if by_bucket:
                passed = at
                at = _skip(state, base, first, mask, at, span, key)
                compared += at - passed
                if at == span:
                    break
            e = mem.entries(state, base + ((first + at) & mask))
            at += 1
            if e["item"] == NONE:
                continue
            compared += 1
            now = max(hi, e["ts"])
            if now >= min(end, e["ts"] + window):
                continue
            if limited and (e["seq"] < lo_seq or e["seq"] >= hi_seq):
                continue
            if in_part and not select.is_inside(cfg, state, stream, e["ts"], e["seq"]):
                at = select.skip(cfg, state, stream, base, first, mask, at - 1, span)
                continue
            shared += 1
            if not _passes(cfg, state, buffers, step, origin, depth, fresh, int(e["item"])):
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
                one = (
                    _combined(code, worth, e["importance"])
                    if code < 2
                    else _sum_up(cfg, state, origin, e["importance"])
                )
                total += one
                if emit:
                    _give(cfg, state, buffers, origin, out, room)
                    mem.set_out_rows(buffers, stream * room + out, e["seq"])
                    mem.set_out_worth(buffers, out, one)
                    out += 1
            if cumulative:
                touch(state, int(e["item"]))
            if learns:
                state["gained"] += (
                    _combined(code, worth, e["importance"])
                    if code < 2
                    else _sum_up(cfg, state, origin, e["importance"])
                )
                if stream != origin:
                    select.meet(cfg, state, stream, _time(cfg, state, buffers), e["ts"], e["seq"], 1)
        level["at"] = at
        if full or level["bucket"] == level["last"]:
            break
        _enter_bucket(cfg, state, buffers, step, level, level["bucket"] + 1)
    if cumulative and found > 0:
        for upper in range(depth):
            touch(state, int(mem.levels(state, upper)["item"]))
    if learns and found > 0:
        _learn(cfg, state, buffers, origin, depth, found)
    _count_looks(cfg, state, compared)
    if cfg["counts_work"] and n == 2 and step["shared"]:
        state["compared"] += shared
    state["results"] += found
    state["matches"] += counted
    state["importance"] += total
    buffers["results"] = out
    return not full


@kernel
def begin(cfg, state, buffers, origin, x):
    """Start a probe. x: the new tuple, where it comes first; -1: the outermost loop is over a window."""
    buffers["probing"] = 1
    buffers["origin"] = origin
    if x == NONE:
        buffers["depth"] = 0
        _open(cfg, state, buffers, origin, 0)
        return
    card, level = storage.card(cfg, state, x), mem.levels(state, 0)
    level["item"] = x
    level["seq"] = card["seq"]
    level["importance"] = card["importance"]
    level["hi"] = card["ts"]
    level["end"] = min(card["ts"] + reach(cfg, origin), FAR)
    level["worth"] = card["importance"]
    if cfg["limited"]:
        set_limits(cfg, state, buffers, origin, x)
    buffers["depth"] = 1
    _open(cfg, state, buffers, origin, 1)


@kernel
def go_on(cfg, state, buffers):
    """Probe until the end (True) or until the output is full (False)."""
    n, origin = cfg["streams"], buffers["origin"]
    # The new tuple itself is no loop.
    top = 1 if mem.steps(state, origin * n)["fresh"] else 0
    depth = buffers["depth"]
    while depth >= top:
        if depth == n - 1:
            if not _innermost(cfg, state, buffers, origin):
                buffers["depth"] = depth
                return False
            depth -= 1
        elif _bind(cfg, state, buffers, origin, depth):
            depth += 1
            _open(cfg, state, buffers, origin, depth)
        else:
            depth -= 1
    buffers["probing"] = 0
    return True


@kernel
def all_there(cfg, state, v, stream):
    """Whether every other stream has tuples of a key: without them there is nothing to find."""
    for other in range(cfg["streams"]):
        if other != stream and mem.buckets(state, v * cfg["streams"] + other)["count"] == 0:
            return False
    return True
