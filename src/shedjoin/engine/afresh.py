"""What an estimator that was not there from the beginning knows: as much as if the stored tuples had been all rows.

The tuples are pushed through a new engine of the same join, which keeps them all, in the order of their arrival. What its
estimator has learned of them is taken over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, Values
from shedjoin.engine.codes import IN_WINDOW
from shedjoin.engine.contents import BY_STREAM, FLOATS, NUMBERS
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import NEVER
from shedjoin.engine.stored import Columns
from shedjoin.join_type import TYPES
from shedjoin.window import UNLIMITED, RowWindow

#: The columns of an estimator, and the numbers of other columns that are of it.
PREFIXES = ("value ", "seen ")
OF_TUPLES = ("tuple chance", "tuple met")
COLUMNS = ("sketch", "model", *OF_TUPLES)
OF_NUMBERS = ("epoch", "t0", "started", "faded", "known_numbers", "idle_bound")
OF_FLOATS = ("lowest_number", "highest_number", "bucket_width")
OF_STREAMS = ("observed", "looked_soon", "looked_later")
_PLACES = {
    "numbers": (tuple(name for name in NUMBERS if name != "random"), OF_NUMBERS),
    "floats": (FLOATS, OF_FLOATS),
    "by stream": (BY_STREAM, OF_STREAMS),
}


def learned_afresh(columns: Columns, plan: Plan) -> Columns:
    """The same contents, of which the plan's estimator knows the stored tuples and nothing else."""
    from shedjoin.engine.engine import Engine  # which changes policies by this

    keeping = replace(
        plan,
        budget=None,
        lateness=UNLIMITED,
        max_skew=None,
        evaluate_every=0,
        expire_every=0,
        selective=None,
        deadline=None,
        counted_elsewhere=False,
        part=(0, 1),
        how=TYPES["inner"],
        matches=None,
    )
    engine = Engine(keeping, emit=False)
    clocks = [None if clock == NEVER else int(clock) for clock in columns["by stream"][BY_STREAM.index("clock")]]
    rows = _rows(columns, plan)
    order = rows.canonical_order()
    engine.push(rows if order is None else rows.take(order), clocks=clocks)
    learned = engine.columns()
    if order is not None:
        for name in {*OF_TUPLES} & {*learned}:
            learned[name] = learned[name][np.argsort(order)]
    for stream, window in enumerate(plan.windows):
        if plan.weigher.code == IN_WINDOW and isinstance(window, RowWindow):  # stamps are row numbers there
            seq = columns["tuple seq"][columns["tuple stream"] == stream]
            learned[f"seen stamp {stream}"] = seq[learned[f"seen stamp {stream}"]]
    made = {name: column for name, column in columns.items() if not _is_learned(name)}
    made |= {name: column for name, column in learned.items() if _is_learned(name)}
    for name, (all_names, of_estimator) in _PLACES.items():
        places = [all_names.index(one) for one in of_estimator]
        made[name] = made[name].copy()
        made[name][places] = learned[name][places]
    return made


def _is_learned(name: str) -> bool:
    return name in COLUMNS or name.startswith(PREFIXES)


def _rows(columns: Columns, plan: Plan) -> Batch:
    """The stored tuples as rows, in the order of their arrival."""
    stream, key = columns["tuple stream"].astype(np.int64), columns["tuple key"]
    present = np.zeros(stream.size, np.bool_)
    return Batch(
        stream=stream,
        key=np.ascontiguousarray(key[:, 0] if plan.width == 1 else key),
        null=present,
        ts=columns["tuple ts"],
        importance=columns["tuple importance"],
        bytes=columns["tuple bytes"].astype(np.int64),
        values=None if plan.predicate is None else _values(columns, present),
    )


def _values(columns: Columns, present: NDArray[np.bool_]) -> Values:
    """What a predicate compares of stored tuples."""
    rows = present.size
    if "tuple number" in columns:
        nothing = np.empty(0, np.int64)
        return Values(present, columns["tuple number"], np.zeros(rows + 1, np.int64), nothing, np.empty(0))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(columns["tuple items"])])
    return Values(present, np.zeros(rows), offsets, columns["items"], columns["item weights"])
