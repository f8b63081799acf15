"""Witnesses: a sample of the rows, followed past their eviction, that counts the results that shedding costs.

What is estimated, and why it is unbiased, is in `shedjoin.quality.live`. Here is the machinery. Every row is remembered
with some probability when it arrives ("waiting"). If the shed log says that it was evicted, it becomes a witness: each
later row that would have met it adds one missing result to it. When no later row can meet it any more, what it counted is
folded into the totals and it is forgotten. A row that is never evicted is forgotten without a trace.

Most rows are none of a witness's business, and must be told so in a few nanoseconds: one look into `cells`, by key.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import LATE, TIME
from shedjoin.engine.jit import entry, inlined, kernel
from shedjoin.engine.state import NONE

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

#: A row of a key that the other stream never brings is kept with this share of the usual probability.
FLOOR = 0.25
#: Keys are counted over about this many rows of a stream: then all counts are halved.
MEMORY = 1 << 16
#: How often the mean of these counts is looked at, in rows (a power of two).
LOOK = 256

# What is allowed, and what things cost, in steps along a chain; a step takes some nanoseconds.
ALLOWED = 2.0  # a row
REMEMBER = 6
ACTIVATE = 4

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
        ("importance", "f8"),
        ("keep", "f8"),  # the probability with which it is (still) here
        *((name, "f8") for name in COUNTS),  # each missing pair counts 1 / keep
        ("next", "i4"),  # waiting: in `rows`; active: in `cells`
        ("stream", "i2"),
        ("state", "i2"),
    ]
)
# By key (hashed; keys that share a cell share it): how often each stream brought it lately, its witnesses, and which keys
# these may be of. 16 bytes, so that a look at it is one cache line.
CELL_RECORD = np.dtype([("count", "u2", (2,)), ("tags", "u2", (2,)), ("head", "i4", (2,))])

STATE_RECORD = np.dtype(
    [
        ("kind", "i8", (2,)),  # the windows
        ("size", "i8", (2,)),
        ("lateness", "i8"),
        ("max_skew", "i8"),  # NONE: none
        ("output_importance", "i8"),
        ("seed", "u8"),
        ("clock", "i8", (2,)),
        ("seq", "i8", (2,)),  # the next row's number
        ("arrived", "i8", (2,)),  # rows up to the end of this instant
        ("used", "i8"),  # places of the table
        ("scale", "f8"),  # a usual row is kept with this probability
        ("stretch", "f8"),  # one over it
        ("counted", "i8", (2,)),  # rows in the counts of the cells
        ("others", "f8"),  # their sum since the last look
        ("gain", "f8"),  # one over the mean of what a row finds counted for the other stream
        ("rows", "i8"),  # since the last look round
        ("work", "i8"),  # done since then
        ("limit", "i8"),  # and allowed until the next
        ("period", "i8"),
        ("bank", "f8"),  # work allowed and not done: a quiet time is saved up for a busy one,
        ("savings", "f8"),  # up to this
        ("fade", "f8"),  # a recent pair counts so many times as one in the first push
        ("shed", "i8"),
        ("late", "i8"),
        ("unit", "f8"),  # what a witness without expectations would stand for beside itself, over all shed rows
        ("sums", "f8", (len(COUNTS), POWERS)),  # of witnesses that are gone
    ]
)


@inlined
def _mixed(x):
    """splitmix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def _lot(seed, stream, seq):
    """The row's own random bits: the same whenever and wherever they are asked for."""
    return _mixed(seed + np.uint64(2 * seq + stream + 1) * GOLDEN)


@inlined
def _unit(lot):
    """A lot as a number from 0 up to 1."""
    return np.float64(np.int64(lot >> np.uint64(11))) * 2.0**-53


@inlined
def _hashed(key):
    x = np.uint64(key) * GOLDEN
    return x ^ (x >> np.uint64(32))


@inlined
def _cell_of(hashed, cells):
    return np.int64(hashed & np.uint64(cells.size - 1))


@inlined
def _tag_of(hashed):
    return np.int64(1) << np.int64((hashed >> np.uint64(28)) & np.uint64(15))


@inlined
def _place_of(lot, rows):
    return np.int64(lot & np.uint64(rows.size - 1))


@inlined
def _may_wait(sieve, lot):
    """Whether a row of this lot may be waiting; few that are not pass. The sieve is small enough for the nearest cache."""
    word = sieve[np.int64((lot >> np.uint64(6)) & np.uint64(sieve.size - 1))]
    return (word >> (lot & np.uint64(63))) & np.uint64(1) != np.uint64(0)


@inlined
def _horizon(st, stream):
    """No row of the other stream before this is still to come, unless it is late."""
    other = 1 - stream
    clock = st["clock"][other]
    if st["max_skew"] != NONE:
        clock = max(clock, max(st["clock"][0], st["clock"][1]) - st["max_skew"])
    return clock - st["lateness"]


@inlined
def _is_over(st, stream, ts, seq):
    """Whether no later row can meet this one. A clock that has not started is far below all times."""
    if st["kind"][stream] == TIME:
        return ts + st["size"][stream] <= _horizon(st, stream)
    return seq < st["arrived"][stream] - st["size"][stream]


@inlined
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


@inlined
def _wait(table, rows, sieve, x, lot):
    """Put a row where the shed log will find it."""
    place = _place_of(lot, rows)
    table[x]["next"] = rows[place]
    rows[place] = x
    sieve[np.int64((lot >> np.uint64(6)) & np.uint64(sieve.size - 1))] |= np.uint64(1) << (lot & np.uint64(63))


@inlined
def _testify(table, cells, x):
    """Put a witness where rows of its key will find it. The order in a chain changes no number."""
    w = table[x]
    hashed = _hashed(w["key"])
    stream = w["stream"]
    cell = cells[_cell_of(hashed, cells)]
    w["next"] = cell["head"][stream]
    cell["head"][stream] = x
    cell["tags"][stream] |= _tag_of(hashed)


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
def _link_all(st, table, cells, rows, sieve):
    for i in range(rows.size):
        rows[i] = NONE
    for i in range(sieve.size):
        sieve[i] = np.uint64(0)
    for i in range(cells.size):
        cell = cells[i]
        cell["head"][0] = NONE
        cell["head"][1] = NONE
        cell["tags"][0] = 0
        cell["tags"][1] = 0
    for x in range(st["used"]):
        w = table[x]
        if w["state"] == WAITING:
            _wait(table, rows, sieve, x, _lot(st["seed"], w["stream"], w["seq"]))
        elif w["state"] == ACTIVE:
            _testify(table, cells, x)


@kernel
def _look_round(st, table, cells, rows, sieve):
    """Forget what is over, and see to it that room and work stay within bounds: by the probability of being kept."""
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
    st["stretch"] = 1.0 / st["scale"]
    _link_all(st, table, cells, rows, sieve)
    st["rows"] = 0
    st["work"] = 0
    st["limit"] = np.int64(st["bank"] + ALLOWED * st["period"])


@kernel
def _count_less(st, cells):
    """Halve all counts, so that they follow the streams."""
    for i in range(cells.size):
        count = cells[i]["count"]
        count[0] = count[0] >> 1
        count[1] = count[1] >> 1
    st["counted"][0] >>= 1
    st["counted"][1] >>= 1
    st["gain"] *= 2.0


@inlined
def _output_importance(code, a, b):
    if code == 0:
        return min(a, b)
    if code == 1:
        return max(a, b)
    if code == 2:
        return a + b
    if code == 3:
        return a * b
    return (a + b) / 2.0


@inlined
def _meet(st, table, cell, stream, key, ts, importance):
    """A row meets the witnesses of its key on the other stream: each such pair is missing from the output."""
    other = 1 - stream
    back = st["size"][other] if st["kind"][other] == TIME else 2**62
    ahead = st["size"][stream] if st["kind"][stream] == TIME else 2**62
    code, fade = st["output_importance"], st["fade"]
    before = NONE
    steps = 0
    x = cell["head"][other]
    while x != NONE:
        steps += 1
        w = table[x]
        following = w["next"]
        if _is_over(st, other, w["ts"], w["seq"]):
            w["state"] = OVER
            if before == NONE:
                cell["head"][other] = following
            else:
                table[before]["next"] = following
        else:
            before = x
            apart = ts - w["ts"]
            if w["key"] == key and apart < back and -apart < ahead:
                pair = 1.0 / w["keep"]
                worth = pair * _output_importance(code, importance, w["importance"])
                w["results"] += pair
                w["worth"] += worth
                w["recent"] += pair * fade
                w["recent_worth"] += worth * fade
        x = following
    st["work"] += steps


@inlined
def _remember(st, table, cells, rows, sieve, stream, seq, ts, key, importance, lot, others):
    """A row that was drawn gets a place in the table, if it is still drawn after room was made."""
    if st["used"] == table.size:
        _look_round(st, table, cells, rows, sieve)
    keep = min(1.0, st["scale"] * (FLOOR + np.sqrt(others * st["gain"])))
    if _unit(lot) < keep:
        x = st["used"]
        st["used"] = x + 1
        w = table[x]
        w["key"] = key
        w["ts"] = ts
        w["seq"] = seq
        w["importance"] = importance
        w["keep"] = keep
        w["results"] = 0.0
        w["worth"] = 0.0
        w["recent"] = 0.0
        w["recent_worth"] = 0.0
        w["stream"] = stream
        w["state"] = WAITING
        _wait(table, rows, sieve, x, lot)
        st["work"] += REMEMBER


@kernel
def _learn(st, cells, others):
    """Every so many rows: what a row may expect to find, on average; and no count outgrows its place."""
    mean = others / LOOK
    # Slowly: a burst of one key must not turn everything over.
    old = 1.0 / st["gain"] if st["gain"] > 0.0 else mean
    mean = 0.9 * old + 0.1 * mean
    st["gain"] = 1.0 / mean if mean > 0.0 else 0.0
    if max(st["counted"][0], st["counted"][1]) >= MEMORY - LOOK:
        _count_less(st, cells)


@inlined
def _activate(st, table, cells, rows, sieve, log, at, arrived0, arrived1):
    """The shed log up to the end of this instant: whoever was remembered is a witness from now on."""
    start = at
    while at < log.size:
        record = log[at]
        if record["why"] == LATE or record["seen0"] != arrived0 or record["seen1"] != arrived1:
            break
        at += 1
        stream, seq = record["stream"], record["seq"]
        lot = _lot(st["seed"], stream, seq)
        if not _may_wait(sieve, lot):
            continue
        place = _place_of(lot, rows)
        before = NONE
        x = rows[place]
        while x != NONE and (table[x]["seq"] != seq or table[x]["stream"] != stream):
            before = x
            x = table[x]["next"]
        if x != NONE:
            w = table[x]
            if before == NONE:
                rows[place] = w["next"]
            else:
                table[before]["next"] = w["next"]
            w["state"] = ACTIVE
            _testify(table, cells, x)
            st["work"] += ACTIVATE
    if at > start:
        st["shed"] += at - start
        st["unit"] += (at - start) * (1.0 / min(1.0, st["scale"] * FLOOR) - 1.0)
    return at


@entry
def follow(state, table, cells, rows, sieve, stream, key, null, ts, importance, log):
    """Run a push's rows and its shed log past the witnesses. Returns how many records of the log fitted the rows.

    What changes with every row is in variables of its own: through the state's memory, each row would wait for the last.
    """
    st = state[0]
    size = ts.size
    seed = st["seed"]
    seq0, seq1 = st["seq"][0], st["seq"][1]
    clock0, clock1 = st["clock"][0], st["clock"][1]
    counted0, counted1 = st["counted"][0], st["counted"][1]
    others = st["others"]
    at = _activate(st, table, cells, rows, sieve, log, 0, seq0, seq1)
    first = 0
    while first < size:
        time = ts[first]
        end = first
        ones = 0
        while end < size and ts[end] == time:
            ones += stream[end]
            end += 1
        arrived0, arrived1 = seq0 + (end - first - ones), seq1 + ones
        st["arrived"][0] = arrived0
        st["arrived"][1] = arrived1
        some_late = at < log.size and log[at]["why"] == LATE
        for i in range(first, end):
            side = stream[i]
            seq = seq1 if side == 1 else seq0
            seq0 += 1 - side
            seq1 += side
            if some_late and at < log.size:
                record = log[at]
                if record["why"] == LATE and record["stream"] == side and record["seq"] == seq:
                    st["late"] += 1
                    at += 1
                    continue
            clock0 = max(clock0, time if side == 0 else clock0)
            clock1 = max(clock1, time if side == 1 else clock1)
            st["clock"][0] = clock0
            st["clock"][1] = clock1
            if null[i]:
                continue
            hashed = _hashed(key[i])
            cell = cells[_cell_of(hashed, cells)]
            if cell["tags"][1 - side] & _tag_of(hashed) != 0:
                _meet(st, table, cell, side, key[i], time, importance[i])
            lot = _lot(seed, side, seq)
            other = np.float64(cell["count"][1 - side])
            others += other
            # unit < scale * (FLOOR + sqrt(other * gain)), without the root
            excess = _unit(lot) * st["stretch"] - FLOOR
            if excess <= 0.0 or excess * excess <= other * st["gain"]:
                _remember(st, table, cells, rows, sieve, side, seq, time, key[i], importance[i], lot, other)
            cell["count"][side] += 1
            counted0 += 1 - side
            counted1 += side
            if (counted0 + counted1) & (LOOK - 1) == 0:
                st["counted"][0] = counted0
                st["counted"][1] = counted1
                _learn(st, cells, others)
                counted0, counted1 = st["counted"][0], st["counted"][1]
                others = 0.0
        at = _activate(st, table, cells, rows, sieve, log, at, arrived0, arrived1)
        st["rows"] += end - first
        if st["rows"] >= st["period"] or st["work"] > st["limit"]:
            _look_round(st, table, cells, rows, sieve)
        first = end
    st["seq"][0], st["seq"][1] = seq0, seq1
    st["counted"][0], st["counted"][1] = counted0, counted1
    st["others"] = others
    return at


@entry
def tally(state, table, sums):
    """Add what the witnesses that are still here have counted to `sums`."""
    st = state[0]
    for x in range(st["used"]):
        if table[x]["state"] != WAITING:
            _fold(sums, table[x])


@entry
def rescale(state, table, factor):
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
def link_up(state, table, cells, rows, sieve):
    """Make all chains anew: after a restart, nothing but the table and the counts is there."""
    _link_all(state[0], table, cells, rows, sieve)


@entry
def add_up(lanes, done, values):
    """Add values to four sums in turn, the first value being number `done`: the same sums however values are cut."""
    for i in range(values.size):
        lanes[(done + i) & 3] += values[i]
