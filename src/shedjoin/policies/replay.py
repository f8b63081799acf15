"""Replay: run a schedule that was computed in advance, such as an offline optimum, through the same loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.engine.codes import SCHEDULE, Order
from shedjoin.errors import SpecError
from shedjoin.policies.base import Policy


class Replay(Policy):
    """Each row leaves memory at the end of the first instant at or after its `until`.

    Parameters
    ----------
    left, right
        `until` for each row of the stream, by its number. If `until` is not after a row's own time, the row is not stored.
    more
        The same for the third stream of an n-way join and later ones.

    Examples
    --------
    >>> Replay([0, 3], [2, 1])
    Replay(2 rows, 2 rows)
    """

    name: ClassVar[str] = "replay"
    __slots__ = ("_until",)

    def __init__(self, left: ArrayLike, right: ArrayLike, more: Sequence[ArrayLike] = ()) -> None:
        others = tuple(_times(f"more[{number}]", times) for number, times in enumerate(more))
        self._until = (_times("left", left), _times("right", right), *others)

    @property
    def left(self) -> list[int]:
        return [int(time) for time in self._until[0]]

    @property
    def right(self) -> list[int]:
        return [int(time) for time in self._until[1]]

    @property
    def more(self) -> list[list[int]]:
        return [[int(time) for time in times] for times in self._until[2:]]

    @property
    def streams(self) -> int:
        """How many streams this is for."""
        return len(self._until)

    def order(self) -> Order:
        return Order(SCHEDULE)

    def schedule(self) -> tuple[NDArray[np.int64], ...]:
        return self._until

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Replay)
            and self.streams == other.streams
            and all(np.array_equal(mine, theirs) for mine, theirs in zip(self._until, other._until, strict=True))
        )

    def __hash__(self) -> int:
        return hash(tuple(side.tobytes() for side in self._until))

    def __repr__(self) -> str:
        return f"Replay({', '.join(f'{times.size} rows' for times in self._until)})"


def _times(name: str, values: ArrayLike) -> NDArray[np.int64]:
    try:
        times = np.asarray(values)
    except ValueError as reason:
        raise SpecError(f"Replay.{name} must be whole numbers, one a row: {reason}") from None
    if times.size == 0:
        times = times.astype(np.int64)
    if times.ndim != 1 or times.dtype.kind not in "iu":
        raise SpecError(f"Replay.{name} must be whole numbers, one a row, not {times.dtype} of shape {times.shape}")
    far = (times < -(2**53)) | (times > 2**53)
    if far.any():
        raise SpecError(f"Replay.{name} must lie within +-2**53, not {times[far][0]}")
    return times.astype(np.int64)
