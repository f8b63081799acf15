"""PredicateEngine: pushes rows through the loop and keeps what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Table
from shedjoin.budget import Budget
from shedjoin.cpu import adapt, audit, loop, needs, queue
from shedjoin.cpu import state as cs
from shedjoin.cpu.codes import NEVER
from shedjoin.cpu.pace import Pace, Watch
from shedjoin.cpu.plan import Plan
from shedjoin.cpu.rows import Rows
from shedjoin.engine import snapshot
from shedjoin.engine.handle import Handle
from shedjoin.engine.memory import first_random_state
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import shed_record
from shedjoin.engine.running import Clocks, RunningPair, check_clocks, check_limit
from shedjoin.errors import InputError, SpecError
from shedjoin.predicates import bitmaps, store

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 16


class PredicateEngine(RunningPair):
    """One running join on any predicate. Made by `PredicateJoin.build` or `PredicateJoin.resume`.

    Everything between two pushes is in `snapshot()`. Without a deadline nothing depends on how the input was cut into
    pushes at instant borders.
    """

    def __init__(self, plan: Plan, seed: int = 0, *, warmup: int = NEVER, emit: bool = True) -> None:
        self._plan = plan
        self._watch: dict[str, Any] = {"warmup": warmup, "emit": emit}
        self._state = _allocate(plan, seed)
        self._waiting = Rows.none()
        # Of rows that wait: number among all arrivals and in the stream, place in the queue's bag; and the priority.
        self._places: NDArray[np.int64] = np.empty((3, 0), np.int64)
        self._prio = np.empty(0)
        self.set_budget(plan.budget)

    @classmethod
    def resume(cls, plan: Plan, saved: bytes) -> PredicateEngine:
        """An engine that goes on from a snapshot, within the plan's budget."""
        engine = cls(plan)
        extra = snapshot.decode(saved, engine._state, plan.signature())
        store.measure(engine._state)
        audit.audit(plan, engine._state)
        bitmaps.renew(engine._state)
        engine._take_over(extra)
        engine.set_budget(plan.budget)
        return engine

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        self._check_idle()
        return snapshot.encode(self._state, self._plan.signature(), self._extra())

    def _extra(self) -> dict[str, Any]:
        """What is kept beside the state, as plain data: the rows that wait."""
        return {"waiting": audit.write_waiting(self._waiting, self._places, self._prio)}

    def _take_over(self, extra: dict[str, Any]) -> None:
        """What `_extra` gave."""
        self._waiting, self._places, self._prio = audit.read_waiting(extra.get("waiting"), self._state)

    def push(
        self,
        rows: Rows | None = None,
        *,
        left: Table = None,
        right: Table = None,
        clocks: Clocks | None = None,
        flush: bool = False,
    ) -> Output:
        """Run rows through the join.

        Parameters
        ----------
        rows
            Rows in order of arrival; or give tables:
        left, right
            One table a stream, interleaved by time (see `Rows.of`). Without a `ts` column, rows are numbered on.
        clocks
            One time a stream (None: nothing to say): after the rows, its clock is at least this.
        flush
            On a slow CPU: do not leave rows in the queue, as if nothing more came until they are done.
        """
        if rows is None:
            rows = Rows.of(self._plan.predicate, left, right, start=self.arrived)
        elif left is not None or right is not None:
            raise InputError("push takes either rows or tables for left and right, not both")
        return Output.joined(list(self.chunks(rows, limit=CHUNK, clocks=clocks, flush=flush)))

    def chunks(
        self, rows: Rows, *, limit: int, clocks: Clocks | None = None, flush: bool = False, pace: Pace | None = None
    ) -> Iterator[Output]:
        """Like `push`, but what comes of the rows is given piece by piece, so that much output needs no more memory.

        All pieces must be taken before the next push. `limit` is the most results in one. `pace` says how r is adapted while the
        push runs; by default the deadline is kept, if there is one.
        """
        size = check_limit(limit)
        if not isinstance(rows, Rows):
            raise InputError(f"push takes Rows, or tables as left= and right=, not {type(rows).__name__}")
        self._check_kinds(rows)
        self._check_idle()
        if pace is None and self._plan.deadline is not None and self._plan.selective is not None:
            pace = Watch(self._plan.deadline, boost=self._plan.selective.boost)
        return self._chunks(rows, size, _pair_of(check_clocks(clocks)), flush, pace)

    def _chunks(
        self, rows: Rows, limit: int, clocks: tuple[int, int] | None, flush: bool, pace: Pace | None
    ) -> Iterator[Output]:
        before = self._totals()
        for pairs, shed, last in self._run(rows, flush, limit, pace):
            if last and clocks is not None:
                loop.tell_clocks(self._how, self._state.for_kernel(), *clocks)
            if last:  # the last piece is given when all is done: nothing depends on its being taken
                self._busy = False
            starts = range(0, max(len(pairs[0]), 1), limit)
            for start in starts:
                some = [column[start : start + limit] for column in pairs]
                totals = self._totals() if start == starts[-1] else before
                stats = {name: total - before[name] for name, total in totals.items()}
                before = totals
                yield Output((some[0], some[1]), some[2], ShedLog(shed if start == 0 else ()), stats)

    def flush(self) -> Output:
        """Process what still waits in the queue."""
        return self.push(Rows.none(), flush=True)

    def set_budget(self, budget: Budget | None) -> None:
        """Change the memory budget; what no longer fits is evicted with the next push."""
        if budget is not None and (not isinstance(budget, Budget) or budget.unit != "tuples"):
            raise SpecError(f"budget must be a Budget in tuples or None, not {budget!r}")
        if (budget is None) != (self._plan.budget is None):
            raise SpecError("a join with a memory budget keeps one, and one without has none: make another join")
        self._set_caps(budget)

    def _set_caps(self, budget: Budget | None) -> None:
        self._how = self._plan.settings(budget, **self._watch)
        caps = self._plan.caps(budget)
        self._state["caps"][: len(caps)] = caps
        self._budget = budget

    def set_fraction(self, fraction: float) -> None:
        """Tell the join its r: how much of the windows rows are compared with."""
        if self._plan.selective is None:
            raise SpecError("a join without selective processing compares with whole windows: it has no fraction")
        if not 0.0 < fraction <= 1.0:
            raise SpecError(f"fraction must be above 0 and at most 1, not {fraction!r}")
        adapt.set_fraction(self._how, self._state.for_kernel(), float(fraction))

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def fraction(self) -> float:
        """r: the part of the windows that there is CPU for."""
        return float(self._state["fraction"])

    @property
    def fractions(self) -> tuple[float, float]:
        """r_1 and r_2: how much of each window rows of the other stream are compared with."""
        left, right = self._state["fractions"]
        return float(left), float(right)

    @property
    def type_fractions(self) -> NDArray[np.float64]:
        """r for each window (row) and type of the probing row (column), with utility-based shedding."""
        fractions: NDArray[np.float64] = self._state.arrays["kind_fraction"].copy()
        return fractions

    @property
    def ranking(self) -> tuple[list[int], list[int]]:
        """The ages of each window's basic windows, most profitable first. Age 0 holds the present, -1 lies ahead."""
        _, ahead = self._plan.ages()
        left, right = (self._state.arrays["age_rank"] - ahead).tolist()
        return left, right

    @property
    def queued(self) -> tuple[int, int]:
        """Rows of each stream that wait for the CPU."""
        return self._pair("in_queue")

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        return {
            **self._totals(),
            "instants": int(self._state["processed"]),
            "peak_tuples": int(self._state["peak_tuples"]),
        }

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance_sum"])

    @property
    def worked(self) -> float:
        """Units of work that the virtual CPU has done."""
        return float(self._state["worked"])

    def forget_peaks(self) -> None:
        """From now on, peaks are those since here."""
        self._state["peak_tuples"] = sum(self.residents)

    def live(self, stream: int) -> NDArray[np.int64]:
        """The row numbers of what is stored of a stream, in ascending order."""
        members = self._state.arrays["members"][stream, : self.residents[stream]]
        return np.sort(self._state.arrays["row"][members])

    def _totals(self) -> dict[str, int]:
        return {name: int(self._state[name]) for name in cs.COUNTERS}

    def _check_kinds(self, rows: Rows) -> None:
        types = self._plan.selective.types if self._plan.selective is not None else 0
        if types and len(rows) and rows.kind.max() >= types:
            raise InputError(
                f"kind must be from 0 to {types - 1}, as Selective.types says, but one row has {rows.kind.max()}"
            )

    def _traffic(self, rows: Rows, limit: int) -> tuple[Handle, Rows]:
        """Rows that waited and new ones, and the buffers for what comes of them."""
        waiting, new = len(self._waiting), len(rows)
        rows = Rows.joined(self._waiting, rows) if waiting else rows
        size = waiting + new
        numbers = np.empty(new, np.int64)
        for stream in range(len(STREAMS)):
            mine = rows.stream[waiting:] == stream
            numbers[mine] = self.arrived[stream] + np.arange(int(mine.sum()))
        arrival = int(self._state["arrival"])
        io = Handle(cs.IO_RECORD)
        values = rows.values
        io.hold(
            row_stream=rows.stream,
            row_ts=rows.ts,
            row_seq=np.concatenate((self._places[0], np.arange(arrival, arrival + new))),
            row_number_in_stream=np.concatenate((self._places[1], numbers)),
            row_null=values.null,
            row_importance=rows.importance,
            row_kind=rows.kind
            if self._plan.selective is not None and self._plan.selective.types
            else np.zeros(size, np.int64),
            row_number=values.number,
            row_offsets=values.offsets,
            row_items=values.items,
            row_weights=values.weights,
            row_prio=np.concatenate((self._prio, np.zeros(new))),
            q_next=np.full(size, -1, np.int64),
            q_back=np.full(size, -1, np.int64),
            q_at=np.concatenate((self._places[2], np.full(new, -1, np.int64))),
            q_heap=np.zeros((len(STREAMS), size), np.int64),
            out_shed=np.empty((CHUNK, cs.SHED_FIELDS), np.int64),
            **_pair_buffers(limit if self._watch["emit"] else 1),
        )
        io.resize(**{name: array.shape[-1] for name, array in io.arrays.items() if name != "out_shed"})
        io.resize(out_shed=CHUNK)
        io["at"], io["end"] = waiting, size
        self._state["arrival"] = arrival + new
        queue.requeue(io.for_kernel(), waiting)
        return io, rows

    def _run(
        self, rows: Rows, flush: bool, limit: int, pace: Pace | None
    ) -> Iterator[tuple[list[Any], list[NDArray[Any]], bool]]:
        """Pairs and shed records as they come, and whether these are the last."""
        io, rows = self._traffic(rows, limit)
        self._busy = True  # from here on rows are on their way
        io["flush"] = int(flush)
        if pace is not None:
            io["until"] = pace.begin(len(rows))
        shed: list[NDArray[Any]] = []
        need = -1
        while need != needs.DONE:
            need = loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
            pairs: list[Any] = []
            self._serve(need, io, pairs, shed)
            if need == needs.PAUSE and pace is not None:
                self.set_fraction(pace.look(self.fraction))
            if need == needs.DONE:
                if pace is not None:
                    self.set_fraction(pace.finish(self.fraction))
                self._keep_waiting(io, rows, io)
            if pairs:
                yield pairs[0], shed, need == needs.DONE
                shed = []

    def _serve(self, need: int, io: Handle, pairs: list[Any], shed: list[NDArray[Any]]) -> None:
        """Give the kernel what it needs, and take what it has."""
        if need == needs.STORE:
            store.grow(self._state, int(io["part"]), int(io["wanted"]))
        if need in (needs.PAIRS, needs.DONE):
            count = int(io["pairs"])
            if count or need == needs.DONE:
                pairs.append([io.arrays[name][:count].copy() for name in cs.OUT])
            io["pairs"] = 0
            if need == needs.PAIRS:
                # A row may meet a whole window. With room for a chunk beyond that, not every row need be served here.
                size = int(io["wanted"]) + CHUNK
                if io["out_left_room"] < size:
                    io.hold(**_pair_buffers(size + int(io["wanted"])))
                    io.resize(**dict.fromkeys(cs.OUT, size + int(io["wanted"])))
        if need in (needs.SHED, needs.DONE):
            shed.append(io.arrays["out_shed"][: int(io["shed"])].copy().reshape(-1).view(shed_record(2)))
            io["shed"] = 0

    def _keep_waiting(self, io: Handle, rows: Rows, first: Handle) -> None:
        """What is still in the queue, which is that of the first join, waits for the next push."""
        line = np.empty(len(rows), np.int64)
        line = line[: queue.waiting(first.for_kernel(), line)]
        self._waiting = rows.take(line)
        columns = (io.arrays["row_seq"], io.arrays["row_number_in_stream"], first.arrays["q_at"])
        self._places = np.stack([column[line] for column in columns])
        self._prio = first.arrays["row_prio"][line]


def _pair_of(clocks: NDArray[np.int64] | None) -> tuple[int, int] | None:
    return None if clocks is None else (int(clocks[0]), int(clocks[1]))


def _pair_buffers(size: int) -> dict[str, NDArray[Any]]:
    return {name: np.empty(size, kind) for name, kind in cs.OUT.items()}


def _allocate(plan: Plan, seed: int) -> Handle:
    """The empty memory of a new join."""
    st = Handle(cs.STATE_RECORD)
    store.allocate(st, NEVER)
    ages, ahead = plan.ages()
    kinds = max(plan.selective.types, 1) if plan.selective is not None else 1
    for name, kind in cs.STATE_ARRAYS.items():
        shape = ages if name in ("age_from", "age_to", "age_take") else (len(STREAMS), ages)
        st.hold(**{name: np.zeros(shape, kind)})
    st.hold(**{name: np.zeros((len(STREAMS), kinds), kind) for name, kind in cs.KIND_ARRAYS.items()})
    st.hold(**{name: np.zeros(len(STREAMS) * kinds, kind) for name, kind in cs.SACK_ARRAYS.items()})
    others = (*cs.STATE_ARRAYS, *cs.KIND_ARRAYS, *cs.SACK_ARRAYS)
    st.resize(**{name: st.arrays[name].shape[-1] for name in others})
    # The newest first, what lies ahead last.
    st.arrays["age_rank"][:] = [*range(ahead, ages), *range(ahead - 1, -1, -1)]
    st["clock"] = NEVER
    st["last_ts"] = st["next_rate"] = st["next_rank"] = NEVER
    st["fraction"] = st["fractions"] = plan.selective.fraction if plan.selective is not None else 1.0
    st.arrays["kind_fraction"][:] = st["fraction"]
    st["random"] = first_random_state(seed)
    return st
