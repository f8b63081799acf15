"""Adapting to rates, to the time between partners, to better windows, to utilities (gedik2007, Algorithms 1, 2, 4, 5)."""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.forms import only_many
from shedjoin.engine.jit import inlined, kernel

#: r never falls below this: what is not tried at all cannot be learned about.
LEAST_FRACTION = 1e-4
#: A type's own samples count from this many on.
TRUSTED_SAMPLES = 4.0


# ------------------------------------------------------------------------------------------------ the better windows


@kernel
def _split(cfg, state):
    """Algorithm 4: fractions that leave r (w1 + w2 + ...) the same, better windows as large a part as can be.

    The printed line 7 has a slip: it divides by w1 where w2 belongs.
    """
    rest = 0.0
    for stream in range(cfg["streams"]):
        rest += float(mem.window_range(cfg, stream))
    rest *= state["fraction"]
    for stream in range(cfg["streams"]):
        size, better = float(mem.window_range(cfg, stream)), 0.0
        for later in range(stream + 1, cfg["streams"]):
            if state["mean_density"][later] > state["mean_density"][stream]:
                better += float(mem.window_range(cfg, later))
        state["fractions"][stream] = min(1.0, max(0.0, (rest - better) / size))
        rest -= state["fractions"][stream] * size


# ------------------------------------------------------------------------------------------------------------- types


@kernel
def _combined(cfg, a, b):
    """The importance of an output of two tuples."""
    code = cfg["output_importance"]
    if code == 0:
        return min(a, b)
    if code == 1:
        return max(a, b)
    if code == 3:
        return a * b
    return (a + b) / 2.0 if code == 4 else a + b


@kernel
def _of_others(cfg, state, numbers, window, kind):
    """The sum over all streams but one, for a type."""
    total = 0.0
    for stream in range(cfg["streams"]):
        if stream != window:
            total += numbers[stream * cfg["kinds"] + kind]
    return total


@kernel
def _typical(cfg, state, window, kind):
    """The usual worth of an output of such a row with a tuple of the window, by how often types occur there."""
    rows, sums = mem.kind_rows(state), mem.kind_sum(state)
    probing = _of_others(cfg, state, rows, window, kind)
    if probing == 0.0:
        return 0.0
    mine = _of_others(cfg, state, sums, window, kind) / probing
    total, there = 0.0, 0.0
    for other in range(cfg["kinds"]):
        stored = rows[window * cfg["kinds"] + other]
        if stored > 0.0:
            total += stored * _combined(cfg, mine, sums[window * cfg["kinds"] + other] / stored)
            there += stored
    return total / there if there > 0.0 else mine


@kernel
def _value_types(cfg, state, window):
    """What a comparison with a window brings each type: from samples, while they are few from what types are worth."""
    gain, seen, worth = mem.kind_gain(state), mem.kind_seen(state), mem.kind_worth(state)
    first = window * cfg["kinds"]
    brought, usual = 0.0, 0.0
    for kind in range(cfg["kinds"]):
        worth[first + kind] = _typical(cfg, state, window, kind)
        brought += gain[first + kind]
        usual += worth[first + kind] * seen[first + kind]
    factor = brought / usual if usual > 0.0 else 1.0
    trusted = TRUSTED_SAMPLES * state["mean_window"][window]
    for at in range(first, first + cfg["kinds"]):
        worth[at] = (gain[at] + trusted * (worth[at] * factor)) / (seen[at] + trusted)


@kernel
def _measure_types(cfg, state, window):
    """The comparisons of each type with a whole window, by how many rows of it come."""
    rows, volume = mem.kind_rows(state), mem.kind_volume(state)
    came = 0.0
    for kind in range(cfg["kinds"]):
        came += _of_others(cfg, state, rows, window, kind)
    for kind in range(cfg["kinds"]):
        probing = _of_others(cfg, state, rows, window, kind)
        volume[window * cfg["kinds"] + kind] = float(mem.window_range(cfg, window)) * probing / max(1.0, came)


@inlined
def _is_better(state, a, b):
    """Of equal values, the lower window and type is first."""
    value = mem.sack_value(state)
    return value[a] > value[b] or (value[a] == value[b] and a < b)


@kernel
def _sink(state, at, size):
    """Put an entry of the knapsack's heap below all that are better."""
    sack = mem.sack(state)
    one = sack[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _is_better(state, sack[child + 1], sack[child]):
            child += 1
        if not _is_better(state, sack[child], one):
            break
        sack[at] = sack[child]
        at = child
    sack[at] = one


@kernel
def _value_next(cfg, state, one):
    """What the next age of a window brings a type, for each comparison: its worth times the age's density by the mean."""
    stream = one // cfg["kinds"]
    age = mem.age_rank(state)[stream * cfg["ages"] + mem.sack_next(state)[one]]
    density, mean = mem.age_density(state)[stream * cfg["ages"] + age], state["mean_density"][stream]
    mem.sack_value(state)[one] = mem.kind_worth(state)[one] * (density / mean) if mean > 0.0 else 0.0


@kernel
def _pack(cfg, state):
    """Algorithm 5: fill the budget of comparisons with what brings most for each of them.

    An item is a window, a type of row that probes it and an age. Of each window and type the best age left is in the heap.
    """
    sack, following, part = mem.sack(state), mem.sack_next(state), mem.kind_fraction(state)
    size = cfg["streams"] * cfg["kinds"]
    budget = 0.0
    for stream in range(cfg["streams"]):
        budget += state["fraction"] * float(mem.window_range(cfg, stream))
        _value_types(cfg, state, stream)
        _measure_types(cfg, state, stream)
    for one in range(size):
        part[one] = 0.0
        following[one] = 0
        sack[one] = one
        _value_next(cfg, state, one)
    for at in range(size // 2, -1, -1):
        _sink(state, at, size)
    while size > 0 and budget > 0.0:
        one = sack[0]
        first = one // cfg["kinds"] * cfg["ages"]
        share = mem.age_share(state)[first + mem.age_rank(state)[first + following[one]]]
        volume = mem.kind_volume(state)[one] * share
        part[one] += (1.0 if volume <= budget else budget / volume) * share
        budget -= volume
        following[one] += 1
        if following[one] < cfg["ages"]:
            _value_next(cfg, state, one)
        else:
            size -= 1
            sack[0] = sack[size]
        _sink(state, 0, size)


# ------------------------------------------------------------------------------------------------- r for each window


@kernel
def set_fractions(cfg, state):
    """r for each window, or for each window and type. Until something is known of all, they share it alike."""
    r, known, differ = state["fraction"], True, False
    for stream in range(cfg["streams"]):
        state["fractions"][stream] = r
        known = known and state["mean_window"][stream] > 0.0
        differ = differ or state["mean_density"][stream] != state["mean_density"][0]
    for one in range(cfg["streams"] * cfg["kinds"]):
        mem.kind_fraction(state)[one] = r
    if known and r < 1.0:
        if cfg["types"] > 0:
            _pack(cfg, state)
        elif cfg["direction"] and differ:
            _split(cfg, state)


@kernel
def _sort(cfg, state, stream):
    """By falling density; equal ones keep their order. Nearly in order from the last time, so by insertion."""
    rank, density = mem.age_rank(state), mem.age_density(state)
    first = stream * cfg["ages"]
    for i in range(1, cfg["ages"]):
        one = rank[first + i]
        j = i
        while j > 0 and density[first + rank[first + j - 1]] < density[first + one]:
            rank[first + j] = rank[first + j - 1]
            j -= 1
        rank[first + j] = one


@kernel
def _rank(cfg, state):
    """Algorithm 2: order the ages by partners found for each tuple looked at, and begin to count anew."""
    met, seen = mem.age_met(state), mem.age_seen(state)
    for stream in range(cfg["streams"]):
        first = stream * cfg["ages"]
        looked, found = 0.0, 0.0
        for at in range(first, first + cfg["ages"]):
            looked += seen[at]
            found += met[at]
        if looked == 0.0:  # nothing learned: all stays as it was
            continue
        for at in range(first, first + cfg["ages"]):
            mem.age_density(state)[at] = met[at] / seen[at] if seen[at] > 0.0 else 0.0
            mem.age_share(state)[at] = seen[at] / looked
            met[at] = 0.0
            seen[at] = 0.0
        state["mean_density"][stream] = found / looked
        state["mean_window"][stream] = looked / state["samples"][stream]
        state["samples"][stream] = 0
        if cfg["correlation"]:
            _sort(cfg, state, stream)


@kernel
def _fade(cfg, state):
    """What is known of types counts half as much with every ranking."""
    for one in range(cfg["streams"] * cfg["kinds"]):
        mem.kind_gain(state)[one] *= 0.5
        mem.kind_seen(state)[one] *= 0.5
        mem.kind_rows(state)[one] *= 0.5
        mem.kind_sum(state)[one] *= 0.5


@kernel
def _follow_rate(cfg, state, beta):
    """Algorithm 1: r after a period in which the share `beta` of the rows could be processed."""
    if beta < 1.0:
        state["fraction"] = max(LEAST_FRACTION, beta * state["fraction"])
    else:
        state["fraction"] = min(1.0, cfg["boost"] * state["fraction"])


@kernel
def adapt(cfg, state, now):
    """Whatever is due at this time."""
    if cfg["rate"] and now >= state["next_rate"]:
        if cfg["follows_rate"] and state["came"] > 0:
            _follow_rate(cfg, state, state["fetched"] / state["came"])
        state["came"] = 0
        state["fetched"] = 0
        state["next_rate"] = now - now % cfg["rate_every"] + cfg["rate_every"]
        set_fractions(cfg, state)
    if now >= state["next_rank"]:
        _rank(cfg, state)
        set_fractions(cfg, state)
        _fade(cfg, state)
        state["next_rank"] = now - now % cfg["rank_every"] + cfg["rank_every"]


@kernel
def come(cfg, state, buffers, i):
    """A row arrives."""
    adapt(cfg, state, mem.row_ts(buffers, i))
    if cfg["types"] > 0:
        at = mem.row_stream(buffers, i) * cfg["kinds"] + mem.row_kind(buffers, i)
        mem.kind_rows(state)[at] += 1.0
        mem.kind_sum(state)[at] += mem.row_importance(buffers, i)
    state["came"] += 1


@only_many
@inlined
def arrive(cfg, state, buffers):
    """The rows of an instant arrive."""
    if cfg["basic"] > 0:
        for i in range(buffers["first"], buffers["end"]):
            come(cfg, state, buffers, i)
