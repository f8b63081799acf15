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
def _split(how, st):
    """Algorithm 4: fractions that leave r (w1 + w2 + ...) the same, better windows as large a part as can be.

    The printed line 7 has a slip: it divides by w1 where w2 belongs.
    """
    rest = 0.0
    for stream in range(how["streams"]):
        rest += float(mem.window_size(how, stream))
    rest *= st["fraction"]
    for stream in range(how["streams"]):
        size, better = float(mem.window_size(how, stream)), 0.0
        for later in range(stream + 1, how["streams"]):
            if st["mean_density"][later] > st["mean_density"][stream]:
                better += float(mem.window_size(how, later))
        st["fractions"][stream] = min(1.0, max(0.0, (rest - better) / size))
        rest -= st["fractions"][stream] * size


# ------------------------------------------------------------------------------------------------------------- types


@kernel
def _combined(how, a, b):
    """The importance of an output of two tuples."""
    code = how["output_importance"]
    if code == 0:
        return min(a, b)
    if code == 1:
        return max(a, b)
    if code == 3:
        return a * b
    return (a + b) / 2.0 if code == 4 else a + b


@kernel
def _of_others(how, st, numbers, window, kind):
    """The sum over all streams but one, for a type."""
    total = 0.0
    for stream in range(how["streams"]):
        if stream != window:
            total += numbers[stream * how["kinds"] + kind]
    return total


@kernel
def _typical(how, st, window, kind):
    """The usual worth of an output of such a row with a tuple of the window, by how often types occur there."""
    rows, sums = mem.kind_rows(st), mem.kind_sum(st)
    probing = _of_others(how, st, rows, window, kind)
    if probing == 0.0:
        return 0.0
    mine = _of_others(how, st, sums, window, kind) / probing
    total, there = 0.0, 0.0
    for other in range(how["kinds"]):
        stored = rows[window * how["kinds"] + other]
        if stored > 0.0:
            total += stored * _combined(how, mine, sums[window * how["kinds"] + other] / stored)
            there += stored
    return total / there if there > 0.0 else mine


@kernel
def _value_types(how, st, window):
    """What a comparison with a window brings each type: from samples, while they are few from what types are worth."""
    gain, seen, worth = mem.kind_gain(st), mem.kind_seen(st), mem.kind_worth(st)
    first = window * how["kinds"]
    brought, usual = 0.0, 0.0
    for kind in range(how["kinds"]):
        worth[first + kind] = _typical(how, st, window, kind)
        brought += gain[first + kind]
        usual += worth[first + kind] * seen[first + kind]
    factor = brought / usual if usual > 0.0 else 1.0
    trusted = TRUSTED_SAMPLES * st["mean_window"][window]
    for at in range(first, first + how["kinds"]):
        worth[at] = (gain[at] + trusted * (worth[at] * factor)) / (seen[at] + trusted)


@kernel
def _measure_types(how, st, window):
    """The comparisons of each type with a whole window, by how many rows of it come."""
    rows, volume = mem.kind_rows(st), mem.kind_volume(st)
    came = 0.0
    for kind in range(how["kinds"]):
        came += _of_others(how, st, rows, window, kind)
    for kind in range(how["kinds"]):
        probing = _of_others(how, st, rows, window, kind)
        volume[window * how["kinds"] + kind] = float(mem.window_size(how, window)) * probing / max(1.0, came)


@inlined
def _is_better(st, a, b):
    """Of equal values, the lower window and type is first."""
    value = mem.sack_value(st)
    return value[a] > value[b] or (value[a] == value[b] and a < b)


@kernel
def _sink(st, at, size):
    """Put an entry of the knapsack's heap below all that are better."""
    sack = mem.sack(st)
    one = sack[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _is_better(st, sack[child + 1], sack[child]):
            child += 1
        if not _is_better(st, sack[child], one):
            break
        sack[at] = sack[child]
        at = child
    sack[at] = one


@kernel
def _value_next(how, st, one):
    """What the next age of a window brings a type, for each comparison."""
    stream = one // how["kinds"]
    age = mem.age_rank(st)[stream * how["ages"] + mem.sack_next(st)[one]]
    mem.sack_value(st)[one] = mem.kind_worth(st)[one] * mem.age_density(st)[stream * how["ages"] + age]


@kernel
def _pack(how, st):
    """Algorithm 5: fill the budget of comparisons with what brings most for each of them.

    An item is a window, a type of row that probes it and an age. Of each window and type the best age left is in the heap.
    """
    sack, following, part = mem.sack(st), mem.sack_next(st), mem.kind_fraction(st)
    size = how["streams"] * how["kinds"]
    budget = 0.0
    for stream in range(how["streams"]):
        budget += st["fraction"] * float(mem.window_size(how, stream))
        _value_types(how, st, stream)
        _measure_types(how, st, stream)
    for one in range(size):
        part[one] = 0.0
        following[one] = 0
        sack[one] = one
        _value_next(how, st, one)
    for at in range(size // 2, -1, -1):
        _sink(st, at, size)
    while size > 0 and budget > 0.0:
        one = sack[0]
        first = one // how["kinds"] * how["ages"]
        share = mem.age_share(st)[first + mem.age_rank(st)[first + following[one]]]
        volume = mem.kind_volume(st)[one] * share
        part[one] += (1.0 if volume <= budget else budget / volume) * share
        budget -= volume
        following[one] += 1
        if following[one] < how["ages"]:
            _value_next(how, st, one)
        else:
            size -= 1
            sack[0] = sack[size]
        _sink(st, 0, size)


# ------------------------------------------------------------------------------------------------- r for each window


@kernel
def set_fractions(how, st):
    """r for each window, or for each window and type. Until something is known of all, they share it alike."""
    r, known, differ = st["fraction"], True, False
    for stream in range(how["streams"]):
        st["fractions"][stream] = r
        known = known and st["mean_window"][stream] > 0.0
        differ = differ or st["mean_density"][stream] != st["mean_density"][0]
    for one in range(how["streams"] * how["kinds"]):
        mem.kind_fraction(st)[one] = r
    if known and r < 1.0:
        if how["types"] > 0:
            _pack(how, st)
        elif how["direction"] and differ:
            _split(how, st)


@kernel
def _sort(how, st, stream):
    """By falling density; equal ones keep their order. Nearly in order from the last time, so by insertion."""
    rank, density = mem.age_rank(st), mem.age_density(st)
    first = stream * how["ages"]
    for i in range(1, how["ages"]):
        one = rank[first + i]
        j = i
        while j > 0 and density[first + rank[first + j - 1]] < density[first + one]:
            rank[first + j] = rank[first + j - 1]
            j -= 1
        rank[first + j] = one


@kernel
def _rank(how, st):
    """Algorithm 2: order the ages by partners found for each tuple looked at, and begin to count anew."""
    met, seen = mem.age_met(st), mem.age_seen(st)
    for stream in range(how["streams"]):
        first = stream * how["ages"]
        looked, found = 0.0, 0.0
        for at in range(first, first + how["ages"]):
            looked += seen[at]
            found += met[at]
        if looked == 0.0:  # nothing learned: all stays as it was
            continue
        for at in range(first, first + how["ages"]):
            mem.age_density(st)[at] = met[at] / seen[at] if seen[at] > 0.0 else 0.0
            mem.age_share(st)[at] = seen[at] / looked
            met[at] = 0.0
            seen[at] = 0.0
        st["mean_density"][stream] = found / looked
        st["mean_window"][stream] = looked / st["samples"][stream]
        st["samples"][stream] = 0
        if how["correlation"]:
            _sort(how, st, stream)


@kernel
def _fade(how, st):
    """What is known of types counts half as much with every ranking."""
    for one in range(how["streams"] * how["kinds"]):
        mem.kind_gain(st)[one] *= 0.5
        mem.kind_seen(st)[one] *= 0.5
        mem.kind_rows(st)[one] *= 0.5
        mem.kind_sum(st)[one] *= 0.5


@kernel
def _follow_rate(how, st, beta):
    """Algorithm 1: r after a period in which the share `beta` of the rows could be processed."""
    if beta < 1.0:
        st["fraction"] = max(LEAST_FRACTION, beta * st["fraction"])
    else:
        st["fraction"] = min(1.0, how["boost"] * st["fraction"])


@kernel
def adapt(how, st, now):
    """Whatever is due at this time."""
    if how["rate"] and now >= st["next_rate"]:
        if how["follows_rate"] and st["came"] > 0:
            _follow_rate(how, st, st["fetched"] / st["came"])
        st["came"] = 0
        st["fetched"] = 0
        st["next_rate"] = now - now % how["rate_every"] + how["rate_every"]
        set_fractions(how, st)
    if now >= st["next_rank"]:
        _rank(how, st)
        set_fractions(how, st)
        _fade(how, st)
        st["next_rank"] = now - now % how["rank_every"] + how["rank_every"]


@kernel
def come(how, st, io, i):
    """A row arrives."""
    adapt(how, st, mem.row_ts(io, i))
    if how["types"] > 0:
        at = mem.row_stream(io, i) * how["kinds"] + mem.row_kind(io, i)
        mem.kind_rows(st)[at] += 1.0
        mem.kind_sum(st)[at] += mem.row_importance(io, i)
    st["came"] += 1


@only_many
@inlined
def arrive(how, st, io):
    """The rows of an instant arrive."""
    if how["basic"] > 0:
        for i in range(io["first"], io["end"]):
            come(how, st, io, i)
