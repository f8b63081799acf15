"""Work between blocks: remove expired rows, keep memory and work within bounds, update the key counts."""

from __future__ import annotations

from shedjoin.engine.jit import kernel
from shedjoin.recall.sample.chains import rebuild_chains
from shedjoin.recall.sample.counts import add_row
from shedjoin.recall.sample.draws import draw_of, uniform_of
from shedjoin.recall.sample.expiry import is_expired
from shedjoin.recall.sample.state import ALLOWED_WORK, COUNTED_ROWS, EXPIRED, FLOOR, LONGEST_BLOCK, STORED


@kernel
def _thin(state, table, share):
    """Remove expired rows, and all but a share of the others: their draws decide. Close the gaps in the table."""
    kept = 0
    for index in range(state["used"]):
        row = table[index]
        stays = row["state"] != EXPIRED and not is_expired(state, row["stream"], row["ts"], row["seq"])
        if stays and share < 1.0:
            stays = uniform_of(draw_of(state["seed"], row["stream"], row["seq"])) < row["probability"] * share
        if stays:
            if share < 1.0:
                row["probability"] *= share
            if kept < index:
                table[kept] = table[index]
            kept += 1
        elif row["state"] != STORED:
            add_row(state["sums"], row)
    state["used"] = kept


@kernel
def _adjust_scale(state, sample):
    """Remove expired rows. Then lower `scale` if memory or work is over its bound, or raise it if both have room."""
    table = sample.table
    _thin(state, table, 1.0)
    most = table.size
    allowed = ALLOWED_WORK * state["period_rows"]
    affordable = allowed / max(state["period_work"], 1)
    state["credit"] = min(state["credit"] + allowed - state["period_work"], state["credit_limit"])
    share = 1.0
    if state["credit"] < 0.0:
        state["credit"] = 0.0
        share = min(max(affordable, 0.25), 0.7)
    while True:
        if state["used"] > 0.75 * most:
            share = min(share, 0.6 * most / state["used"])
        if share == 1.0:
            break
        _thin(state, table, share)
        state["scale"] *= share
        share = 1.0
        affordable = 0.0
    growth = min(0.8 * affordable, 0.6 * most / max(state["used"], 1), 2.0)
    if growth > 1.2:
        state["scale"] = min(state["scale"] * growth, 1.0 / FLOOR)
    rebuild_chains(state, sample)
    state["period_rows"] = 0
    state["period_work"] = 0


@kernel
def _update_counts(state, key_counts):
    """Update the mean number of partners, and halve the key counts before they overflow."""
    mean = state["partners"] / state["block"]
    state["partners"] = 0
    # The mean moves slowly, so that a burst of one key does not change all probabilities.
    old = 1.0 / state["inverse_mean"] if state["inverse_mean"] > 0.0 else mean
    mean = 0.9 * old + 0.1 * mean
    state["inverse_mean"] = 1.0 / mean if mean > 0.0 else 0.0
    state["counted"] += state["block"]
    if state["counted"] >= COUNTED_ROWS - LONGEST_BLOCK:
        for i in range(key_counts.size):
            key_counts[i] = key_counts[i] >> 1
        state["counted"] >>= 1
        state["inverse_mean"] *= 2.0


@kernel
def end_block(state, sample):
    state["unit"] += state["block_shed"] * (1.0 / min(1.0, state["scale"] * FLOOR) - 1.0)
    state["block_shed"] = 0
    _update_counts(state, sample.key_counts)
    full = state["used"] > sample.table.size - state["block"]
    busy = state["period_work"] > state["credit"] + ALLOWED_WORK * state["period"]
    if full or state["period_rows"] >= state["period"] or busy:
        _adjust_scale(state, sample)
