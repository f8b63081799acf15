"""Joins under the names of their papers: each returns a `JoinSpec` with some settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shedjoin.budget import Budget
from shedjoin.cpu.admission import speed_of
from shedjoin.cpu.dual_speed import Probabilities, Speed
from shedjoin.cpu.settings import Deadline, Dual, Queue, Selective, VirtualCpu
from shedjoin.errors import SpecError
from shedjoin.estimators import Table
from shedjoin.policies import Policy
from shedjoin.predicates import Predicate
from shedjoin.spec import JoinSpec
from shedjoin.window import Window

#: How the opposite window is searched: what users say, and what `JoinSpec` calls it.
_INDEXES = {None: "auto", "lists": "auto", "scan": "scan"}


def PredicateJoin(  # noqa: N802
    window: Window | tuple[Window, Window],
    predicate: Predicate,
    index: str | None = None,
    selective: Selective | None = None,
    cpu: VirtualCpu | Deadline | None = None,
    queue: Queue | None = None,
    budget: Budget | None = None,
    policy: Policy | None = None,
    importance: str = "min",
    lateness: int = 0,
    max_skew: int | None = None,
) -> JoinSpec:
    """A join of two streams on a predicate, as gedik2007 has it: `JoinSpec(window, on=predicate, ...)`.

    Parameters
    ----------
    index
        ``"lists"`` (time-ordered lists of items, values or buckets), ``"scan"``, or None: lists where they help.

    Examples
    --------
    >>> from shedjoin.predicates import Overlap
    >>> from shedjoin.window import TimeWindow
    >>> join = PredicateJoin(TimeWindow(10), Overlap("words", at_least=2))
    >>> out = join.build().push(left={"words": [[1, 2, 3], [4]]}, right={"words": [[2, 3], [1, 4]]})
    >>> out.left, out.right
    (array([0]), array([0]))
    """
    if not isinstance(predicate, Predicate):
        raise SpecError(f"predicate must be a predicate such as Overlap(...), not {predicate!r}")
    if index not in _INDEXES:
        raise SpecError(f"index must be 'lists', 'scan' or None, not {index!r}")
    if index == "lists" and not predicate.indexable:
        raise SpecError(f"index must be 'scan' or None: lists cannot serve {type(predicate).__name__}")
    return JoinSpec(
        window,
        budget,
        policy,
        importance=importance,
        lateness=lateness,
        max_skew=max_skew,
        on=predicate,
        index=_INDEXES[index],
        selective=selective,
        cpu=cpu,
        queue=queue,
    )


def MultiJoinSpec(windows: Mapping[str, Window], on: str | tuple[str, ...], **settings: Any) -> JoinSpec:  # noqa: N802
    """A join of the streams that `windows` names, in their order: `JoinSpec(window=windows, on=on, ...)`."""
    if not isinstance(windows, Mapping):
        raise SpecError(f"MultiJoinSpec.windows must map 2 to 16 streams to their windows, not {windows!r}")
    return JoinSpec(window=windows, on=on, **settings)


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
    cpu
        Costs of a probe and of an update. The paper counts no comparisons: give `comparison=0.0`.
    queue, drop
        How many rows of each stream may wait, and which row a full queue drops: see `Queue`.
    rear, front, period, distribution
        See `Dual`.

    Examples
    --------
    >>> from shedjoin.window import RowWindow
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
