"""Numbers of rows, and their means and spreads."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shedjoin.errors import DataError

#: Values by the names of their columns.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of some values and their spread: the standard deviation over seeds (0 for a single value)."""

    value: float
    spread: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """Mean and spread of one value or more.

        Examples
        --------
        >>> Mean.of([1.0, 3.0])
        Mean(value=2.0, spread=1.4142135623730951, count=2)
        """
        numbers = list(values)
        if not numbers:
            raise ValueError("the mean of no values is not defined")
        value = math.fsum(numbers) / len(numbers)
        squares = math.fsum((number - value) ** 2 for number in numbers)
        return cls(value, math.sqrt(squares / (len(numbers) - 1)) if len(numbers) > 1 else 0.0, len(numbers))

    def __format__(self, spec: str) -> str:
        """The value with its spread, each in this format; the spread without a sign."""
        spec = spec or ".3f"
        value = format(self.value, spec)
        return f"{value} ± {format(self.spread, spec.lstrip('+'))}" if self.count > 1 else value

    def __str__(self) -> str:
        return format(self)

    def times(self, factor: float) -> Mean:
        """The same in another unit."""
        return Mean(self.value * factor, self.spread * abs(factor), self.count)

    def percent(self) -> str:
        """The same in per cent."""
        return f"{self.times(100):.1f}%"


def where(rows: Iterable[Row], /, **equal: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in equal.items())]


def number(row: Row, column: str) -> float:
    """The number in a column of a row."""
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"a row has no number in {column!r} but {value!r}")
    return float(value)
