"""Counts in memory: importance2006's "matches in the opposite window"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import IN_MEMORY
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class InMemory(Estimator):
    """The number of stored tuples of a key. Needs no extra memory, but counts only tuples that were not shed.

    References
    ----------
    importance2006, section 5.2: match probabilities are estimated "solely from the sliding windows".
    """

    name: ClassVar[str] = "in_memory"
    code: ClassVar[int] = IN_MEMORY
