"""What a shard runs, whether the join is of two streams or of more: one face for both engines, their rows and their logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.engine.engine import Engine
from shedjoin.engine.nway.batch import MultiBatch
from shedjoin.engine.nway.engine import MultiEngine
from shedjoin.engine.nway.output import MultiOutput, MultiShedLog
from shedjoin.engine.output import Output, ShedLog
from shedjoin.errors import SnapshotError
from shedjoin.policies import Policy
from shedjoin.recall.estimate import RecallEstimate
from shedjoin.recall.many import MultiRecall
from shedjoin.recall.pairs import LiveRecall
from shedjoin.spark.many import Join
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow

Integers = NDArray[np.int64]
Rows = Batch | MultiBatch
Log = ShedLog | MultiShedLog
Out = Output | MultiOutput


class ManyEngine:
    """A `MultiEngine` that speaks of streams by their places."""

    def __init__(self, engine: MultiEngine) -> None:
        self.engine = engine

    @property
    def budget(self) -> Budget | None:
        return self.engine.budget

    @property
    def counters(self) -> dict[str, int]:
        return self.engine.counters

    @property
    def arrived(self) -> tuple[int, ...]:
        return tuple(self.engine.arrived.values())

    @property
    def residents(self) -> tuple[int, ...]:
        return tuple(self.engine.residents.values())

    @property
    def stored_bytes(self) -> tuple[int, ...]:
        return tuple(self.engine.stored_bytes.values())

    @property
    def clocks(self) -> tuple[int | None, ...]:
        return tuple(self.engine.clocks.values())

    def live(self, stream: int) -> Integers:
        return self.engine.live(self.engine.names[stream])

    def chunks(
        self, batch: MultiBatch, *, limit: int, clocks: Sequence[int | None] | None = None, emit: bool = True
    ) -> Iterator[MultiOutput]:
        told = dict(zip(self.engine.names, clocks or (), strict=False))
        known = {name: clock for name, clock in told.items() if clock is not None}
        return self.engine.chunks(batch, limit=limit, clocks=known or None, emit=emit)

    def set_budget(self, budget: Budget | None) -> MultiOutput:
        return self.engine.set_budget(budget)

    def set_policy(self, policy: Policy) -> None:
        raise SnapshotError("the policy of three and more streams cannot change after the start, nor can its numbers")

    def forget_peaks(self) -> None:
        self.engine.forget_peaks()

    def snapshot(self) -> bytes:
        return self.engine.snapshot()


class AnyEngine(Protocol):
    """What a shard asks of its engine; `Rows`, `Out` and `Log` are those of the join."""

    @property
    def budget(self) -> Budget | None: ...
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def arrived(self) -> tuple[int, ...]: ...
    @property
    def residents(self) -> tuple[int, ...]: ...
    @property
    def stored_bytes(self) -> tuple[int, ...]: ...
    @property
    def clocks(self) -> tuple[int | None, ...]: ...
    def live(self, stream: int) -> Integers: ...
    def chunks(
        self, batch: Any, *, limit: int, clocks: Sequence[int | None] | None = None, emit: bool = True
    ) -> Iterator[Any]: ...
    def set_budget(self, budget: Budget | None) -> Any: ...
    def set_policy(self, policy: Any) -> None: ...
    def forget_peaks(self) -> None: ...
    def snapshot(self) -> bytes: ...


class Recall(Protocol):
    """What a shard asks of the estimate of its recall."""

    def follow(self, batch: Any, out: Any) -> None: ...
    def watch(self, batch: Any, shed: Any, late: int) -> None: ...
    def estimate(self) -> RecallEstimate: ...
    def sums(self) -> dict[str, float]: ...
    def to_bytes(self) -> bytes: ...
    def _load(self, data: bytes) -> None: ...


def recall_of(join: Join, seed: int) -> LiveRecall | MultiRecall | None:
    """A new estimate of a join's recall; None where there is none: of three and more streams with a row window."""
    if isinstance(join, JoinSpec):
        return LiveRecall(join, seed=seed)
    by_time = all(isinstance(window, TimeWindow) for window in join.windows)
    return MultiRecall(join.spec, seed=seed) if by_time else None


def watched(
    live: Recall | None, join: Join, batch: Rows, clocks: Sequence[int | None], pieces: Iterable[Any]
) -> Iterator[Any]:
    """The pieces of a push as they come, with the estimate of recall told of them."""
    if live is None:
        yield from pieces
        return
    if isinstance(live, MultiRecall):
        assert isinstance(batch, MultiBatch)
        live.begin(batch)
    logs: list[Log] = []
    late = 0
    for out in pieces:
        if isinstance(live, MultiRecall):
            live.deliver(out)
        elif isinstance(live, LiveRecall):
            live.deliver(out.importance)
        if len(out.shed):
            logs.append(out.shed)
        late += out.stats["late"]
        yield out
    if isinstance(live, MultiRecall):
        live.set_clocks(clocks)
    live.watch(batch, one_log(join, logs), late)


def bare(engine: AnyEngine) -> Engine | MultiEngine:
    """The engine itself."""
    if isinstance(engine, ManyEngine):
        return engine.engine
    assert isinstance(engine, Engine)
    return engine


def rows_of(
    join: Join,
    stream: Integers,
    key: Integers,
    null: NDArray[np.bool_],
    ts: Integers,
    importance: NDArray[np.float64],
    size: Integers,
) -> Rows:
    """Columns as the engine of a join takes them; rows are in order."""
    if isinstance(join, JoinSpec):
        return Batch(stream, key, null, ts, importance, size)
    return MultiBatch(stream, ts, null, importance, size, np.ascontiguousarray(key).reshape(-1, 1))


def no_rows(join: Join) -> Rows:
    nothing = np.empty(0, np.int64)
    return rows_of(join, nothing, nothing, np.empty(0, np.bool_), nothing, np.empty(0), nothing)


def keys_of(batch: Rows) -> Integers:
    """The keys of rows."""
    return batch.key if isinstance(batch, Batch) else batch.attr[:, 0]


def log_of(join: Join, records: Iterable[NDArray[np.void]] = ()) -> Log:
    """Shed records as one log."""
    return ShedLog(records) if isinstance(join, JoinSpec) else MultiShedLog(join.names, records)


def one_log(join: Join, logs: Sequence[Log]) -> Log:
    """Logs of the pieces of a push as one. Most pushes have one: who reads that twice has it put together once."""
    return logs[0] if len(logs) == 1 else log_of(join, (piece for log in logs for piece in log._pieces.parts))


def numbers_of(out: Out) -> tuple[Integers, ...]:
    """Results by the row numbers of their tuples, one array a stream."""
    if isinstance(out, Output):
        return out.left, out.right
    return tuple(np.ascontiguousarray(out.rows.T))
