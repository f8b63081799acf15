"""One shard of the join: blobs in, blobs out, state kept. Runs inside Spark's stateful operator, and without it in batch."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import COLUMNS, ROW_BYTES, Batch, Values
from shedjoin.engine.codes import DROPPED, LATE
from shedjoin.engine.engine import Engine
from shedjoin.engine.output import LeftOutLog, Output, ShedLog
from shedjoin.engine.pace import Watch
from shedjoin.engine.records import LEFT_OUT_FIELDS, NEVER, shed_record
from shedjoin.errors import SnapshotError
from shedjoin.recall.live import LiveRecall
from shedjoin.spark.archive import LEFT_OUT_COLUMNS
from shedjoin.spark.deadline import Pacing, loads_kernels
from shedjoin.spark.exchange import (
    LEFT_OUT,
    METRIC,
    OWN,
    RESULT,
    SHED,
    Given,
    Message,
    began_of,
    dropped_in,
    from_blob,
    inputs_of,
    sorted_by_time,
    times_of,
    to_blob,
)
from shedjoin.spark.job import Job
from shedjoin.spark.keeping import BLOB_ROWS, Keeping, one_row
from shedjoin.spark.lasting import MAY_DIFFER, another, began_with_budget, check_budget, check_same, may_change
from shedjoin.spark.metrics import metric_schema
from shedjoin.spark.payload import assemble, gather
from shedjoin.spark.predicate_values import values_in
from shedjoin.spark.row_numbers import Times, number, read, without_counts
from shedjoin.spark.shares import Counts, Picture
from shedjoin.spark.state import (
    FORMAT,
    EngineLog,
    Redo,
    Store,
    as_it_was,
    changing,
    read_head,
    write_head,
)
from shedjoin.spec import JoinSpec

Integers = NDArray[np.int64]


class Arrived(NamedTuple):
    """A micro-batch, in order: the engine's columns, and the tables of each stream."""

    batch: Batch
    clocks: tuple[int | None, ...]
    tables: list[pa.RecordBatch | None]
    counts: list[list[Counts]]
    arrived: tuple[int, ...] | None = None  # rows of each stream anywhere, where rows are counted elsewhere
    began: float | None = None  # when the first task began to read, by the clock on the wall, where there is a deadline

    def numbers(self, stream: int, first: int) -> Integers:
        """The numbers of the rows of a stream, of which `first` had come before where they are counted here."""
        if self.batch.numbers is not None:
            mine: Integers = self.batch.numbers.seq[self.batch.stream == stream]
            return mine
        table = self.tables[stream]
        return np.arange(first, first + (0 if table is None else table.num_rows))


def arrange(messages: Iterable[Message], join: JoinSpec, width: int = 1, start: Sequence[int] = ()) -> Arrived:
    """Rows of all streams sorted by time; on equal times in the order of streams, then by task and place in it.

    `width`: the most attributes that a stream is joined on. Where rows are counted elsewhere, `start` is how many of each stream
    have come anywhere.
    """
    ordered = sorted(messages, key=lambda message: (message.stream, message.task, message.part))
    clocks: list[int | None] = []
    tables: list[pa.RecordBatch | None] = []
    counts: list[list[Counts]] = []
    starts: list[float] = []
    told: list[list[Times]] = []
    for stream in range(len(join.windows)):
        mine = [message for message in ordered if message.stream == stream]
        newest = max((message.newest for message in mine), default=NEVER)
        clocks.append(None if newest == NEVER else newest)
        parts = [rows for message in mine if message.rows for rows in from_blob(message.blob)]
        tables.append(sorted_by_time(parts) if parts else None)
        last = [message.blob for message in mine if not message.rows and message.blob is not None]
        starts += [began for blob in last if (began := began_of(blob)) is not None]
        last = [blob for blob in last if began_of(blob) is None]
        if join.counted_elsewhere:
            both = [without_counts(blob) for blob in last]
            told.append([read(times) for _, times in both])
            last = [counted for counted, _ in both if counted is not None]
        counts.append([Counts.from_bytes(blob) for blob in last])
    batch, began = _interleaved(tables, width), min(starts, default=None)
    if not join.counted_elsewhere:
        return Arrived(batch, tuple(clocks), tables, counts, began=began)
    numbered, arrived = number(batch, told, start)
    return Arrived(numbered, tuple(clocks), tables, counts, arrived, began)


def _interleaved(tables: list[pa.RecordBatch | None], width: int) -> Batch:
    sides = [_columns(table, stream, width) for stream, table in enumerate(tables) if table is not None]
    if not sides:
        return Batch.nothing(width)
    columns: dict[str, Any] = {name: np.concatenate([side[name] for side in sides]) for name in COLUMNS}
    values = [
        values_in(table.column("value")) for table in tables if table is not None and "value" in table.schema.names
    ]
    if any("kind" in side for side in sides):
        columns["kind"] = np.concatenate([side.get("kind", np.zeros_like(side["stream"])) for side in sides])
    if values:  # what a predicate compares
        columns["values"] = values[0] if len(values) == 1 else Values.joined(values[0], values[1])
        columns["null"] = columns["values"].null
    whole = Batch(**columns)
    return whole if len(sides) == 1 else whole.take(np.argsort(whole.ts, kind="stable"))


def _columns(table: pa.RecordBatch, stream: int, width: int) -> dict[str, NDArray[Any]]:
    rows = table.num_rows
    key, importance, size, kind = (table.column(name) for name in ("key", "importance", "bytes", "kind"))
    typed = {} if pa.types.is_null(kind.type) else {"kind": kind.to_numpy()}
    return typed | {
        "stream": np.full(rows, stream, np.int64),
        "key": np.zeros(rows, np.int64) if pa.types.is_null(key.type) else _keys(key, width),
        # Dropped rows are numbered, and join nothing.
        "null": np.asarray(key.is_null().to_numpy(zero_copy_only=False), np.bool_) | dropped_in(table),
        "ts": times_of(table),
        "importance": np.ones(rows) if pa.types.is_null(importance.type) else importance.to_numpy(),
        "bytes": np.full(rows, ROW_BYTES, np.int64) if pa.types.is_null(size.type) else size.to_numpy(),
    }


def _keys(key: pa.Array, width: int) -> NDArray[np.int64]:
    """Keys as the engine takes them: numbers, or in a join graph a line of attributes for each row."""
    if not pa.types.is_struct(key.type):
        return np.asarray(key.fill_null(0).to_numpy(zero_copy_only=False))
    made = np.zeros((len(key), width), np.int64)
    for place, attribute in enumerate(key.flatten()):
        made[:, place] = attribute.fill_null(0).to_numpy(zero_copy_only=False)
    return made[:, 0].copy() if width == 1 else made


class Shard(Keeping):
    """One shard, for one micro-batch.

    Parameters
    ----------
    job
        The join.
    number
        Which shard of it.
    store
        Where its state is kept; None: nowhere (a batch join begins and ends with its input).
    """

    def __init__(
        self,
        job: Job,
        number: int,
        store: Store | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(job, number, store, job.streams)
        self.job = job
        self.spec = job.spec_of(number)
        self.part = job.part_of(number)
        self.pacing = Pacing(job.deadline, clock)
        self.clock = clock
        self.log = EngineLog.new(self.spec)
        self.picture: Picture | None = Picture.new(job.shards, job.streams) if job.adaptive else None
        self.policy_changed = False
        self.width = 1
        self.late_rows: list[tuple[Integers, Integers]] = []  # of this micro-batch: streams and numbers
        self.dropped = [0] * job.streams
        self.engine: Engine
        self.live: LiveRecall | None = None

    def run(self, messages: Iterable[Message]) -> Iterator[Given]:
        """Take in a micro-batch, give what comes of it, and save the state."""
        began = self.clock()
        try:
            self._open()
            before = self.engine.counters
            arrived = arrange(messages, self.spec, self.width, self.engine.arrived)
            self.pacing.arrive(arrived.began, None if self.head is None else self.head["ended"])
            was = self.engine.budget
            changed = self._change_budget(arrived)
            self.engine.forget_peaks()
            seqs = self.engine.arrived
            numbers = [arrived.numbers(stream, first) for stream, first in enumerate(seqs)]
            self._store_payload(arrived.tables, seqs, numbers if self.spec.counted_elsewhere else None)
            yield from self._echo(arrived, numbers)
            if self.live is not None:
                self.live.begin(arrived.batch)  # its time is part of what a deadline leaves to the join
            watch = self._watch(arrived, self.clock() - began)
            yield from self._join(arrived, changed, watch)
            yield from self._front(arrived, numbers)
            self._keep_own(arrived, seqs)
            self._save(arrived, watch, moved=self.engine.budget != was)
            yield from self._late(self.engine, before)
            if METRIC in self.job.kinds:
                rows = [int((one % self.part[1] == self.part[0]).sum()) for one in numbers]  # each counts in one shard
                yield METRIC, self._metric(before, rows, self.clock() - began)
        except BaseException:  # also when Spark stops reading
            self._drop_copy()
            raise

    def _watch(self, arrived: Arrived, spent: float) -> Watch | None:
        """Holds the join to what is left of the deadline."""
        if self.job.deadline is None:
            return None
        if loads_kernels(self.spec, self.part, arrived.batch):
            self.pacing.forgive()
            spent = 0.0
        return self.pacing.watch(self.spec, spent)

    # --------------------------------------------------------------------------------------------------- the state

    def _open(self) -> None:
        """The state as of the last micro-batch."""
        self.head = read_head(self.store) if self.store is not None else None
        if self.head is None or self.blobs is None:
            self.engine = self.spec.build(seed=self.job.seed_of(self.number), part=self.part)
            self.live = self._estimate(self.spec)
            self._begin()
            return
        words = may_change()
        check_same(self.head["join"], self._signature(), words, timestamps=self.job.timestamps)
        self._go_on(self.head)
        self.pacing.go_on(self.head)
        self.log = EngineLog(self.head["engine"])
        was = as_it_was(self.spec, self.head["budget"], self.head["policy"])
        if self.spec.budget is None:  # without a cap nobody is chosen: the order goes on as it is
            self.spec = as_it_was(self.spec, None, self.head["policy"])
        if self.picture is not None and self.head["picture"] is not None:
            self.picture = Picture.from_dict(self.head["picture"])
        # An estimate that did not see the beginning would be wrong: none is better.
        self.live = self._estimate(was) if self.head["live"] else None
        if not self._open_copy(was):
            self.engine = self.log.recover(self.blobs, was, self.job.seed_of(self.number), self.live, self.part)
            self._load_payloads()
        self._change_policy(was)

    def _estimate(self, spec: JoinSpec) -> LiveRecall | None:
        """A new estimate of recall, if it is to be told: of a join with a budget or a deadline, whose rows all come here."""
        if not self.job.recall or self.job.front or METRIC not in self.job.kinds:
            return None
        if spec.budget is None and spec.selective is None:
            return None
        return LiveRecall(spec, seed=self.job.seed_of(self.number), part=self.part)

    def _change_policy(self, was: JoinSpec) -> None:
        """Go on by the policy of now, if it differs from the one of before in numbers alone."""
        if self.spec.policy == was.policy:
            return
        check_budget(began_with_budget(was.to_dict()), self.spec.budget is not None)
        assert self.spec.policy is not None
        try:
            self.engine.set_policy(self.spec.policy)
        except SnapshotError as reason:
            words = may_change()
            raise SnapshotError(f"{another('policy', was.policy, self.spec.policy)}. {reason}. {words}") from None
        self.policy_changed = True

    def _change_budget(self, arrived: Arrived) -> ShedLog:
        """Fit what is stored into the budget of now; returns what had to go."""
        budget = self.spec.budget
        if self.picture is not None:
            self.picture = self.picture.follow(arrived.counts, arrived.clocks, JoinSpec.from_dict(self.job.spec))
            budget = self.picture.part(self.number)
        if self.engine.budget == budget:
            return ShedLog((), self.engine.names)
        out = self.engine.set_budget(budget)
        if self.live is not None:
            self.live.follow(Batch.of(), out)
        return out.shed

    def _open_copy(self, spec: JoinSpec) -> bool:
        self.engine = spec.build(part=self.part)
        saved = self._take_copy(self.engine)
        if saved is None:
            return False
        try:
            if self.live is not None:
                self.live.load(saved)
        except SnapshotError:
            self._drop_copy()
            return False
        return True

    def _signature(self) -> dict[str, Any]:
        spec = {name: value for name, value in self.spec.to_dict().items() if name not in MAY_DIFFER}
        if self.spec.policy is not None and self.spec.policy.revision > 1:  # rows are pushed again after a failure
            spec["revision of its policy"] = self.spec.policy.revision
        # Its own number is part of it: no shard ever takes up the state of another.
        return {
            **spec,
            "seed": self.job.seed,
            "shards": list(self.job.labels),
            "shard": self.number,
            **self.job.signature,
        }

    def _save(self, arrived: Arrived, watch: Watch | None, moved: bool) -> None:
        if self.blobs is None or self.store is None:
            return
        began = self.clock()
        now = self.spec.with_budget(self.engine.budget)
        budget, policy = changing(now)
        self._tidy(self.engine)
        new = (budget or {}) if moved else None, policy if self.policy_changed else None
        said = None if watch is None else watch.said
        redo = Redo(arrived.batch, arrived.clocks, *new, arrived.arrived, said)
        self.log.keep(self.blobs, redo, self.engine, self.live, now)
        payloads = self._saved_payloads()
        token = secrets.token_hex(16)
        head = {
            "format": FORMAT,
            "token": token,
            "lineage": self.lineage,
            "join": self._signature(),
            "budget": budget,
            "policy": policy,
            "picture": self.picture.to_dict() if self.picture is not None else None,
            "batches": self.batches + 1,
            "live": self.live is not None,
            "engine": self.log.entry,
            "payloads": payloads,
            "saving": self.clock() - began,
            "gaps": self.pacing.gaps,
            "ended": time.time(),
        }
        self.blobs.written += write_head(self.store, head)
        self._leave_copy(token, self.engine, self.live.to_bytes() if self.live is not None else b"")

    # ------------------------------------------------------------------------------------------------------ the join

    def _keep_own(self, arrived: Arrived, seqs: tuple[int, ...]) -> None:
        """Now that they have probed, columns of rows that are stored elsewhere are of no use here."""
        if self.part[1] == 1:
            return
        for stream, table in enumerate(arrived.tables):
            if table is not None:
                segments = self.payloads[stream].segments
                last = segments.pop()
                live = self.engine.live(stream)
                if live.size and live[-1] >= seqs[stream]:
                    segments.append(last.only(live, last.number, last.level))

    def _followed(self, arrived: Arrived, pieces: Iterator[Output]) -> Iterator[Output]:
        """The pieces of a push, which the estimate of recall follows."""
        if self.live is None:
            return pieces
        return self.live.followed(arrived.batch, pieces, arrived.clocks, arrived.arrived)

    def _join(self, arrived: Arrived, changed: ShedLog, watch: Watch | None) -> Iterator[Given]:
        yield from self._shed(changed)
        limit = self._limit()
        pieces = self.engine.chunks(
            arrived.batch, limit=limit, clocks=arrived.clocks, arrived=arrived.arrived, pace=watch
        )
        waiting: list[tuple[Integers, ...]] = []  # a piece may be small, but a blob has its price
        rows = 0
        for out in self._followed(arrived, pieces):
            if waiting and rows + len(out) > limit:
                yield RESULT, self._results(waiting)
                waiting, rows = [], 0
            if len(out):
                waiting.append(out.columns)
                rows += len(out)
            yield from self._shed(out.shed)
            yield from self._left_out(out.left_out)
        if waiting:
            yield RESULT, self._results(waiting)

    def _results(self, pieces: list[tuple[Integers, ...]]) -> bytes:
        """Results with their columns. Of two streams, batches as the segments are; of more, those would be too many."""
        numbers = pieces[0] if len(pieces) == 1 else tuple(map(np.concatenate, zip(*pieces, strict=True)))
        if len(numbers) == 2:
            return to_blob(*gather(self.payloads[0], self.payloads[1], (numbers[0], numbers[1])))
        return to_blob(assemble(self.payloads, numbers))

    def _front(self, arrived: Arrived, numbers: Sequence[Integers]) -> Iterator[Given]:
        """Log the rows that were dropped before they came here. Those that were late too are logged as such already."""
        if not self.job.front:
            return
        records = []
        for stream, table in enumerate(arrived.tables):
            if table is None or not (dropped := dropped_in(table)).any():
                continue
            late = [seqs[streams == stream] for streams, seqs in self.late_rows]
            chosen = np.flatnonzero(dropped & ~np.isin(numbers[stream], np.concatenate([*late, np.empty(0, np.int64)])))
            self.dropped[stream] = chosen.size
            made = np.zeros(chosen.size, shed_record(self.job.streams))
            made["stream"], made["why"], made["seq"] = stream, DROPPED, numbers[stream][chosen]
            made["ts"] = made["when"] = times_of(table)[chosen]
            made["key"] = table.column("key").fill_null(0).to_numpy(zero_copy_only=False)[chosen]
            made["seen"] = self.engine.arrived
            records.append(made)
        yield from self._shed(ShedLog(records, self.engine.names))

    def _shed(self, log: ShedLog) -> Iterator[Given]:
        if self.job.front and len(log):
            late = log.why == LATE
            self.late_rows.append((log.stream[late], log.seq[late]))
        if SHED in self.job.kinds and len(log):
            yield SHED, to_blob(self._shed_rows(log, pa.array(log.key), self.job.names, self._keys_of(log)))

    def _left_out(self, log: LeftOutLog) -> Iterator[Given]:
        """What rows were not compared with."""
        if LEFT_OUT not in self.job.kinds or not len(log):
            return
        own = {name: pa.array(getattr(log, name)) for name in LEFT_OUT_FIELDS}
        for name in ("stream", "other"):
            own[name] = own[name].cast(pa.int32())
        known = {"shard": pa.array(np.full(len(log), self.number, np.int32)), **own}
        known["batch"] = pa.array(np.full(len(log), self.batches, np.int64))
        yield LEFT_OUT, to_blob(pa.RecordBatch.from_pydict({name: known[name] for name in LEFT_OUT_COLUMNS}))

    def _keys_of(self, log: ShedLog) -> dict[str, pa.Array]:
        """The key columns of rows that were shed, where keys are hashed."""
        if self.job.keys is None:
            return {}
        schema = pa.ipc.read_schema(pa.py_buffer(self.job.keys))
        parts, places = [], []
        for stream, payload in enumerate(self.payloads):
            mine = np.flatnonzero(log.stream == stream)
            if mine.size:
                rows = payload.rows_at(log.seq[mine])
                columns = [rows.column(place).cast(field.type) for place, field in enumerate(schema)]
                parts.append(pa.RecordBatch.from_arrays(columns, schema=schema))
                places.append(mine)
        whole = pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(places))))
        return dict(zip(schema.names, whole.columns, strict=True))

    def _metric(self, before: dict[str, int], rows: Sequence[int], seconds: float) -> bytes:
        """One row that says how the shard fared in this micro-batch, with this many rows of each stream."""
        schema = metric_schema(self.job.names, selective=self.spec.selective is not None, front=self.job.front)
        return one_row(schema, self._known(before, rows, seconds))

    def _known(self, before: dict[str, int], rows: Sequence[int], seconds: float) -> dict[str, Any]:
        """What this row says."""
        engine = self.engine
        known = self._told(engine, self.job.names, before, rows, engine.stored_bytes, seconds)
        known["peak_bytes"] = engine.counters["peak_bytes"]
        known["nulls"] -= sum(self.dropped)  # the engine was not told their keys
        known |= {f"dropped_{name}": count for name, count in zip(self.job.names, self.dropped, strict=True)}
        if self.spec.selective is not None:
            known["fraction"] = engine.fraction
            known |= {name: engine.counters[name] - before.get(name, 0) for name in ("partial", "compared")}
            for stream, name in enumerate(self.job.names):
                known[f"fraction_{name}"] = engine.fractions[stream]
                known[f"ranking_{name}"] = engine.ranking[stream]
        if self.live is not None:
            now = self.live.estimate()
            known |= self.live.sums()
            known |= {"recall": now.recall, "recall_low": now.low, "recall_high": now.high}
            known |= {
                "importance_recall": now.importance,
                "importance_recall_low": now.importance_low,
                "importance_recall_high": now.importance_high,
            }
        return known

    def _echo(self, arrived: Arrived, seqs: Sequence[Integers]) -> Iterator[Given]:
        """The input rows with their numbers, for an archive."""
        for stream, (table, kind) in enumerate(zip(arrived.tables, inputs_of(self.job.names), strict=True)):
            if table is None or kind not in self.job.kinds:
                continue
            for start in range(0, table.num_rows, BLOB_ROWS):
                part, numbers = table.slice(start, BLOB_ROWS), seqs[stream][start : start + BLOB_ROWS]
                if self.job.spread:  # every shard has all rows
                    own = numbers % self.part[1] == self.part[0]
                    part, numbers = part.filter(pa.array(own)), numbers[own]
                columns = self._archived(part, numbers)
                yield (
                    kind,
                    to_blob(pa.RecordBatch.from_arrays(columns, names=[f"a{i}" for i in range(len(columns))])),
                )

    def _archived(self, part: pa.RecordBatch, seqs: Integers) -> list[pa.Array]:
        """The user's columns of rows with these numbers, then those of `ARCHIVED`."""
        rows = part.num_rows
        imp = part.column("importance")
        key, payload = part.column("key"), part.columns[len(OWN) :]
        if self.job.spread:  # what the predicate compares is the last of its columns
            *payload, key = payload
        return [
            *payload,
            pa.array(np.full(rows, self.number, np.int32)),
            pa.array(seqs),
            key,
            pa.array(times_of(part)),
            pa.array(np.ones(rows)) if pa.types.is_null(imp.type) else imp,
        ]
