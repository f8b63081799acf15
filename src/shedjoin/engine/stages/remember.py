"""What estimators may remember beside what is stored, when the budget has a limit for it.

Estimators that remember rows drop the oldest. Estimators that count keys forget some of those without a stored tuple, now and
then. How many there are is not counted, but bounded: each was there when keys were forgotten last, or has lost a tuple since. So
the limit holds at the end of every instant, whatever the layout.
"""

from __future__ import annotations

from shedjoin.engine import mem
from shedjoin.engine.codes import DECAYED, HISTORY, LEARNED
from shedjoin.engine.forms import in_pairs
from shedjoin.engine.jit import inlined
from shedjoin.engine.layouts import storage
from shedjoin.engine.records import NONE

#: Of what may be remembered, this part (one in so many) stays when keys are forgotten; the rest is room for others.
STAYS = 2


@inlined
def _note_key(cfg, state, x):
    state["idle_bound"] += 1


@in_pairs(_note_key)
@inlined
def _note_values(cfg, state, x):
    for number in range(storage.values_of(cfg, state, x)):
        state["idle_bound"] += storage.value_of(cfg, state, x, number) != NONE


@inlined
def note_removal(cfg, state, x):
    """A tuple is removed: it may have been the last of its values."""
    if cfg["weighed"] and (cfg["estimator"] == HISTORY or cfg["estimator"] == DECAYED or cfg["estimator"] == LEARNED):
        _note_values(cfg, state, x)


@inlined
def is_due(cfg, state):
    """Whether keys have to be forgotten. Those of rows that are remembered stay, so there is room for these as well."""
    if cfg["keys_kept"] < 0:
        return False
    rows = cfg["streams"] * cfg["keys_kept"] if cfg["estimator"] == LEARNED else 0
    return state["idle_bound"] > cfg["keys_kept"] + rows


@inlined
def is_full(cfg, state, stream):
    """Whether one of the rows that are remembered of a stream has to go before another comes."""
    return cfg["keys_kept"] >= 0 and state["seen_size"][stream] >= cfg["keys_kept"]


@inlined
def rows_wanted(cfg, state, stream, rows):
    """How many places these rows of a stream need where rows are remembered."""
    if cfg["keys_kept"] >= 0:
        return min(rows, max(cfg["keys_kept"] - state["seen_size"][stream], 0))
    return rows


@inlined
def take_first(state, stream):
    """The oldest row that is remembered of a stream is taken out; returns its value."""
    v = int(mem.seen(state)[stream, state["seen_head"][stream]]["value"])
    state["seen_head"][stream] = (state["seen_head"][stream] + 1) & (state["seen_room"] - 1)
    state["seen_size"][stream] -= 1
    return v
