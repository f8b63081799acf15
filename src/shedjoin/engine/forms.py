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

from shedjoin.engine.codes import PAIR, PLAIN
from shedjoin.engine.operation import Kernel, operation
from shedjoin.engine.records import PAIR_STATE, PLAIN_STATE


def is_plain(cfg: NDArray[Any]) -> bool:
    """Whether the settings are those that PLAIN stands for."""
    return _are(cfg, PLAIN)


def is_pair(cfg: NDArray[Any]) -> bool:
    """Whether the settings are those that PAIR stands for."""
    return _are(cfg, PAIR)


def _are(cfg: NDArray[Any], known: dict[str, int]) -> bool:
    streams = int(cfg[0]["streams"])
    return all(np.all(cfg[0][name].reshape(-1)[:streams] == value) for name, value in known.items())


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
