"""The true table: arrival probabilities that are known in advance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import TABLE
from shedjoin.errors import SpecError
from shedjoin.estimators.base import Estimator

#: A weight times a lifetime must still be a number.
HEAVIEST = 1e250

#: Of a stream; on Spark also by key values of any type, or as a DataFrame or the path of one.
Weights = Mapping[Any, float] | Sequence[float] | NDArray[np.float64] | NDArray[np.int64] | str | os.PathLike[str] | Any
#: Whole-number keys in their order, and their weights.
Side = tuple[NDArray[np.int64], NDArray[np.float64]]


class Table(Estimator):
    """Arrival probabilities (or counts) per key of each stream, as das2003's experiments use.

    Parameters
    ----------
    left, right
        A dict from key to number, or an array with the key as index. Missing keys have the weight 0. For joins on Spark keys
        are values of any type (a tuple for several key columns). You can also pass a DataFrame or its path, with the key columns
        and a column `probability`.
    more
        The same for the third stream of an n-way join and later ones.

    Examples
    --------
    >>> Table({7: 0.5, 3: 0.25}, [0.1, 0.9])
    Table(2 keys, 2 keys)
    """

    name: ClassVar[str] = "table"
    code: ClassVar[int] = TABLE
    __slots__ = ("_sides",)

    def __init__(self, left: Weights, right: Weights, more: Sequence[Weights] = ()) -> None:
        others = tuple(_side(f"more[{number}]", weights) for number, weights in enumerate(more))
        self._sides = (_side("left", left), _side("right", right), *others)

    @property
    def left(self) -> Any:
        return self.side(0)

    @property
    def right(self) -> Any:
        return self.side(1)

    @property
    def more(self) -> list[Any]:
        return [self.side(stream) for stream in range(2, self.streams)]

    def side(self, stream: int) -> Any:
        """Weights by key, or the DataFrame or path that has them."""
        side = self._sides[stream]
        return dict(zip(side[0].tolist(), side[1].tolist(), strict=True)) if isinstance(side, tuple) else side

    @property
    def streams(self) -> int:
        """How many streams this is for."""
        return len(self._sides)

    def table(self, stream: int) -> Side:
        side = self._sides[stream]
        if not isinstance(side, tuple):
            raise SpecError(
                f"Table.{_name(stream)} must have whole-number keys here, not {_words(side)}: joins on Spark translate others"
            )
        return side

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Any, ...]:
        return tuple(
            tuple(part.tobytes() for part in side)
            if isinstance(side, tuple)
            else frozenset(side.items())
            if isinstance(side, dict)
            else side
            for side in self._sides
        )

    def __repr__(self) -> str:
        return f"Table({', '.join(map(_words, self._sides))})"


def _name(stream: int) -> str:
    return ("left", "right")[stream] if stream < 2 else f"more[{stream - 2}]"


def _words(side: Any) -> str:
    if isinstance(side, tuple):
        return f"{side[0].size} keys"
    if isinstance(side, dict):
        return f"{len(side)} keys such as {next(iter(side))!r}"
    return repr(side) if isinstance(side, str) else "a DataFrame"


def _side(name: str, weights: Weights) -> Any:
    """Keys and weights of a stream; what only Spark can read stays as it is."""
    if isinstance(weights, str | os.PathLike) or type(weights).__module__.startswith("pyspark."):
        return os.fspath(weights) if isinstance(weights, os.PathLike) else weights
    try:
        if hasattr(weights, "to_dict"):  # a pandas Series: its index is the keys
            weights = weights.to_dict()
        given = list(weights.values()) if isinstance(weights, Mapping) else weights
        values = np.array(given, dtype=np.float64)
        whole = not isinstance(weights, Mapping) or all(isinstance(key, int | np.integer) for key in weights)
        keys = (
            np.array(list(weights) if isinstance(weights, Mapping) else range(len(weights)), np.int64)
            if whole
            else None
        )
    except (TypeError, ValueError, OverflowError) as reason:
        raise SpecError(f"Table.{name} must map keys to numbers: {reason}") from None
    if values.ndim != 1:
        raise SpecError(f"Table.{name} must be one-dimensional, not of shape {values.shape}")
    check_weights(f"Table.{name}", values)
    if keys is None:
        return dict(zip(weights, values.tolist(), strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def check_weights(name: str, values: NDArray[np.float64]) -> None:
    """Refuse what is no weight."""
    fits = (values >= 0) & (values <= HEAVIEST)
    if not fits.all():
        raise SpecError(f"{name} must hold numbers from 0 to {HEAVIEST:g}, not {values[~fits][0]}")
