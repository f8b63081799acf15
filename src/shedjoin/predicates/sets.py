"""Predicates on sets of items; a single value counts as a set of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine import codes
from shedjoin.errors import SpecError
from shedjoin.predicates.base import Predicate, check_bound, check_column


@dataclass(frozen=True, slots=True)
class Equal(Predicate):
    """Equal single values (whole numbers or text). The inverted index is then a hash index.

    Examples
    --------
    >>> Equal(("callee", "trader")).columns
    ('callee', 'trader')
    """

    column: str | tuple[str, str]
    name: ClassVar[str] = "equal"
    kind: ClassVar[str] = "value"
    code: ClassVar[int] = codes.SAME


@dataclass(frozen=True, slots=True)
class SameSet(Predicate):
    """Equal sets. Two empty sets are equal."""

    column: str | tuple[str, str]
    name: ClassVar[str] = "same_set"
    kind: ClassVar[str] = "set"
    code: ClassVar[int] = codes.SAME


@dataclass(frozen=True, slots=True)
class Subset(Predicate):
    """Every item of the left set is in the right one. The empty set is a subset of all."""

    column: str | tuple[str, str]
    name: ClassVar[str] = "subset"
    kind: ClassVar[str] = "set"
    code: ClassVar[int] = codes.SUBSET


@dataclass(frozen=True, slots=True)
class Superset(Predicate):
    """Every item of the right set is in the left one."""

    column: str | tuple[str, str]
    name: ClassVar[str] = "superset"
    kind: ClassVar[str] = "set"
    code: ClassVar[int] = codes.SUPERSET


@dataclass(frozen=True, slots=True)
class Overlap(Predicate):
    """Sets with at least `at_least` items in common.

    Examples
    --------
    >>> Overlap("keywords", at_least=3)
    Overlap(column='keywords', at_least=3)
    """

    column: str | tuple[str, str]
    at_least: int = 1
    name: ClassVar[str] = "overlap"
    kind: ClassVar[str] = "set"
    code: ClassVar[int] = codes.OVERLAP

    def __post_init__(self) -> None:
        check_column(self)
        if isinstance(self.at_least, bool) or not isinstance(self.at_least, int) or not 1 <= self.at_least < 2**15:
            raise SpecError(f"Overlap.at_least must be a whole number from 1 to {2**15 - 1}, not {self.at_least!r}")

    @property
    def bound(self) -> float:
        return float(self.at_least)


@dataclass(frozen=True, slots=True)
class InnerProduct(Predicate):
    """Weighted sets whose inner product (the weights of common items multiplied and summed) is large enough.

    The products are summed in the order of the items' numbers, by every index, so that all agree to the last bit.

    Examples
    --------
    >>> InnerProduct("tf_idf", at_least=0.8).bound
    0.8
    """

    column: str | tuple[str, str]
    at_least: float
    name: ClassVar[str] = "inner_product"
    kind: ClassVar[str] = "weighted"
    code: ClassVar[int] = codes.INNER

    def __post_init__(self) -> None:
        check_column(self)
        check_bound(self, "at_least", above=0.0)

    @property
    def bound(self) -> float:
        return self.at_least
