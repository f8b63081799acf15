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
from shedjoin.engine.nway import loop, memory
from shedjoin.engine.nway.audit import audit
from shedjoin.engine.nway.batch import MultiBatch, of_rows, of_tables
from shedjoin.engine.nway.orders import orders_of
from shedjoin.engine.nway.output import MultiOutput, MultiShedLog
from shedjoin.engine.nway.plan import NPlan, Orders
from shedjoin.engine.nway.state import COUNTERS, MOST, NSHED_RECORD
from shedjoin.engine.nway.statistics import Reordering, Statistics
from shedjoin.engine.nway.traffic import CHUNK, Piece, compete, drive, traffic
from shedjoin.engine.nway.watched import Watched
from shedjoin.engine.running import check_limit
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.ordering import JoinOrder

Clocks = Mapping[str, int]


class MultiEngine(Watched):
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
            engine._pending.append(compete(plan, engine._how, engine._state, engine.batch({})))
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
        size = check_limit(limit)
        told = self._checked_clocks(clocks)
        self._check_idle()
        batch = tables if isinstance(tables, MultiBatch) else self.batch(tables or {})
        self._check_schedule(batch)
        return self._chunks(batch, size, told, emit)

    def flush(self) -> MultiOutput:
        """Join what waits for the next round of lazy evaluation, at the end of the input."""
        self._check_idle()
        io = traffic(self._plan, self.batch({}), CHUNK)
        io["phase"] = loop.FLUSH
        before = self._totals()
        pieces = drive(self._plan, self._how, self._state, io)
        parts = [self._output(rows, worth, [], before) for rows, worth, _ in pieces]
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
        held: Piece | None = None
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
    ) -> Iterator[Piece]:
        """Rows up to the next look at the order, then on."""
        plan, st = self._plan, self._state
        room = limit if how[0]["emit"] else 1
        start = 0
        while True:
            end = self._next_stop(batch, start)
            yield from drive(plan, how, st, traffic(plan, batch.take(slice(start, end)), room))
            start = end
            self._look()
            if start >= len(batch):
                break
        if told is not None:
            yield from drive(plan, how, st, traffic(plan, batch.take(slice(0, 0)), room), told)

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
        shed = [*self._pending, compete(self._plan, self._how, self._state, self.batch({}))]
        self._pending = []
        return self._output(waiting.rows, waiting.importance, shed, before)

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
