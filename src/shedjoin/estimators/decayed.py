"""Exponentially decayed counts: recent rows have larger weights."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import DECAYED, Weigher
from shedjoin.errors import SpecError
from shedjoin.estimators.base import Estimator

#: Counts are scaled down every 512 half-lives: shorter ones would make that the main work of a pause.
LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Decayed(Estimator):
    """Rows of a key so far, each worth half as much after every `half_life`.

    A key is removed if its count is below 2**-20 of a row and none of its tuples is stored. So memory is limited to the
    keys of about the last 20 half-lives.
    """

    half_life: float
    name: ClassVar[str] = "decayed"

    def __post_init__(self) -> None:
        value = self.half_life
        if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST <= value <= sys.float_info.max:
            raise SpecError(f"Decayed.half_life must be a number from {LEAST:g} on, in the unit of ts, not {value!r}")
        object.__setattr__(self, "half_life", float(value))

    def weigher(self) -> Weigher:
        return Weigher(DECAYED, half_life=self.half_life)
