"""The probe of n streams: nested loops through the other windows in the order of the plan, with nothing kept in between.

A probe can stop when the output is full and go on from there: where it is in each of its loops stands in `levels`.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import KEYED, MOST, PAIRS, ROW, SAMPLE
from shedjoin.engine.graph import APART, AT_LEAST, AT_MOST, EQUAL, LESS, MORE, SET, UNEQUAL, UNSET
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.layouts import storage
from shedjoin.engine.layouts.indexed import bucket_of
from shedjoin.engine.records import NONE
from shedjoin.engine.stages import priority, sampling, select, unmatched
from shedjoin.engine.stages.times import number_of, reach
from shedjoin.engine.where import PASSED

FAR = 2**62


#: For each comparison three bits: whether it holds of a smaller number, of an equal one, of a larger one.
ORDERS = sum(
    bits << 3 * op
    for op, bits in (
        (EQUAL, 0b010),
        (LESS, 0b001),
        (AT_MOST, 0b011),
        (MORE, 0b100),
        (AT_LEAST, 0b110),
        (UNEQUAL, 0b101),
    )
)


@inlined
def holds(op, mine, other, band):
    """Whether two attributes pass a test. Comparisons are looked up: which one it is would be guessed wrong too often."""
    if op <= UNEQUAL:
        order = 1 + (mine > other) - (mine < other)
        return (ORDERS >> (3 * op + order)) & 1 == 1
    if op == SET:
        return (mine & band) != 0
    if op == UNSET:
        return (mine & band) == 0
    near = mine - other <= band and other - mine <= band
    return not near if op == APART else near


@inlined
def _attribute(cfg, state, depth, x, level, attr):
    """An attribute of what a level has bound; of `depth` itself of x."""
    item = x if level == depth else mem.levels(state, level)["item"]
    return mem.attr(state, item * cfg["width"] + attr)


@kernel
def checked(cfg, state, first, depth, x):
    """Whether a tuple passes the tests that begin there, with all that is bound above it."""
    at = first
    while at >= 0:
        check = mem.checks(state, at)
        mine = _attribute(cfg, state, depth, x, check["level"], check["attr"])
        other = _attribute(cfg, state, depth, x, check["other_level"], check["other_attr"])
        at = check["yes"] if holds(check["op"], mine, other, check["band"]) else check["no"]
    return at == PASSED


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
def is_met(cfg, state, stream, x, seq):
    """Whether a tuple was there, and in its window of rows, when the new one came."""
    return state["lo"][stream] <= number_of(cfg, state, x, seq) < state["hi"][stream]


@inlined
def _within_limits(cfg, state, origin, depth):
    """Whether all that is bound above the new tuple was there when it came."""
    for level in range(depth):
        stream, there = mem.steps(state, origin * cfg["streams"] + level)["stream"], mem.levels(state, level)
        if not is_met(cfg, state, stream, int(there["item"]), there["seq"]):
            return False
    return True


@inlined
def _passes(cfg, state, buffers, step, origin, depth, fresh, x):
    """Whether a tuple satisfies what its bucket and the times do not see to.

    A new tuple in a loop below others (`fresh`) sets limits to all that is bound above it.
    """
    if step["checks"] > 0 and not checked(cfg, state, step["first_check"], depth, x):
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
            x = int(mem.levels(state, upper)["item"])
            card = storage.card(cfg, state, x)
            number = number_of(cfg, state, x, card["seq"])
            select.meet(cfg, state, stream, _time(cfg, state, buffers), card["ts"], number, found)


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
            until = e["ts"] + window
            if e["ts"] >= end or hi >= until:
                continue
            if limited and not is_met(cfg, state, stream, int(e["item"]), e["seq"]):
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
            level["hi"] = max(hi, e["ts"])
            level["end"] = min(end, until)
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
def _note_weights(cfg, state, buffers, origin, innermost, out, room):
    """Sample: one divided by the probability that each stored tuple of a result was there; the weight is their product."""
    n, product = cfg["streams"], 1.0
    for stream in range(n):
        x = innermost
        for level in range(n - 1):
            if mem.steps(state, origin * n + level)["stream"] == stream:
                x = int(mem.levels(state, level)["item"])
        inverse = 1.0 if stream == origin else sampling.inverse(cfg, state, x, stream)
        if n > 2:
            mem.set_out_inverse(buffers, stream * room + out, inverse)
        product *= inverse
    mem.set_out_weight(buffers, out, product)
    mem.set_out_newest(buffers, out, origin)


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
    follows = cfg["follows"]
    fresh = step["fresh"] and cfg["limited"]
    out, pairs = buffers["results"], cfg["gives"] == PAIRS
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
            if e["ts"] >= end or hi >= e["ts"] + window:
                continue
            if limited and not is_met(cfg, state, stream, int(e["item"]), e["seq"]):
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
            if cfg["counts"]:
                buffers["results"] = out
                unmatched.meet_all(cfg, state, buffers, origin, depth, int(e["item"]))
                out = buffers["results"]
            if pairs and max(hi, e["ts"]) >= warmup:
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
                    if cfg["organisation"] == SAMPLE:
                        _note_weights(cfg, state, buffers, origin, int(e["item"]), out, room)
                    out += 1
            if follows:
                touch(state, int(e["item"]))
            if learns:
                state["gained"] += (
                    _combined(code, worth, e["importance"])
                    if code < 2
                    else _sum_up(cfg, state, origin, e["importance"])
                )
                if stream != origin:
                    number = number_of(cfg, state, int(e["item"]), e["seq"])
                    select.meet(cfg, state, stream, _time(cfg, state, buffers), e["ts"], number, 1)
        level["at"] = at
        if full or level["bucket"] == level["last"]:
            break
        _enter_bucket(cfg, state, buffers, step, level, level["bucket"] + 1)
    if follows and found > 0:
        for upper in range(depth):
            touch(state, int(mem.levels(state, upper)["item"]))
    if learns and found > 0:
        _learn(cfg, state, buffers, origin, depth, found)
    _count_looks(cfg, state, compared)
    if cfg["counts_work"] and n == 2 and step["shared"]:
        state["compared"] += shared
    state["results"] += found if pairs else 0
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
