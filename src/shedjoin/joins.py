"""Joins under the names of their papers: each is a `JoinSpec` with some of its dials set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shedjoin.cpu.admission import speed_of
from shedjoin.cpu.dual_speed import Probabilities, Speed
from shedjoin.cpu.settings import Dual, Queue, VirtualCpu
from shedjoin.errors import SpecError
from shedjoin.estimators import Table
from shedjoin.spec import JoinSpec
from shedjoin.window import Window


def DualJoin(  # noqa: N802
    window: Window | tuple[Window, Window],
    cpu: VirtualCpu | None = None,
    rear: bool | float = True,
    front: bool | float = True,
    queue: int | None = None,
    drop: str | Table = "random",
    distribution: Probabilities | None = None,
    period: int = 100,
    importance: str = "min",
) -> JoinSpec:
    """An equi-join of two streams on a slow CPU that looks ahead before it probes (dual2006).

    Parameters
    ----------
    queue, drop
        How many rows of each stream may wait, and which goes from a full queue: see `Queue`.
    rear, front, period, distribution
        See `Dual`.

    Examples
    --------
    >>> DualJoin(RowWindow(4), rear=0.5, front=False) == JoinSpec(RowWindow(4), dual=Dual(rear=0.5, front=False))
    True
    """
    line = None if queue is None else Queue(tuples=queue, drop=drop)
    dual = Dual(rear, front, period, distribution)
    return JoinSpec(window, importance=importance, cpu=cpu, queue=line, dual=dual)


def best_speed(spec: JoinSpec, distribution: Probabilities, rates: Sequence[float] = (1.0, 1.0)) -> Speed:
    """V_opt of a join with dual windows, for streams of these values and rates.

    `rates` are rows of each stream in a time unit; for row windows only their ratio counts.
    """
    if not isinstance(spec, JoinSpec) or not isinstance(spec.cpu, VirtualCpu) or len(spec.names) != 2:
        raise SpecError(f"best_speed is for joins of two streams with cpu=VirtualCpu(...), not for {spec!r}")
    if not (spec.cpu.probe > 0.0 and spec.cpu.update > 0.0):
        raise SpecError("best_speed needs costs of a probe and of an update above 0 in VirtualCpu")
    return speed_of(spec.windows, spec.cpu, _pair("distribution", distribution), _pair("rates", rates))


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    """What is told of both streams."""
    try:
        left, right = value
    except (TypeError, ValueError):
        raise SpecError(f"{name} must have one part for each of two streams, not {value!r}") from None
    return left, right
