"""Predicates on numbers: within a band, or by comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine import codes
from shedjoin.errors import SpecError
from shedjoin.predicates.base import Predicate, check_bound, check_column

OPERATORS = {
    "<": codes.LESS,
    "<=": codes.LESS_EQUAL,
    ">": codes.GREATER,
    ">=": codes.GREATER_EQUAL,
    "!=": codes.NOT_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Band(Predicate):
    """Numbers that differ by at most `within`.

    The index has a time-ordered list for each bucket of that width, so a probe searches three lists.

    Examples
    --------
    >>> Band("price", within=0.5).columns
    ('price', 'price')
    """

    column: str | tuple[str, str]
    within: float
    name: ClassVar[str] = "band"
    kind: ClassVar[str] = "number"
    code: ClassVar[int] = codes.BAND

    def __post_init__(self) -> None:
        check_column(self)
        check_bound(self, "within", least=0.0)

    @property
    def bound(self) -> float:
        return self.within


@dataclass(frozen=True, slots=True)
class Theta(Predicate):
    """The left number compared with the right one: ``left <operator> right + offset``. The window is scanned.

    Examples
    --------
    >>> Theta(("bid", "ask"), ">=").operator
    '>='
    """

    column: str | tuple[str, str]
    operator: str
    offset: float = 0.0
    name: ClassVar[str] = "theta"
    kind: ClassVar[str] = "number"
    indexable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_column(self)
        if self.operator not in OPERATORS:
            hint = "; for = take Equal" if self.operator in ("=", "==") else ""
            raise SpecError(f"Theta.operator must be one of {' '.join(OPERATORS)}, not {self.operator!r}{hint}")
        check_bound(self, "offset")

    @property
    def code(self) -> int:
        return OPERATORS[self.operator]

    @property
    def bound(self) -> float:
        return self.offset
