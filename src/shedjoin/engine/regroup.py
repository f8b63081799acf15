"""Stored tuples of several engines of one join as one engine: how the number of shards changes.

Each engine gives the tuples that go to the new one (`share_of`), and the new one is made of all shares (`joined`). Its estimator
begins with these tuples, as after a change of the estimator; priorities that were fixed on arrival stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine import change, snapshot
from shedjoin.engine.afresh import learned_afresh
from shedjoin.engine.codes import AGE, CUMULATIVE, MET, RANDOM, TUPLE
from shedjoin.engine.contents import BY_STREAM, NUMBERS
from shedjoin.engine.engine import Engine
from shedjoin.engine.plan import Plan
from shedjoin.engine.stored import Columns
from shedjoin.errors import SnapshotError
from shedjoin.window import RowWindow

Integers = NDArray[np.int64]
#: What a tuple is, and what a new engine does not learn of it anew.
_TUPLE = ("stream", "arrival", "bytes", "ts", "seq", "importance", "key", "number", "partners", "floor")
_KEPT = {TUPLE: "tuple prio", CUMULATIVE: "tuple prio", AGE: "tuple prio"}
_KNOWN = ("clock", "horizon", "base", "arrived", "filters")
_NUMBER = {name: place for place, name in enumerate(name for name in NUMBERS if name != "random")}


@dataclass(frozen=True)
class Share:
    """Some tuples of an engine, with its clocks."""

    columns: Columns  # of tuples alone
    tick: int
    clock: Integers
    horizon: Integers
    base: Integers
    arrived: Integers  # rows of each stream that the engine has numbered
    filters: Integers  # of shed rows, whichever engine their keys go to

    def to_bytes(self) -> bytes:
        known = {name: getattr(self, name) for name in _KNOWN}
        return snapshot.pack({**self.columns, **known}, {}, {"tick": self.tick})

    @classmethod
    def from_bytes(cls, saved: bytes) -> Share:
        _, extra, columns = snapshot.unpack(saved)
        known = {name: columns.pop(name) for name in _KNOWN}
        return cls(columns, int(extra["tick"]), **known)

    @property
    def stream(self) -> Integers:
        return self.columns["tuple stream"].astype(np.int64)

    @property
    def seq(self) -> Integers:
        return self.columns["tuple seq"]


def stored_tuples(engine: Engine) -> tuple[Integers, Integers, Integers]:
    """Stream, row number and key (a column for each attribute) of all stored tuples, in the order of their arrival."""
    columns = engine.columns()
    return columns["tuple stream"].astype(np.int64), columns["tuple seq"], columns["tuple key"]


def share_of(engine: Engine, chosen: NDArray[np.bool_]) -> Share:
    """The chosen ones of the stored tuples, in the order of their arrival. The engine has no rows that wait."""
    plan, columns = engine._plan, engine.columns()
    if plan.admission is not None or plan.evaluate_every:
        raise SnapshotError("tuples of a join whose rows wait cannot be given to other engines")
    organisation = plan.order.organisation
    if organisation == CUMULATIVE:
        change.without_lift(columns)
    names = [f"tuple {name}" for name in _TUPLE] + [_KEPT.get(organisation, ""), "tuple found"]
    names += ["tuple met", "tuple chance"] if plan.weigher.code == MET else []
    kept = {name: columns[name][chosen] for name in names if name in columns}
    if "tuple items" in columns:
        sizes = columns["tuple items"]
        inside = np.repeat(chosen, sizes)
        kept |= {"tuple items": sizes[chosen], "items": columns["items"][inside]}
        kept["item weights"] = columns["item weights"][inside]
    by_stream = dict(zip(BY_STREAM, columns["by stream"], strict=True))
    known = {name: by_stream[name].copy() for name in _KNOWN[:-1]} | {"filters": columns["filters"]}
    return Share(kept, int(columns["numbers"][_NUMBER["tick"]]), **known)


def joined(engine: Engine, shares: Sequence[Share], numbers: Sequence[Integers], arrived: Sequence[int]) -> Integers:
    """Fill a new engine, without a budget, with all tuples of some shares; returns which of them is the first, second, ...

    Parameters
    ----------
    engine
        It has seen no row yet.
    shares, numbers
        The tuples, and the row numbers that they have from now on.
    arrived
        How many rows of each stream are taken to have come: the next one gets this number.
    """
    plan = engine._plan
    whole = {name: np.concatenate([share.columns[name] for share in shares]) for name in shares[0].columns}
    whole["tuple seq"] = np.concatenate(numbers)
    which = np.repeat(np.arange(len(shares)), [share.seq.size for share in shares])
    order = np.lexsort((whole["tuple arrival"], which, whole["tuple stream"], whole["tuple ts"]))
    columns = engine.columns() | _in_order(whole, order)
    columns["filters"] = _in_one([share.filters for share in shares])
    columns["tuple arrival"] = np.arange(order.size)
    if plan.order.organisation == RANDOM:
        columns["tuple place"] = _places(columns["tuple stream"])
    if "tuple prio" not in whole:
        columns.pop("tuple prio", None)  # priorities are fixed anew
    _tell(columns, plan, shares, np.array(arrived, np.int64))
    columns = learned_afresh(columns, plan)
    if plan.weigher.code == MET:
        columns |= {name: whole[name][order] for name in ("tuple met", "tuple chance") if name in whole}
    engine.take_in(columns)
    return order


def _in_one(filters: Sequence[Integers]) -> Integers:
    """What any of some filters of shed rows knows: of each cell the largest stamp. Smaller ones grow as in `grow_filters`."""
    cells = max(one.shape[1] for one in filters)
    most: Integers = np.maximum.reduce([np.tile(one, cells // one.shape[1]) for one in filters])
    return most


def _in_order(columns: Columns, order: Integers) -> Columns:
    """Tuples in another order, and their items with them."""
    made = {name: column[order] for name, column in columns.items() if name.startswith("tuple ")}
    if "items" in columns:
        sizes = columns["tuple items"]
        starts, inside = np.cumsum(sizes) - sizes, np.cumsum(sizes[order]) - sizes[order]
        places = np.repeat(starts[order] - inside, sizes[order]) + np.arange(int(sizes.sum()))
        made |= {name: columns[name][places] for name in ("items", "item weights")}
    return made


def _places(stream: NDArray[Any]) -> NDArray[np.int32]:
    """Of each tuple its place among those of its stream."""
    places = np.zeros(stream.size, np.int32)
    for one in np.unique(stream):
        mine = np.flatnonzero(stream == one)
        places[mine] = np.arange(mine.size)
    return places


def _tell(columns: Columns, plan: Plan, shares: Sequence[Share], arrived: Integers) -> None:
    """Clocks as they are everywhere, and counts that fit the tuples."""
    by_stream, numbers = columns["by stream"], columns["numbers"]
    for name in ("clock", "horizon", "base"):
        by_stream[BY_STREAM.index(name)] = np.max([getattr(share, name) for share in shares], axis=0)
    by_stream[BY_STREAM.index("arrived")] = arrived
    for stream, window in enumerate(plan.windows):
        if isinstance(window, RowWindow):
            by_stream[BY_STREAM.index("base"), stream] = arrived[stream]
    rows = int(arrived.sum())
    numbers[_NUMBER["rows"]] = numbers[_NUMBER["arrival"]] = rows
    numbers[_NUMBER["tick"]] = tick = min(max(share.tick for share in shares), rows)
    numbers[_NUMBER["lift_tick"]] = max(tick - 1, 0)
