"""The three passes over a block: sample rows, read the shed log, count missing results.

Places are unsigned in the loops that select: a signed index would be checked for negative values.
"""

from __future__ import annotations

import numpy as np

from shedjoin.engine.codes import LATE, ROW, TIME
from shedjoin.engine.importance import output_importance
from shedjoin.engine.jit import inlined, kernel
from shedjoin.engine.records import NEVER, NONE
from shedjoin.recall.sample.chains import link_shed, link_stored, may_be_stored
from shedjoin.recall.sample.draws import draw_of, hash_of, key_slot_of, slot_of, tag_of, uniform_of
from shedjoin.recall.sample.expiry import is_expired
from shedjoin.recall.sample.state import EXPIRED, FLOOR, INSERT_WORK, SHED, SHED_WORK, STORED


@kernel
def _insert(state, sample, stream, seq, ts, key, importance, partners):
    """Insert a row into the sample. The table has room for every row of a block."""
    index = state["used"]
    state["used"] = index + 1
    row = sample.table[index]
    row["key"] = key
    row["ts"] = ts
    row["seq"] = seq
    row["shed_at"] = 0
    row["importance"] = importance
    row["probability"] = min(1.0, state["scale"] * (FLOOR + np.sqrt(partners * state["inverse_mean"])))
    row["missing"] = 0.0
    row["missing_importance"] = 0.0
    row["recent"] = 0.0
    row["recent_importance"] = 0.0
    row["stream"] = stream
    row["state"] = STORED
    link_stored(sample, index, draw_of(state["seed"], stream, seq))
    state["period_work"] += INSERT_WORK


@kernel
def sample_rows(state, sample, selected, push, first, end):
    """First pass: count the key of every row, and sample rows."""
    stream, key, skip, key_counts = push.stream, push.key, push.skip, sample.key_counts
    seed, inverse_mean, inverse_scale = state["seed"], state["inverse_mean"], 1.0 / state["scale"]
    seq0, seq1 = state["arrived"][0], state["arrived"][1]
    numbered = push.seq.size > 0
    all_partners = 0
    found = 0
    for i in range(np.uint64(first), np.uint64(end)):
        side = stream[i]
        seq = seq1 if side == 1 else seq0
        if numbered:
            seq = push.seq[i]
        seq0 += 1 - side
        seq1 += side
        joins = 1 - np.int64(skip[i])
        hashed = hash_of(key[i])
        partners = np.int64(key_counts[key_slot_of(hashed, 1 - side, key_counts)]) * joins
        all_partners += partners
        key_counts[key_slot_of(hashed, side, key_counts)] += np.uint16(joins)
        selected.place[np.uint64(found)] = np.int64(i)
        selected.seq[np.uint64(found)] = seq
        selected.partners[np.uint64(found)] = partners
        # uniform < scale * (FLOOR + sqrt(partners * inverse_mean)), without the root
        excess = max(uniform_of(draw_of(seed, side, seq)) * inverse_scale - FLOOR, 0.0)
        found += joins & np.int64(excess * excess <= partners * inverse_mean)
    state["partners"] += all_partners
    for j in range(found):
        i = selected.place[j]
        _insert(state, sample, stream[i], selected.seq[j], push.ts[i], key[i], push.importance[i], selected.partners[j])


@kernel
def _mark_shed(state, sample, stream, seq, shed_at):
    """If the sample has this row, move it from the chain of stored rows to that of shed rows."""
    table, heads = sample.table, sample.stored_heads
    slot = slot_of(draw_of(state["seed"], stream, seq), heads)
    before = NONE
    index = heads[slot]
    while index != NONE and (table[index]["seq"] != seq or table[index]["stream"] != stream):
        before = index
        index = table[index]["next"]
    if index == NONE:
        return
    row = table[index]
    if before == NONE:
        heads[slot] = row["next"]
    else:
        table[before]["next"] = row["next"]
    row["shed_at"] = shed_at
    row["state"] = SHED
    link_shed(sample, index)
    state["period_work"] += SHED_WORK


@inlined
def _logged_at(log, logged_at, at):
    """How many rows had come when a record was written."""
    if logged_at.size > 0:
        return logged_at[np.uint64(at)]
    record = log[np.uint64(at)]
    return record["seen"][0] + record["seen"][1]


@kernel
def read_shed_log(state, sample, selected, logged_at, log, at, arrived):
    """Second pass: read the records written by the time `arrived` rows had arrived. Returns the place of the next record."""
    seed, bitmap = state["seed"], sample.bitmap
    shed = 0
    while at < log.size and _logged_at(log, logged_at, at) <= arrived:
        found = 0
        stop = min(log.size, at + selected.place.size)
        while at < stop:
            if _logged_at(log, logged_at, at) > arrived:
                break
            record = log[np.uint64(at)]
            evicted = np.int64(record["why"] != LATE)
            shed += evicted
            selected.place[np.uint64(found)] = at
            found += evicted & np.int64(may_be_stored(bitmap, draw_of(seed, record["stream"], record["seq"])))
            at += 1
        for j in range(found):
            record = log[selected.place[j]]
            shed_at = record["seen"][1 - record["stream"]]
            _mark_shed(state, sample, record["stream"], record["seq"], shed_at)
    state["shed"] += shed
    state["block_shed"] += shed
    return at


@kernel
def _count_pairs(state, sample, stream, seq, key, ts, importance, arrived, expired):
    """Count the pairs of a new row with shed rows of its key on the other stream: they are missing from the output.

    `arrived`: rows of the other stream at the end of the new row's instant. `expired`: up to this time they had expired, if the
    new row is late.
    """
    table, heads = sample.table, sample.shed_heads
    other = 1 - stream
    by_rows = state["window_kind"][other] == ROW
    back = 2**62 if by_rows else state["window_size"][other]
    oldest = arrived - state["window_size"][other] if by_rows else 0
    ahead = state["window_size"][stream] if state["window_kind"][stream] == TIME else 2**62
    code, recent_weight = state["output_importance"], state["recent_weight"]
    slot = key_slot_of(hash_of(key), other, heads)
    before = NONE
    found = 0
    index = heads[slot]
    while index != NONE:
        row = table[index]
        following = row["next"]
        # The clocks are those before this block: a row that has expired by them can join no row of the block.
        if is_expired(state, other, row["ts"], row["seq"]):
            row["state"] = EXPIRED
            if before == NONE:
                heads[slot] = following
            else:
                table[before]["next"] = following
        else:
            before = index
            apart = ts - row["ts"]
            fits = row["key"] == key and seq >= row["shed_at"] and row["seq"] >= oldest and row["ts"] > expired
            if fits and apart < back and -apart < ahead:
                found += 1
                pair = 1.0 / row["probability"]
                weighted = pair * output_importance(code, importance, row["importance"])
                row["missing"] += pair
                row["missing_importance"] += weighted
                row["recent"] += pair * recent_weight
                row["recent_importance"] += weighted * recent_weight
        index = following
    state["period_work"] += found


@kernel
def count_missing(state, sample, selected, push, first, end):
    """Third pass: count the pairs of new rows with shed rows."""
    stream, key, skip, tags, instants = push.stream, push.key, push.skip, sample.tags, push.instants
    seq0, seq1 = state["arrived"][0], state["arrived"][1]
    numbered = push.seq.size > 0
    found = 0
    for i in range(np.uint64(first), np.uint64(end)):
        side = stream[i]
        seq = seq1 if side == 1 else seq0
        if numbered:
            seq = push.seq[i]
        seq0 += 1 - side
        seq1 += side
        hashed = hash_of(key[i])
        selected.place[np.uint64(found)] = np.int64(i)
        selected.seq[np.uint64(found)] = seq
        tagged = np.uint64(tags[key_slot_of(hashed, 1 - side, tags)]) >> tag_of(hashed)
        found += (1 - np.int64(skip[i])) & np.int64(tagged)
    for j in range(found):
        i = selected.place[j]
        arrived = instants[i, 1 - stream[i]] if instants.size > 0 else 0
        expired = push.expired[i] if push.expired.size > 0 else NEVER
        _count_pairs(
            state, sample, stream[i], selected.seq[j], key[i], push.ts[i], push.importance[i], arrived, expired
        )
