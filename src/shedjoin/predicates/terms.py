"""What kernels are told of a predicate, of a row and of a stretch of a window: columns and numbers that go together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.jit import inlined


class Rule(NamedTuple):
    """A predicate, and how its partners are found."""

    code: int
    bound: float
    by: int  # lists, or a scan


class Value(NamedTuple):
    """What the predicate compares of a row: a number, or a set, `size` items of a column from place `at` on."""

    number: float
    items: NDArray[np.int64]
    weights: NDArray[np.float64]
    at: int
    size: int


class Card(NamedTuple):
    """What is kept of a row beside its value."""

    ts: int
    seq: int  # in the order of all arrivals
    row: int  # its number in its stream
    kind: int
    importance: float


class Span(NamedTuple):
    """A stretch of a window: from (lo_ts, lo_seq) up to (hi_ts, hi_seq), which is no part of it."""

    lo_ts: int
    lo_seq: int
    hi_ts: int
    hi_seq: int


@inlined
def rule_of(how: Any) -> Rule:
    """The predicate of a join, from its settings."""
    return Rule(how["code"], how["bound"], how["index"])
