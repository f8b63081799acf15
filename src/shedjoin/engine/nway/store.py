"""The memory of an n-way join: tuples are stored once, expire, and go."""

from __future__ import annotations

from shedjoin.engine import expiry
from shedjoin.engine import mem as tuples
from shedjoin.engine.codes import LIFE, ROW
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.nway import cells, mem, order, rings, weigh
from shedjoin.engine.state import NEVER, NONE


@inlined
def now(how, st):
    """The largest time seen on any stream."""
    newest = st["clock"][0]
    for stream in range(1, how["streams"]):
        newest = max(newest, st["clock"][stream])
    return newest


@inlined
def effective_clock(how, st, stream, newest):
    """The stream's clock, or, when it lags too far to be waited for, what is left of the newest."""
    if how["max_skew"] < 0 or newest == NEVER:
        return st["clock"][stream]
    return max(st["clock"][stream], newest - how["max_skew"])


@kernel
def set_horizons(how, st):
    """How far each stream's others have come: the least of their clocks, less the lateness."""
    newest = now(how, st)
    least, second, slowest = 2**62, 2**62, -1
    for stream in range(how["streams"]):
        clock = effective_clock(how, st, stream, newest)
        if clock < least:
            least, second, slowest = clock, least, stream
        elif clock < second:
            second = clock
    for stream in range(how["streams"]):
        line = second if stream == slowest else least
        st["horizon"][stream] = NEVER if line == NEVER else line - how["lateness"]


@kernel
def set_bases(how, st):
    """Where remaining life is counted from, for each stream."""
    set_horizons(how, st)
    for stream in range(how["streams"]):
        old = st["base"][stream]
        if st["kind"][stream] == ROW:
            st["base"][stream] = st["arrived"][stream]
        else:
            line = st["horizon"][stream]
            # A stream that has not begun sets no horizon; until it does, life is counted by the own clock.
            st["base"][stream] = st["clock"][stream] if line == NEVER else line
        if how["organisation"] == LIFE and st["base"][stream] < old:
            order.replay_all(st, stream)


@inlined
def lacks(how, st, io, i):
    """What the arena misses before a row can be stored; 0: nothing."""
    stream = mem.row_stream(io, i)
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index = mem.indexes(st, number)
        key = mem.row_attr(io, i * how["width"] + index["attr"]) if index["attr"] >= 0 else 0
        need = rings.lacks(st, rings.bucket_of(index, key))
        if need > 0:
            return need
    return 0


@inlined
def add(how, st, io, i, seq):
    """Store a row; returns its place in the pool."""
    st["free_count"] -= 1
    x = int(tuples.free(st, st["free_count"]))
    stream, ts, importance = mem.row_stream(io, i), mem.row_ts(io, i), mem.row_importance(io, i)
    t, card = tuples.pool(st, x), mem.card(st, x)
    t["arrival"] = st["arrival"]
    t["stream"] = stream
    t["bytes"] = mem.row_bytes(io, i)
    t["met"] = 0
    t["slot"] = NONE
    card["ts"] = ts
    card["seq"] = seq
    card["importance"] = importance
    card["tick"] = st["tick"]
    for a in range(how["width"]):
        mem.set_attr(st, x * how["width"] + a, mem.row_attr(io, i * how["width"] + a))
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index, which = mem.indexes(st, number), number - st["first_index"][stream]
        key = mem.attr(st, x * how["width"] + index["attr"]) if index["attr"] >= 0 else 0
        rings.append(st, rings.bucket_of(index, key), key, ts, seq, importance, x, how["spots"], which)
    expiry.enter(st, x, stream, seq if st["kind"][stream] == ROW else ts)
    st["resident"][stream] += 1
    st["stored_bytes"][stream] += t["bytes"]
    if how["weighed"]:
        cells.enter(how, st, x)
    order.enter(how, st, x)
    weigh.stored(how, st, x, 1.0)
    return x


@kernel
def discard(how, st, x):
    """Take a tuple out of memory and out of everything that follows it."""
    t = tuples.pool(st, x)
    stream = int(t["stream"])
    order.leave(how, st, x)
    for number in range(st["first_index"][stream], st["end_index"][stream]):
        index, which = mem.indexes(st, number), number - st["first_index"][stream]
        key = mem.attr(st, x * how["width"] + index["attr"]) if index["attr"] >= 0 else 0
        rings.remove(st, rings.bucket_of(index, key), x, how["spots"], which)
    st["resident"][stream] -= 1
    expiry.leave(st, x, stream)
    st["stored_bytes"][stream] -= t["bytes"]
    weigh.stored(how, st, x, -1.0)
    if how["weighed"]:
        cells.leave(how, st, x)
    tuples.set_free(st, st["free_count"], x)
    st["free_count"] += 1


@inlined
def set_limit(how, st, stream):
    """Tuples with a stamp up to the limit can meet nothing any more."""
    if st["kind"][stream] == ROW:
        st["limit"][stream] = st["arrived"][stream] - st["window"][stream] - 1
        return
    line = st["horizon"][stream]
    st["limit"][stream] = NEVER if line == NEVER else line - st["window"][stream]


@kernel
def expire(how, st):
    """Tuples that can meet nothing any more go."""
    st["expirations"] += 1
    for stream in range(how["streams"]):
        set_limit(how, st, stream)
        while True:
            x, stamp = expiry.following(st, stream)
            if x == NONE or stamp > st["limit"][stream]:
                break
            discard(how, st, x)
            st["expired"] += 1
