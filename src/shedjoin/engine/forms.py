"""The forms of the loop, see docs/decisions/016-one-loop-in-forms.md.

One source is compiled for each record type of the state. `MANY` knows everything. `PAIR` is for two streams on a common key with
results at once: what only other joins need is left out by type, and the settings that it stands for are constants. `PLAIN` is the
exact join of these, by time, of streams in order: policies are left out as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import PAIR, PLAIN, SETTINGS_RECORD
from shedjoin.engine.operation import Kernel, operation
from shedjoin.engine.records import PAIR_STATE, PLAIN_STATE


def is_plain(cfg: NDArray[Any]) -> bool:
    """Whether the settings are those that PLAIN stands for."""
    return _say(cfg, _PLAIN_BYTES)


def is_pair(cfg: NDArray[Any]) -> bool:
    """Whether the settings are those that PAIR stands for."""
    return _say(cfg, _PAIR_BYTES)


def _bytes_of(known: dict[str, int]) -> tuple[NDArray[np.intp], bytes]:
    """Where these settings of two streams are in the record, and what is there. Every push asks: names would take longer."""
    record, asked = np.zeros(1, SETTINGS_RECORD), np.zeros(1, SETTINGS_RECORD)
    for name, value in known.items():
        record[name] = value
        asked[name].reshape(-1)[:2].view(np.uint8)[:] = 1  # places of further streams say nothing
    places = np.flatnonzero(asked.view(np.uint8))
    return places, record.view(np.uint8)[places].tobytes()


def _say(cfg: NDArray[Any], known: tuple[NDArray[np.intp], bytes]) -> bool:
    places, settings = known
    return cfg.view(np.uint8)[places].tobytes() == settings


_PAIR_BYTES, _PLAIN_BYTES = _bytes_of(PAIR), _bytes_of(PLAIN)


def in_plain(other: Kernel | None) -> Callable[[Kernel], Kernel]:
    """Make a kernel an operation that the form PLAIN has another kernel for."""
    return lambda kernel: operation(kernel, {PLAIN_STATE: other})


def in_pairs(other: Kernel | None) -> Callable[[Kernel], Kernel]:
    """Make a kernel an operation that the forms of two keyed streams have another kernel for."""
    return lambda kernel: operation(kernel, {PLAIN_STATE: other, PAIR_STATE: other})


#: A stage that only policies, or rows out of order, need: PLAIN does nothing there.
unless_plain = in_plain(None)
#: A stage of joins that are not of two keyed streams.
only_many = in_pairs(None)
