"""The audit of contents that come from outside.

A snapshot has a checksum against damage, but anyone can work out a checksum. Kernels do not check what they are given, so columns
are checked once, before a state is built from them: after that it is safe to run whatever passes. Indexes, rings and heaps need
no audit, because they are built here and not read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine import selection, waiting_audit
from shedjoin.engine.audit_checks import ENDLESS, require, within
from shedjoin.engine.codes import (
    AGE,
    BY_STOCK,
    DECAYED,
    DROP_SEMANTIC,
    FOLLOWING,
    IN_MEMORY,
    IN_WINDOW,
    LEARNED,
    MET,
    MOST,
    MOST_ITEMS,
    RANDOM,
    SAMPLE,
    TUPLE,
    WHY,
)
from shedjoin.engine.contents import BY_STREAM, FLOATS, NUMBERS
from shedjoin.engine.item_memory import counts_values, has_items, has_numbers, values_of_numbers
from shedjoin.engine.memory import has_floor
from shedjoin.engine.plan import Plan
from shedjoin.engine.records import COUNTERS, NEVER, NONE, TRAIL_RECORD, shed_record
from shedjoin.engine.stages import ages, learn, neighbours, sampling
from shedjoin.engine.stored import Columns
from shedjoin.engine.structures.histogram import NOTHING, ONE, SEVERAL
from shedjoin.errors import SnapshotError

_NAMES = tuple(name for name in NUMBERS if name != "random")


def audit(plan: Plan, cfg: NDArray[Any], columns: Columns) -> None:
    """Make sure that a state can be built from these columns; raises SnapshotError, with what is wrong, where it cannot."""
    _check_shapes(plan, cfg, columns)
    numbers = dict(zip(_NAMES, (int(number) for number in columns["numbers"]), strict=True))
    by_stream = dict(zip(BY_STREAM, columns["by stream"], strict=True))
    arrived = by_stream["arrived"]
    if plan.admission is not None:  # rows that wait have arrived, too
        arrived = waiting_audit.audit(plan, cfg, columns, numbers["rows"])
    _check_numbers(plan, numbers, by_stream, columns, arrived)
    by_stream["arrived"] = arrived
    _check_tuples(plan, cfg, numbers, by_stream, columns)
    _check_values(plan, cfg, columns)
    _check_estimates(plan, cfg, numbers, by_stream, columns)
    _check_rounds(cfg, numbers, columns)
    if cfg[0]["organisation"] == SAMPLE:
        _check_samples(plan, numbers, columns)
    if cfg[0]["organisation"] == AGE:
        require(
            np.isfinite(columns["curve"]) & (columns["curve"] >= 0),
            "what was learned of ages is not finite and at least 0",
        )
        require(columns["tuple prio"] >= 0, "a tuple expects less than nothing")
        require(within(columns["tuple found"], 0, 2), "a tuple neither has found partners nor has not")
    selection.audit(cfg, columns)


def checked_log(rows: Any, streams: int) -> NDArray[Any]:
    """Shed records that were saved as plain data, to be told with the next push."""
    try:
        log = np.array([tuple(row) for row in rows], shed_record(streams))
    except (TypeError, ValueError, OverflowError, IndexError) as reason:
        raise SnapshotError(f"the shed records in the snapshot's header make no sense: {reason}") from None
    require(log.ndim == 1, "its shed records are not a list")
    require(within(log["stream"], 0, streams), f"a shed record is of a stream other than 0 to {streams - 1}")
    require(within(log["why"], 0, len(WHY)), f"a shed record has a reason other than 0 to {len(WHY) - 1}")
    return log


def _check_shapes(plan: Plan, cfg: NDArray[Any], columns: Columns) -> None:
    """Every column is there, of its kind and length; there are no others."""
    streams, tuples = plan.streams, columns.get("tuple arrival", np.empty(0)).size
    values = columns.get("value key", np.empty(0)).size
    organisation, estimator = cfg[0]["organisation"], cfg[0]["estimator"]
    model = learn.NUMBERS if estimator == LEARNED else 1
    expected: dict[str, tuple[str, tuple[int, ...] | None]] = {
        "tuple stream": ("|i1", (tuples,)),
        "tuple arrival": ("<i8", (tuples,)),
        "tuple bytes": ("<i4", (tuples,)),
        "tuple ts": ("<i8", (tuples,)),
        "tuple seq": ("<i8", (tuples,)),
        "tuple importance": ("<f8", (tuples,)),
        "tuple key": ("<i8", (tuples, plan.width)),
        "value key": ("<i8", (values,)),
        "value held": ("<i4", (values,)),
        "value part": ("<i4", (values,)),
        "value weight": ("<f8", (values, streams)),
        "sketch": ("<i8", (max(len(plan.parts), 1) * streams * plan.weigher.depth * plan.weigher.width,)),
        "model": ("<f8", (streams, model)),
        "numbers": ("<i8", (len(_NAMES),)),
        "random": ("<u8", (2,)),
        "floats": ("<f8", (len(FLOATS),)),
        "by stream": ("<i8", (len(BY_STREAM), streams)),
        "filters": ("<i8", _shape_of_filters(plan, columns)),
    }
    if organisation == AGE:
        expected |= {"curve": ("<f8", (streams, ages.NUMBERS)), "tuple found": ("|i1", (tuples,))}
    if organisation in (TUPLE, *FOLLOWING):
        expected["tuple prio"] = ("<f8", (tuples,))
    if organisation == SAMPLE:
        expected |= {"tuple weight": ("<f8", (tuples,)), "tuple since": ("<i8", (tuples,))}
        expected["sampling moments"] = ("<f8", (streams, sampling.MOMENTS))
        for stream in range(streams):
            known = columns.get(f"threshold stamp {stream}", np.empty(0)).size
            expected |= {f"threshold stamp {stream}": ("<i8", None), f"threshold prio {stream}": ("<f8", (known,))}
    if organisation == RANDOM:
        expected["tuple place"] = ("<i4", (tuples,))
    if plan.alone and cfg[0]["weighed"]:
        expected["tuple chance"] = ("<f8", (tuples,))
    if estimator == MET:
        expected["tuple met"] = ("<i8", (tuples,))
    if cfg[0]["counts"]:
        expected["tuple partners"] = ("<i4", (tuples,))
    if has_floor(cfg):
        expected["tuple floor"] = ("<i8", (tuples, streams))
    held = waiting_audit.held(columns)
    if has_numbers(cfg):
        expected["tuple number"] = ("<f8", (tuples + held,))
    elif has_items(cfg):
        items = columns.get("items", np.empty(0)).size
        expected |= {
            "tuple items": ("<i8", (tuples + held,)),
            "items": ("<i8", None),
            "item weights": ("<f8", (items,)),
        }
    if estimator == DECAYED:
        expected["value mass"] = ("<f8", (values, streams))
    if estimator == LEARNED:
        expected["value trail"] = ("trail", (values, streams))
    if cfg[0]["evaluate_every"]:
        expected |= {"tuple came": ("<i8", (tuples,)), "pending": ("<i8", None), "marks": ("<i8", None)}
    expected |= waiting_audit.shapes(plan, cfg, columns)
    for stream in range(streams):
        expected |= {f"seen stamp {stream}": ("<i8", None), f"seen value {stream}": ("<i8", None)}
    expected |= selection.shapes(cfg)
    require(
        set(columns) == set(expected),
        f"its columns are {sorted(set(columns) ^ set(expected))} more or less than the join has",
    )
    for name, (kind, shape) in expected.items():
        dtype = TRAIL_RECORD if kind == "trail" else np.dtype(kind)
        right = columns[name].ndim == 1 if shape is None else columns[name].shape == shape
        require(
            columns[name].dtype == dtype and right, f"{name!r} is {columns[name].dtype} of shape {columns[name].shape}"
        )


def _shape_of_filters(plan: Plan, columns: Columns) -> tuple[int, int]:
    """A filter of shed rows has cells for the largest budget so far: a power of two."""
    there = columns.get("filters", np.empty((0, 0)))
    cells = there.shape[-1] if there.ndim == 2 else 0
    known = cells == 1 if plan.filter_shape(None)[1] == 1 else cells > 0 and cells & (cells - 1) == 0
    require(known, f"its filters of shed rows have {cells} cells")
    return plan.filter_shape(None)[0], cells


def _check_numbers(
    plan: Plan, numbers: dict[str, int], by_stream: dict[str, NDArray[Any]], columns: Columns, arrived: NDArray[Any]
) -> None:
    for name in (*COUNTERS, "tick", "arrival", "peak_tuples", "peak_bytes", "epoch"):
        require(0 <= numbers[name] <= ENDLESS, f"{name} is {numbers[name]}")
    require(numbers["started"] in (0, 1), f"started is {numbers['started']}")
    require(abs(numbers["t0"]) <= LATEST and abs(numbers["faded"]) <= ENDLESS, "a time is out of range")
    require(columns["random"][0] != 0, "the random state is 0, which it never becomes")
    require(~np.isnan(columns["floats"]), "a sum is not a number")
    require(
        0 <= numbers["lift_tick"] <= numbers["tick"], f"priorities are lifted from instant {numbers['lift_tick']} on"
    )
    require(within(by_stream["arrived"], 0, LATEST + 1), "more rows have arrived than can be counted")
    require(by_stream["arrived"] <= arrived, "more rows had their turn than came")
    rows = numbers["rows"] if plan.counted_elsewhere else int(arrived.sum())
    require(rows == numbers["rows"] == numbers["arrival"], "rows are counted in two ways that differ")
    require(arrived.sum() >= rows, "fewer rows have come anywhere than have come here")
    require(numbers["tick"] <= numbers["rows"], f"{numbers['rows']} rows took {numbers['tick']} instants")
    for name in ("clock", "horizon", "base"):
        times = by_stream[name]
        require((times == NEVER) | (np.abs(times) <= 4 * LATEST), f"{name} shows a time out of range")
    clocks = by_stream["clock"]
    require((clocks == NEVER) | (np.abs(clocks) <= LATEST), "a clock shows a time out of range")


def _check_tuples(
    plan: Plan, cfg: NDArray[Any], numbers: dict[str, int], by_stream: dict[str, NDArray[Any]], columns: Columns
) -> None:
    stream = columns["tuple stream"].astype(np.int64)
    require(within(stream, 0, plan.streams), f"a tuple is of a stream other than 0 to {plan.streams - 1}")
    arrival = columns["tuple arrival"]
    require(within(arrival, 0, numbers["arrival"]), "a tuple has the number of a row that has not arrived")
    require(np.diff(arrival) > 0, "tuples are not in the order of their arrival")
    require(columns["tuple bytes"] > 0, "a tuple has no bytes")
    require(within(columns["tuple seq"], 0, LATEST) & (columns["tuple seq"] < by_stream["arrived"][stream]),
            "a tuple is of a row that has not arrived")  # fmt: skip
    pairs = stream * (2 * LATEST) + columns["tuple seq"]
    require(np.unique(pairs).size == pairs.size, "a row is stored twice")
    ts, clock = columns["tuple ts"], by_stream["clock"][stream]
    require((ts >= -LATEST) & (ts <= clock), "a tuple is from after its stream's clock")
    importance = columns["tuple importance"]
    require(np.isfinite(importance) & (importance > 0), "an importance is not finite and above 0")
    if "tuple prio" in columns:
        require(~np.isnan(columns["tuple prio"]), "a priority is not a number")
    if "tuple place" in columns:
        for number in range(plan.streams):
            mine = np.sort(columns["tuple place"][stream == number])
            require(np.array_equal(mine, np.arange(mine.size)), "the list of tuples lacks one or has one twice")
    if "tuple chance" in columns:
        require(columns["tuple chance"] >= 0, "a chance is below 0")
    if "tuple met" in columns:
        require(within(columns["tuple met"], 0, ENDLESS), "a tuple has met less than nothing")
    if has_items(cfg):
        _check_compared(cfg, columns)
    for number, until in enumerate(plan.schedule or ()):
        require(
            by_stream["arrived"][number] <= until.size, f"more rows of stream {number} have arrived than Replay knows"
        )


def _check_compared(cfg: NDArray[Any], columns: Columns) -> None:
    """What a predicate compares."""
    if has_numbers(cfg):
        require(np.isfinite(columns["tuple number"]), "a number is not finite")
        return
    sizes, items = columns["tuple items"], columns["items"]
    require(within(sizes, 0, MOST_ITEMS + 1), f"a set has less than none or more than {MOST_ITEMS} items")
    require(int(sizes.sum()) == items.size, "sets have more or fewer items than there are")
    inside = np.ones(max(items.size - 1, 0), np.bool_)
    borders = np.cumsum(sizes)[:-1] - 1
    inside[borders[(borders >= 0) & (borders < inside.size)]] = False
    require(np.diff(items)[inside] > 0 if items.size > 1 else True, "the items of a set are not in order")
    require(np.isfinite(columns["item weights"]), "the weight of an item is not finite")


def _check_values(plan: Plan, cfg: NDArray[Any], columns: Columns) -> None:
    part, key = columns["value part"].astype(np.int64), columns["value key"]
    require(within(part, 0, max(len(plan.parts), 1)), "a value is of attributes that there are not")
    both = np.column_stack([part, key])
    require(np.unique(both, axis=0).shape[0] == key.size, "a value is there twice")
    require(within(columns["value held"], 0, 2**31), "an estimator holds a value less than never")
    weight = columns["value weight"]
    require(np.isfinite(weight) & (weight >= 0), "a weight is not finite and at least 0")
    stocked = cfg[0]["drop"] == DROP_SEMANTIC and cfg[0]["drop_by"] == BY_STOCK
    named = counts_values(cfg) if has_items(cfg) else cfg[0]["estimator"] != MET or stocked
    if not cfg[0]["weighed"] or not named:
        return
    known = {(int(one), int(other)) for one, other in both} if not plan.keyed else set()
    if has_items(cfg):
        _check_item_values(cfg, columns, known)
        return
    stream = columns["tuple stream"]
    for number, one in enumerate(plan.parts):
        for place, attr in one.items():
            mine = columns["tuple key"][stream == place, attr]
            if plan.keyed:
                require(np.isin(mine, key), "a tuple is of a key that is not known")
            else:
                require(all((number, int(value)) in known for value in mine), "a tuple has a value that is not known")


def _check_item_values(cfg: NDArray[Any], columns: Columns, known: set[tuple[int, int]]) -> None:
    """All items of stored tuples, and of those that left in the open instant, are known to the estimator."""
    counted = _are_counted(columns)
    if not has_numbers(cfg):
        items = columns["items"][np.repeat(counted, columns["tuple items"])]
        wanted = {(0, int(item)) for item in np.unique(items)}
        wanted |= {(1, 0)} if counted.any() else set()
    else:
        numbers = dict(zip(_NAMES, (int(number) for number in columns["numbers"]), strict=True))
        told = {**numbers, **dict(zip(FLOATS, (float(number) for number in columns["floats"]), strict=True))}
        _check_histogram(told)
        buckets = values_of_numbers(cfg, told, columns["tuple number"][counted])
        wanted = {(0, int(bucket)) for bucket in np.unique(buckets)}
    require(wanted <= known, "a tuple has a value that is not known")


def _are_counted(columns: Columns) -> NDArray[np.bool_]:
    """Which of the tuples with items are stored, or left in the open instant: others wait, and are not counted yet."""
    held, gone = waiting_audit.held(columns), int((columns.get("fresh item", np.empty(0)) == NONE).sum())
    stored = columns["tuple arrival"].size
    return np.repeat([True, False, True], [stored, held - gone, gone])


def _check_histogram(told: dict[str, float]) -> None:
    """The buckets of numbers."""
    known, width = told["known_numbers"], told["bucket_width"]
    require(known in (NOTHING, ONE, SEVERAL), f"its histogram knows {known} numbers")
    low, high = told["lowest_number"], told["highest_number"]
    require(math.isfinite(low) and math.isfinite(high) and low <= high, "its histogram has no lowest number")
    require(
        known < SEVERAL or (0 < width < math.inf and math.frexp(width)[0] == 0.5),
        f"the buckets of its histogram are {width} wide",
    )


def _check_estimates(
    plan: Plan, cfg: NDArray[Any], numbers: dict[str, int], by_stream: dict[str, NDArray[Any]], columns: Columns
) -> None:
    estimator, values = cfg[0]["estimator"], columns["value key"].size
    counts = np.zeros((values, plan.streams), np.int64)
    for stream in range(plan.streams):
        stamp, value = columns[f"seen stamp {stream}"], columns[f"seen value {stream}"]
        require(stamp.size == value.size, "arrivals are remembered in part")
        require(within(value, 0, values), "an arrival is remembered of a value that is not known")
        require(estimator in (IN_WINDOW, LEARNED) or stamp.size == 0, "arrivals are remembered without need")
        counts[:, stream] = np.bincount(value, minlength=values)
    if estimator == IN_WINDOW:
        require(
            columns["value held"] == counts.sum(axis=1), "a value is held not as often as its arrivals are remembered"
        )
        require(columns["value weight"] == counts, "a weight is not the number of arrivals that are remembered")
    if estimator == IN_MEMORY and plan.keyed:
        key, order = columns["tuple key"][:, 0], np.argsort(columns["value key"])
        place = order[np.searchsorted(columns["value key"][order], key)] if key.size else key
        stored = np.zeros((values, plan.streams))
        np.add.at(stored, (place, columns["tuple stream"].astype(np.int64)), 1.0)
        require(columns["value weight"] == stored, "a weight is not the number of stored tuples")
    if estimator == DECAYED:
        mass = columns["value mass"]
        require(np.isfinite(mass) & (mass >= 0), "a decayed count is not finite and at least 0")
        started, t0 = numbers["started"], numbers["t0"]
        require(not started or t0 <= int(by_stream["clock"].max()), "counts decay from a time on that is still to come")
        _check_folds(cfg, numbers, by_stream)
    require(within(columns["sketch"], 0, ENDLESS), "a cell of the sketch counts less than nothing")
    if estimator == LEARNED:
        _check_learned(by_stream, columns, counts)


def _check_folds(cfg: NDArray[Any], numbers: dict[str, int], by_stream: dict[str, NDArray[Any]]) -> None:
    """The last fold was needed (see `estimate.fold`): others would be undone one by one."""
    now, fold_at = int(by_stream["clock"].max()), float(cfg[0]["fold_at"])
    before = (now - numbers["t0"]) / float(cfg[0]["half_life"]) - fold_at * (numbers["epoch"] - 1)
    require(
        numbers["epoch"] == 0 or (numbers["started"] == 1 and before > fold_at),
        "counts were folded more often than it takes",
    )


def _check_learned(by_stream: dict[str, NDArray[Any]], columns: Columns, counts: NDArray[np.int64]) -> None:
    """What Prospect counts and has learned."""
    observed, seen = by_stream["observed"], counts.sum(axis=0)
    require(within(observed, 0, 2**53) & (observed <= by_stream["arrived"]), "more rows were observed than came")
    later, soon = by_stream["looked_later"], by_stream["looked_soon"]
    require((later >= 0) & (later <= soon) & (soon <= seen), "more arrivals were looked at again than are remembered")
    trail = columns["value trail"]
    require(np.isfinite(trail["mass"]) & (trail["mass"] >= 0), "a decayed count is not finite and at least 0")
    require((trail["before"] >= 0) & (trail["before"] <= observed), "more rows came before a key than came")
    require((trail["last"] == NEVER) | (np.abs(trail["last"]) <= LATEST), "a key came at a time out of range")
    require(trail["recent"] == counts, "recent rows of a key are counted wrongly")
    model = columns["model"]
    require(np.isfinite(model[:, : learn.LOG_SHARE]), "what was learned is not finite")
    ring = model[0, learn.NEAR : learn.NEAR + neighbours.NUMBERS]
    require(ring[neighbours.TURNS] > 0, "keys lie on a ring without a length")
    length = 1.0 / ring[neighbours.TURNS]
    require(neighbours.PLACES <= length <= 2.0**neighbours.MOST_DOUBLINGS, f"keys lie on a ring that is {length} long")
    speed = ring[neighbours.SPEED]
    require(speed in range(-neighbours.FASTEST, neighbours.FASTEST + 1), f"keys move at a speed of {speed}")


def _check_samples(plan: Plan, numbers: dict[str, int], columns: Columns) -> None:
    """Sample: weights, and thresholds that rise from the newest to the oldest."""
    weight, since, evicted = columns["tuple weight"], columns["tuple since"], numbers["evicted"]
    require((weight >= sampling.LIGHTEST) & (weight <= sampling.HEAVIEST), "a tuple's weight is out of range")
    require(within(since, sampling.KEPT, evicted + 1), "a tuple is sampled since an eviction that was not")
    moments = columns["sampling moments"]
    require(np.isfinite(moments) & (moments >= 0.0), "what new tuples expected is out of range")
    for stream in range(plan.streams):
        stamp, prio = columns[f"threshold stamp {stream}"], columns[f"threshold prio {stream}"]
        require(within(stamp, 0, evicted) & np.isfinite(prio) & (prio > 0), "a threshold is out of range")
        require((np.diff(stamp) > 0) & (np.diff(prio) < 0), "thresholds are not in order")


def _check_rounds(cfg: NDArray[Any], numbers: dict[str, int], columns: Columns) -> None:
    """What waits for lazy evaluation."""
    if not cfg[0]["evaluate_every"]:
        return
    first, tick = numbers["first_mark"], numbers["tick"]
    require(0 <= first <= tick, f"instants wait from number {first} on, and there were {tick}")
    require(columns["marks"].size == (tick - first) * MOST, "instants that wait are not all marked")
    pending = columns["pending"]
    require(within(pending, 0, columns["tuple arrival"].size), "a tuple waits that is not stored")
    require(np.unique(pending).size == pending.size, "a tuple waits twice")
    require(within(columns["tuple came"][pending], first, tick), "a tuple waits that came before the last evaluation")
