"""A policy, or its numbers, that changes while a join runs: what was learned is kept, and the order is built anew."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from shedjoin.engine.afresh import learned_afresh
from shedjoin.engine.codes import (
    AGE,
    CUMULATIVE,
    DECAYED,
    FOLLOWING,
    KEY,
    MET,
    PRODUCT,
    RANDOM,
    SAMPLE,
    SCHEDULE,
    TABLE,
    TUPLE,
    Order,
    Weigher,
)
from shedjoin.engine.contents import BY_STREAM, FLOATS, NUMBERS
from shedjoin.engine.plan import FAR, Plan, check_order
from shedjoin.engine.stages import ages
from shedjoin.engine.stored import Columns
from shedjoin.errors import SnapshotError

#: The columns of a sample.
SAMPLED = ("tuple weight", "tuple since", "threshold ", "sampling ")
#: Where a number stands in the column of numbers.
_AT = {name: place for place, name in enumerate(name for name in NUMBERS if name != "random")}


def as_it_was(plan: Plan, signature: dict[str, Any]) -> Plan:
    """The same join by the policy of a signature, which comes from outside."""
    order, weigher = _numbers(signature.get("policy"), Order), _numbers(signature.get("estimator"), Weigher)
    indexes = plan.indexes if signature.get("index") else ()
    made = replace(plan, order=order, weigher=weigher, schedule=None, indexes=indexes).laid_out()
    check_order(order, () if order.organisation == SCHEDULE else None)
    known = weigher.code in range(TABLE, MET + 1) and weigher.half_life > 0
    if not known or not 1 <= weigher.width <= 2**28 or not 1 <= weigher.depth <= 16:
        raise SnapshotError(f"the snapshot is of a join with an estimator that there is not: {list(weigher)}")
    return made


def _numbers(values: Any, kind: Any) -> Any:
    """A policy or an estimator as numbers."""
    fits = isinstance(values, list) and len(values) == len(kind._fields)
    if not fits or not all(type(one) in (int, float) and abs(one) < FAR for one in values):
        raise SnapshotError(f"the snapshot's header says of its {kind.__name__.lower()} that it is {values!r}")
    return kind(*values)


def carried(columns: Columns, was: dict[str, Any], now: Plan) -> Columns:
    """The contents of a running join, made ready for another policy. `was` is the signature it ran by.

    Estimates go on from what they are; another estimator begins with what is stored. Priorities that were fixed on arrival are
    fixed anew, as if all arrived now; what cumulative policies have gathered is kept.
    """
    order, weigher = Order(*was["policy"]), Weigher(*was["estimator"])
    mine = now.signature()
    if was["policy"] == mine["policy"] and all(was[name] == mine[name] for name in _ESTIMATE):
        return columns
    now.check_change(was)
    columns = {name: column.copy() for name, column in columns.items()}
    if now.admission is not None and now.admission.integrated:
        _carry_waiting(columns, order, now)
    for name in ("curve", "tuple found"):  # what was learned fits the chances that it was learned with
        columns.pop(name, None)
    if now.order.organisation == AGE:
        columns["curve"] = np.zeros((now.streams, ages.NUMBERS))
        columns["tuple found"] = np.zeros(columns["tuple stream"].size, np.int8)
    if order.organisation in (TUPLE, *FOLLOWING):
        if order.organisation == now.order.organisation == CUMULATIVE:
            without_lift(columns)
        else:
            del columns["tuple prio"]
    if order.organisation == SAMPLE and now.order.organisation != SAMPLE:
        columns = {name: column for name, column in columns.items() if not name.startswith(SAMPLED)}
    if order.organisation == RANDOM and now.order.organisation != RANDOM:
        del columns["tuple place"]
    if now.has_another_estimator(was):
        return learned_afresh(columns, now)
    if weigher.code == now.weigher.code == DECAYED and (
        weigher != now.weigher or _as_they_stand(order) != _as_they_stand(now.order)
    ):
        if "tuple chance" in columns and _as_they_stand(order):
            for name in {"tuple chance", "waiting chance"} & set(columns):
                columns[name] *= _decayed_to(columns, weigher, now)
        _decay_from_now(columns, weigher, now, _as_they_stand(order) or _as_they_stand(now.order))
    if weigher.code == MET and now.weigher.code != MET:
        columns.pop("tuple met", None)
    if now.weigher != weigher and now.weigher.code != DECAYED:
        _forget_estimates(columns, now)
    if weigher.code == MET and now.weigher.code != MET and now.predicate is None:
        _name_values(columns, now)
    return columns


def _name_values(columns: Columns, now: Plan) -> None:
    """By Met() tuples are groups of their own, and their values need not be known. Now they are."""
    stream, keys = columns["tuple stream"], columns["tuple key"]
    wanted = {
        (number, int(key))
        for number, part in enumerate(now.parts)
        for one, attr in part.items()
        for key in keys[stream == one, attr]
    }
    known = zip(columns["value part"].tolist(), columns["value key"].tolist(), strict=True)
    new = sorted(wanted - set(known))
    for name, values in (("part", [part for part, _ in new]), ("key", [key for _, key in new])):
        column = columns[f"value {name}"]
        columns[f"value {name}"] = np.concatenate([column, np.array(values, column.dtype)])
    for name in ("held", "weight"):
        column = columns[f"value {name}"]
        nothing = np.zeros((len(new), *column.shape[1:]), column.dtype)
        columns[f"value {name}"] = np.concatenate([column, nothing])


def _carry_waiting(columns: Columns, order: Order, now: Plan) -> None:
    """Rows of an integrated queue compete as stored tuples do."""
    if order.organisation == now.order.organisation == CUMULATIVE:
        columns["waiting prio"] -= columns["floats"][FLOATS.index("lift")]
    else:
        del columns["waiting prio"]
    if order.organisation == RANDOM and now.order.organisation != RANDOM:
        del columns["waiting place"]


_ESTIMATE = ("estimator", "estimator table", "schedule")


def _forget_estimates(columns: Columns, now: Plan) -> None:
    """Of an estimator that is asked no more, nothing is kept."""
    streams = now.streams
    columns["value weight"][:] = 0.0
    columns["value held"][:] = 0
    columns["sketch"] = np.zeros(max(len(now.parts), 1) * streams, np.int64)
    columns["model"] = np.zeros((streams, 1))
    for name in ("value mass", "value trail"):
        columns.pop(name, None)
    for stream in range(streams):
        columns[f"seen stamp {stream}"] = columns[f"seen value {stream}"] = np.empty(0, np.int64)
    for name in ("t0", "epoch", "started", "faded", "idle_bound"):
        columns["numbers"][_AT[name]] = 0
    for name in ("observed", "looked_soon", "looked_later"):
        columns["by stream"][BY_STREAM.index(name)] = 0


def without_lift(columns: Columns) -> None:
    """Cumulative priorities as they are now."""
    lift, tick = FLOATS.index("lift"), int(columns["numbers"][_AT["tick"]])
    columns["tuple prio"] -= columns["floats"][lift]
    if tick > 0:
        columns["floats"][lift] = 0.0
        columns["numbers"][_AT["lift_tick"]] = tick - 1


def _as_they_stand(order: Order) -> bool:
    """Whether priorities use Decayed's weights with their common factor."""
    return order.organisation != KEY or order.combine == PRODUCT


def _decay_from_now(columns: Columns, weigher: Weigher, now: Plan, as_they_stand: bool) -> None:
    """Decayed: counts become what they have decayed to; from here on the new half-life holds."""
    numbers, time = columns["numbers"], int(columns["by stream"][0].max())
    if numbers[_AT["started"]] == 0:
        return
    columns["value mass"] *= _decayed_to(columns, weigher, now)
    if as_they_stand:
        columns["value weight"] = np.ascontiguousarray(columns["value mass"])
    numbers[_AT["t0"]], numbers[_AT["epoch"]] = time, 0


def _decayed_to(columns: Columns, weigher: Weigher, now: Plan) -> float:
    """What a count of 1 has decayed to, where counts have a factor in common."""
    numbers = columns["numbers"]
    if numbers[_AT["started"]] == 0:
        return 1.0
    fold_at = float(512 // max(1, *(now.factors(stream) for stream in range(now.streams))))
    time = int(columns["by stream"][0].max())
    half_lives = (time - int(numbers[_AT["t0"]])) / weigher.half_life - fold_at * int(numbers[_AT["epoch"]])
    return math.exp2(-half_lives)
