"""The audit of rows that wait: columns that come from outside, before a state is built from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine.audit_checks import ENDLESS, require, within
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import NEVER, NONE, WAITING_BY_STREAM, WAITING_COUNTERS, WAITING_FLOATS
from shedjoin.engine.waiting_contents import NUMBERS, ROW_COLUMNS
from shedjoin.engine.waiting_rows import by_lot, parts_of

Columns = dict[str, NDArray[Any]]


def shapes(plan: Plan, cfg: NDArray[Any], columns: Columns) -> dict[str, tuple[str, tuple[int, ...] | None]]:
    """The columns that there are, with their kinds and lengths; None: any length."""
    if plan.admission is None:
        return {}
    streams, parts = plan.streams, parts_of(cfg)
    tuples = columns.get("tuple arrival", np.empty(0)).size
    rows, fresh = columns.get("waiting arrival", np.empty(0)).size, columns.get("fresh item", np.empty(0)).size
    first = columns.get("instants", np.empty((0, streams)))
    told = columns.get("told", np.empty((0, streams + 1)))
    expected: dict[str, tuple[str, tuple[int, ...] | None]] = {
        **{f"waiting {name}": (kind, (rows,)) for name, kind in ROW_COLUMNS.items()},
        "waiting key": ("<i8", (rows, plan.width)),
        "waiting inside": ("|i1", (rows,)),
        "instants": ("<i8", (len(first), streams)),
        "told": ("<i8", (len(told), streams + 1)),
        "fresh item": ("<i8", (fresh,)),
        "fresh stream": ("|i1", (fresh,)),
        "fresh number": ("<i8", (fresh,)),
        "fresh value": ("<i8", (fresh, parts)),
        "waiting numbers": ("<i8", (len(NUMBERS),)),
        "waiting floats": ("<f8", (len(WAITING_FLOATS),)),
        "waiting by stream": ("<i8", (len(WAITING_BY_STREAM), streams)),
        "tuple in output": ("|i1", (tuples,)),
    }
    if cfg[0]["integrated"] and cfg[0]["alone"] and cfg[0]["weighed"]:
        expected["waiting chance"] = ("<f8", (rows,))
    if by_lot(cfg):
        expected["waiting place"] = ("<i4", (rows,))
    if cfg[0]["let_in"]:
        expected["tuple window number"] = ("<i8", (tuples,))
    for stream in range(streams):
        there = columns.get(f"let in ts {stream}", np.empty(0)).size
        expected[f"let in ts {stream}"] = ("<i8", (there,))
        expected[f"let in size {stream}"] = ("<i4", (there,))
        expected[f"let in value {stream}"] = ("<i8", None)
    return expected


def held(columns: Columns) -> int:
    """How many tuples have items that only wait, or left in the open instant; 0 where nothing waits."""
    waits = columns.get("waiting null", np.empty(0, np.int8)) == 0
    return int(waits.sum()) + int((columns.get("fresh item", np.empty(0)) == NONE).sum())


def audit(plan: Plan, cfg: NDArray[Any], columns: Columns, rows: int) -> NDArray[np.int64]:
    """Make sure that what waits can be built from these columns; returns how many rows of each stream have arrived."""
    numbers = dict(zip(NUMBERS, (int(number) for number in columns["waiting numbers"]), strict=True))
    by_stream = dict(zip(WAITING_BY_STREAM, columns["waiting by stream"], strict=True))
    _check_numbers(numbers, by_stream, columns, rows)
    _check_rows(plan, by_stream, columns, rows)
    _check_instants(numbers, by_stream, columns, rows)
    _check_fresh(plan, numbers, columns)
    _check_histograms(plan, cfg, columns)
    numbered: NDArray[np.int64] = by_stream["numbered"]
    return numbered


def _check_numbers(numbers: dict[str, int], by_stream: dict[str, NDArray[Any]], columns: Columns, rows: int) -> None:
    for name in ("probed", *WAITING_COUNTERS):
        require(0 <= numbers[name] <= ENDLESS, f"{name} is {numbers[name]}")
    require(numbers["open"] in (0, 1) and numbers["whole"] in (0, 1), "an instant is neither open nor closed")
    require(NONE <= numbers["turned"] <= numbers["instant"] <= rows, "more instants had their turn than came")
    for name in ("open_ts", "newest_ts"):
        require(abs(numbers[name]) <= LATEST, f"{name} is a time out of range")
    last = numbers["last_adapt"]
    require(last == NEVER or abs(last) <= LATEST, "speeds were measured at a time out of range")
    for name, values in by_stream.items():
        require(within(values, 0, LATEST + 1), f"{name} is out of range")
    numbered = by_stream["numbered"]
    require(numbered.sum() == rows, "rows are counted in two ways that differ")
    for name in ("taken", "opened", "from_number", "through", "rows_let_in", "rows_left"):
        require(by_stream[name] <= numbered, f"{name} is of rows that have not arrived")
    require(by_stream["rows_left"] <= by_stream["rows_let_in"], "more rows left the aux-window than entered it")
    floats = dict(zip(WAITING_FLOATS, columns["waiting floats"], strict=True))
    require(not np.isnan(columns["waiting floats"]).any(), "what the CPU has done is not a number")
    require(floats["cpu_free"] < np.inf and 0 <= floats["worked"] < np.inf, "the CPU is busy for ever")
    for name in ("rear_share", "front_share"):
        require(0.0 <= floats[name] <= 1.0, f"{name} is {floats[name]}")


def _check_rows(plan: Plan, by_stream: dict[str, NDArray[Any]], columns: Columns, rows: int) -> None:
    stream = columns["waiting stream"].astype(np.int64)
    require(within(stream, 0, plan.streams), f"a row that waits is of a stream other than 0 to {plan.streams - 1}")
    arrival = columns["waiting arrival"]
    require(within(arrival, 0, rows) & (np.diff(arrival, prepend=-1) > 0), "rows do not wait in order of arrival")
    seq, number = columns["waiting seq"], columns["waiting number"]
    require((seq >= 0) & (seq < by_stream["numbered"][stream]), "a row waits that has not arrived")
    require((number >= 0) & (number < by_stream["numbered"][stream]), "a row waits that has not arrived")
    for one in range(plan.streams):
        require(np.diff(seq[stream == one]) > 0, "rows of a stream do not wait in their order")
        mine = stream == one
        if "waiting place" in columns:
            there = np.sort(columns["waiting place"][mine & (columns["waiting inside"] == 0)])
            require(np.array_equal(there, np.arange(there.size)), "the list of rows in line lacks one or has one twice")
    require(np.abs(columns["waiting ts"]) <= LATEST, "a row waits with a time out of range")
    importance = columns["waiting importance"]
    require(np.isfinite(importance) & (importance > 0), "an importance is not finite and above 0")
    require(~np.isnan(columns["waiting prio"]), "a priority is not a number")
    expected = columns["waiting expected"]
    require(np.isfinite(expected) & (expected >= 0), "a row expects partners that cannot be counted")
    require(columns["waiting bytes"] > 0, "a row has no bytes")
    types = plan.selective.types if plan.selective is not None else 0
    require(within(columns["waiting kind"], 0, max(types, 1)), "a row has a type that there is not")
    if "waiting chance" in columns:
        require(columns["waiting chance"] >= 0, "a chance is below 0")
    for name in ("null", "inside"):
        require(within(columns[f"waiting {name}"], 0, 2), f"a row is neither {name} nor not")
    inside = columns["waiting inside"]
    require(np.diff(inside) <= 0, "a row in line came before one of the aux-window")
    require((plan.admission is not None and plan.admission.dual) or not inside.any(), "there is no aux-window")


def _check_instants(numbers: dict[str, int], by_stream: dict[str, NDArray[Any]], columns: Columns, rows: int) -> None:
    marks, instant = columns["instants"], columns["waiting instant"]
    first = numbers["instant"] + 1 - len(marks)
    require(len(marks) <= numbers["instant"] + 1, "more instants wait than came")
    require(within(instant, first, numbers["instant"] + 1) & (np.diff(instant, prepend=first) >= 0),
             "a row waits of an instant that is not known")  # fmt: skip
    require(instant.size > 0 or len(marks) == 0, "instants are kept of which no row waits")
    require(instant.size == 0 or int(instant[0]) == first, "instants are kept of which no row waits")
    require((marks >= 0) & (marks <= by_stream["numbered"]), "an instant began with rows that have not arrived")
    require(np.diff(marks, axis=0) >= 0, "instants are not in order")
    told = columns["told"]
    require(within(told[:, 0], 0, rows + 1), "clocks were told after rows that have not arrived")
    require((told[:, 1:] == NEVER) | (np.abs(told[:, 1:]) <= LATEST), "a clock shows a time out of range")


def _check_fresh(plan: Plan, numbers: dict[str, int], columns: Columns) -> None:
    item, value = columns["fresh item"], columns["fresh value"]
    tuples, values = columns["tuple arrival"].size, columns["value key"].size
    require(numbers["open"] == 1 or item.size == 0, "tuples are new, but no instant is open")
    require(within(item, NONE, tuples), "a tuple is new that is not stored")
    there = item[item != NONE]
    require(np.unique(there).size == there.size, "a tuple is new twice")
    stream = columns["fresh stream"]
    require(within(stream, 0, plan.streams), f"a tuple is of a stream other than 0 to {plan.streams - 1}")
    require(columns["tuple stream"][there] == stream[item != NONE], "a new tuple is of two streams")
    require(within(columns["fresh number"], 0, LATEST), "a new tuple has a number out of range")
    require(within(value, NONE, max(values, 1) if values else 0), "a new tuple has a value that is not known")
    require(within(columns["tuple in output"], 0, 2), "a tuple was neither met nor not")
    if "tuple window number" in columns:
        require(within(columns["tuple window number"], 0, LATEST), "a tuple has a number out of range")


def _check_histograms(plan: Plan, cfg: NDArray[Any], columns: Columns) -> None:
    values = columns["value key"].size
    for stream in range(plan.streams):
        value, times, size = (columns[f"let in {name} {stream}"] for name in ("value", "ts", "size"))
        require(within(value, 0, values), "a histogram counts a value that is not known")
        require(size >= 0, "a row has fewer than no values")
        require(int(size.sum()) == value.size, "a histogram counts more or fewer values than its rows have")
        require(np.abs(times) <= LATEST, "a histogram counts a row with a time out of range")
        require(cfg[0]["dual"] or times.size == 0, "there are histograms without dual windows")
