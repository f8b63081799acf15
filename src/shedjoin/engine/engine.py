"""Engine: pushes batches through the loop and keeps what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, Table
from shedjoin.budget import Budget
from shedjoin.engine import audit, loop, memory, snapshot
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.plan import Plan
from shedjoin.engine.state import COUNTERS, IO_RECORD, NEVER, ROW_ARRAYS, SHED_RECORD
from shedjoin.errors import InputError, SpecError

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 17


class Engine:
    """One running join. Made by `JoinSpec.build` or `JoinSpec.resume`.

    Everything between two pushes is in `snapshot()`; nothing depends on how the input was cut into pushes at instant
    borders.
    """

    def __init__(
        self, plan: Plan, seed: int = 0, *, warmup: int = NEVER, trace_every: int = 0, emit: bool = True
    ) -> None:
        self._plan = plan
        self._watch: dict[str, Any] = {"warmup": warmup, "trace_every": trace_every, "emit": emit}
        self._budget = plan.budget
        self._how = plan.settings(plan.budget, **self._watch)
        self._state = memory.allocate(plan, self._how, seed)
        self._set_caps(plan.budget)
        self._pending: list[NDArray[Any]] = []
        self._trace: list[NDArray[np.int64]] = []

    @classmethod
    def resume(cls, plan: Plan, saved: bytes) -> Engine:
        """An engine that goes on from a snapshot, within the plan's budget."""
        engine = cls(plan)
        extra = snapshot.decode(saved, engine._state, plan.signature())
        audit.audit(plan, engine._how, engine._state)
        engine._pending = [audit.checked_log(extra.get("pending"))]
        engine._set_caps(plan.budget)
        engine._pending.append(engine._compete())
        return engine

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        pending = [list(map(int, row)) for part in self._pending for row in part.tolist()]
        return snapshot.encode(self._state, self._plan.signature(), {"pending": pending})

    def push(self, batch: Batch | None = None, *, left: Table = None, right: Table = None) -> Output:
        """Run rows through the join.

        Parameters
        ----------
        batch
            Rows in order of arrival; or give tables:
        left, right
            One table a stream, interleaved by time (see `Batch.of`). Without a `ts` column, rows are numbered on.
        """
        if batch is None:
            start = [int(n) for n in self._state["arrived"]]
            batch = Batch.of(left, right, start=start)
        elif left is not None or right is not None:
            raise InputError("push takes either a batch or tables for left and right, not both")
        self._check_schedule(batch)
        before = self._totals()
        pairs, shed = self._run(batch)
        shed = self._pending + shed
        self._pending = []
        stats = {name: total - before[name] for name, total in self._totals().items()}
        left_rows, right_rows, worth = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return Output(left_rows, right_rows, worth, ShedLog(shed), stats)

    def set_budget(self, budget: Budget | None) -> Output:
        """Change the budget while running; what no longer fits is evicted at once and returned as the shed log."""
        if budget is not None and not isinstance(budget, Budget):
            raise SpecError(f"budget must be a Budget or None, not {budget!r}")
        before = self._totals()
        self._set_caps(budget)
        shed = [*self._pending, self._compete()]
        self._pending = []
        stats = {name: total - before[name] for name, total in self._totals().items()}
        nothing = np.empty(0, np.int64)
        return Output(nothing, nothing, np.empty(0), ShedLog(shed), stats)

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def residents(self) -> tuple[int, int]:
        """Stored tuples of each stream."""
        left, right = self._state["resident"]
        return int(left), int(right)

    @property
    def used(self) -> tuple[int, int]:
        """What counts against the budget, for each stream: tuples or bytes."""
        left, right = self._state["stored_bytes" if self._how[0]["by_bytes"] else "resident"]
        return int(left), int(right)

    @property
    def clocks(self) -> tuple[int | None, int | None]:
        """The largest time seen on each stream."""
        left, right = (None if clock == NEVER else int(clock) for clock in self._state["clock"])
        return left, right

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        more = {name: int(self._state[name]) for name in ("peak_tuples", "peak_bytes")}
        return {**self._totals(), "instants": int(self._state["tick"]), **more}

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance"])

    @property
    def trace(self) -> NDArray[np.int64]:
        """(ts, stored left, stored right), one row every so many instants."""
        return np.concatenate([np.empty((0, 3), np.int64), *self._trace])

    def _totals(self) -> dict[str, int]:
        return {name: int(self._state[name]) for name in COUNTERS}

    def _set_caps(self, budget: Budget | None) -> None:
        caps = self._plan.caps(budget)
        self._how = self._plan.settings(budget, **self._watch)
        self._state["caps"][: len(caps)] = caps
        self._budget = budget

    def _check_schedule(self, batch: Batch) -> None:
        """A replayed schedule must know every row before any is run."""
        if self._plan.schedule is None:
            return
        for stream in range(STREAMS):
            rows = int(self._state["arrived"][stream]) + int((batch.stream == stream).sum())
            known = self._plan.schedule[stream].size
            if rows > known:
                raise InputError(
                    f"Replay knows {known} rows of stream {stream}, but {rows} have arrived with this push"
                )

    def _traffic(self, batch: Batch, shed: int = CHUNK) -> Handle:
        """The rows of a push and the buffers for what comes of them."""
        size = len(batch)
        io = Handle(IO_RECORD)
        columns = (*batch.fields(), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(loop.AHEAD, np.int64))
        for name, column in zip(ROW_ARRAYS, columns, strict=True):
            io.hold(**{f"row_{name}": column})
        every = int(self._how[0]["trace_every"])
        io.hold(
            out_shed=np.empty(shed, SHED_RECORD),
            out_trace=np.empty((size // every + 2 if every else 1, 3), np.int64),
            out_fresh=np.empty(size, np.int64),
            **_pair_buffers(CHUNK if self._how[0]["emit"] else 1),
        )
        io.resize(**{name: len(array) for name, array in io.arrays.items()})
        return io

    def _run(self, batch: Batch) -> tuple[list[tuple[NDArray[Any], ...]], list[NDArray[Any]]]:
        io = self._traffic(batch)
        pairs: list[tuple[NDArray[Any], ...]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        shed: list[NDArray[Any]] = []
        need = -1
        while need != loop.DONE:
            need = loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
            if need in (loop.DONE, loop.NEED_PAIRS):
                pairs.append(tuple(_drain(io, name, "pairs") for name in _PAIRS))
                io["pairs"] = 0
            if need in (loop.DONE, loop.NEED_SHED):
                shed.append(io.arrays["out_shed"][: int(io["shed"])])
                io["shed"] = 0
            self._make_room(need, int(io["wanted"]), io)
        if self._how[0]["trace_every"]:
            self._trace.append(_drain(io, "out_trace", "traces"))
        return pairs, shed

    def _make_room(self, need: int, wanted: int, io: Handle) -> None:
        if need == loop.NEED_PAIRS and io["out_left_room"] < wanted:
            io.hold(**_pair_buffers(wanted))
            io.resize(**dict.fromkeys(_PAIRS, wanted))
        elif need == loop.NEED_SHED:  # the full one is part of the log now
            size = max(wanted, CHUNK)
            io.hold(out_shed=np.empty(size, SHED_RECORD))
            io.resize(out_shed=size)
        elif need == loop.NEED_POOL:
            memory.grow_pool(self._how, self._state, wanted)
        elif need == loop.NEED_KEYS:
            memory.make_room_for_keys(self._how, self._state, wanted)
            io["ahead"] = 0  # slots that were looked up may be gone
        elif need == loop.NEED_SHELVES:
            memory.grow_shelves(self._state, wanted)
        elif need == loop.NEED_EXPIRY:
            memory.grow_expiry(self._state, wanted)
        elif need == loop.NEED_SEEN:
            memory.grow_seen(self._state, wanted)

    def _compete(self) -> NDArray[Any]:
        """Evict down to the caps as they are now. The log has room for all: nothing needs emptying midway."""
        io = self._traffic(Batch.of(), shed=int(self._state["resident"].sum()))
        io["phase"] = loop.SHRINK
        loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
        return _drain(io, "out_shed", "shed")


_PAIRS = ("out_left", "out_right", "out_worth")


def _pair_buffers(size: int) -> dict[str, NDArray[Any]]:
    return {"out_left": np.empty(size, np.int64), "out_right": np.empty(size, np.int64), "out_worth": np.empty(size)}


def _drain(io: Handle, buffer: str, count: str) -> NDArray[Any]:
    return io.arrays[buffer][: int(io[count])].copy()
