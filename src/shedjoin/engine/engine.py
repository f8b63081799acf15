"""Engine: pushes batches through the loop and keeps what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, Table
from shedjoin.budget import Budget
from shedjoin.engine import audit, change, loop, memory, snapshot
from shedjoin.engine.clocks import advance_clocks
from shedjoin.engine.handle import STREAMS, Handle
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.plan import Plan, PolicyLike
from shedjoin.engine.running import Clocks, RunningPair, check_clocks, check_limit
from shedjoin.engine.state import COUNTERS, IO_RECORD, NEVER, ROW_ARRAYS, SHED_RECORD
from shedjoin.errors import InputError, SpecError

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 17


class Engine(RunningPair):
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
        """An engine that goes on from a snapshot, within the plan's budget and by the numbers of its policy."""
        was = plan.before(snapshot.signature_of(saved))
        engine = cls(was)
        extra = snapshot.decode(saved, engine._state, was.signature())
        audit.audit(was, engine._how, engine._state)
        engine._take_over(extra)
        engine._adopt(plan)
        engine._set_caps(plan.budget)
        engine._pending.append(engine._compete())
        return engine

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        self._check_idle()
        return snapshot.encode(self._state, self._plan.signature(), self._extra())

    def _extra(self) -> dict[str, Any]:
        """What is kept beside the state, as plain data: what the next push will log."""
        return {"pending": [list(map(int, row)) for part in self._pending for row in part.tolist()]}

    def _take_over(self, extra: dict[str, Any]) -> None:
        """What `_extra` gave."""
        self._pending = [audit.checked_log(extra.get("pending"))]

    def push(
        self, batch: Batch | None = None, *, left: Table = None, right: Table = None, clocks: Clocks | None = None
    ) -> Output:
        """Run rows through the join.

        Parameters
        ----------
        batch
            Rows in order of arrival; or give tables:
        left, right
            One table a stream, interleaved by time (see `Batch.of`). Without a `ts` column, rows are numbered on.
        clocks
            One time a stream (None: nothing to say): after the rows, its clock is at least this. For engines that see a
            part of the streams and expire by the whole.
        """
        if batch is None:
            batch = Batch.of(left, right, start=self.arrived)
        elif left is not None or right is not None:
            raise InputError("push takes either a batch or tables for left and right, not both")
        return Output.joined(list(self.chunks(batch, limit=CHUNK, clocks=clocks)))

    def chunks(self, batch: Batch, *, limit: int, clocks: Clocks | None = None, emit: bool = True) -> Iterator[Output]:
        """Like `push`, but what comes of the rows is given piece by piece, so that much output needs no more memory.

        Run it to its end: only then are all rows in, and the engine can be used again.

        Parameters
        ----------
        batch
            Rows in order of arrival.
        limit
            The most pairs in a piece. (Inside, the results of one row are held at once; they are fewer than what is stored.)
        clocks
            As in `push`.
        emit
            False: count the results, but make no pairs of them.
        """
        size = check_limit(limit)
        if not isinstance(batch, Batch):
            raise InputError(
                f"push takes a Batch (Batch.of, Batch.rows), or tables as left= and right=, not {type(batch).__name__}"
            )
        told = check_clocks(clocks)
        self._check_idle()
        self._check_schedule(batch)
        return self._chunks(batch, size, told, emit)

    def _chunks(self, batch: Batch, limit: int, clocks: tuple[int, int] | None, emit: bool) -> Iterator[Output]:
        before = self._totals()
        for pairs, shed, last in self._run(batch, limit, emit):
            shed = self._pending + shed
            self._pending = []
            if last and clocks is not None:
                advance_clocks(self._how, self._state.for_kernel(), *clocks)
            if last:  # the last piece is given when all is done: nothing depends on its being taken
                self._busy = False
            starts = range(0, max(len(pairs[0]), 1), limit)
            for start in starts:
                totals = self._totals() if start == starts[-1] else before
                stats = {name: total - before[name] for name, total in totals.items()}
                before = totals
                some = slice(start, start + limit)
                yield Output(pairs[0][some], pairs[1][some], pairs[2][some], ShedLog(shed if start == 0 else ()), stats)

    def live(self, stream: int) -> NDArray[np.int64]:
        """The row numbers of what is stored of a stream (0: left, 1: right), in ascending order."""
        if stream not in range(STREAMS):
            raise InputError(f"stream must be 0 (left) or 1 (right), not {stream!r}")
        self._check_idle()
        pool, free = self._state.arrays["pool"], self._state.arrays["free"]
        stored = np.ones(pool.size, np.bool_)
        stored[free[: int(self._state["free_count"])]] = False
        places = pool["place"][stored & (pool["stream"] == stream)]
        return np.sort(self._state.arrays["shelf"]["seq"][places])

    def set_budget(self, budget: Budget | None) -> Output:
        """Change the budget while running; what no longer fits is evicted at once and returned as the shed log."""
        if budget is not None and not isinstance(budget, Budget):
            raise SpecError(f"budget must be a Budget or None, not {budget!r}")
        self._check_idle()
        before = self._totals()
        self._set_caps(budget)
        shed = [*self._pending, self._compete()]
        self._pending = []
        stats = {name: total - before[name] for name, total in self._totals().items()}
        nothing = np.empty(0, np.int64)
        return Output(nothing, nothing, np.empty(0), ShedLog(shed), stats)

    def set_policy(self, policy: PolicyLike) -> None:
        """Change the numbers of the policy, or Decayed's half-life, while running.

        Estimates go on from what they are now. Priorities that were fixed on arrival are fixed anew, as if all arrived now;
        what cumulative policies have gathered is kept. Another policy or estimator is refused.
        """
        if isinstance(policy, type) or not isinstance(policy, PolicyLike):
            raise SpecError(f"policy must be a policy such as Prob(), not {policy!r}")
        self._check_idle()
        plan = self._plan.with_policy(policy)
        plan.check_change(self._plan)
        self._adopt(plan)

    def _adopt(self, plan: Plan) -> None:
        """Go on by a plan that differs in the numbers of the policy."""
        was, changed = self._how, (plan.order, plan.weigher) != (self._plan.order, self._plan.weigher)
        self._plan = plan
        if changed:
            self._how = plan.settings(self._budget, **self._watch)
            change.adopt(was, self._how, self._state)

    def forget_peaks(self) -> None:
        """From now on, peaks are those since here."""
        self._state["peak_tuples"], self._state["peak_bytes"] = sum(self.residents), sum(self.stored_bytes)

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def stored_bytes(self) -> tuple[int, int]:
        """The summed `bytes` of what is stored of each stream."""
        return self._pair("stored_bytes")

    @property
    def used(self) -> tuple[int, int]:
        """What counts against the budget, for each stream: tuples or bytes."""
        return self._pair("stored_bytes" if self._how[0]["by_bytes"] else "resident")

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

    def _traffic(self, batch: Batch, *, pairs: int = 1, shed: int = CHUNK) -> Handle:
        """The rows of a push and the buffers for what comes of them."""
        size = len(batch)
        io = Handle(IO_RECORD)
        columns = (*batch.fields(), np.empty(loop.AHEAD, np.int64))
        for name, column in zip(ROW_ARRAYS, columns, strict=True):
            io.hold(**{f"row_{name}": column})
        every = int(self._how[0]["trace_every"])
        io.hold(
            out_shed=np.empty(shed, SHED_RECORD),
            out_trace=np.empty((size // every + 2 if every else 1, 3), np.int64),
            out_fresh=np.empty(size, np.int64),
            **_pair_buffers(pairs),
        )
        io.resize(**{name: len(array) for name, array in io.arrays.items()})
        return io

    def _run(self, batch: Batch, limit: int, emit: bool) -> Iterator[tuple[Pairs, list[NDArray[Any]], bool]]:
        """Pairs and shed records as they come, and whether these are the last."""
        how = self._how
        if not emit:
            how = how.copy()
            how["emit"] = 0
        io = self._traffic(batch, pairs=limit if how[0]["emit"] else 1)
        self._busy = True  # from here on rows are on their way
        shed: list[NDArray[Any]] = []
        need = -1
        while need != loop.DONE:
            need = loop.advance(how, self._state, io)
            if need in (loop.DONE, loop.NEED_SHED):
                shed.append(_shed_of(io))
                io["shed"] = 0
            if need == loop.DONE and self._how[0]["trace_every"]:
                self._trace.append(_drain(io, "out_trace", "traces"))
            if need == loop.DONE or (need == loop.NEED_PAIRS and io["pairs"]):
                left, right, worth = (_drain(io, name, "pairs") for name in _PAIRS)
                io["pairs"] = 0
                yield (left, right, worth), shed, need == loop.DONE
                shed = []
            self._make_room(need, int(io["wanted"]), io)

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
        loop.advance(self._how, self._state, io)
        return _drain(io, "out_shed", "shed")


_PAIRS = ("out_left", "out_right", "out_worth")
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _pair_buffers(size: int) -> dict[str, NDArray[Any]]:
    return {"out_left": np.empty(size, np.int64), "out_right": np.empty(size, np.int64), "out_worth": np.empty(size)}


def _shed_of(io: Handle) -> NDArray[Any]:
    """What was shed. A buffer that is half full becomes part of the log; of others a copy does, to keep no empty room."""
    buffer, count = io.arrays["out_shed"], int(io["shed"])
    return buffer[:count] if 2 * count > buffer.size else buffer[:count].copy()


def _drain(io: Handle, buffer: str, count: str) -> NDArray[Any]:
    return io.arrays[buffer][: int(io[count])].copy()
