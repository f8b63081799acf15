"""Counts of all arrivals in the window, stored or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import IN_WINDOW
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class InWindow(Estimator):
    """The number of rows of a key that arrived within the window. Stores the key of each row of the window (16 bytes)."""

    name: ClassVar[str] = "in_window"
    code: ClassVar[int] = IN_WINDOW
