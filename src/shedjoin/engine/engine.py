"""Engine: runs batches through the loop and collects the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch, TableLike
from shedjoin.budget import Budget
from shedjoin.engine import (
    audit,
    change,
    contents,
    growth,
    item_memory,
    loop,
    memory,
    protocol,
    push_buffers,
    selection,
    snapshot,
    stored,
    waiting_rows,
    weights_since,
)
from shedjoin.engine.handle import Handle
from shedjoin.engine.inverses import Inverses, inverses
from shedjoin.engine.orders import orders_of
from shedjoin.engine.output import LeftOutLog, Output, ShedLog
from shedjoin.engine.pace import Pace, Watch
from shedjoin.engine.plan import Orders, Plan, PolicyLike
from shedjoin.engine.push_buffers import CHUNK
from shedjoin.engine.records import COUNTERS, NEVER, WAITING_COUNTERS, WAITING_RECORD, WORK_COUNTERS
from shedjoin.engine.reordering import Reordering
from shedjoin.engine.running import Clocks, Running, check_arrived, check_clocks, check_limit
from shedjoin.engine.statistics import Statistics
from shedjoin.engine.trying import COLUMN, FORESIGHT, Foreseeing, Trying
from shedjoin.engine.weights import Weights
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.join_order import JoinOrder
from shedjoin.join_type import FIRSTS, sure_recall
from shedjoin.row_numbers import check as check_numbers
from shedjoin.what_if import Curve, Measured, curve_of

Integers = NDArray[np.int64]
#: How many rows are searched at first for the end of an instant.
SEARCHED = 256


class Piece(NamedTuple):
    """Results (row numbers, importance, weights) and the records of the logs, as they come."""

    columns: tuple[Integers, ...]
    worth: NDArray[np.float64]
    weights: Weights | None
    shed: list[NDArray[Any]]
    left_out: list[NDArray[Any]]


class Engine(Running):
    """One running join. Made by `JoinSpec.build` or `JoinSpec.resume`.

    `snapshot()` has the whole state between two pushes. The division of the input into pushes at instant borders does not
    affect results. Values with one entry for each stream are in the order of streams.
    """

    def __init__(
        self,
        plan: Plan,
        seed: int = 0,
        *,
        reordering: Reordering | None = None,
        warmup: int = NEVER,
        trace_every: int = 0,
        emit: bool = True,
        trying: Trying | None = None,
        foreseeing: Foreseeing | None = None,
    ) -> None:
        self._seed = seed
        self._trying = trying
        self._foreseeing = foreseeing
        self._watch: dict[str, Any] = {"warmup": warmup, "trace_every": trace_every, "emit": emit}
        self._statistics = Statistics(plan, reordering)
        self._begin(plan)
        self._pending: list[NDArray[Any]] = []
        self._trace: list[Integers] = []
        self._weights_from: weights_since.Since | None = None

    def _begin(self, plan: Plan) -> None:
        """An empty state, within the plan's budget and by its policy."""
        self._plan, self._budget, self._orders = plan, plan.budget, plan.orders
        self._cfg = plan.settings(plan.budget, **self._watch)
        self._memory: Handle | None = None
        self.mapped: Any = None  # which arrays are in the file of a copy (see `host_copy`)

    @property
    def _state(self) -> Handle:
        """Made when it is first asked for: an engine that goes on from a copy has that one's."""
        if self._memory is None:
            self._memory = memory.allocate(self._plan, self._cfg, self._seed)
            self._put_caps(self._budget)
        return self._memory

    @_state.setter
    def _state(self, state: Handle) -> None:
        self._memory = state

    # ------------------------------------------------------------------------------------------------------ snapshots

    @classmethod
    def resume(
        cls,
        plan: Plan,
        saved: bytes,
        *,
        reordering: Reordering | None = None,
        trying: Trying | None = None,
        foreseeing: Foreseeing | None = None,
    ) -> Engine:
        """An engine that goes on from a snapshot, within the plan's budget and by its policy, or that of the trials."""
        signature, extra, columns = snapshot.unpack(saved)
        _check_meaning(plan, signature)
        engine = cls(plan, reordering=reordering, trying=trying, foreseeing=foreseeing)
        engine.go_on_beside({name: columns.pop(name).tobytes() for name in (COLUMN, FORESIGHT) if name in columns})
        plan = engine._plan
        was = change.as_it_was(plan, signature)
        audit.audit(was, was.settings(None, **engine._watch), columns)
        columns = change.carried(columns, signature, plan)
        contents.build(plan, engine._cfg, engine._state, columns)
        waiting_rows.set_given_shares(plan.admission, engine._state)
        engine._take_over(extra)
        engine._note_change(was)
        # What waits is joined first, with the next instant; tuples of an open instant compete when it closes.
        if not engine._state["pending_count"] and not (engine._waits and engine._state["open"]):
            engine._pending.append(engine._compete())
        return engine

    def beside(self) -> dict[str, bytes]:
        """What runs beside the join, as bytes by its name."""
        known = {COLUMN: self._trying, FORESIGHT: self._foreseeing}
        return {name: one.to_bytes() for name, one in known.items() if one is not None}

    def go_on_beside(self, saved: Mapping[str, bytes]) -> None:
        """Of an empty engine: go on with trials, by the policy that they had led to, and with other memories."""
        if self._trying is not None and COLUMN in saved:
            self._trying.load(saved[COLUMN])
            self._begin(self._plan.with_policy(self._trying.now, self._plan.budget))
            if self._foreseeing is not None:
                self._foreseeing.adopt(self._trying.now)
        if self._foreseeing is not None and FORESIGHT in saved:
            self._foreseeing.load(saved[FORESIGHT])

    def snapshot(self) -> bytes:
        """All that is stored and known between two pushes, with a version and a checksum."""
        self._check_idle()
        beside = {name: np.frombuffer(saved, np.int8) for name, saved in self.beside().items()}
        columns = {**self.columns(), **beside}
        return snapshot.pack(columns, self._plan.signature(), self._extra())

    def columns(self) -> stored.Columns:
        """All that is stored and known between two pushes, as columns."""
        self._check_idle()
        return contents.gather(self._cfg, self._state)

    def _extra(self) -> dict[str, Any]:
        """What is kept beside the state, as plain data."""
        pending = [
            [*map(int, list(row)[:-2]), row["seen"].tolist(), row["expired"].tolist()]
            for part in self._pending
            for row in part
        ]
        return {
            "pending": pending,
            "orders": [list(order) for order in self._orders],
            "statistics": self._statistics.saved(),
            "weights from": self._weights_from,
        }

    def _take_over(self, extra: dict[str, Any]) -> None:
        """What `_extra` gave."""
        try:
            orders = {self.names[o]: [self.names[s] for s in order] for o, order in enumerate(extra["orders"])}
            # An order that is chosen while running goes on as it was; one that is given holds from now on.
            if self._statistics.reordering is not None:
                self._use(orders_of(orders, self.names))
            self._statistics.restore(extra["statistics"])
            pending = extra["pending"]
            self._weights_from = weights_since.checked(extra["weights from"], self._plan.streams)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as reason:
            raise SnapshotError(f"the snapshot's header makes no sense: {reason!r}") from None
        self._pending = [audit.checked_log(pending, self._plan.streams)]

    # ----------------------------------------------------------------------------------------------------------- rows

    def batch(self, tables: Mapping[str, TableLike]) -> Batch:
        """One table a stream, interleaved by time. Without a `ts` column, rows are numbered on."""
        if self._plan.on is not None:
            return self._plan.on.interleaved(tables, self.names, self.arrived, **self._more_columns())
        return Batch.of_streams(tables, self._columns(), start=self.arrived, **self._more_columns())

    def rows(self, table: TableLike) -> Batch:
        """Rows in your own order, with a column `stream` (numbers of streams) and the columns of the join."""
        if self._plan.on is not None:
            return self._plan.on.in_order(table, **self._more_columns())
        return Batch.rows(table, self._columns(), **self._more_columns())

    def _more_columns(self) -> dict[str, Any]:
        """What else is read of tables: types of rows, and what the condition looks at."""
        return {"kinds": self._types > 0, "checked": self._plan.checked}

    def _columns(self) -> dict[str, Sequence[str]]:
        return dict(zip(self.names, self._plan.graph.columns, strict=True))

    def push(
        self,
        batch: Batch | Mapping[str, TableLike] | None = None,
        *,
        clocks: Clocks | None = None,
        arrived: Sequence[int] | None = None,
        **tables: TableLike,
    ) -> Output:
        """Run rows through the join.

        Parameters
        ----------
        batch
            Rows in order of arrival; or tables by the names of their streams, also as keywords (``left=``, ``right=``): Arrow
            tables, DataFrames or dicts of arrays, interleaved by time (see `Batch.of`). Without a `ts` column, rows are
            numbered on.
        clocks
            One time for each stream (or None), or times by the names of streams: after the rows, the stream's clock is at least
            this. For engines that get only some rows of the streams.
        arrived
            Rows of each stream that have arrived in all engines by the end of the push. For joins with
            `JoinSpec.counted_elsewhere`.
        """
        if isinstance(batch, Batch) and tables:
            raise InputError("push takes either a batch or tables for left and right, not both")
        if not isinstance(batch, Batch):
            if batch is not None and not isinstance(batch, Mapping):
                raise InputError(
                    f"push takes a Batch, or a dict of tables by the names of their streams, not {batch!r}"
                )
            batch = self.batch({**(batch or {}), **tables})
        return Output.joined(list(self.chunks(batch, limit=CHUNK, clocks=clocks, arrived=arrived)))

    def chunks(
        self,
        batch: Batch | Mapping[str, TableLike],
        *,
        limit: int,
        clocks: Clocks | None = None,
        arrived: Sequence[int] | None = None,
        emit: bool = True,
        pace: Pace | None = None,
    ) -> Iterator[Output]:
        """Like `push`, but the output comes in pieces, so that a large output needs no more memory.

        Consume it to the end: only then are all rows processed, and the engine can be used again.

        Parameters
        ----------
        batch
            Rows in order of arrival, or tables by the names of their streams.
        limit
            The largest number of results in a piece. (With two streams, all results of one row are in memory at once; there are
            fewer than stored tuples.)
        clocks, arrived
            As in `push`.
        emit
            False: count the results, but do not output them.
        pace
            How r is adapted while the push runs: a `Watch`, or a `Script` of what one said. By default the deadline is kept, if
            there is one.
        """
        size = check_limit(limit)
        if isinstance(batch, Mapping):
            batch = self.batch(batch)
        if not isinstance(batch, Batch):
            raise InputError(
                f"push takes a Batch (Batch.of, Batch.rows), or tables as left= and right=, not {type(batch).__name__}"
            )
        told = {
            "told": check_clocks(clocks, self.names),
            "told_arrived": check_arrived(arrived, self.names, self._plan.counted_elsewhere),
        }
        self._check_idle()
        self._check_rows(batch)
        selective = self._plan.selective
        if pace is not None and selective is None:
            raise SpecError("pace needs a join with selective=Selective(...): others compare rows with whole windows")
        if pace is None and self._plan.deadline is not None and selective is not None:
            pace = Watch(self._plan.deadline, boost=selective.boost)
        known = {name: values for name, values in told.items() if values is not None}
        return self._chunks(batch, size, known, emit, pace)

    def flush(self) -> Output:
        """Process all waiting rows at the end of the input: for lazy evaluation, for the CPU, or in the aux-window."""
        self._check_idle()
        before = self._totals()
        waits = self._plan.evaluate_every or self._waits
        pieces = self._drive(self._cfg, self._buffers(CHUNK, turn=protocol.FLUSH)) if waits else ()
        shed, self._pending = self._pending if waits else [], [] if waits else self._pending
        return self._whole(list(pieces), before, earlier=shed)

    def end(self) -> Output:
        """End the input: process waiting rows, and deliver rows without a partner as if all windows had ended.

        For inner joins it is a `flush`.
        """
        waited = self.flush()
        if not self._cfg[0]["counts"]:
            return waited
        before = self._totals()
        rest = self._whole(list(self._drive(self._cfg, self._buffers(CHUNK, turn=protocol.END, shed=CHUNK))), before)
        return Output.joined([waited, rest])

    def _chunks(
        self, batch: Batch, limit: int, told: dict[str, Integers], emit: bool, pace: Pace | None
    ) -> Iterator[Output]:
        self._busy = True  # from here on rows are on their way
        if len(batch):
            self._statistics.start(int(batch.ts[0]))
        before = self._totals()
        held: Piece | None = None
        for piece in self._pieces(emit, batch, limit, told, pace):
            if held is not None:
                yield from self._cut(held, limit, None)
            held = piece._replace(shed=self._pending + piece.shed)
            self._pending = []
        if pace is not None:
            self.set_fraction(pace.finish(self.fraction))
        self._busy = False  # the last piece is given when all is done: nothing depends on its being taken
        assert held is not None  # there is always a last piece
        yield from self._cut(held, limit, before)

    def _told_to(self, emit: bool) -> NDArray[Any]:
        """The settings of a push, which may only count."""
        if emit:
            return self._cfg
        cfg = self._cfg.copy()
        cfg["emit"] = 0
        return cfg

    def _pieces(
        self, emit: bool, batch: Batch, limit: int, told: dict[str, Integers], pace: Pace | None
    ) -> Iterator[Piece]:
        """Rows up to the next look at the join order or at other policies, then on."""
        cfg = self._told_to(emit)
        room = limit if cfg[0]["emit"] else 1
        start = since = 0
        part = pace.begin(len(batch)) if pace is not None else 0
        while True:
            end = self._next_stop(batch, start)
            some = batch if end - start == len(batch) else batch.take(slice(start, end))
            if self._trying is not None:
                self._trying.see(some)
            if self._foreseeing is not None:
                self._foreseeing.see(some)
            buffers = push_buffers.make(cfg, self._state, some, results=room, shed=CHUNK)
            if pace is not None:
                buffers["until"], buffers["since"] = part, since
            yield from self._drive(cfg, buffers, pace)
            if pace is not None:
                since = int(buffers["since"])
            start = end
            self._look()
            better = None if self._trying is None else self._trying.look(self.clocks)
            if self._foreseeing is not None:
                self._foreseeing.look(self.clocks, (float(self._state["results"]), float(self._state["importance"])))
            if better is not None:
                yield from self._close(cfg)
                self._adopt(self._plan.with_policy(better, self._budget))
                cfg = self._told_to(emit)
                if self._foreseeing is not None:
                    self._foreseeing.adopt(better)
            if start >= len(batch):
                break
        if "told" in told and self._waits:
            waiting_rows.add_told(self._state, told["told"])
        if told:
            buffers = self._buffers(room, turn=protocol.TELL)
            for name, values in told.items():
                buffers[name][: values.size] = values
            yield from self._drive(cfg, buffers)

    def _buffers(self, results: int = 1, *, turn: int, shed: int = 1) -> Handle:
        """For a turn without rows."""
        buffers = push_buffers.make(self._cfg, self._state, results=results, shed=shed)
        buffers["turn"] = turn
        return buffers

    def _drive(self, cfg: NDArray[Any], buffers: Handle, pace: Pace | None = None) -> Iterator[Piece]:
        """Run what is in the buffers: results and records of the logs as they come. The last piece may be empty."""
        shed: list[NDArray[Any]] = []
        left_out: list[NDArray[Any]] = []
        weighted = self._weighted and push_buffers.has_weights(cfg)
        logs_left_out = selection.is_selective(cfg) or bool(cfg[0]["rear"])
        need = -1
        while need != protocol.DONE:
            need = loop.advance(cfg, self._state, buffers)
            if need in (protocol.DONE, protocol.NEED_SHED):
                shed.append(push_buffers.take_shed(buffers, self._plan.streams))
            if logs_left_out and need in (protocol.DONE, protocol.NEED_LEFT_OUT):
                left_out.append(push_buffers.take_left_out(buffers))
            if need == protocol.PAUSE and pace is not None:
                self.set_fraction(pace.look(self.fraction))
            if need == protocol.DONE and cfg[0]["trace_every"]:
                self._trace.append(push_buffers.take_trace(buffers, self._plan.streams))
            if need == protocol.DONE or (need == protocol.NEED_RESULTS and buffers["results"]):
                yield Piece(*push_buffers.take_results(buffers, self._plan.streams, weighted=weighted), shed, left_out)
                shed, left_out = [], []
            self._make_room(cfg, need, buffers)

    def _make_room(self, cfg: NDArray[Any], need: int, buffers: Handle) -> None:
        """Give the kernel what it needs."""
        wanted, state, streams = int(buffers["wanted"]), self._state, self._plan.streams
        if need == protocol.NEED_RESULTS and buffers["out_worth_room"] < wanted:
            push_buffers.hold_results(buffers, streams, wanted, weighted=push_buffers.has_weights(cfg))
        elif need == protocol.NEED_SHED:  # the full one is part of the log now
            push_buffers.hold_shed(buffers, streams, max(wanted, CHUNK))
        elif need in (protocol.NEED_POOL, protocol.NEED_CELLS):
            growth.grow_pool(cfg, state, wanted)
        elif need == protocol.NEED_KEYS:
            growth.make_room_for_values(cfg, state, wanted)
            buffers["ahead"] = 0  # values that were looked up may be gone
        elif need == protocol.NEED_ENTRIES:
            growth.grow_entries(cfg, state, wanted)
        elif need == protocol.NEED_EXPIRY:
            growth.grow_expiry(state, wanted)
        elif need == protocol.NEED_STRAYS:
            growth.hold_strays(cfg, state)
        elif need == protocol.NEED_SEEN:
            growth.grow_seen(state, wanted)
        elif need == protocol.NEED_ITEMS:
            item_memory.grow_items(state, wanted)
        elif need == protocol.NEED_HISTOGRAM:
            fresh = buffers.arrays["out_fresh"][: int(buffers["fresh"])]
            growth.widen_histogram(cfg, state, state.arrays["number"][fresh].tolist())
        elif need == protocol.NEED_MARKS:
            growth.grow_marks(state)
        elif need == protocol.NEED_BUCKETS:
            growth.grow_index_buckets(self._plan, cfg, state, wanted)
        elif need == protocol.NEED_LEFT_OUT and buffers["out_left_out_room"] < wanted:
            push_buffers.hold_left_out(buffers, max(wanted, CHUNK))
        elif need == protocol.NEED_THRESHOLDS:
            growth.grow_thresholds(state)
        elif need == protocol.NEED_TIMELINE:
            selection.grow_timeline(cfg, state, wanted)
        elif self._waits:
            self._make_room_to_wait(cfg, need, buffers)

    def _make_room_to_wait(self, cfg: NDArray[Any], need: int, buffers: Handle) -> None:
        """The same for what only rows need that wait."""
        state = self._state
        if need == protocol.NEED_WAITING:
            waiting_rows.grow_rows(cfg, state)
        elif need == protocol.NEED_INSTANTS:
            waiting_rows.grow_instants(state)
        elif need == protocol.NEED_FRESH:
            waiting_rows.grow_fresh(cfg, state, buffers)
        elif need == protocol.NEED_LET_IN:
            waiting_rows.grow_let_in(cfg, state, int(buffers["wanted"]))
        elif need == protocol.NEED_LEVELS:
            waiting_rows.grow_levels(cfg, state)
        elif need == protocol.NEED_SPEEDS:
            self._measure_speeds(int(buffers.arrays["row_ts"][int(buffers["at"])]))

    def _measure_speeds(self, now: int) -> None:
        """Dual windows: rows of each stream in a time unit since the last time, and the shares that follow from them."""
        state, admission = self._state, self._plan.admission
        last, came = int(state["last_adapt"]), [float(rows) for rows in self._by_stream("came_rows")]
        state["last_adapt"], state["came_rows"] = now, 0
        if last == NEVER or not any(came) or admission is None or admission.speeds is None:
            return
        rates = [rows / (now - last) for rows in came]
        state["rear_share"], state["front_share"] = admission.speeds(
            rates, *self.shares, lambda: waiting_rows.histograms(state)
        )

    def _cut(self, piece: Piece, limit: int, before: dict[str, int] | None) -> Iterator[Output]:
        """A piece in parts of at most `limit` results. Counters come with the last part of the last piece."""
        starts = range(0, max(piece.worth.size, 1), limit)
        for start in starts:
            some = slice(start, start + limit)
            logs = (piece.shed, piece.left_out) if start == 0 else ([], [])
            weights = None if piece.weights is None else piece.weights.some(some)
            cut = Piece(tuple(column[some] for column in piece.columns), piece.worth[some], weights, *logs)
            yield self._output(cut, before if start == starts[-1] else None)

    def _output(self, piece: Piece, before: dict[str, int] | None) -> Output:
        totals = self._totals()
        stats = dict.fromkeys(totals, 0) if before is None else {name: totals[name] - before[name] for name in totals}
        shed, left_out = ShedLog(piece.shed, self.names), LeftOutLog(piece.left_out, self.names)
        return Output(piece.columns, piece.worth, shed, stats, self.names, left_out, piece.weights)

    def _whole(
        self,
        pieces: list[Piece],
        before: dict[str, int],
        shed: Sequence[NDArray[Any]] = (),
        earlier: Sequence[NDArray[Any]] = (),
    ) -> Output:
        """All pieces of a turn as one output, with what was shed before and after it."""
        weights = Weights.nothing(self._plan.streams) if self._weighted else None
        nothing = Piece(tuple(np.empty(0, np.int64) for _ in self.names), np.empty(0), weights, [], [])
        parts = [self._output(piece, None) for piece in [nothing._replace(shed=list(earlier)), *pieces]]
        parts.append(self._output(nothing._replace(shed=list(shed)), before))
        return Output.joined(parts)

    def _check_rows(self, batch: Batch) -> None:
        """The engine's own columns, and a schedule that knows every row before any is run."""
        streams, width = self._plan.streams, self._plan.width
        if len(batch) and batch.stream.max() >= streams:
            raise InputError(f"Batch.stream must be from 0 to {streams - 1}: {', '.join(self.names)}")
        if (1 if batch.key.ndim == 1 else batch.key.shape[1]) != width:
            raise InputError(f"Batch.key must have {width} columns, one for each attribute: make it with Engine.batch")
        if len(batch) and (batch.values is None) != (self._plan.predicate is None):
            raise InputError("Batch.values must have what the join's predicate compares: make it with Engine.batch")
        types = self._types
        if types and batch.kind is not None and len(batch) and batch.kind.max() >= types:
            raise InputError(
                f"kind must be from 0 to {types - 1}, as Selective.types says, but one row has {batch.kind.max()}"
            )
        self._check_numbers(batch)
        for stream, until in enumerate(self._plan.schedule or ()):
            rows = self.arrived[stream] + int((batch.stream == stream).sum())
            if batch.numbers is not None:
                rows = int(batch.numbers.arrived[:, stream].max(initial=rows))
            if rows > until.size:
                raise InputError(
                    f"Replay knows {until.size} rows of stream {stream}, but {rows} have arrived with this push"
                )

    def _check_numbers(self, batch: Batch) -> None:
        """Rows have numbers where they are counted elsewhere, and nowhere else."""
        if batch.numbers is not None and not self._plan.counted_elsewhere:
            raise InputError(
                "Batch.numbers are for joins with JoinSpec.counted_elsewhere: this one numbers its own rows"
            )
        if batch.numbers is not None:
            check_numbers(batch.stream, batch.ts, batch.numbers, self.arrived)
        elif self._plan.counted_elsewhere and len(batch):
            raise InputError(
                "Batch.numbers must be given to a join with JoinSpec.counted_elsewhere: see Batch.numbered"
            )

    # ---------------------------------------------------------------------------------------------------- what changes

    def set_budget(self, budget: Budget | None) -> Output:
        """Change the budget of the running join; tuples that no longer fit are evicted at once and returned as the shed log.

        Tuples that wait for lazy evaluation are joined before, and their results are also returned.
        """
        if budget is not None and not isinstance(budget, Budget):
            raise SpecError(f"budget must be a Budget or None, not {budget!r}")
        self._check_idle()
        before, earlier = self._totals(), self._pending
        self._pending = []
        waiting = self._drive(self._cfg, self._buffers(CHUNK, turn=protocol.FLUSH)) if self._plan.evaluate_every else ()
        pieces = [*waiting, *self._close()]
        self._set_caps(budget)
        if self._trying is not None:
            self._trying.fit(budget)
        if self._foreseeing is not None:
            self._foreseeing.fit(budget)
        return self._whole(pieces, before, [self._compete()], earlier)

    def _close(self, cfg: NDArray[Any] | None = None) -> list[Piece]:
        """Close the open instant, of a join whose rows have their turn one by one."""
        cfg = self._cfg if cfg is None else cfg
        return list(self._drive(cfg, self._buffers(turn=protocol.CLOSE, shed=CHUNK))) if self._waits else []

    def set_policy(self, policy: PolicyLike) -> Output:
        """Change the policy, or its numbers, while running. Returned is what comes of closing the open instant, where rows wait.

        Estimates keep their state; another estimator starts from the stored tuples. Priorities that were fixed on arrival are
        computed again, as if all tuples arrived now. Cumulative priorities are kept. A join with `Auto` stops its trials.
        """
        if isinstance(policy, type) or not isinstance(policy, PolicyLike):
            raise SpecError(f"policy must be a policy such as Prob(), not {policy!r}")
        if getattr(policy, "tries_others", False):
            raise SpecError(
                f"policy must not be {policy!r} here: a join tries policies from its beginning on. Build or resume it with that"
            )
        self._check_idle()
        plan = self._plan.with_policy(policy, self._budget)
        plan.check_change(self._plan.signature())
        self._trying = None
        before, earlier = self._totals(), []
        if self._waits:
            earlier, self._pending = self._pending, []
        closed = self._whole(self._close(), before, earlier=earlier)
        self._adopt(plan)
        if self._foreseeing is not None:
            self._foreseeing.adopt(policy)
        return closed

    def _adopt(self, plan: Plan) -> None:
        """Go on by another policy: its state is built from what is stored and known."""
        was = self._plan
        columns = change.carried(contents.gather(self._cfg, self._state), was.signature(), plan)
        cfg = plan.settings(self._budget, **self._watch)
        state = memory.allocate(plan, cfg, self._seed)
        caps = plan.caps(self._budget)
        state["caps"][: len(caps)] = caps
        memory.set_steps(state, plan, self._orders)
        contents.build(plan, cfg, state, columns)
        self._plan, self._cfg, self._state = plan, cfg, state
        self._note_change(was)

    def _note_change(self, was: Plan) -> None:
        """Another policy holds from here on: what it lost has no part in the weights of `Sample`."""
        if was.order.organisation == self._plan.order.organisation:
            return
        lost = int(self._state["evicted"]) + int(self._state["scheduled"]) > 0
        self._weights_from = weights_since.since(self._plan, self.clocks, self.arrived) if lost else None

    @property
    def weights_hold(self) -> bool:
        """Of `Sample`: whether results have weights. After a change to it they do when all rows of before have expired."""
        if self._weights_from is not None and weights_since.is_over(self._weights_from, self.clocks, self.arrived):
            self._weights_from = None
        return push_buffers.has_weights(self._cfg) and self._weights_from is None

    def _check_idle(self) -> None:
        super()._check_idle()
        self._weighted = self.weights_hold  # a push begins with weights, or has none

    def take_in(self, columns: stored.Columns) -> None:
        """Fill an engine that has seen no row."""
        contents.build(self._plan, self._cfg, self._state, columns)

    def set_order(self, order: Sequence[str] | Mapping[str, Sequence[str]]) -> None:
        """Join in another order from now on: one for all, or one for each origin. No result is lost or repeated."""
        self._check_idle()
        orders = orders_of(order, self.names)
        if self._plan.keyed and any(one[0] != origin for origin, one in enumerate(orders)):
            raise SpecError(
                f"order must begin with the new tuple's own stream in a join that is stored by key, not be {order!r}: "
                "build it with that order, or with index='scan'"
            )
        self._use(orders)

    def _use(self, orders: Orders) -> None:
        self._orders = orders
        memory.set_steps(self._state, self._plan, orders)

    def _compete(self) -> NDArray[Any]:
        """Evict down to the caps as they are now. The log has room for all: nothing needs emptying midway."""
        queued = sum(self.queued)
        buffers = self._buffers(turn=protocol.SHRINK, shed=int(self._state["resident"].sum()) + queued + 1)
        buffers["phase"] = protocol.COMPETE
        earlier = 0 if self._waits else 1
        self._state["tick"] -= earlier  # it is a part of the last instant
        while (need := loop.advance(self._cfg, self._state, buffers)) != protocol.DONE:
            self._make_room(self._cfg, need, buffers)
        self._state["tick"] += earlier
        return push_buffers.take_shed(buffers, self._plan.streams)

    def _set_caps(self, budget: Budget | None) -> None:
        self._cfg = self._plan.settings(budget, **self._watch)
        self._put_caps(budget)

    def _put_caps(self, budget: Budget | None) -> None:
        caps = self._plan.caps(budget)
        self._state["caps"][: len(caps)] = caps
        memory.grow_filters(self._plan, self._state, budget)
        self._budget = budget

    # ------------------------------------------------------------------------------------------ selective processing

    def set_fraction(self, fraction: float) -> None:
        """Set r, the part of the windows that rows are compared with."""
        self._check_selective()
        number = isinstance(fraction, int | float | np.floating) and not isinstance(fraction, bool)
        if not number or not 0.0 < fraction <= 1.0:
            raise SpecError(f"fraction must be above 0 and at most 1, not {fraction!r}")
        self._state["fraction"] = fraction
        loop.advance(self._cfg, self._state, self._buffers(turn=protocol.FRACTION))

    @property
    def fraction(self) -> float:
        """r: the part of the windows that rows are compared with."""
        self._check_selective()
        return float(self._state["fraction"])

    @property
    def fractions(self) -> tuple[float, ...]:
        """r of each window: how much of it rows of the other streams are compared with."""
        self._check_selective()
        return tuple(float(number) for number in self._state["fractions"][: self._plan.streams])

    @property
    def type_fractions(self) -> NDArray[np.float64]:
        """r for each window (row) and type of the probing row (column), with utility-based shedding."""
        self._check_selective()
        return self._state.arrays["kind_fraction"].reshape(self._plan.streams, -1).copy()

    @property
    def ranking(self) -> tuple[list[int], ...]:
        """The ages of each window's basic windows, most profitable first. Age 0 holds the present, -1 lies ahead."""
        self._check_selective()
        ages, ahead = self._plan.ages()
        return tuple((self._state.arrays["age_rank"].reshape(-1, ages) - ahead).tolist())

    def _check_selective(self) -> None:
        if self._plan.selective is None:
            raise SpecError("a join without selective processing compares with whole windows: it has no fraction")

    @property
    def _types(self) -> int:
        return 0 if self._plan.selective is None else self._plan.selective.types

    # ---------------------------------------------------------------------------------------------------- join orders

    def _next_stop(self, batch: Batch, start: int) -> int:
        """The first border between instants at or after the next look at the statistics, or at other policies."""
        looks = (
            [self._statistics.next_look - int(self._state["rows"])] if self._statistics.next_look is not None else []
        )
        if self._trying is not None and self._trying.runs:
            looks.append(self._trying.due - self._trying.rows)
        if self._foreseeing is not None and self._foreseeing.runs:
            looks.append(self._foreseeing.due - self._foreseeing.rows)
        end = start + max(min(looks), 1) if looks else len(batch)
        step = SEARCHED
        while end < len(batch):
            borders = np.flatnonzero(np.diff(batch.ts[end - 1 : end + step]))
            if borders.size:
                return end + int(borders[0])
            end, step = min(end + step, len(batch)), 2 * step
        return len(batch)

    def _look(self) -> None:
        statistics = self._statistics
        if statistics.next_look is None or statistics.reordering is None or self._state["rows"] < statistics.next_look:
            return
        better = statistics.better(self._cfg, self._state, self._orders)
        if better is not None:
            self._use(better.orders)
        # A look takes time in proportion to what is stored.
        wait = max(statistics.reordering.every, sum(self.residents))
        statistics.next_look = int(self._state["rows"]) + wait

    def explain(self) -> str:
        """The join orders in use, what they are expected to cost by the streams as they are, and why."""
        model = copy(self._statistics).look(self._cfg, self._state)  # a copy: asking changes nothing
        if model is None:
            lines = [
                f"a new tuple of {self.names[o]}: {', '.join(self.names[s] for s in order)}"
                for o, order in enumerate(self._orders)
            ]
            return "\n".join([*lines, "nothing is known of the streams yet: costs are worked out when time has passed"])
        return JoinOrder(model, self._orders, model.cost_of_orders(self._orders)).explain()

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

    # ------------------------------------------------------------------------------------------------- what is stored

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return self._plan.names

    @property
    def plan(self) -> Plan:
        """What it runs by."""
        return self._plan

    @property
    def budget(self) -> Budget | None:
        return self._budget

    @property
    def trying(self) -> Trying | None:
        """Of a join with `Auto`: the policy in use (`now`), the log of changes (`changes`), and what is tried."""
        return self._trying

    @property
    def foreseeing(self) -> Foreseeing | None:
        """Of a join with `JoinSpec.what_if`: the miniatures with other memories."""
        return self._foreseeing

    def what_if(self, live: Measured | None = None, *, level: float = 0.95) -> Curve | None:
        """The recall of other memory sizes, with limits. None: not known yet, or never (`foreseeing.why`).

        Parameters
        ----------
        live
            Measured recall (`LiveRecall.estimate(recent=True)`) to correct the curve. None: the number of delivered results
            corrects it.
        level
            The level of the limits.
        """
        return curve_of([self.what_if_sums()], live=live, level=level)

    def what_if_sums(self) -> dict[str, Any]:
        """The sums behind `what_if`, as plain data: `shedjoin.what_if.curve_of` makes a curve of those of several engines."""
        if self._foreseeing is None:
            raise SpecError("what_if needs a join that tries other memories: JoinSpec(..., what_if=WhatIf())")
        return self._foreseeing.sums()

    @property
    def arrived(self) -> tuple[int, ...]:
        """Rows of each stream so far, anywhere; the next one gets this number."""
        return self._by_stream("numbered" if self._waits else "arrived")

    @property
    def queued(self) -> tuple[int, ...]:
        """Rows of each stream that wait for the CPU."""
        return self._by_stream("queued_rows") if self._waits else (0,) * self._plan.streams

    @property
    def worked(self) -> float:
        """Units of work that the virtual CPU has done."""
        return float(self._state["worked"]) if self._waits else 0.0

    @property
    def shares(self) -> tuple[float, float]:
        """Dual windows: k_r and k_f, the shares of rows that are shed at the rear and at the front."""
        return (float(self._state["rear_share"]), float(self._state["front_share"])) if self._waits else (0.0, 0.0)

    @property
    def _waits(self) -> bool:
        """Whether rows wait for their turn."""
        return self._plan.admission is not None

    @property
    def residents(self) -> tuple[int, ...]:
        """Stored tuples of each stream."""
        return self._by_stream("resident")

    @property
    def stored_bytes(self) -> tuple[int, ...]:
        """The summed `bytes` of the stored tuples of each stream."""
        return self._by_stream("stored_bytes")

    @property
    def used(self) -> tuple[int, ...]:
        """What counts against the budget, for each stream: tuples or bytes."""
        return self._by_stream("stored_bytes" if self._cfg[0]["by_bytes"] else "resident")

    @property
    def clocks(self) -> tuple[int | None, ...]:
        """The largest time of each stream that has gone through the join."""
        return tuple(None if clock == NEVER else clock for clock in self._by_stream("clock"))

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        more = {name: int(self._state[name]) for name in ("peak_tuples", "peak_bytes")}
        return {**self._totals(), "instants": int(self._state["tick"]), **more}

    @property
    def alone(self) -> int:
        """Single rows delivered so far: those of a semi or an anti join, and unmatched rows of an outer join."""
        return self.counters["results" if self._plan.how.gives == FIRSTS else "certain"]

    @property
    def sure_recall(self) -> float | None:
        """At least this share of the rows that the join gives alone was delivered; None in inner joins.

        It counts rows that were delivered, were shed, or have left their windows. It does not know of partners that came too
        late: with late rows the share may be lower.

        Examples
        --------
        >>> import shedjoin as sj
        >>> engine = sj.JoinSpec(sj.TimeWindow(4), sj.Budget(tuples=2), sj.Simp(), how="anti").build()
        >>> out = engine.push({"left": {"key": [1, 2, 3, 4]}, "right": {"key": [9, 8, 2, 9], "ts": [9, 9, 9, 9]}})
        >>> len(out), engine.counters["unknown"], engine.sure_recall
        (2, 2, 0.5)
        """
        if not self._plan.how.judged:
            return None
        return sure_recall(self.alone, self.counters["unknown"])

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance"])

    @property
    def trace(self) -> Integers:
        """(ts, what is stored of each stream), one line for every `trace_every` instants."""
        return np.concatenate([np.empty((0, self._plan.streams + 1), np.int64), *self._trace])

    def inverses(self) -> Inverses:
        """Of `Sample`: for each stored tuple, in the order of arrival, one divided by the probability that it is still stored."""
        self._check_idle()
        if not push_buffers.has_weights(self._cfg):
            raise InputError("stored tuples have known probabilities with policy=Sample() only")
        return inverses(self._cfg, self._state)

    def live(self, stream: int | str) -> Integers:
        """The row numbers of the stored tuples of a stream (by its number or name), in ascending order."""
        number = self.names.index(stream) if stream in self.names else stream
        if isinstance(number, bool) or number not in range(self._plan.streams):
            known = ", ".join(f"{place} ({name})" for place, name in enumerate(self.names))
            raise InputError(f"stream must be one of {known}, not {stream!r}")
        self._check_idle()
        items = stored.live_tuples(self._state)
        mine = items[self._state.arrays["pool"]["stream"][items] == number]
        return np.sort(stored.cards_of(self._cfg, self._state, mine)["seq"])

    def kept(self, stream: int) -> Integers:
        """The same, and those of rows that wait for their turn: whatever may still be in a result."""
        rows = self._waiting_rows
        waiting: Integers = rows["seq"][rows["stream"] == stream]
        return np.sort(np.concatenate([self.live(stream), waiting])) if waiting.size else self.live(stream)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Rows of each stream that wait for the CPU, or in the aux-window."""
        return tuple(np.bincount(self._waiting_rows["stream"], minlength=self._plan.streams).tolist())

    @property
    def _waiting_rows(self) -> NDArray[Any]:
        if not self._waits:
            return np.zeros(0, WAITING_RECORD)
        rows: NDArray[Any] = self._state.arrays["waiting"][waiting_rows.in_use(self._state)]
        return rows

    @property
    def widths(self) -> tuple[int, int]:
        """How many attributes a row has room for, by which it is joined; and how many numbers that the condition looks at."""
        return self._plan.attributes, self._plan.width - self._plan.attributes

    def forget_peaks(self) -> None:
        """From now on, peaks are those since here."""
        self._state["peak_tuples"], self._state["peak_bytes"] = sum(self.residents), sum(self.stored_bytes)

    def _by_stream(self, field: str) -> tuple[int, ...]:
        return tuple(int(number) for number in self._state[field][: self._plan.streams])

    def _totals(self) -> dict[str, int]:
        more: tuple[str, ...] = WORK_COUNTERS if self._cfg[0]["counts_work"] or self._waits else ()
        more += WAITING_COUNTERS if self._waits else ()
        totals = {name: int(self._state[name]) for name in (*COUNTERS, *more)}
        if self._cfg[0]["dual"]:
            totals["let_in"] = sum(self._by_stream("rows_let_in"))
        return totals


def _check_meaning(plan: Plan, signature: dict[str, Any]) -> None:
    """A snapshot must be of a join with the same results."""
    for name, mine in plan.meaning().items():
        theirs = signature.get(name)
        if theirs != mine:
            raise SnapshotError(
                f"the snapshot is of a join with another {name}: it has {theirs!r}, this join {mine!r}. Only the budget, the "
                "policy, given shares of dual windows and the join order may change between a snapshot and its resumption."
            )
