"""A count-min sketch: history in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import COUNT_MIN, Weigher
from shedjoin.errors import SpecError
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class CountMin(Estimator):
    """`History` within `width * depth` counters a stream; never too low, too high by about (rows / width) at times.

    This is our own kernel, because a kernel cannot call the sketch of a library; docs/decisions/004 compares it with
    Apache DataSketches.
    """

    width: int = 4096
    depth: int = 4
    name: ClassVar[str] = "count_min"

    def __post_init__(self) -> None:
        for field, most in (("width", 2**28), ("depth", 16)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise SpecError(f"CountMin.{field} must be a whole number from 1 to {most}, not {value!r}")

    def weigher(self) -> Weigher:
        return Weigher(COUNT_MIN, width=self.width, depth=self.depth)
