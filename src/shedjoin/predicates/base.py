"""What every predicate is: a frozen description that boils down to a code, a bound, and where the values are."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from shedjoin.batch import Batch, Checked, TableLike
from shedjoin.errors import SpecError
from shedjoin.predicates import rows

#: What a predicate looks at: one number, one value of any kind, a set, or a set with weights.
KINDS = ("number", "value", "set", "weighted")


class Predicate(ABC):
    """A join condition on one column of each stream.

    `column` is the name of the column, or a pair if it has different names in the two streams. A row without a value (null)
    joins nothing.
    """

    __slots__ = ()

    name: ClassVar[str]
    kind: ClassVar[str]
    #: Whether time-ordered lists help: otherwise the window is scanned.
    indexable: ClassVar[bool] = True
    column: str | tuple[str, str]

    def __post_init__(self) -> None:
        check_column(self)

    @property
    @abstractmethod
    def code(self) -> int:
        """What kernels know it by."""

    @property
    def bound(self) -> float:
        return 0.0

    def interleaved(
        self,
        tables: Mapping[str, TableLike],
        names: Sequence[str],
        start: Sequence[int],
        *,
        kinds: bool = False,
        checked: Sequence[Checked] | None = None,
    ) -> Batch:
        """One table a stream, as rows in the order in which they arrive.

        `kinds`: also the types of rows. `checked`: also what a condition looks at.
        """
        return rows.interleaved(self, tables, names, start, kinds, checked)

    def in_order(self, table: TableLike, *, kinds: bool = False, checked: Sequence[Checked] | None = None) -> Batch:
        """Rows of one table with a column `stream`, in the order given."""
        return rows.in_order(self, table, kinds, checked)

    @property
    def columns(self) -> tuple[str, str]:
        """The column of each stream."""
        return (self.column, self.column) if isinstance(self.column, str) else self.column


def check_column(predicate: Predicate) -> None:
    """Refuse invalid column names. A list, as job files have it, becomes a pair."""
    column: Any = predicate.column
    if isinstance(column, list):
        column = tuple(column)
        object.__setattr__(predicate, "column", column)
    names = column if isinstance(column, tuple) else (column, column)
    if len(names) != 2 or not all(isinstance(name, str) and name for name in names):
        raise SpecError(
            f"{type(predicate).__name__}.column must be the name of a column, or a pair of names, not {column!r}"
        )


def check_bound(predicate: Predicate, field: str, *, least: float = -math.inf, above: float = -math.inf) -> None:
    """Hold a numeric parameter to what makes sense."""
    value = getattr(predicate, field)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not fits or value < least or value <= above:
        limits = [f"of at least {least:g}"] * math.isfinite(least) + [f"above {above:g}"] * math.isfinite(above)
        raise SpecError(
            f"{type(predicate).__name__}.{field} must be a finite number {' '.join(limits)}".rstrip()
            + f", not {value!r}"
        )
    object.__setattr__(predicate, field, float(value))
