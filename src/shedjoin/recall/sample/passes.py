"""The three passes over a block of rows: who is drawn, who was shed, who is missed."""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import LATE, ROW, TIME
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import kernel
from shedjoin.engine.state import NONE
from shedjoin.recall.sample.chains import may_wait, testify, wait
from shedjoin.recall.sample.draws import cell_of, hash_of, lot_of, place_of, tag_of, unit_of
from shedjoin.recall.sample.expiry import is_over
from shedjoin.recall.sample.state import ACTIVATE, ACTIVE, FLOOR, OVER, REMEMBER, WAITING


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
    wait(sample, x, lot_of(st["seed"], stream, seq))
    st["work"] += REMEMBER


@kernel
def draw(st, sample, notes, push, first, end):
    """First pass: every row's key is counted, and rows are drawn.

    (Unsigned places, here and below: a signed one is looked at twice, it might be negative.)
    """
    stream, key, skip, counts = push.stream, push.key, push.skip, sample.counts
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
        hashed = hash_of(key[i])
        other = np.int64(counts[cell_of(hashed, 1 - side, counts)]) * here
        others += other
        counts[cell_of(hashed, side, counts)] += np.uint16(here)
        notes.row[np.uint64(drawn)] = np.int64(i)
        notes.seq[np.uint64(drawn)] = seq
        notes.other[np.uint64(drawn)] = other
        # unit < scale * (FLOOR + sqrt(other * gain)), without the root
        excess = max(unit_of(lot_of(seed, side, seq)) * stretch - FLOOR, 0.0)
        drawn += here & np.int64(excess * excess <= other * gain)
    st["others"] += others
    for j in range(drawn):
        i = notes.row[j]
        _remember(st, sample, stream[i], notes.seq[j], push.ts[i], key[i], push.importance[i], notes.other[j])


@kernel
def _activate(st, sample, stream, seq, since):
    """A row was shed: if it was remembered, it is a witness from now on."""
    table, rows = sample.table, sample.rows
    place = place_of(lot_of(st["seed"], stream, seq), rows)
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
    testify(sample, x)
    st["work"] += ACTIVATE


@kernel
def read(st, sample, notes, log, at, arrived):
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
            found += here & np.int64(may_wait(sieve, lot_of(seed, record["stream"], record["seq"])))
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
    cell = cell_of(hash_of(key), other, heads)
    before = NONE
    found = 0
    x = heads[cell]
    while x != NONE:
        w = table[x]
        following = w["next"]
        # The clocks are those from before this block: whoever is over by them is so for all its rows.
        if is_over(st, other, w["ts"], w["seq"]):
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
def probe(st, sample, notes, push, first, end):
    """Third pass: rows look for witnesses of their key."""
    stream, key, skip, tags, instants = push.stream, push.key, push.skip, sample.tags, push.instants
    seq0, seq1 = st["arrived"][0], st["arrived"][1]
    found = 0
    for i in range(np.uint64(first), np.uint64(end)):
        side = stream[i]
        seq = seq1 if side == 1 else seq0
        seq0 += 1 - side
        seq1 += side
        hashed = hash_of(key[i])
        notes.row[np.uint64(found)] = np.int64(i)
        notes.seq[np.uint64(found)] = seq
        tagged = np.uint64(tags[cell_of(hashed, 1 - side, tags)]) >> tag_of(hashed)
        found += (1 - np.int64(skip[i])) & np.int64(tagged)
    for j in range(found):
        i = notes.row[j]
        arrived = instants[i, 1 - stream[i]] if instants.size > 0 else 0
        _meet(st, sample, stream[i], notes.seq[j], key[i], push.ts[i], push.importance[i], arrived)
