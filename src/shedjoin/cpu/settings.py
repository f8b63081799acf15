"""Settings for joins with a slow CPU: frozen descriptions, validated when created."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shedjoin.cpu.dual_speed import partners
from shedjoin.errors import SpecError
from shedjoin.estimators import Table

DROPS = ("random", "semantic")


def check_whole(owner: str, name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number, or out of bounds."""
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
        Rate adaptation (Algorithm 1): every `period` r follows the share of rows that a `VirtualCpu` could process. False,
        or without such a CPU: r stays at `fraction`, or a deadline sets it.
    correlation
        Time-correlation adaptation (Algorithms 2, 3): basic windows are ranked by the partners that a sample of rows found in
        them. False: the newest come first.
    direction
        Join-direction adaptation (Algorithm 4): the more profitable window is shed last.
    types
        Utility-based shedding (Algorithm 5), with this many types of rows (column `kind`, 0 to types - 1). Their utility is the
        column `importance`; that of a result is computed by the join's `importance`. 0: off. It replaces the direction
        adaptation.
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
                "Selective.sample must be above 0 to learn where partners are; or switch off correlation, direction and types"
            )


@dataclass(frozen=True, slots=True)
class VirtualCpu:
    """A CPU of a stated speed, so that experiments give the same figures on any machine.

    Parameters
    ----------
    capacity
        Units of work for each unit of `ts`.
    probe, comparison, lookup, update
        The cost in units of each probe, each compared tuple (or list entry), each list lookup, and each row that enters and
        expires.

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
    """A real clock: every push should end within this many seconds. r is adapted while the push runs.

    The results depend on the speed of the machine: use it in production, not for experiments.
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
        ``"random"``, or ``"semantic"``: the row with the lowest importance times its stored partners (with dual windows: the
        partners that the windows will hold). A `Table`: importance times the table's weights of the other streams.
    integrated
        Waiting rows and stored tuples compete by one priority, within the join's budget: the lowest is removed.
    """

    tuples: int | None = None
    span: int | None = None
    drop: str | Table = "random"
    integrated: bool = False

    def __post_init__(self) -> None:
        _flag("Queue", "integrated", self.integrated)
        if (self.tuples is not None) + (self.span is not None) + self.integrated != 1:
            raise SpecError("Queue needs exactly one of tuples, span and integrated=True: what bounds it")
        for name in ("tuples", "span"):
            if getattr(self, name) is not None:
                check_whole("Queue", name, getattr(self, name), 1)
        if not isinstance(self.drop, Table) and self.drop not in DROPS:
            raise SpecError(f"Queue.drop must be one of {', '.join(DROPS)}, or a Table, not {self.drop!r}")
        if self.integrated and self.drop != "semantic":
            raise SpecError(
                "Queue.drop must be 'semantic' for an integrated queue: a random choice has no priority for tuples"
            )


@dataclass(frozen=True, slots=True)
class Dual:
    """Dual windows (dual2006): rows wait in an aux-window, as long as the windows, before they probe.

    Histograms of the future contents of the windows predict how many partners a row will find. So rows with few partners need
    not probe (rear shedding), and beyond the best speed rows are dropped before they enter (front shedding).

    Parameters
    ----------
    rear
        The share k_r of rows that are stored without a probe: those with the fewest partners. True: computed from the speeds.
        False: all rows probe.
    front
        The share k_f of rows that are dropped at random when they arrive. True: computed from the speeds, for two streams on a
        key. False: none.
    period
        How often speeds are measured, in the unit of `ts`. Without a `VirtualCpu` shares do not change.
    distribution
        How likely each value is in each of two streams, for the best speed. None: learned from the histograms.

    Notes
    -----
    A row window holds the last rows that were released: front shedding makes the streams thinner. Results are found when a row
    leaves the aux-window, one window after its arrival; `Engine.flush` releases all rows.

    Examples
    --------
    >>> Dual(rear=0.3, front=False)
    Dual(rear=0.3, front=False, period=100, distribution=None)
    """

    rear: bool | float = True
    front: bool | float = True
    period: int = 100
    distribution: tuple[Sequence[float], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        for name in ("rear", "front"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (isinstance(value, int | float) and 0.0 <= value <= 1.0):
                raise SpecError(f"Dual.{name} must be True, False or a share from 0 to 1, not {value!r}")
        check_whole("Dual", "period", self.period, 1)
        if self.distribution is not None:
            try:
                left, right = (tuple(float(chance) for chance in one) for one in self.distribution)
            except (TypeError, ValueError):
                raise SpecError(
                    f"Dual.distribution must give the probabilities of the same values in both streams, not {self.distribution!r}"
                ) from None
            partners(left, right, 1)
            object.__setattr__(self, "distribution", (left, right))

    @property
    def follows(self) -> bool:
        """Whether a share follows the speeds."""
        return self.rear is True or self.front is True
