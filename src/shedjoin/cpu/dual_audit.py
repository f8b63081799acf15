"""Whether the state of a snapshot of dual windows can be run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.cpu import dual_state as ds
from shedjoin.cpu.audit import check_store, require, within
from shedjoin.engine.handle import STREAMS, Handle

_COLUMNS = ("stream", "key", "ts", "importance")


def audit(st: Handle) -> None:
    """Refuse a state in which a kernel would read what is not there."""
    check_store(st)
    arrays = st.arrays
    aux, ring, table = arrays["aux_key"].size, arrays["ring_key"].shape[1], arrays["hist_key"].size
    require(aux > 0 and all(arrays[name].size == aux for name in ds.AUX), "the aux-window's columns differ in length")
    require(ring > 1 and all(arrays[name].shape == (STREAMS, ring) for name in ds.RINGS), "the rings differ in length")
    require(arrays["tree"].shape == (STREAMS, ring), "the counts of partners have another length")
    require(
        table & (table - 1) == 0 and all(arrays[name].size == table for name in ds.HIST), "the histogram is damaged"
    )
    used = int((arrays["hist_tag"] != 0).sum())
    require(used == st["hist_used"] and 2 * used <= table, "the histogram is too full to be searched")
    require(0 <= st["aux_from"] <= st["aux_to"] < st["aux_from"] + aux, "the aux-window is longer than its room")
    places = np.arange(int(st["aux_from"]), int(st["aux_to"])) % aux
    require(within(arrays["aux_stream"][places], 0, STREAMS), "a row of the aux-window belongs to no stream")
    require(within(arrays["aux_expected"][places], 0, ring - 1), "a row expects more partners than there can be")
    for stream in range(STREAMS):
        length = int(st["ring_to"][stream] - st["ring_from"][stream])
        require(st["ring_from"][stream] >= 0 and 0 <= length < ring, "a ring is longer than its room")
        mine = int((arrays["aux_stream"][places] == stream).sum())
        require(st["in_aux"][stream] == mine, "the count of rows in the aux-window is wrong")
    require(st["random"] != 0, "its random numbers have run dry")
    require(0.0 <= st["rear"] <= 1.0 and 0.0 <= st["front"] <= 1.0, "a share is not between 0 and 1")


def write_waiting(rows: Batch, numbers: NDArray[np.int64]) -> dict[str, Any]:
    """The rows in the queue as plain data."""
    return {**{name: getattr(rows, name).tolist() for name in _COLUMNS}, "number": numbers.tolist()}


def read_waiting(data: Any) -> tuple[Batch, NDArray[np.int64]]:
    """The rows in the queue from plain data, checked like any input."""
    require(isinstance(data, dict) and all(isinstance(data.get(name), list) for name in (*_COLUMNS, "number")),
            "the rows that wait cannot be read")  # fmt: skip
    require(len({len(data[name]) for name in (*_COLUMNS, "number")}) == 1, "the rows that wait differ in length")
    batch = Batch.rows(
        {name: np.array(data[name], np.float64 if name == "importance" else np.int64) for name in _COLUMNS}
    )
    return batch, np.array(data["number"], np.int64)


def read_newest(data: Any) -> int:
    """The time of the last row that came."""
    require(isinstance(data, int) and not isinstance(data, bool) and abs(data) < 2**63 + 1, "the last time is no time")
    return int(data)
