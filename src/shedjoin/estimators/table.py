"""The true table: arrival probabilities that are known in advance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import TABLE, Weigher
from shedjoin.errors import SpecError
from shedjoin.estimators.base import Estimator

#: A weight times a lifetime must still be a number.
HEAVIEST = 1e250

Weights = Mapping[int, float] | Sequence[float] | NDArray[np.float64] | NDArray[np.int64]


class Table(Estimator):
    """Arrival probabilities (or counts) per key of each stream, as das2003's experiments use.

    Parameters
    ----------
    left, right
        A dict from key to number, or an array whose index is the key. Keys that are not given weigh 0.
    more
        The same for the third stream of an n-way join and those after it.

    Examples
    --------
    >>> Table({7: 0.5, 3: 0.25}, [0.1, 0.9])
    Table(2 keys, 2 keys)
    """

    name: ClassVar[str] = "table"
    __slots__ = ("_sides",)

    def __init__(self, left: Weights, right: Weights, more: Sequence[Weights] = ()) -> None:
        others = tuple(_side(f"more[{number}]", weights) for number, weights in enumerate(more))
        self._sides = (_side("left", left), _side("right", right), *others)

    @property
    def left(self) -> dict[int, float]:
        return _as_dict(self._sides[0])

    @property
    def right(self) -> dict[int, float]:
        return _as_dict(self._sides[1])

    @property
    def more(self) -> list[dict[int, float]]:
        return [_as_dict(side) for side in self._sides[2:]]

    @property
    def streams(self) -> int:
        """How many streams this is for."""
        return len(self._sides)

    def weigher(self) -> Weigher:
        return Weigher(TABLE)

    def table(self, stream: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return self._sides[stream]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Table)
            and self.streams == other.streams
            and all(
                np.array_equal(mine, theirs)
                for side, other_side in zip(self._sides, other._sides, strict=True)
                for mine, theirs in zip(side, other_side, strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash(tuple(part.tobytes() for side in self._sides for part in side))

    def __repr__(self) -> str:
        return f"Table({', '.join(f'{keys.size} keys' for keys, _ in self._sides)})"


def _side(name: str, weights: Weights) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        if hasattr(weights, "to_dict"):  # a pandas Series: its index is the keys
            weights = weights.to_dict()
        if isinstance(weights, Mapping):
            if not all(isinstance(key, int | np.integer) for key in weights):
                raise TypeError("a key is no whole number")
            keys = np.array(list(weights.keys()), dtype=np.int64)
            values = np.array(list(weights.values()), dtype=np.float64)
        else:
            values = np.array(weights, dtype=np.float64)
            keys = np.arange(values.size, dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as reason:
        raise SpecError(f"Table.{name} must map whole-number keys to numbers: {reason}") from None
    if values.ndim != 1:
        raise SpecError(f"Table.{name} must be one-dimensional, not of shape {values.shape}")
    fits = (values >= 0) & (values <= HEAVIEST)
    if not fits.all():
        raise SpecError(f"Table.{name} must hold numbers from 0 to {HEAVIEST:g}, not {values[~fits][0]}")
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def _as_dict(side: tuple[NDArray[np.int64], NDArray[np.float64]]) -> dict[int, float]:
    return dict(zip(side[0].tolist(), side[1].tolist(), strict=True))
