"""Sliding windows: over time, or over the last rows of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shedjoin.errors import SpecError

#: Beyond this, a float can no longer distinguish products of a lifetime and a weight.
LONGEST = 2**50
#: The lateness under which no row is ever late and none expires: times lie within +-2**53.
UNLIMITED = 2**54


def _whole(name: str, value: object, why: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise SpecError(f"{name} must be a whole number, not {value!r} ({type(value).__name__})")
    if not 1 <= value < LONGEST:
        because = f": {why}" if value < 1 else ""
        raise SpecError(f"{name} must be at least 1 and below 2**50, not {value}{because}")
    return int(value)


def check_duration(argument: str, value: object) -> None:
    """Reject invalid durations in the unit of `ts`. A lateness may also be `UNLIMITED`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and (0 <= value < LONGEST or (value == UNLIMITED and argument.endswith("lateness"))):  # type: ignore[operator]
        return
    raise SpecError(f"{argument} must be a whole number of at least 0, in the unit of ts, not {value!r}")


def check_interval(argument: str, value: object) -> tuple[int, int]:
    """The ends of an interval, in the unit of `ts`."""
    ends = tuple(value) if isinstance(value, list | tuple) else ()
    whole = all(isinstance(end, int | np.integer) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not whole or not all(abs(end) < LONGEST for end in ends):
        raise SpecError(
            f"{argument} must be two whole numbers (low, high) within +-2**50, in the unit of ts, not {value!r}"
        )
    low, high = map(int, ends)
    if low > high:
        raise SpecError(f"{argument} must have low <= high, not ({low}, {high}): no row would join")
    return low, high


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Two tuples can join iff their times differ by less than `length` (half-open).

    Parameters
    ----------
    length
        In the unit of the streams' `ts`. With one tuple per time unit the window holds exactly `length` tuples.

    Examples
    --------
    >>> TimeWindow(400)
    TimeWindow(length=400)
    """

    length: int
    kind: ClassVar[str] = "time"

    def __post_init__(self) -> None:
        length = _whole("TimeWindow.length", self.length, "a window of no length holds no tuple")
        object.__setattr__(self, "length", length)

    @property
    def size(self) -> int:
        return self.length

    @property
    def range(self) -> int:
        """How many times there are at which partners of a tuple may lie, counted to one side."""
        return self.length


@dataclass(frozen=True, slots=True)
class IntervalWindow(TimeWindow):
    """The window of one stream of a join on an interval, see `interval_windows`.

    Parameters
    ----------
    length
        A tuple can join while a tuple of the other stream is newer by less than this. Zero or less: only tuples of the other
        stream that are older.
    within
        The number of times in the interval.
    """

    within: int = 1

    def __post_init__(self) -> None:
        pass  # `interval_windows` has checked the interval

    @property
    def range(self) -> int:
        return self.within


def interval_windows(low: int, high: int) -> tuple[IntervalWindow, IntervalWindow]:
    """The windows of two streams that join iff low <= right.ts - left.ts <= high.

    Examples
    --------
    >>> [window.length for window in interval_windows(5, 10)]
    [11, -4]
    """
    return IntervalWindow(high + 1, high - low + 1), IntervalWindow(1 - low, high - low + 1)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """A tuple can join while it is among the last `rows` of its stream.

    Examples
    --------
    >>> RowWindow(0)
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: RowWindow.rows must be at least 1 and below 2**50, not 0: a window of no rows holds no tuple
    """

    rows: int
    kind: ClassVar[str] = "row"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _whole("RowWindow.rows", self.rows, "a window of no rows holds no tuple"))

    @property
    def size(self) -> int:
        return self.rows

    @property
    def range(self) -> int:
        return self.rows


Window = TimeWindow | RowWindow
