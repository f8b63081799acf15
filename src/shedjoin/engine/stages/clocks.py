"""Clocks: how far each stream has come, which rows are late, and what that means for stored tuples."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import ROW
from shedjoin.engine.forms import in_pairs, only_many, unless_plain
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NEVER
from shedjoin.engine.stages import priority
from shedjoin.engine.stages.times import newest


@inlined
def _effective(how, st, stream, time):
    """The stream's clock, or, when it lags too far to be waited for, what is left of the newest."""
    if how["max_skew"] < 0 or time == NEVER:
        return st["clock"][stream]
    return max(st["clock"][stream], time - how["max_skew"])


@inlined
def is_own(how, seq):
    """Whether a row is stored and counted here. In a join that is split, each row is so in one part, and probes all."""
    return seq % how["of_parts"] == how["part"]


@inlined
def is_late(st, stream, ts):
    """Whether rows of this instant, which has begun, are late."""
    return ts < st["oldest"][stream]


@inlined
def begin(how, st, io, ts):
    """Number the rows of an instant, and let the clocks go on up to it."""
    time = newest(how, st)
    for stream in range(how["streams"]):
        st["oldest"][stream] = _effective(how, st, stream, time) - how["lateness"]
    for stream in range(how["streams"]):
        rows = io["rows"][stream]
        io["old_seq"][stream] = io["seq"][stream] = st["arrived"][stream]
        st["arrived"][stream] += rows
        if rows > 0 and not is_late(st, stream, ts):
            st["clock"][stream] = max(st["clock"][stream], ts)


@only_many
@inlined
def count_elsewhere(how, st, io):
    """Let rows count that went to other engines: up to this instant, or as many as are told."""
    if how["counted_elsewhere"]:
        for stream in range(how["streams"]):
            if io["end"] > io["first"]:
                st["arrived"][stream] = mem.row_arrived(io, io["first"] * how["streams"] + stream)
            else:
                st["arrived"][stream] = max(st["arrived"][stream], io["told_arrived"][stream])


@inlined
def _next_number(how, st, io, i, stream):
    return io["seq"][stream]


@in_pairs(_next_number)
@inlined
def number(how, st, io, i, stream):
    """The number of row i, the next of its stream to be met."""
    return mem.row_seq(io, i) if how["counted_elsewhere"] else io["seq"][stream]


@inlined
def _set_horizons_of_pair(how, st):
    time = newest(how, st)
    for stream in range(2):
        other = _effective(how, st, 1 - stream, time)
        st["horizon"][stream] = NEVER if other == NEVER else other - how["lateness"]


@in_pairs(_set_horizons_of_pair)
@kernel
def set_horizons(how, st):
    """How far each stream's others have come: the least of their clocks, less the lateness."""
    time = newest(how, st)
    least, second, slowest = 2**62, 2**62, -1
    for stream in range(how["streams"]):
        clock = _effective(how, st, stream, time)
        if clock < least:
            least, second, slowest = clock, least, stream
        elif clock < second:
            second = clock
    for stream in range(how["streams"]):
        line = second if stream == slowest else least
        st["horizon"][stream] = NEVER if line == NEVER else line - how["lateness"]


@kernel
def take_turn(how, st, stream, ts):
    """A single row has its turn: whether it is late is said by the clocks before it, and it moves its own."""
    time = newest(how, st)
    for one in range(how["streams"]):
        st["oldest"][one] = _effective(how, st, one, time) - how["lateness"]
    if not is_late(st, stream, ts):
        st["clock"][stream] = max(st["clock"][stream], ts)


@inlined
def _own_clock(how, st, stream):
    return st["clock"][stream]


@in_pairs(_own_clock)
@kernel
def _known_clock(how, st, stream):
    """The clock of a stream. Rows that wait may be of one that has none yet: then the first that there is."""
    if how["waits"] == 0 or st["clock"][stream] != NEVER:
        return st["clock"][stream]
    for other in range(how["streams"]):
        if st["clock"][other] != NEVER:
            return st["clock"][other]
    return 0


@unless_plain
@inlined
def set_bases(how, st):
    """Where remaining life is counted from, for each stream."""
    for stream in range(how["streams"]):
        old = st["base"][stream]
        if mem.window_kind(how, stream) == ROW:
            st["base"][stream] = st["arrived"][stream]
        else:
            line = st["horizon"][stream]
            # A stream that has not begun sets no horizon; until it does, life is counted by the own clock.
            st["base"][stream] = _known_clock(how, st, stream) if line == NEVER else line
        priority.rebase(how, st, stream, old)


@only_many
@inlined
def _keep_instant(how, st, stream):
    """Row windows: tuples stay while rows that came in their own instant have not had their turn."""
    if how["waits"] and st["whole"]:
        st["limit"][stream] = min(st["limit"][stream], st["from_number"][stream] - 1)


@inlined
def set_limit(how, st, stream):
    """Tuples with a stamp up to the limit can meet nothing any more."""
    if mem.window_kind(how, stream) == ROW:
        st["limit"][stream] = st["arrived"][stream] - mem.window_size(how, stream) - 1
        _keep_instant(how, st, stream)
        return
    line = st["horizon"][stream]
    # A stream that has not begun ends no window.
    st["limit"][stream] = NEVER if line == NEVER else line - mem.window_size(how, stream)
