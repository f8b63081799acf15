"""MultiEngine: pushes batches through the loop of an n-way join and keeps what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST, Table
from shedjoin.budget import Budget
from shedjoin.engine import snapshot
from shedjoin.engine.codes import WHY
from shedjoin.engine.handle import Handle
from shedjoin.engine.nway import loop, memory
from shedjoin.engine.nway.audit import audit
from shedjoin.engine.nway.batch import MultiBatch, of_rows, of_tables
from shedjoin.engine.nway.output import MultiOutput, MultiShedLog
from shedjoin.engine.nway.plan import NPlan, Orders
from shedjoin.engine.nway.state import COUNTERS, IO_RECORD, MOST, NSHED_RECORD, ROW_ARRAYS
from shedjoin.engine.nway.statistics import Reordering, Statistics
from shedjoin.engine.running import Running
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.ordering import JoinOrder

#: Results and shed records leave the kernel in pieces of about this many.
CHUNK = 1 << 16
Clocks = Mapping[str, int]


class MultiEngine(Running):
    """One running n-way join. Made by `MultiJoinSpec.build` or `MultiJoinSpec.resume`.

    Everything between two pushes is in `snapshot()`; nothing depends on how the input was cut into pushes at instant
    borders.
    """

    def __init__(
        self,
        plan: NPlan,
        seed: int = 0,
        *,
        reordering: Reordering | None = None,
        warmup: int = NEVER,
        emit: bool = True,
    ) -> None:
        self._plan = plan
        self._watch: dict[str, Any] = {"warmup": warmup, "emit": emit}
        self._budget = plan.budget
        self._how = plan.settings(plan.budget, **self._watch)
        self._state = memory.allocate(plan, self._how, seed)
        self._orders = plan.orders
        self._statistics = Statistics(plan, reordering)
        self._set_caps(plan.budget)
        self._pending: list[NDArray[Any]] = []

    @classmethod
    def resume(cls, plan: NPlan, saved: bytes, *, reordering: Reordering | None = None) -> MultiEngine:
        """An engine that goes on from a snapshot, within the plan's budget."""
        engine = cls(plan, reordering=reordering)
        fresh = dict(engine._state.arrays)
        extra = snapshot.decode(saved, engine._state, plan.signature())
        audit(plan, engine._how, engine._state, fresh)
        engine._take_over(extra)
        engine._set_caps(plan.budget)
        if not engine._state["pending_count"]:  # what waits is joined first, with the next instant
            engine._pending.append(engine._compete())
        return engine

    def _take_over(self, extra: dict[str, Any]) -> None:
        """What a snapshot holds beside the state."""
        try:
            orders = {self.names[o]: [self.names[s] for s in order] for o, order in enumerate(extra["orders"])}
            # An order that is chosen while running goes on as it was; one that is given holds from now on.
            self._use(orders_of(orders, self.names) if self._statistics.reordering is not None else self._plan.orders)
            self._statistics.restore(extra["statistics"])
            log = np.array([(*row[:7], row[7]) for row in extra["pending"]], NSHED_RECORD)
        except (KeyError, TypeError, ValueError, IndexError) as reason:
            raise SnapshotError(f"the snapshot's header makes no sense: {reason!r}") from None
        if (
            log.size
            and not (np.isin(log["stream"], range(self._plan.streams)) & np.isin(log["why"], range(len(WHY)))).all()
        ):
            raise SnapshotError("a shed record in the snapshot's header is of no stream or for no reason")
        self._pending = [log]

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        self._check_idle()
        return snapshot.encode(self._state, self._plan.signature(), self._extra())

    def _extra(self) -> dict[str, Any]:
        """What is kept beside the state, as plain data."""
        pending = [[*map(int, list(row)[:7]), list(map(int, row["seen"]))] for part in self._pending for row in part]
        return {
            "pending": pending,
            "orders": [list(order) for order in self._orders],
            "statistics": self._statistics.saved(),
        }

    def batch(self, tables: Mapping[str, Table]) -> MultiBatch:
        """One table a stream, interleaved by time. Without a `ts` column, rows are numbered on."""
        plan = self._plan
        return of_tables(tables, plan.names, plan.graph.columns, plan.width, self._arrived())

    def rows(self, table: Table) -> MultiBatch:
        """Rows in an order of your own, with a column `stream` (numbers of streams) beside those of the join."""
        plan = self._plan
        return of_rows(table, plan.names, plan.graph.columns, plan.width)

    def push(
        self, tables: Mapping[str, Table] | MultiBatch | None = None, *, clocks: Clocks | None = None
    ) -> MultiOutput:
        """Run rows through the join.

        Parameters
        ----------
        tables
            One table a stream, by the stream's name (Arrow tables, DataFrames or dicts of arrays) with the columns that the join
            speaks of, `ts` (default: 0, 1, 2, ...), `importance` (default: 1) and `bytes`; or a batch.
        clocks
            Times by the stream's name: after the rows, its clock is at least this. Lazy results that are due by then are
            given, and what has expired by them goes.
        """
        return MultiOutput.joined(list(self.chunks(tables, limit=CHUNK, clocks=clocks)))

    def chunks(
        self,
        tables: Mapping[str, Table] | MultiBatch | None,
        *,
        limit: int,
        clocks: Clocks | None = None,
        emit: bool = True,
    ) -> Iterator[MultiOutput]:
        """Like `push`, but results are given in pieces of at most `limit`, so that much output needs no more memory.

        Run it to its end: only then are all rows in, and the engine can be used again.
        """
        if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
            raise SpecError(f"limit must be a whole number of at least 1, not {limit!r}")
        told = self._checked_clocks(clocks)
        self._check_idle()
        batch = tables if isinstance(tables, MultiBatch) else self.batch(tables or {})
        self._check_schedule(batch)
        return self._chunks(batch, int(limit), told, emit)

    def flush(self) -> MultiOutput:
        """Join what waits for the next round of lazy evaluation, at the end of the input."""
        self._check_idle()
        how = self._how
        io = self._traffic(self.batch({}), CHUNK)
        io["phase"] = loop.FLUSH
        before = self._totals()
        parts = [self._output(rows, worth, [], before) for rows, worth, _ in self._drive(how, io)]
        return self._with_stats(MultiOutput.joined(parts), before)

    def _chunks(
        self, batch: MultiBatch, limit: int, told: NDArray[np.int64] | None, emit: bool
    ) -> Iterator[MultiOutput]:
        self._busy = True
        if len(batch):
            self._statistics.start(int(batch.ts[0]))
        how = self._how
        if not emit:
            how = how.copy()
            how["emit"] = 0
        before = self._totals()
        held: tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]]] | None = None
        for rows, worth, shed in self._pieces(how, batch, limit, told):
            if held is not None:
                yield self._output(*held, None)
            held = (rows, worth, self._pending + shed)
            self._pending = []
        self._busy = False  # the last piece is given when all is done: nothing depends on its being taken
        assert held is not None  # there is always a last piece
        yield self._output(*held, before)

    def _pieces(
        self, how: NDArray[Any], batch: MultiBatch, limit: int, told: NDArray[np.int64] | None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]]]]:
        """Rows up to the next look at the order, then on."""
        start = 0
        while True:
            end = self._next_stop(batch, start)
            io = self._traffic(batch.take(slice(start, end)), limit if how[0]["emit"] else 1)
            yield from self._drive(how, io)
            start = end
            self._look()
            if start >= len(batch):
                break
        if told is not None:
            io = self._traffic(batch.take(slice(0, 0)), limit if how[0]["emit"] else 1)
            yield from self._drive(how, io, told)

    def _next_stop(self, batch: MultiBatch, start: int) -> int:
        """The first border between instants at or after the next look at the statistics."""
        look = self._statistics.next_look
        if look is None:
            return len(batch)
        end = start + max(look - int(self._state["rows"]), 1)
        if end >= len(batch):
            return len(batch)
        borders = np.flatnonzero(np.diff(batch.ts[end - 1 :]))
        return end + int(borders[0]) if borders.size else len(batch)

    def _look(self) -> None:
        statistics = self._statistics
        if statistics.next_look is None or statistics.reordering is None or self._state["rows"] < statistics.next_look:
            return
        better = statistics.better(self._state, self._orders)
        if better is not None:
            self._use(better.orders)
        # A look takes time in proportion to what is stored.
        wait = max(statistics.reordering.every, int(self._state["resident"].sum()))
        statistics.next_look = int(self._state["rows"]) + wait

    def _use(self, orders: Orders) -> None:
        self._orders = orders
        memory.set_steps(self._state, self._plan, orders)

    def set_order(self, order: Sequence[str] | Mapping[str, Sequence[str]]) -> None:
        """Join in another order from now on: one for all, or one for each origin. No result is lost or repeated."""
        self._check_idle()
        self._use(orders_of(order, self._plan.names))

    def explain(self) -> str:
        """The orders in use, what they are expected to cost by the streams as they are, and why."""
        model = copy(self._statistics).look(self._state)  # a copy: asking changes nothing
        if model is None:
            lines = [
                f"a new tuple of {self.names[o]}: {', '.join(self.names[s] for s in order)}"
                for o, order in enumerate(self._orders)
            ]
            return "\n".join([*lines, "nothing is known of the streams yet: costs are worked out when time has passed"])
        return JoinOrder(model, self._orders, model.cost_of_orders(self._orders)).explain()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return self._plan.names

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """For each origin, the order in which its new tuples meet the windows."""
        return {
            self.names[origin]: tuple(self.names[stream] for stream in order)
            for origin, order in enumerate(self._orders)
        }

    @property
    def reorderings(self) -> int:
        """How often the order was changed because the streams had."""
        return self._statistics.reorderings

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def arrived(self) -> dict[str, int]:
        """Rows of each stream so far; the next one gets this number."""
        return self._by_stream("arrived")

    @property
    def residents(self) -> dict[str, int]:
        """Stored tuples of each stream."""
        return self._by_stream("resident")

    @property
    def stored_bytes(self) -> dict[str, int]:
        """The summed `bytes` of what is stored of each stream."""
        return self._by_stream("stored_bytes")

    @property
    def used(self) -> dict[str, int]:
        """What counts against the budget, for each stream: tuples or bytes."""
        return self._by_stream("stored_bytes" if self._how[0]["by_bytes"] else "resident")

    @property
    def clocks(self) -> dict[str, int | None]:
        """The largest time seen on each stream."""
        return {name: None if clock == NEVER else clock for name, clock in self._by_stream("clock").items()}

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        more = {name: int(self._state[name]) for name in ("peak_tuples", "peak_bytes")}
        return {**self._totals(), "instants": int(self._state["tick"]), **more}

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance"])

    def live(self, name: str) -> NDArray[np.int64]:
        """The row numbers of what is stored of a stream, in ascending order."""
        self._check_idle()
        if name not in self.names:
            raise InputError(f"there is no stream {name!r}; the streams are {', '.join(self.names)}")
        pool, free = self._state.arrays["pool"], self._state.arrays["free"]
        stored = np.ones(pool.size, np.bool_)
        stored[free[: int(self._state["free_count"])]] = False
        mine = stored & (pool["stream"] == self.names.index(name))
        return np.sort(self._state.arrays["card"]["seq"][mine])

    def set_budget(self, budget: Budget | None) -> MultiOutput:
        """Change the budget while running; what no longer fits is evicted at once and returned as the shed log.

        What waits for lazy evaluation is joined before that, and returned as well.
        """
        if budget is not None and not isinstance(budget, Budget):
            raise SpecError(f"budget must be a Budget or None, not {budget!r}")
        self._check_idle()
        before = self._totals()
        waiting = self.flush()
        self._set_caps(budget)
        shed = [*self._pending, self._compete()]
        self._pending = []
        return self._output(waiting.rows, waiting.importance, shed, before)

    def forget_peaks(self) -> None:
        """From now on, peaks are those since here."""
        for peak, field in (("peak_tuples", "resident"), ("peak_bytes", "stored_bytes")):
            self._state[peak] = sum(self._by_stream(field).values())

    def _by_stream(self, field: str) -> dict[str, int]:
        return {name: int(self._state[field][stream]) for stream, name in enumerate(self.names)}

    def _arrived(self) -> list[int]:
        return [int(count) for count in self._state["arrived"][: self._plan.streams]]

    def _totals(self) -> dict[str, int]:
        return {name: int(self._state[name]) for name in COUNTERS}

    def _output(
        self, rows: NDArray[Any], worth: NDArray[Any], shed: list[NDArray[Any]], before: dict[str, int] | None
    ) -> MultiOutput:
        """One piece. Counters come with the last: what was before them is given then."""
        made = MultiOutput(self.names, rows, worth, MultiShedLog(self.names, shed), dict.fromkeys(COUNTERS, 0))
        return made if before is None else self._with_stats(made, before)

    def _with_stats(self, made: MultiOutput, before: dict[str, int]) -> MultiOutput:
        stats = {name: total - before[name] for name, total in self._totals().items()}
        return MultiOutput(made.names, made.rows, made.importance, made.shed, stats)

    def _set_caps(self, budget: Budget | None) -> None:
        caps = self._plan.caps(budget)
        self._how = self._plan.settings(budget, **self._watch)
        self._state["caps"][: len(caps)] = caps
        self._budget = budget

    def _check_schedule(self, batch: MultiBatch) -> None:
        """A replayed schedule must know every row before any is run."""
        if self._plan.schedule is None:
            return
        for stream, name in enumerate(self.names):
            rows = self._arrived()[stream] + int((batch.stream == stream).sum())
            known = self._plan.schedule[stream].size
            if rows > known:
                raise InputError(
                    f"Replay knows {known} rows of stream {name!r}, but {rows} have arrived with this push"
                )

    def _checked_clocks(self, clocks: Clocks | None) -> NDArray[np.int64] | None:
        if clocks is None:
            return None
        if not isinstance(clocks, Mapping):
            raise InputError(f"clocks must give times by names of streams ({', '.join(self.names)}), not {clocks!r}")
        told = np.full(MOST, NEVER, np.int64)
        for name, clock in clocks.items():
            whole = isinstance(clock, int | np.integer) and not isinstance(clock, bool)
            if name not in self.names or not whole or abs(clock) > LATEST:
                raise InputError(
                    f"clocks must give times within +-2**53 by names of streams ({', '.join(self.names)}), not {clocks!r}"
                )
            told[self.names.index(name)] = clock
        return told

    def _traffic(self, batch: MultiBatch, results: int, shed: int = 1024) -> Handle:
        """The rows of a push and the buffers for what comes of them."""
        size = len(batch)
        io = Handle(IO_RECORD)
        columns = (*batch.fields(), np.empty(size, np.int64), np.empty(size, np.int64))
        for name, column in zip(ROW_ARRAYS, columns, strict=True):
            io.hold(**{f"row_{name}": column.reshape(-1)})
        io.hold(
            out_rows=np.empty(results * self._plan.streams, np.int64),
            out_worth=np.empty(results),
            out_shed=np.empty(shed, NSHED_RECORD),
            out_fresh=np.empty(size, np.int64),
        )
        io.resize(**{name: len(array) for name, array in io.arrays.items()})
        return io

    def _drive(
        self, how: NDArray[Any], io: Handle, told: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]]]]:
        """Results and shed records as they come; the last piece may be empty."""
        shed: list[NDArray[Any]] = []
        while True:
            if told is None:
                need = loop.advance(how, self._state.for_kernel(), io.for_kernel())
            else:
                need = loop.advance_clocks(how, self._state.for_kernel(), io.for_kernel(), told)
            if need in (loop.DONE, loop.NEED_SHED):
                shed.append(io.arrays["out_shed"][: int(io["shed"])].copy())
                io["shed"] = 0
            if need in (loop.DONE, loop.NEED_RESULTS):
                count = int(io["results"])
                io["results"] = 0
                rows = io.arrays["out_rows"][: count * self._plan.streams].reshape(-1, self._plan.streams).copy()
                yield rows, io.arrays["out_worth"][:count].copy(), shed
                shed = []
            if need == loop.DONE:
                return
            self._make_room(need, int(io["wanted"]), io)

    def _make_room(self, need: int, wanted: int, io: Handle) -> None:
        st, how = self._state, self._how
        if need == loop.NEED_SHED:
            size = max(wanted, CHUNK)
            if io.arrays["out_shed"].size < size:
                io.hold(out_shed=np.empty(size, NSHED_RECORD))
                io.resize(out_shed=size)
        elif need == loop.NEED_POOL or need == loop.NEED_CELLS:
            memory.grow_pool(self._plan, how, st, wanted)
        elif need == loop.NEED_SLOTS:
            memory.make_room_for_slots(how, st, wanted)
        elif need == loop.NEED_SEEN:
            memory.grow_seen(st, wanted)
        elif need == loop.NEED_RINGS:
            memory.grow_rings(how, st, wanted)
        elif need == loop.NEED_EXPIRY:
            memory.grow_expiry(st, wanted)
        elif need == loop.NEED_MARKS:
            memory.grow_marks(st)
        elif need == loop.NEED_BUCKETS:
            memory.grow_buckets(self._plan, how, st, wanted)

    def _compete(self) -> NDArray[Any]:
        """Evict down to the caps as they are now. The log has room for all: nothing needs emptying midway."""
        io = self._traffic(self.batch({}), 1, shed=int(self._state["resident"].sum()) + 1)
        io["phase"] = loop.SHRINK
        loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
        return io.arrays["out_shed"][: int(io["shed"])].copy()


def orders_of(order: Sequence[str] | Mapping[str, Sequence[str]], names: Sequence[str]) -> Orders:
    """Orders by number: of one global order (new tuples come first), or as given for each origin."""
    if isinstance(order, Mapping):
        if sorted(order) != sorted(names):
            raise SpecError(f"order must have an order for each of {', '.join(names)}, not for {', '.join(order)}")
        return tuple(_numbers(order[name], names) for name in names)
    numbers = _numbers(order, names)
    return tuple((origin, *(stream for stream in numbers if stream != origin)) for origin in range(len(names)))


def _numbers(order: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    if not isinstance(order, list | tuple) or sorted(map(str, order)) != sorted(names):
        raise SpecError(f"order must name each of {', '.join(names)} once, not {order!r}")
    return tuple(list(names).index(name) for name in order)
