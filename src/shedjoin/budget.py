"""The memory budget: how much may be stored, and how streams share it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shedjoin.errors import SpecError

ALLOCATIONS = ("fixed", "variable")

#: Tuples are found by 32-bit numbers.
BITS = {"tuples": 30, "bytes": 62}


@dataclass(frozen=True, slots=True)
class Budget:
    """A hard cap on what is stored between two instants.

    Parameters
    ----------
    tuples
        The cap in tuples, as in the papers. Give this or `bytes`.
    bytes
        The cap in bytes: the sum of the rows' `bytes` column (rows without one count `shedjoin.ROW_BYTES` each).
    allocation
        ``"variable"`` (default): streams compete for one memory (the papers' names ending in V). ``"fixed"``: each stream
        has its own share, and the rest of a share is unused. `shares` implies fixed.
    shares
        The ratio of fixed shares, one number a stream; equal by default.

    Examples
    --------
    >>> Budget(tuples=400)
    Budget(tuples=400, bytes=None, allocation='variable', shares=None)
    >>> Budget(tuples=400, allocation="fixed").caps(streams=2)
    (200, 200)
    >>> Budget(tuples=400, shares=(3, 1)).caps(streams=2)
    (300, 100)
    >>> Budget(tuples=1, allocation="fixed").caps(streams=2)
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: Budget(tuples=1) leaves stream 0 with no tuple (shares 0, 0): each needs room for one
    """

    tuples: int | None = None
    bytes: int | None = None
    allocation: str | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if (self.tuples is None) == (self.bytes is None):
            raise SpecError(f"Budget takes either tuples or bytes, not tuples={self.tuples!r} and bytes={self.bytes!r}")
        for name in ("tuples", "bytes"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2 ** BITS[name]:
                raise SpecError(
                    f"Budget.{name} must be a whole number of at least 1 and below 2**{BITS[name]}, not {value!r}"
                )
            object.__setattr__(self, name, int(value))
        if self.allocation is None:
            object.__setattr__(self, "allocation", "variable" if self.shares is None else "fixed")
        if self.allocation not in ALLOCATIONS:
            raise SpecError(f"Budget.allocation must be one of {', '.join(ALLOCATIONS)}, not {self.allocation!r}")
        if self.shares is not None:
            self._check_shares(self.shares)

    def _check_shares(self, shares: tuple[float, ...]) -> None:
        if self.allocation == "variable":
            raise SpecError(
                "Budget.shares is for fixed allocation: with allocation='variable' streams compete for one memory"
            )
        try:
            numbers = tuple(float(x) for x in shares)
        except (TypeError, ValueError, OverflowError):
            raise SpecError(f"Budget.shares must be numbers, one a stream, not {shares!r}") from None
        if not all(math.isfinite(x) and x > 0 for x in numbers):
            raise SpecError(
                f"Budget.shares must be finite and above 0, not {shares!r}: a stream without memory cannot join"
            )
        object.__setattr__(self, "shares", numbers)

    @property
    def unit(self) -> str:
        return "tuples" if self.tuples is not None else "bytes"

    @property
    def total(self) -> int:
        return self.tuples if self.tuples is not None else int(self.bytes or 0)

    def caps(self, streams: int, row_bytes: int = 1) -> tuple[int, ...]:
        """The cap of each memory group: one a stream (fixed), or a single one (variable)."""
        need = 1 if self.unit == "tuples" else row_bytes
        what = "tuple" if self.unit == "tuples" else f"row of {row_bytes} bytes"
        if self.allocation == "variable":
            if self.total < need * streams:
                raise SpecError(
                    f"Budget({self.unit}={self.total}) is less than one {what} for each of {streams} streams: "
                    f"the least is {need * streams}"
                )
            return (self.total,)
        shares = self.shares if self.shares is not None else (1.0,) * streams
        if len(shares) != streams:
            raise SpecError(f"Budget.shares has {len(shares)} numbers for {streams} streams: give one a stream")
        # As they are written: a tenth is a tenth, not the float next to it.
        parts = [Fraction(str(share)) for share in shares]
        caps = tuple(math.floor(self.total * part / sum(parts)) for part in parts)
        for stream, cap in enumerate(caps):
            if cap < need:
                raise SpecError(
                    f"Budget({self.unit}={self.total}) leaves stream {stream} with no {what} "
                    f"(shares {', '.join(map(str, caps))}): each needs room for one"
                )
        return caps
