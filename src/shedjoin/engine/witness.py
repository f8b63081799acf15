"""Witnesses: a sample of the rows, followed past their eviction, that counts the results that shedding costs.

What is estimated, and why it is unbiased, is in `shedjoin.quality.live`. Here is the machinery. Every row is remembered
with some probability when it arrives ("waiting"). If the shed log says that it was evicted, it becomes a witness: each
later row that would have met it adds one missing result to it. When no later row can meet it any more, what it counted is
folded into the totals and it is forgotten. A row that is never evicted is forgotten without a trace.

Most rows and most records of the shed log are none of a witness's business, and must be dismissed in a few nanoseconds.
So rows are taken in blocks of `block`, counted from the first row of all, and each block in three passes: who is drawn, who was
shed, who is missed. A pass only lists the few that matter, without a branch to guess wrong, and then deals with these.
Probabilities change between blocks only, so a block that is cut in two comes to the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import LATE, ROW, TIME
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.state import NONE

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

#: A row of a key that the other stream never brings is kept with this share of the usual probability.
FLOOR = 0.25
#: Keys are counted over at most so many rows, less a block: then all counts are halved. One key can have them all, in 16 bits.
MEMORY = 1 << 16
#: The longest block.
LONGEST_BLOCK = 1 << 10

# What is allowed for a row, and what things cost, in pairs found: some ten nanoseconds each.
ALLOWED = 0.5
REMEMBER = 10
ACTIVATE = 6

# What a place in the table holds.
WAITING, ACTIVE, OVER = range(3)

#: What a witness, and all of them together, have counted: results and importance, since the start and faded.
COUNTS = ("results", "worth", "recent", "recent_worth")
#: Sums over witnesses, for each of the above: of the estimates, of their squares, of their cubes.
POWERS = 3

WITNESS_RECORD = np.dtype(
    [
        ("key", "i8"),
        ("ts", "i8"),
        ("seq", "i8"),
        ("since", "i8"),  # rows of the other stream that had come when it was shed: those did meet it
        ("importance", "f8"),
        ("keep", "f8"),  # the probability with which it is (still) here
        *((name, "f8") for name in COUNTS),  # each missing pair counts 1 / keep
        ("next", "i4"),  # waiting: in `rows`; active: in `cells`
        ("stream", "i2"),
        ("state", "i2"),
    ]
)
STATE_RECORD = np.dtype(
    [
        ("kind", "i8", (2,)),  # the windows
        ("size", "i8", (2,)),
        ("lateness", "i8"),
        ("max_skew", "i8"),  # NONE: none
        ("output_importance", "i8"),
        ("seed", "u8"),
        ("clock", "i8", (2,)),
        ("arrived", "i8", (2,)),
        ("block", "i8"),  # rows, a power of two
        ("used", "i8"),  # places of the table
        ("scale", "f8"),  # a usual row is kept with this probability
        ("counted", "i8"),  # rows in the counts of the cells
        ("others", "i8"),  # what the rows of this block found counted for the other stream
        ("gain", "f8"),  # one over the mean of that
        ("rows", "i8"),  # since the last look round
        ("work", "i8"),  # done since then
        ("period", "i8"),
        ("bank", "f8"),  # work allowed and not done: a quiet time is saved up for a busy one,
        ("savings", "f8"),  # up to this
        ("fade", "f8"),  # a recent pair counts so many times as one in the first push
        ("shed", "i8"),
        ("shed_now", "i8"),  # in this block
        ("unit", "f8"),  # what rows without expectations would stand for beside themselves, summed over shed rows
        ("sums", "f8", (len(COUNTS), POWERS)),  # of witnesses that are gone
    ]
)


class Sample(NamedTuple):
    """The rows that are remembered, and the ways to them. All but the table and the counts can be made anew."""

    table: NDArray[np.void]
    # By key (hashed into cells: keys that share one share it) and stream, in place 2 * cell + stream:
    counts: NDArray[np.uint16]  # how often the stream brought it of late
    tags: NDArray[np.uint16]  # which keys its witnesses may be of
    heads: NDArray[np.int32]  # its witnesses
    # By the row's lot:
    rows: NDArray[np.int32]  # waiting rows
    sieve: NDArray[np.uint64]  # one bit for each, small enough for the nearest cache


class Notes(NamedTuple):
    """What a pass lists for later: a row of the push or a record of the log, its number, what it found counted."""

    row: NDArray[np.int64]
    seq: NDArray[np.int64]
    other: NDArray[np.int64]


@inlined
def _lot(seed, stream, seq):
    """The row's own random bits (splitmix64): the same whenever and wherever they are asked for."""
    x = seed + np.uint64(2 * seq + stream) * GOLDEN
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def _unit(lot):
    """A lot as a number from 0 up to 1."""
    return np.float64(np.int64(lot >> np.uint64(11))) * 2.0**-53


@inlined
def _hashed(key):
    x = np.uint64(key) * GOLDEN
    return x ^ (x >> np.uint64(32))


@inlined
def _place(bits, array):
    """Where in an array of 2^n places these bits lead."""
    return bits & np.uint64(array.size - 1)


@inlined
def _cell(hashed, stream, array):
    """Where in an array of cells a key and a stream have their place."""
    return ((hashed << np.uint64(1)) | np.uint64(stream)) & np.uint64(array.size - 1)


@inlined
def _tag(hashed):
    """One of 16: most keys that share a cell differ in it."""
    return (hashed >> np.uint64(28)) & np.uint64(15)


@inlined
def _horizon(st, stream):
    """No row of the other stream before this is still to come, unless it is late."""
    clock = st["clock"][1 - stream]
    if st["max_skew"] != NONE:
        clock = max(clock, max(st["clock"][0], st["clock"][1]) - st["max_skew"])
    return clock - st["lateness"]


@inlined
def _is_over(st, stream, ts, seq):
    """Whether no later row can meet this one. A clock that has not started is far below all times."""
    if st["kind"][stream] == TIME:
        return ts + st["size"][stream] <= _horizon(st, stream)
    return seq < st["arrived"][stream] - st["size"][stream]


@kernel
def _fold(sums, w):
    """Add what a witness counted to sums: x, (1 - p) x^2, (1 - p) x^3."""
    rest = 1.0 - w["keep"]
    x = w["results"]
    sums[0, 0] += x
    sums[0, 1] += rest * x * x
    sums[0, 2] += rest * x * x * x
    x = w["worth"]
    sums[1, 0] += x
    sums[1, 1] += rest * x * x
    sums[1, 2] += rest * x * x * x
    x = w["recent"]
    sums[2, 0] += x
    sums[2, 1] += rest * x * x
    sums[2, 2] += rest * x * x * x
    x = w["recent_worth"]
    sums[3, 0] += x
    sums[3, 1] += rest * x * x
    sums[3, 2] += rest * x * x * x


# ------------------------------------------------------------------------------------------------------------ chains


@inlined
def _wait(sample, x, lot):
    """Put a row where the shed log will find it."""
    place = _place(lot, sample.rows)
    sample.table[x]["next"] = sample.rows[place]
    sample.rows[place] = x
    sample.sieve[_place(lot >> np.uint64(6), sample.sieve)] |= np.uint64(1) << (lot & np.uint64(63))


@inlined
def _may_wait(sieve, lot):
    """1 if a row of this lot may be waiting; few that are not pass."""
    return (sieve[_place(lot >> np.uint64(6), sieve)] >> (lot & np.uint64(63))) & np.uint64(1)


@inlined
def _testify(sample, x):
    """Put a witness where rows of its key will find it. The order in a chain changes no number."""
    w = sample.table[x]
    hashed = _hashed(w["key"])
    cell = _cell(hashed, w["stream"], sample.heads)
    w["next"] = sample.heads[cell]
    sample.heads[cell] = x
    sample.tags[cell] |= np.uint16(np.uint64(1) << _tag(hashed))


@kernel
def _link_all(st, sample):
    for i in range(sample.rows.size):
        sample.rows[i] = NONE
    for i in range(sample.sieve.size):
        sample.sieve[i] = np.uint64(0)
    for i in range(sample.heads.size):
        sample.heads[i] = NONE
        sample.tags[i] = 0
    for x in range(st["used"]):
        w = sample.table[x]
        if w["state"] == WAITING:
            _wait(sample, x, _lot(st["seed"], w["stream"], w["seq"]))
        elif w["state"] == ACTIVE:
            _testify(sample, x)


# ---------------------------------------------------------------------------------------------------- between blocks


@kernel
def _drop(st, table, share):
    """Close ranks: forget what is over and, of the rest, all but a share, by its lot."""
    kept = 0
    for x in range(st["used"]):
        w = table[x]
        stays = w["state"] != OVER and not _is_over(st, w["stream"], w["ts"], w["seq"])
        if stays and share < 1.0:
            stays = _unit(_lot(st["seed"], w["stream"], w["seq"])) < w["keep"] * share
        if stays:
            if share < 1.0:
                w["keep"] *= share
            if kept < x:
                table[kept] = table[x]
            kept += 1
        elif w["state"] != WAITING:
            _fold(st["sums"], w)
    st["used"] = kept


@kernel
def _look_round(st, sample):
    """Forget what is over, and see to it that room and work stay within bounds: by the probability of being kept."""
    table = sample.table
    _drop(st, table, 1.0)
    most = table.size
    allowed = ALLOWED * st["rows"]
    affordable = allowed / max(st["work"], 1)
    st["bank"] = min(st["bank"] + allowed - st["work"], st["savings"])
    share = 1.0
    if st["bank"] < 0.0:
        st["bank"] = 0.0
        share = min(max(affordable, 0.25), 0.7)
    while True:
        if st["used"] > 0.75 * most:
            share = min(share, 0.6 * most / st["used"])
        if share == 1.0:
            break
        _drop(st, table, share)
        st["scale"] *= share
        share = 1.0
        affordable = 0.0
    growth = min(0.8 * affordable, 0.6 * most / max(st["used"], 1), 2.0)
    if growth > 1.2:
        st["scale"] = min(st["scale"] * growth, 1.0 / FLOOR)
    _link_all(st, sample)
    st["rows"] = 0
    st["work"] = 0


@kernel
def _learn(st, counts):
    """What a row may expect to find, on average; and counts that follow the streams and do not outgrow their places."""
    mean = st["others"] / st["block"]
    st["others"] = 0
    # Slowly: a burst of one key must not turn everything over.
    old = 1.0 / st["gain"] if st["gain"] > 0.0 else mean
    mean = 0.9 * old + 0.1 * mean
    st["gain"] = 1.0 / mean if mean > 0.0 else 0.0
    st["counted"] += st["block"]
    if st["counted"] >= MEMORY - LONGEST_BLOCK:
        for i in range(counts.size):
            counts[i] = counts[i] >> 1
        st["counted"] >>= 1
        st["gain"] *= 2.0


@kernel
def _end_block(st, sample):
    st["unit"] += st["shed_now"] * (1.0 / min(1.0, st["scale"] * FLOOR) - 1.0)
    st["shed_now"] = 0
    _learn(st, sample.counts)
    full = st["used"] > sample.table.size - st["block"]
    if full or st["rows"] >= st["period"] or st["work"] > st["bank"] + ALLOWED * st["period"]:
        _look_round(st, sample)


# ------------------------------------------------------------------------------------------------- a block, in passes


@kernel
def _remember(st, sample, stream, seq, ts, key, importance, other):
    """A row that was drawn gets a place in the table: there is one for each row of a block."""
    x = st["used"]
    st["used"] = x + 1
    w = sample.table[x]
    w["key"] = key
    w["ts"] = ts
    w["seq"] = seq
    w["since"] = 0
    w["importance"] = importance
    w["keep"] = min(1.0, st["scale"] * (FLOOR + np.sqrt(other * st["gain"])))
    w["results"] = 0.0
    w["worth"] = 0.0
    w["recent"] = 0.0
    w["recent_worth"] = 0.0
    w["stream"] = stream
    w["state"] = WAITING
    _wait(sample, x, _lot(st["seed"], stream, seq))
    st["work"] += REMEMBER


@kernel
def _draw(st, sample, notes, stream, key, skip, ts, importance, first, end):
    """First pass: every row's key is counted, and rows are drawn.

    (Unsigned places, here and below: a signed one is looked at twice, it might be negative.)
    """
    counts = sample.counts
    seed, gain, stretch = st["seed"], st["gain"], 1.0 / st["scale"]
    seq0, seq1 = st["arrived"][0], st["arrived"][1]
    others = 0
    drawn = 0
    for i in range(np.uint64(first), np.uint64(end)):
        side = stream[i]
        seq = seq1 if side == 1 else seq0
        seq0 += 1 - side
        seq1 += side
        here = 1 - np.int64(skip[i])
        hashed = _hashed(key[i])
        other = np.int64(counts[_cell(hashed, 1 - side, counts)]) * here
        others += other
        counts[_cell(hashed, side, counts)] += np.uint16(here)
        notes.row[np.uint64(drawn)] = np.int64(i)
        notes.seq[np.uint64(drawn)] = seq
        notes.other[np.uint64(drawn)] = other
        # unit < scale * (FLOOR + sqrt(other * gain)), without the root
        excess = max(_unit(_lot(seed, side, seq)) * stretch - FLOOR, 0.0)
        drawn += here & np.int64(excess * excess <= other * gain)
    st["others"] += others
    for j in range(drawn):
        i = notes.row[j]
        _remember(st, sample, stream[i], notes.seq[j], ts[i], key[i], importance[i], notes.other[j])


@kernel
def _activate(st, sample, stream, seq, since):
    """A row was shed: if it was remembered, it is a witness from now on."""
    table, rows = sample.table, sample.rows
    place = _place(_lot(st["seed"], stream, seq), rows)
    before = NONE
    x = rows[place]
    while x != NONE and (table[x]["seq"] != seq or table[x]["stream"] != stream):
        before = x
        x = table[x]["next"]
    if x == NONE:
        return
    w = table[x]
    if before == NONE:
        rows[place] = w["next"]
    else:
        table[before]["next"] = w["next"]
    w["since"] = since
    w["state"] = ACTIVE
    _testify(sample, x)
    st["work"] += ACTIVATE


@kernel
def _read(st, sample, notes, log, at, arrived):
    """Second pass: the shed log up to so many rows. Returns the place of the first record beyond."""
    seed, sieve = st["seed"], sample.sieve
    shed = 0
    while at < log.size and log[at]["seen0"] + log[at]["seen1"] <= arrived:
        found = 0
        stop = min(log.size, at + notes.row.size)
        while at < stop:
            record = log[np.uint64(at)]
            if record["seen0"] + record["seen1"] > arrived:
                break
            here = np.int64(record["why"] != LATE)
            shed += here
            notes.row[np.uint64(found)] = at
            found += here & np.int64(_may_wait(sieve, _lot(seed, record["stream"], record["seq"])))
            at += 1
        for j in range(found):
            record = log[notes.row[j]]
            since = record["seen1"] if record["stream"] == 0 else record["seen0"]
            _activate(st, sample, record["stream"], record["seq"], since)
    st["shed"] += shed
    st["shed_now"] += shed
    return at


@kernel
def _meet(st, sample, stream, seq, key, ts, importance, arrived):
    """A row meets the witnesses of its key on the other stream: each such pair is missing from the output.

    `arrived`: rows of that other stream, the row's whole instant included.
    """
    table, heads = sample.table, sample.heads
    other = 1 - stream
    by_rows = st["kind"][other] == ROW
    back = 2**62 if by_rows else st["size"][other]
    oldest = arrived - st["size"][other] if by_rows else 0
    ahead = st["size"][stream] if st["kind"][stream] == TIME else 2**62
    code, fade = st["output_importance"], st["fade"]
    cell = _cell(_hashed(key), other, heads)
    before = NONE
    found = 0
    x = heads[cell]
    while x != NONE:
        w = table[x]
        following = w["next"]
        # The clocks are those from before this block: whoever is over by them is so for all its rows.
        if _is_over(st, other, w["ts"], w["seq"]):
            w["state"] = OVER
            if before == NONE:
                heads[cell] = following
            else:
                table[before]["next"] = following
        else:
            before = x
            apart = ts - w["ts"]
            fits = w["key"] == key and seq >= w["since"] and w["seq"] >= oldest
            if fits and apart < back and -apart < ahead:
                found += 1
                pair = 1.0 / w["keep"]
                worth = pair * output_importance(code, importance, w["importance"])
                w["results"] += pair
                w["worth"] += worth
                w["recent"] += pair * fade
                w["recent_worth"] += worth * fade
        x = following
    st["work"] += found


@kernel
def _probe(st, sample, notes, instants, stream, key, skip, ts, importance, first, end):
    """Third pass: rows look for witnesses of their key."""
    tags = sample.tags
    seq0, seq1 = st["arrived"][0], st["arrived"][1]
    found = 0
    for i in range(np.uint64(first), np.uint64(end)):
        side = stream[i]
        seq = seq1 if side == 1 else seq0
        seq0 += 1 - side
        seq1 += side
        hashed = _hashed(key[i])
        notes.row[np.uint64(found)] = np.int64(i)
        notes.seq[np.uint64(found)] = seq
        tagged = np.uint64(tags[_cell(hashed, 1 - side, tags)]) >> _tag(hashed)
        found += (1 - np.int64(skip[i])) & np.int64(tagged)
    for j in range(found):
        i = notes.row[j]
        arrived = instants[i, 1 - stream[i]] if instants.size > 0 else 0
        _meet(st, sample, stream[i], notes.seq[j], key[i], ts[i], importance[i], arrived)


@kernel
def _go_on(st, stream, ts, first, end):
    """Clocks and row numbers after a block. (A late row is behind the effective clock of its stream: it moves nothing.)"""
    ones = 0
    clock0, clock1 = st["clock"][0], st["clock"][1]
    for i in range(np.uint64(first), np.uint64(end)):
        ones += stream[i]
        clock0 = max(clock0, ts[i] if stream[i] == 0 else clock0)
        clock1 = max(clock1, ts[i] if stream[i] == 1 else clock1)
    st["clock"][0], st["clock"][1] = clock0, clock1
    st["arrived"][0] += end - first - ones
    st["arrived"][1] += ones
    st["rows"] += end - first


@entry
def follow(
    state: NDArray[Any],
    sample: Sample,
    notes: Notes,
    instants: NDArray[np.int64],
    stream: NDArray[np.int64],
    key: NDArray[np.int64],
    skip: NDArray[np.bool_],
    ts: NDArray[np.int64],
    importance: NDArray[np.float64],
    log: NDArray[np.void],
) -> int:
    """Run a push's rows and its shed log past the witnesses. Returns how many records of the log fitted the rows.

    `skip` marks rows with a null key and late rows. `instants` has, for row windows only, what had arrived of each
    stream by the end of each row's instant.
    """
    st = state[0]
    total = st["arrived"][0] + st["arrived"][1]
    at: int = _read(st, sample, notes, log, 0, total)
    first = 0
    while first < ts.size:
        end = min(ts.size, first + st["block"] - total % st["block"])
        total += end - first
        _draw(st, sample, notes, stream, key, skip, ts, importance, first, end)
        at = _read(st, sample, notes, log, at, total)
        _probe(st, sample, notes, instants, stream, key, skip, ts, importance, first, end)
        _go_on(st, stream, ts, first, end)
        if total % st["block"] == 0:
            _end_block(st, sample)
        first = end
    return at


# ------------------------------------------------------------------------------------------------------ now and then


@entry
def tally(state: NDArray[Any], table: NDArray[np.void], sums: NDArray[np.float64]) -> None:
    """Add what the witnesses that are still here have counted to `sums`."""
    st = state[0]
    for x in range(st["used"]):
        if table[x]["state"] != WAITING:
            _fold(sums, table[x])


@entry
def rescale(state: NDArray[Any], table: NDArray[np.void], factor: float) -> None:
    """Express all recent counts in another measure, before the numbers grow out of bounds."""
    st = state[0]
    st["fade"] *= factor
    for x in range(st["used"]):
        table[x]["recent"] *= factor
        table[x]["recent_worth"] *= factor
    for row in range(2, 4):
        power = factor
        for column in range(POWERS):
            st["sums"][row, column] *= power
            power *= factor


@entry
def link_up(state: NDArray[Any], sample: Sample) -> None:
    """Make all chains anew: after a restart, nothing but the table and the counts is there."""
    _link_all(state[0], sample)


@entry
def add_up(lanes: NDArray[np.float64], done: int, values: NDArray[np.float64]) -> None:
    """Add values to four sums in turn, the first value being number `done`: the same sums however values are cut."""
    size = values.size
    i = 0
    while i < size and (done + i) & 3 != 0:
        lanes[(done + i) & 3] += values[i]
        i += 1
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    while i + 4 <= size:
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        i += 4
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    while i < size:
        lanes[(done + i) & 3] += values[i]
        i += 1
