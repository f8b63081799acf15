"""The best schedule of all: OPT and OPTV (das2003 3.2), and ESJA (importance2006 4.2.3), by flows of least cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from shedjoin.batch import Batch, TableLike
from shedjoin.engine.records import NEVER
from shedjoin.errors import InputError, ShedjoinError, SpecError
from shedjoin.offline.interrupt import Interrupts
from shedjoin.offline.network import network_of
from shedjoin.offline.paths import Paths, by_key, by_tuple, merge, side_by_side, together
from shedjoin.offline.schedule import last_instants, replay
from shedjoin.offline.solver import Progress, solve
from shedjoin.offline.timeline import Floats, Ints, Stops, Timeline, squeeze, stops_of, timeline_of
from shedjoin.offline.worth import OBJECTIVES, Worth
from shedjoin.policies import Replay
from shedjoin.simulation import Run, simulate
from shedjoin.spec import JoinSpec, check_inner, check_pair, check_unconditional, check_whole_windows

GRAPHS = ("auto", "key", "tuple")
#: Importances are rounded so that sums over a whole flow stay below this.
LARGEST = 2**60


@dataclass(frozen=True, slots=True)
class Optimum(Run):
    """The best possible run, by a schedule with knowledge of the future. It has all fields of `Run`, and more.

    Attributes
    ----------
    objective
        What was made as large as possible: ``"matches"`` or ``"importance"``.
    value, bound
        The objective of this run, and what no schedule can exceed. Equal (but for the rounding of importances) unless
        a gap was
        allowed or the work interrupted.
    complete
        Whether the work was finished: False after Ctrl-C.
    solving
        Seconds spent on the schedule.
    """

    objective: str
    value: float
    bound: float
    complete: bool
    solving: float

    @property
    def schedule(self) -> Replay:
        """Until when each row is kept, as a policy."""
        assert isinstance(self.spec.policy, Replay)
        return self.spec.policy

    @property
    def gap(self) -> float:
        """How far the value may be from the best, as a share of the bound."""
        return (self.bound - self.value) / self.bound if self.bound else 0.0


def optimum(
    spec: JoinSpec,
    left: TableLike,
    right: TableLike,
    *,
    warmup: int | None = None,
    objective: str = "matches",
    graph: str = "auto",
    within: float = 0.0,
    progress: Progress | None = None,
) -> Optimum:
    """The best possible result for two whole streams, and its schedule.

    Parameters
    ----------
    spec
        The join. Its policy does not matter; it needs a budget in tuples, or in bytes with rows of one size.
    left, right, warmup
        As for `simulate`. Each stream must be in the order of its `ts`.
    objective
        ``"matches"``: the most results (OPT with fixed shares, OPTV with variable ones). ``"importance"``: the
        largest summed importance
        (ESJA), where an output's importance follows from its inputs' as the spec says.
    graph
        ``"key"``: the compact graph, one path a key, for results that all weigh the same; ``"tuple"``: one path a
        tuple; ``"auto"``: the compact one
        where it applies.
    within
        A gap that will do, as a share of the bound. 0: the optimum, proved.
    progress
        Called with (stage, done, total) as the work goes on.

    Ctrl-C ends the work early: what has been found so far is returned, with its bound and `complete` False.

    Examples
    --------
    The example of das2003, Figure 2: all but two of seven results.

    >>> from shedjoin.budget import Budget
    >>> from shedjoin.window import TimeWindow
    >>> spec = JoinSpec(window=TimeWindow(3), budget=Budget(tuples=2, allocation="fixed"))
    >>> best = optimum(spec, {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]})
    >>> best.matches, best.bound
    (5, 5)
    """
    check_spec(spec, objective)
    if graph not in GRAPHS:
        raise SpecError(f"graph must be one of {', '.join(GRAPHS)}, not {graph!r}")
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < 1:
        raise SpecError(f"within must be a share of the bound, from 0 to below 1, not {within!r}")
    begin = time.perf_counter()
    batch = Batch.of(left, right)
    timeline = timeline_of(batch, spec.windows, NEVER if warmup is None else int(warmup))
    worth, unit = worth_of(spec, batch, objective)
    if graph == "key" and not worth.counts:
        raise SpecError("graph='key' is for results that all weigh the same: these do not, use graph='tuple'")
    if graph == "key" and not timeline.at_once:
        raise SpecError(
            "graph='key' is for intervals that hold 0: of two rows of a key the newer one is else not always better"
        )
    by = graph if graph != "auto" else graph_of(timeline, worth)
    value = bound = together(timeline, worth)
    until = [side.tick.copy() for side in timeline.sides]
    complete = True
    with Interrupts() as interrupts:
        for streams, memory in groups_of(spec, batch):
            paths = paths_of(timeline, streams, memory, worth, by)
            part = best_of(paths, memory, worth, within, progress, interrupts.check)
            value, bound, complete = value + part.value, bound + part.bound, complete and part.complete
            for stream in streams:
                until[stream] = part.until[stream]
    solving = time.perf_counter() - begin
    run = simulate(replace(spec, policy=replay(timeline, (until[0], until[1]))), left, right, warmup=warmup)
    reached: float = run.matches if objective == "matches" else run.importance
    return proved(run, reached, objective, value * unit, max(bound, value) * unit, complete, solving)


def proved(
    run: Run, reached: float, objective: str, value: float, bound: float, complete: bool, solving: float
) -> Optimum:
    """The run of a schedule that should give `value`, if it does."""
    if reached != value and not math.isclose(reached, value, rel_tol=1e-9, abs_tol=1e-9):
        raise ShedjoinError(
            f"the schedule should give {value}, but its replay gave {reached}: this is a fault in shedjoin"
        )
    same = {field.name: getattr(run, field.name) for field in fields(Run)}
    return Optimum(**same, objective=objective, value=value, bound=bound, complete=complete, solving=solving)


def graph_of(timeline: Timeline, worth: Worth) -> str:
    """The smallest graph that has the optimum."""
    return "key" if worth.counts and timeline.at_once else "tuple"


def check_spec(spec: JoinSpec, objective: str) -> None:
    """Reject joins and objectives without an optimum."""
    check_pair("an optimum", spec)
    check_whole_windows("an optimum", spec)
    check_unconditional("an optimum", spec)
    check_inner("an optimum", spec)
    if spec.budget is None:
        raise SpecError("spec needs a budget: without one the exact join is the optimum, and simulate gives it")
    if objective not in OBJECTIVES:
        raise SpecError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")


def worth_of(spec: JoinSpec, batch: Batch, objective: str) -> tuple[Worth, float]:
    """What results are worth, and the worth of one where all are worth the same."""
    if objective == "matches":
        return Worth(counts=True), 1
    worth = Worth(counts=False, function=spec.importance)
    if len(batch) and (batch.importance == batch.importance[0]).all():
        return Worth(counts=True), float(worth.of(batch.importance[:1], batch.importance[:1])[0])
    return worth, 1


def groups_of(spec: JoinSpec, batch: Batch) -> list[tuple[tuple[int, ...], int]]:
    """The streams that share a memory, and how many tuples it holds."""
    assert spec.budget is not None
    caps = spec.budget.caps(2)
    if spec.budget.unit == "bytes" and len(batch):
        size = int(batch.bytes[0])
        if (batch.bytes != size).any():
            raise InputError(
                f"an offline optimum within a budget of bytes needs rows of one size, but 'bytes' runs from {batch.bytes.min()} "
                f"to {batch.bytes.max()}: give the budget in tuples"
            )
        caps = tuple(cap // size for cap in caps)
    return [((0, 1), caps[0])] if len(caps) == 1 else [((stream,), cap) for stream, cap in enumerate(caps)]


@dataclass(frozen=True, slots=True)
class Part:
    """The best of one memory. `paid`: by the prices of its flow, what a unit of memory costs up to each squeezed instant."""

    value: float
    bound: float
    complete: bool
    until: tuple[Ints, Ints]
    paid: Floats


def best_of(
    paths: Paths,
    memory: int,
    worth: Worth,
    within: float,
    progress: Progress | None,
    check: Callable[[], None],
) -> Part:
    """The best of some paths that share a memory, and the schedule that gets it."""
    if not paths.stop_path.size:
        return Part(paths.free, paths.free, True, paths.free_until, np.zeros(1))
    gain, scale = _whole(paths, memory)
    network = network_of(paths, gain, memory)
    tick = paths.stop_tick - paths.row_tick[np.searchsorted(paths.row_first, np.arange(gain.size), side="right") - 1]
    flow = solve(network, int(tick.max()) + 1, progress, within, check)
    held = flow.flow[network.stop_arc]
    value = (held * paths.stop_gain).sum().item()
    if flow.complete and not within and flow.value != flow.bound:
        raise ShedjoinError(
            f"the flow gains {flow.value} where its prices prove {flow.bound}: this is a fault in shedjoin"
        )
    # Rounded gains may be off by half a unit at every stop that somebody is held up to.
    slack = 0.0 if worth.counts else 0.5 / scale * float(np.minimum(paths.stop_room, memory).sum())
    exact = bool(np.array_equal(gain / scale, paths.stop_gain))
    bound = value if exact and flow.value == flow.bound else flow.bound / scale + (0 if exact else slack)
    paid = network.paid(flow.potential) / scale
    return Part(paths.free + value, paths.free + bound, flow.complete, last_instants(paths, held), paid)


def paths_of(
    timeline: Timeline,
    streams: tuple[int, ...],
    memory: int,
    worth: Worth,
    by: str,
    stops: Mapping[int, Stops] | None = None,
) -> Paths:
    """What the streams that share a memory may keep, reduced to what matters. `stops`: where they are known already."""
    stops = {stream: stops[stream] if stops else stops_of(timeline, stream) for stream in streams}
    number = squeeze(timeline, list(stops.items()), memory)
    parts = [
        by_key(timeline, stream, on, number) if by == "key" else by_tuple(timeline, stream, on, number, worth)
        for stream, on in stops.items()
    ]
    return merge(side_by_side(parts))


def _whole(paths: Paths, memory: int) -> tuple[Ints, float]:
    """Gains as whole numbers, and what one is worth."""
    if paths.stop_gain.dtype.kind == "i":
        return paths.stop_gain, 1.0
    highest = np.zeros(int(paths.stop_tick.max()) + 1)
    np.maximum.at(highest, paths.stop_tick, paths.stop_gain)
    scale = 2.0 ** math.floor(math.log2(LARGEST / memory / float(highest.sum())))
    return np.rint(paths.stop_gain * scale).astype(np.int64), scale
