"""What limits the CPU of a join, and how it copes: frozen descriptions, validated when made."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from shedjoin.errors import SpecError

DROPS = ("random", "semantic")


def check_whole(owner: str, name: str, value: Any, least: int) -> None:
    """A clear word when a setting is no whole number, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**50:
        raise SpecError(f"{owner}.{name} must be a whole number of at least {least} (below 2**50), not {value!r}")


def _number(
    owner: str, name: str, value: Any, *, least: float = 0.0, most: float = math.inf, above: bool = False
) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not fits or not least <= value <= most or (above and value == least):
        limit = f"above {least:g}" if above else f"of at least {least:g}"
        limit += f" and at most {most:g}" if math.isfinite(most) else ""
        raise SpecError(f"{owner}.{name} must be a number {limit}, not {value!r}")


def _flag(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise SpecError(f"{owner}.{name} must be True or False, not {value!r}")


@dataclass(frozen=True, slots=True)
class Selective:
    """Compare rows with the most profitable part of the opposite window (gedik2007), each adaptation switchable.

    Parameters
    ----------
    basic
        Length of a basic window, in the unit of `ts`.
    rate
        Rate adaptation (Algorithm 1): every `period` r follows the share of rows that could be processed. False: r stays
        at `fraction`.
    correlation
        Time-correlation adaptation (Algorithms 2, 3): basic windows are ranked by the partners that a sample of rows found in
        them. False: the newest come first.
    direction
        Join-direction adaptation (Algorithm 4): the window that brings more is shed last.
    types
        Utility-based shedding (Algorithm 5), with so many types of rows (column `kind`, 0 to types - 1; their utility is the
        column `importance`, the output's follows the join's `importance`). 0: off. It replaces the direction adaptation.
    period, rank_period
        T_r and T_c, in the unit of `ts`.
    boost, sample
        The fraction boost factor and the sampling probability gamma.
    fraction
        r at the beginning.

    Examples
    --------
    >>> Selective(basic=1000).sample
    0.1
    """

    basic: int
    rate: bool = True
    correlation: bool = True
    direction: bool = True
    types: int = 0
    period: int = 5000
    rank_period: int = 5000
    boost: float = 1.2
    sample: float = 0.1
    fraction: float = 1.0

    def __post_init__(self) -> None:
        for name in ("basic", "period", "rank_period"):
            check_whole("Selective", name, getattr(self, name), 1)
        check_whole("Selective", "types", self.types, 0)
        for name in ("rate", "correlation", "direction"):
            _flag("Selective", name, getattr(self, name))
        _number("Selective", "boost", self.boost, least=1.0, above=True)
        _number("Selective", "sample", self.sample, most=1.0)
        _number("Selective", "fraction", self.fraction, most=1.0, above=True)
        if self.sample == 0.0 and (self.correlation or self.direction or self.types):
            raise SpecError(
                "Selective.sample must be above 0 to learn where partners are: or switch correlation, direction and types off"
            )


@dataclass(frozen=True, slots=True)
class VirtualCpu:
    """A CPU of a stated speed, so that experiments give the same figures on any machine.

    Parameters
    ----------
    capacity
        Units of work for each unit of `ts`.
    probe, comparison, lookup, update
        Units that a probe costs, each tuple (or entry of a list) that it looks at, each list that it looks up, and each row that
        comes in and expires.

    Examples
    --------
    >>> VirtualCpu(capacity=100.0).comparison
    1.0
    """

    capacity: float
    probe: float = 0.0
    comparison: float = 1.0
    lookup: float = 0.0
    update: float = 0.0

    def __post_init__(self) -> None:
        _number("VirtualCpu", "capacity", self.capacity, above=True)
        for name in ("probe", "comparison", "lookup", "update"):
            _number("VirtualCpu", name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Deadline:
    """A real clock: every push is to end within so many seconds, and r is adapted while it runs so that it does.

    What is found depends on how fast the machine is: for production, not for experiments.
    """

    seconds: float

    def __post_init__(self) -> None:
        _number("Deadline", "seconds", self.seconds, above=True)


@dataclass(frozen=True, slots=True)
class Queue:
    """The bounded queue in front of a slow CPU (das2003).

    Parameters
    ----------
    tuples
        How many rows of each stream may wait. Or:
    span
        How long a row may wait before others are dropped: a buffer of that much time.
    drop
        ``"random"``, or ``"semantic"``: the row with the lowest importance times the entries that the index has for its
        items. The queue is modular: it knows these statistics, not the tuples.
    integrated
        One order over rows that wait and tuples that are stored, within the join's budget: whoever is lowest goes.
    """

    tuples: int | None = None
    span: int | None = None
    drop: str = "random"
    integrated: bool = False

    def __post_init__(self) -> None:
        _flag("Queue", "integrated", self.integrated)
        if (self.tuples is not None) + (self.span is not None) + self.integrated != 1:
            raise SpecError("Queue needs exactly one of tuples, span and integrated=True: what bounds it")
        for name in ("tuples", "span"):
            if getattr(self, name) is not None:
                check_whole("Queue", name, getattr(self, name), 1)
        if self.drop not in DROPS:
            raise SpecError(f"Queue.drop must be one of {', '.join(DROPS)}, not {self.drop!r}")
        if self.integrated and self.drop != "semantic":
            raise SpecError(
                "Queue.drop must be 'semantic' for an integrated queue: chance has no order to share with the memory"
            )
