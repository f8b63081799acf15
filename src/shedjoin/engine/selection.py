"""Selective processing seen from outside the kernels: its arrays, what of it is part of a snapshot, and its audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST
from shedjoin.engine.audit_checks import ENDLESS, require
from shedjoin.engine.codes import ROW
from shedjoin.engine.handle import Handle
from shedjoin.engine.records import (
    AGE_ARRAYS,
    KIND_ARRAYS,
    NEVER,
    NONE,
    SELECT_FLOATS_BY_STREAM,
    SELECT_NUMBERS,
    STRETCH_RECORD,
    TIMELINE_RECORD,
    WORK_COUNTERS,
    WORK_RECORD,
)

Arrays = dict[str, NDArray[Any]]
#: A timeline is never shorter, and always a power of two.
LEAST = 1024
#: The numbers of a snapshot, in their order.
NUMBERS = (*WORK_COUNTERS, *SELECT_NUMBERS)


def is_selective(cfg: NDArray[Any]) -> bool:
    return bool(cfg[0]["basic"] > 0)


def _lengths(cfg: NDArray[Any]) -> tuple[int, int, int]:
    """Streams, ages and types."""
    return int(cfg[0]["streams"]), int(cfg[0]["ages"]), int(cfg[0]["kinds"])


# -------------------------------------------------------------------------------------------------------------- arrays


def arrays(cfg: NDArray[Any]) -> Arrays:
    """The arrays of a join in which nothing was learned yet; of one that compares rows with whole windows, next to nothing."""
    streams, ages, kinds = _lengths(cfg) if is_selective(cfg) else (1, 1, 1)
    room = LEAST if is_selective(cfg) else 1
    ahead = int(cfg[0]["ahead"])
    by_age = dict.fromkeys(AGE_ARRAYS, streams * ages)
    by_kind = dict.fromkeys((*KIND_ARRAYS, "kind_worth", "kind_volume", "sack_value"), streams * kinds)
    # The newest first, what lies ahead last.
    rank = np.array([*range(ahead, ages), *range(ahead - 1, -1, -1)] if is_selective(cfg) else [0], np.int64)
    return {
        **{name: np.zeros(size) for name, size in (by_age | by_kind).items()},
        **{name: np.zeros(streams * kinds, np.int64) for name in ("sack", "sack_next")},
        "age_rank": np.tile(rank, streams),
        "age_from": np.zeros(ages, np.int64),
        "age_to": np.zeros(ages, np.int64),
        "age_edge": np.zeros(ages + 1, np.int64),
        "age_before": np.zeros(ages + 1, np.int64),
        "stretch": np.zeros(streams * (ages + 1), STRETCH_RECORD),
        "timeline": np.zeros((streams, room), TIMELINE_RECORD),
        "timeline_counts": np.zeros(streams * room, np.int32),
        "work": np.zeros(streams * streams, WORK_RECORD),
    }


def start(state: Handle, fraction: float) -> None:
    """r at the beginning: the same for all."""
    state["fraction"] = state["fractions"] = fraction
    state.arrays["kind_fraction"][:] = fraction
    state["next_rate"] = state["next_rank"] = NEVER


def grow_timeline(cfg: NDArray[Any], state: Handle, room: int) -> None:
    """Room for at least `room` more tuples of each stream. Gaps are closed; the array grows if that is not plenty."""
    entries = [
        state.arrays["timeline"][stream, int(state["line_from"][stream]) : int(state["line_to"][stream])]
        for stream in range(int(cfg[0]["streams"]))
    ]
    _lay_out(state, [one[one["item"] != NONE] for one in entries], room)


def _lay_out(state: Handle, entries: list[NDArray[Any]], room: int) -> None:
    """Timelines of these tuples, which are in order: at most half full, or as long as they were."""
    longest = max(one.size for one in entries)
    size = max(LEAST, state.arrays["timeline"].shape[1], 1 << (longest + max(room, longest) - 1).bit_length())
    line = np.zeros((len(entries), size), TIMELINE_RECORD)
    counts = np.zeros((len(entries), size), np.int32)
    nodes = np.arange(1, size + 1)
    for stream, one in enumerate(entries):
        line[stream, : one.size] = one
        counts[stream] = np.minimum(nodes, one.size) - np.minimum(nodes - (nodes & -nodes), one.size)
        state["line_from"][stream], state["line_to"][stream] = 0, one.size
        torn = np.flatnonzero(np.diff(one["ts"]) < 0)
        state["line_torn"][stream] = torn[-1] + 1 if torn.size else 0
    state.hold(timeline=line, timeline_counts=counts.reshape(-1))


def fill_timeline(cfg: NDArray[Any], state: Handle, stream: NDArray[np.int64], cards: NDArray[Any]) -> None:
    """The timelines of all stored tuples: the stream and the card of each."""
    entries = []
    for number in range(int(cfg[0]["streams"])):
        mine = cards[stream == number]
        line = np.zeros(mine.size, TIMELINE_RECORD)
        for name in ("ts", "seq", "item"):
            line[name] = mine[name]
        if mine.size:
            newest = np.maximum.accumulate(line["ts"][np.argsort(line["seq"])])
            state["line_newest"][number] = newest[-1]
            state["line_lag"][number] = int((newest - np.sort(line, order="seq")["ts"]).max())
        by_rows = cfg[0]["kind"][number] == ROW
        entries.append(line[np.argsort(line["seq"]) if by_rows else np.lexsort((line["seq"], line["ts"]))])
    _lay_out(state, entries, 0)


# ------------------------------------------------------------------------------------------------------------ contents


def gather(cfg: NDArray[Any], state: Handle) -> Arrays:
    """What is known, as columns."""
    if not is_selective(cfg):
        return {}
    streams, ages, kinds = _lengths(cfg)
    by_stream = [state[name][:streams].astype(np.float64) for name in ("samples", *SELECT_FLOATS_BY_STREAM)]
    return {
        "selection numbers": np.array([int(state[name]) for name in NUMBERS], np.int64),
        "selection fraction": np.array([float(state["fraction"])]),
        "selection by stream": np.stack(by_stream),
        "selection ages": np.stack([state.arrays[name].reshape(streams, ages) for name in AGE_ARRAYS]),
        "selection ranking": state.arrays["age_rank"].reshape(streams, ages).copy(),
        "selection types": np.stack([state.arrays[name].reshape(streams, kinds) for name in KIND_ARRAYS]),
    }


def build(cfg: NDArray[Any], state: Handle, columns: Arrays) -> None:
    """Put what `gather` gave into a new state."""
    if not is_selective(cfg):
        return
    streams = int(cfg[0]["streams"])
    for name, number in zip(NUMBERS, columns["selection numbers"], strict=True):
        state[name] = int(number)
    state["fraction"] = columns["selection fraction"][0]
    for name, values in zip(("samples", *SELECT_FLOATS_BY_STREAM), columns["selection by stream"], strict=True):
        state[name][:streams] = values
    for name, values in zip(AGE_ARRAYS, columns["selection ages"], strict=True):
        state.arrays[name][:] = values.reshape(-1)
    state.arrays["age_rank"][:] = columns["selection ranking"].reshape(-1)
    for name, values in zip(KIND_ARRAYS, columns["selection types"], strict=True):
        state.arrays[name][:] = values.reshape(-1)


def shapes(cfg: NDArray[Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The columns that there are, each with its kind and shape."""
    if not is_selective(cfg):
        return {}
    streams, ages, kinds = _lengths(cfg)
    return {
        "selection numbers": ("<i8", (len(NUMBERS),)),
        "selection fraction": ("<f8", (1,)),
        "selection by stream": ("<f8", (1 + len(SELECT_FLOATS_BY_STREAM), streams)),
        "selection ages": ("<f8", (len(AGE_ARRAYS), streams, ages)),
        "selection ranking": ("<i8", (streams, ages)),
        "selection types": ("<f8", (len(KIND_ARRAYS), streams, kinds)),
    }


def audit(cfg: NDArray[Any], columns: Arrays) -> None:
    """Make sure that columns of the right shapes can be worked with."""
    if not is_selective(cfg):
        return
    numbers = dict(zip(NUMBERS, (int(number) for number in columns["selection numbers"]), strict=True))
    for name in (*WORK_COUNTERS, "came", "fetched"):
        require(0 <= numbers[name] <= ENDLESS, f"{name} is {numbers[name]}")
    for name in ("next_rate", "next_rank"):
        require(numbers[name] == NEVER or abs(numbers[name]) <= 4 * LATEST, f"{name} is {numbers[name]}")
    fraction = columns["selection fraction"][0]
    require(0.0 < fraction <= 1.0, f"r is {fraction}")
    for name in ("selection by stream", "selection ages", "selection types"):
        # A sum of what results are worth may have left the range of floats: that does no harm.
        require(columns[name] >= 0.0, f"{name!r} has a number below 0, or none")
    samples, seen = columns["selection by stream"][0], columns["selection ages"][1]
    require(samples < 2.0**53, "more rows were learned from than can be counted")
    require((samples > 0) | (seen.sum(axis=1) == 0), "tuples were looked at without a sample")
    ages = int(cfg[0]["ages"])
    require(np.sort(columns["selection ranking"], axis=1) == np.arange(ages), "an age has no rank, or two")
