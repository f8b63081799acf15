"""Between blocks: forget what is over, keep room and work within bounds, learn what rows may expect to find."""

from __future__ import annotations

from shedjoin.engine.jit import kernel
from shedjoin.recall.sample.chains import link_all
from shedjoin.recall.sample.counts import fold
from shedjoin.recall.sample.draws import lot_of, unit_of
from shedjoin.recall.sample.expiry import is_over
from shedjoin.recall.sample.state import ALLOWED, FLOOR, LONGEST_BLOCK, MEMORY, OVER, WAITING


@kernel
def _drop(st, table, share):
    """Close ranks: forget what is over and, of the rest, all but a share, by its lot."""
    kept = 0
    for x in range(st["used"]):
        w = table[x]
        stays = w["state"] != OVER and not is_over(st, w["stream"], w["ts"], w["seq"])
        if stays and share < 1.0:
            stays = unit_of(lot_of(st["seed"], w["stream"], w["seq"])) < w["keep"] * share
        if stays:
            if share < 1.0:
                w["keep"] *= share
            if kept < x:
                table[kept] = table[x]
            kept += 1
        elif w["state"] != WAITING:
            fold(st["sums"], w)
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
    link_all(st, sample)
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
def end_block(st, sample):
    st["unit"] += st["shed_now"] * (1.0 / min(1.0, st["scale"] * FLOOR) - 1.0)
    st["shed_now"] = 0
    _learn(st, sample.counts)
    full = st["used"] > sample.table.size - st["block"]
    if full or st["rows"] >= st["period"] or st["work"] > st["bank"] + ALLOWED * st["period"]:
        _look_round(st, sample)
