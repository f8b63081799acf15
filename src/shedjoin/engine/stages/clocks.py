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
def _effective(cfg, state, stream, time):
    """The stream's clock, or, when it lags too far to be waited for, what is left of the newest."""
    if cfg["max_skew"] < 0 or time == NEVER:
        return state["clock"][stream]
    return max(state["clock"][stream], time - cfg["max_skew"])


@inlined
def is_own(cfg, seq):
    """Whether a row is stored and counted here. In a join that is split, each row is so in one part, and probes all."""
    return seq % cfg["of_parts"] == cfg["part"]


@inlined
def is_late(state, stream, ts):
    """Whether rows of this instant, which has begun, are late."""
    return ts < state["oldest"][stream]


@inlined
def begin(cfg, state, buffers, ts):
    """Number the rows of an instant, and let the clocks go on up to it."""
    time = newest(cfg, state)
    for stream in range(cfg["streams"]):
        state["oldest"][stream] = _effective(cfg, state, stream, time) - cfg["lateness"]
    for stream in range(cfg["streams"]):
        rows = buffers["rows"][stream]
        buffers["old_seq"][stream] = buffers["seq"][stream] = state["arrived"][stream]
        state["arrived"][stream] += rows
        if rows > 0:
            state["clock"][stream] = max(state["clock"][stream], ts)


@kernel
def are_late(cfg, state, buffers):
    """Whether there are late rows in the instant that is next."""
    time = newest(cfg, state)
    for stream in range(cfg["streams"]):
        if buffers["rows"][stream] > 0:
            if mem.row_ts(buffers, buffers["first"]) < _effective(cfg, state, stream, time) - cfg["lateness"]:
                return True
    return False


@only_many
@inlined
def count_elsewhere(cfg, state, buffers):
    """Let rows count that went to other engines: up to this instant, or as many as are told."""
    if cfg["counted_elsewhere"]:
        for stream in range(cfg["streams"]):
            if buffers["end"] > buffers["first"]:
                state["arrived"][stream] = mem.row_arrived(buffers, buffers["first"] * cfg["streams"] + stream)
            else:
                state["arrived"][stream] = max(state["arrived"][stream], buffers["told_arrived"][stream])


@inlined
def _next_number(cfg, state, buffers, i, stream):
    return buffers["seq"][stream]


@in_pairs(_next_number)
@inlined
def number(cfg, state, buffers, i, stream):
    """The number of row i, the next of its stream to be met."""
    return mem.row_seq(buffers, i) if cfg["counted_elsewhere"] else buffers["seq"][stream]


@inlined
def _set_horizons_of_pair(cfg, state):
    time = newest(cfg, state)
    for stream in range(2):
        other = _effective(cfg, state, 1 - stream, time)
        state["horizon"][stream] = NEVER if other == NEVER else other - cfg["lateness"]


@in_pairs(_set_horizons_of_pair)
@kernel
def set_horizons(cfg, state):
    """How far each stream's others have come: the least of their clocks, less the lateness."""
    time = newest(cfg, state)
    least, second, slowest = 2**62, 2**62, -1
    for stream in range(cfg["streams"]):
        clock = _effective(cfg, state, stream, time)
        if clock < least:
            least, second, slowest = clock, least, stream
        elif clock < second:
            second = clock
    for stream in range(cfg["streams"]):
        line = second if stream == slowest else least
        state["horizon"][stream] = NEVER if line == NEVER else line - cfg["lateness"]


@kernel
def take_turn(cfg, state, stream, ts):
    """A single row has its turn: whether it is late is said by the clocks before it, and it moves its own."""
    time = newest(cfg, state)
    for one in range(cfg["streams"]):
        state["oldest"][one] = _effective(cfg, state, one, time) - cfg["lateness"]
    state["clock"][stream] = max(state["clock"][stream], ts)


@inlined
def _own_clock(cfg, state, stream):
    return state["clock"][stream]


@in_pairs(_own_clock)
@kernel
def _known_clock(cfg, state, stream):
    """The clock of a stream. Rows that wait may be of one that has none yet: then the first that there is."""
    if cfg["waits"] == 0 or state["clock"][stream] != NEVER:
        return state["clock"][stream]
    for other in range(cfg["streams"]):
        if state["clock"][other] != NEVER:
            return state["clock"][other]
    return 0


@unless_plain
@inlined
def set_bases(cfg, state):
    """Where remaining life is counted from, for each stream."""
    for stream in range(cfg["streams"]):
        old = state["base"][stream]
        if mem.window_kind(cfg, stream) == ROW:
            state["base"][stream] = state["arrived"][stream]
        else:
            line = state["horizon"][stream]
            # A stream that has not begun sets no horizon; until it does, life is counted by the own clock.
            state["base"][stream] = _known_clock(cfg, state, stream) if line == NEVER else line
        priority.rebase(cfg, state, stream, old)


@only_many
@inlined
def _keep_instant(cfg, state, stream):
    """Row windows: tuples stay while rows that came in their own instant have not had their turn."""
    if cfg["waits"] and state["whole"]:
        state["limit"][stream] = min(state["limit"][stream], state["from_number"][stream] - 1)


@inlined
def set_limit(cfg, state, stream):
    """Tuples with a stamp up to the limit can meet nothing any more."""
    if mem.window_kind(cfg, stream) == ROW:
        state["limit"][stream] = state["arrived"][stream] - mem.window_size(cfg, stream) - 1
        _keep_instant(cfg, state, stream)
        return
    line = state["horizon"][stream]
    # A stream that has not begun ends no window.
    state["limit"][stream] = NEVER if line == NEVER else line - mem.window_size(cfg, stream)
