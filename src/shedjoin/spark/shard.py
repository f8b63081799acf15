"""One shard of the join: blobs in, blobs out, state kept. Runs inside Spark's stateful operator, and without it in batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.batch import Batch
from shedjoin.engine import codes
from shedjoin.engine.engine import Engine
from shedjoin.engine.output import LeftOutLog, Output, ShedLog
from shedjoin.engine.pace import Watch
from shedjoin.engine.records import LEFT_OUT_FIELDS, NEVER, shed_record
from shedjoin.join_type import FIRSTS, TYPES
from shedjoin.policies import Auto
from shedjoin.spark.archive import LEFT_OUT_COLUMNS
from shedjoin.spark.deadline import loads_kernels
from shedjoin.spark.exchange import (
    LATE,
    LEFT_OUT,
    METRIC,
    OWN,
    RESULT,
    SHED,
    Given,
    Message,
    dropped_in,
    inputs_of,
    times_of,
    to_blob,
)
from shedjoin.spark.job import Job
from shedjoin.spark.metrics import metric_schema
from shedjoin.spark.micro_batch import MicroBatch, arrange, dropped_here, keys_of
from shedjoin.spark.packing import ID
from shedjoin.spark.payload import NOTHING, assemble, assemble_alone, gather
from shedjoin.spark.shard_state import ShardState
from shedjoin.spark.state import Store
from shedjoin.spark.task_report import Integers
from shedjoin.spark.weights import weights_of
from shedjoin.spec import JoinSpec
from shedjoin.what_if import written

#: Results leave in blobs of about this many bytes and at most this many rows.
BLOB_BYTES, BLOB_ROWS = 1 << 24, 1 << 16
#: What is counted in each micro-batch, under the engine's own names.
_COUNTED = ("results", "evicted", "scheduled", "expired", "forgotten")
#: What a shard makes: of which kind, and rows of it.
Made = tuple[str, Sequence[pa.RecordBatch]]


class Shard:
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
        self.job = job
        self.number = number
        self.clock = clock
        self.state = ShardState(job, number, store, clock)
        self.part = self.state.part
        # Metrics count a row once: in the first of the shards it goes to, or where it is stored.
        everywhere = job.cube.is_everywhere
        self.counts = np.array(
            [everywhere or job.cube.first_of(number, stream) == number for stream in range(job.streams)], np.bool_
        )
        self.late = 0
        self.dropped = [0] * job.streams

    @property
    def engine(self) -> Engine:
        return self.state.engine

    @property
    def spec(self) -> JoinSpec:
        return self.state.spec

    def run(self, messages: Iterable[Message]) -> Iterator[Given]:
        """The same as blobs, as they cross Spark; and the number of late rows."""
        for kind, batches in self.batches(messages):
            yield kind, to_blob(*batches)
        if self.late:
            yield LATE, str(self.late).encode()

    def batches(self, messages: Iterable[Message]) -> Iterator[Made]:
        """Take in a micro-batch, give what comes of it, and save the state."""
        began, state = self.clock(), self.state
        try:
            state.open()
            before, seqs = self.engine.counters, self.engine.arrived
            batch = arrange(messages, self.spec, self.job.cube, self.number, seqs, *self.engine.widths)
            state.pacing.arrive(batch.began, None if state.head is None else state.head["ended"])
            was = self.engine.budget
            changed = state.change_budget(batch)
            self.engine.forget_peaks()
            numbers = [batch.numbers(stream, first) for stream, first in enumerate(seqs)]
            own = [one % self.part[1] == self.part[0] for one in numbers]  # all of them, unless rows go everywhere
            state.add_columns(batch.tables, numbers)
            yield from self._echo(batch, numbers, own)
            if state.live is not None:  # its time is part of what a deadline leaves to the join
                state.live.begin(batch.rows)
                state.live.drop(dropped_here(batch.rows, batch.dropped, seqs, self.part))
            watch = self._watch(batch, self.clock() - began)
            yield from self._join(batch, changed, watch)
            yield from self._front(batch, numbers, own)
            state.look_at_target(batch)
            state.keep_own_columns(batch.tables, seqs)
            state.save(batch, watch, moved=self.engine.budget != was)
            if METRIC in self.job.kinds:
                rows = [int(one.sum()) for one in own]
                yield METRIC, self._metric(before, rows, self.clock() - began)
        except BaseException:  # also when Spark stops reading
            state.discard_copy()
            raise

    def _watch(self, batch: MicroBatch, spent: float) -> Watch | None:
        """Holds the join to what is left of the deadline."""
        if self.job.deadline is None:
            return None
        pacing = self.state.pacing
        if loads_kernels(self.spec, self.part, batch.joined):
            pacing.forgive()
            spent = 0.0
        return pacing.watch(self.spec, spent)

    # -------------------------------------------------------------------------------------------------------- the join

    def _join(self, batch: MicroBatch, changed: ShedLog, watch: Watch | None) -> Iterator[Made]:
        yield from self._shed(changed)
        limit = self._limit()
        waiting: list[Output] = []  # a piece may be small, but a blob has its price
        rows = 0
        for out in self._pieces(batch, limit, watch):
            if waiting and rows + len(out) > limit:
                yield from self._results(waiting)
                waiting, rows = [], 0
            if len(out):
                waiting.append(out)
                rows += len(out)
            yield from self._shed(out.shed)
            yield from self._left_out(out.left_out)
        if waiting:
            yield from self._results(waiting)

    def _pieces(self, batch: MicroBatch, limit: int, watch: Watch | None) -> Iterator[Output]:
        """What the engine gives, which the estimate of recall follows. In batch, results of rows that wait come too."""
        live, clocks, arrived = self.state.live, batch.clocks, batch.arrived
        pieces = self.engine.chunks(batch.joined, limit=limit, clocks=clocks, arrived=arrived, pace=watch)
        yield from pieces if live is None else live.followed(batch.rows, pieces, clocks, arrived)
        waits = self.spec.evaluate_every or self.spec.dual is not None
        if (waits or TYPES[self.spec.how].judged) and self.state.store is None:
            out = self.engine.end()
            if live is not None:
                live.follow(Batch.of(), out)
            yield out

    def _limit(self) -> int:
        """How many results make a blob."""
        payloads = self.state.payloads
        width = sum(payload.nbytes / max(payload.rows, 1) for payload in payloads)
        return int(min(BLOB_ROWS, max(BLOB_BYTES / max(width, 1.0), 256)))

    def _results(self, pieces: list[Output]) -> Iterator[Made]:
        """Results with their columns."""
        found = Output.joined(pieces)
        numbers = found.columns
        if not self.job.schemas:
            yield RESULT, self._whole(numbers, weights_of(found, self.number) if self.job.weights else NOTHING)
            return
        there = [column >= 0 for column in numbers]
        whole = np.logical_and.reduce(there)
        if whole.any():
            yield RESULT, self._whole(tuple(column[whole] for column in numbers))
        schemas = [pa.ipc.read_schema(pa.py_buffer(schema)) for schema in self.job.schemas]
        for side, column in enumerate(numbers):
            if (alone := there[side] & ~whole).any():
                yield RESULT, [assemble_alone(self.state.payloads, schemas, side, column[alone])]

    def _whole(self, numbers: tuple[Integers, ...], beside: Mapping[str, pa.Array] = NOTHING) -> list[pa.RecordBatch]:
        """Rows of all streams. Of two streams, batches as the segments are; of more, those would be too many."""
        payloads = self.state.payloads
        if len(numbers) == 2:
            return list(gather(payloads[0], payloads[1], (numbers[0], numbers[1]), beside))
        return [assemble(payloads, numbers, beside)]

    # ---------------------------------------------------------------------------------------------------------- the logs

    def _front(self, batch: MicroBatch, numbers: Sequence[Integers], own: Sequence[Any]) -> Iterator[Made]:
        """Log the rows that were dropped before they came here."""
        records = []
        for stream, table in enumerate(batch.tables):
            if table is None or not (dropped := dropped_in(table) & own[stream]).any():
                continue
            chosen = np.flatnonzero(dropped)
            self.dropped[stream] = chosen.size
            made = np.zeros(chosen.size, shed_record(self.job.streams))
            made["stream"], made["why"], made["seq"] = stream, codes.DROPPED, numbers[stream][chosen]
            made["ts"] = made["when"] = times_of(table)[chosen]
            made["key"] = 0 if batch.rows.values is not None else keys_of(table.column("key"))[chosen]
            made["seen"], made["expired"] = self.engine.arrived, NEVER
            records.append(made)
        yield from self._shed(ShedLog(records, self.engine.names))

    def _shed(self, log: ShedLog) -> Iterator[Made]:
        """The shed log as rows."""
        if not len(log):
            return
        late = log.why == codes.LATE
        self.late += int((self.counts[log.stream] & late).sum())
        if SHED not in self.job.kinds:
            return
        rows, seen, expired = len(log), log.seen, log.expired
        columns = {
            "shard": pa.array(np.full(rows, self.number, np.int32)),
            "stream": pa.array(log.stream.astype(np.int32)),
            "seq": pa.array(log.seq),
            "ts": pa.array(log.ts),
            "key": pa.array(log.key),
            "left_at": pa.array(log.when),
            "why": pa.array(np.array(codes.WHY, dtype=object)[log.why], pa.string()),
            **{f"seen_{name}": pa.array(seen[:, place]) for place, name in enumerate(self.job.names)},
            **{
                f"expired_{name}": pa.array(expired[:, place], mask=expired[:, place] == NEVER)
                for place, name in enumerate(self.job.names)
            },
            "batch": pa.array(np.full(rows, self.state.batches, np.int64)),
            **self._keys_of(log),
        }
        yield SHED, [pa.RecordBatch.from_pydict(columns)]

    def _keys_of(self, log: ShedLog) -> dict[str, pa.Array]:
        """The key columns of rows that were shed, where keys are hashed."""
        if self.job.keys is None:
            return {}
        schema = pa.ipc.read_schema(pa.py_buffer(self.job.keys))
        parts, places = [], []
        for stream, payload in enumerate(self.state.payloads):
            mine = np.flatnonzero(log.stream == stream)
            if mine.size:
                rows = payload.rows_at(log.seq[mine])
                columns = [rows.column(place).cast(field.type) for place, field in enumerate(schema)]
                parts.append(pa.RecordBatch.from_arrays(columns, schema=schema))
                places.append(mine)
        whole = pa.concat_batches(parts).take(pa.array(np.argsort(np.concatenate(places))))
        return dict(zip(schema.names, whole.columns, strict=True))

    def _left_out(self, log: LeftOutLog) -> Iterator[Made]:
        """What rows were not compared with."""
        if LEFT_OUT not in self.job.kinds or not len(log):
            return
        own = {name: pa.array(getattr(log, name)) for name in LEFT_OUT_FIELDS}
        for name in ("stream", "other"):
            own[name] = own[name].cast(pa.int32())
        known = {"shard": pa.array(np.full(len(log), self.number, np.int32)), **own}
        known["batch"] = pa.array(np.full(len(log), self.state.batches, np.int64))
        yield LEFT_OUT, [pa.RecordBatch.from_pydict({name: known[name] for name in LEFT_OUT_COLUMNS})]

    # ------------------------------------------------------------------------------------------------------- the archive

    def _echo(self, batch: MicroBatch, seqs: Sequence[Integers], own: Sequence[Any]) -> Iterator[Made]:
        """The input rows with their numbers, for an archive; each row that goes everywhere where it is stored."""
        for stream, (table, kind) in enumerate(zip(batch.tables, inputs_of(self.job.names), strict=True)):
            if table is None or kind not in self.job.kinds:
                continue
            if self.part[1] > 1:
                table = table.filter(pa.array(own[stream]))
            numbers = seqs[stream][own[stream]]
            for start in range(0, table.num_rows, BLOB_ROWS):
                columns = self._archived(table.slice(start, BLOB_ROWS), numbers[start : start + BLOB_ROWS])
                names = [f"a{place}" for place in range(len(columns))]
                yield kind, [pa.RecordBatch.from_arrays(columns, names=names)]

    def _archived(self, part: pa.RecordBatch, seqs: Integers) -> list[pa.Array]:
        """The user's columns of rows with these numbers, then those that the join adds."""
        rows, imp, key = part.num_rows, part.column("importance"), part.column("key")
        named = part.schema.names[-1] == ID
        columns = part.columns[len(OWN) :]
        return [
            *(columns[:-1] if named else columns),
            pa.array(np.full(rows, self.number, np.int32)),
            pa.array(seqs),
            _listed(key) if pa.types.is_struct(key.type) else key,
            pa.array(times_of(part)),
            pa.array(np.ones(rows)) if pa.types.is_null(imp.type) else imp,
            *(columns[-1:] if named else []),
        ]

    # ------------------------------------------------------------------------------------------------------- the metrics

    def _metric(self, before: dict[str, int], rows: Sequence[int], seconds: float) -> list[pa.RecordBatch]:
        """One row that says how the shard fared in this micro-batch, with this many rows of each stream."""
        schema = metric_schema(
            self.job.names,
            selective=self.spec.selective is not None,
            front=self.job.front,
            unmatched=self._judges,
            target=self.job.target is not None or self.job.error is not None,
            error=self.job.error is not None,
            rear=self.spec.dual is not None,
            tries=isinstance(self.spec.policy, Auto),
            forgets=self.job.asked is not None,
            what_if=self.spec.what_if is not None,
        )
        known = self._known(before, rows, seconds) | self._recall()
        row = pa.array([known], pa.struct(list(schema)))  # one call for all columns: each has its price
        return [pa.RecordBatch.from_arrays(row.flatten(), schema=schema)]

    def _known(self, before: dict[str, int], rows: Sequence[int], seconds: float) -> dict[str, Any]:
        """What this row says. `before`: the engine's totals then."""
        engine, counters, blobs = self.engine, self.engine.counters, self.state.blobs
        known: dict[str, Any] = {name: counters.get(name, 0) - before.get(name, 0) for name in _COUNTED}
        known |= {
            "batch": self.state.batches,
            "shard": self.number,
            "at": datetime.now(UTC),
            # The engine was not told the keys of dropped rows.
            "nulls": counters["null"] - before["null"] - sum(self.dropped),
            "late": self.late,
            "peak_tuples": counters["peak_tuples"],
            "peak_bytes": counters["peak_bytes"] + self.job.set_aside,
            "state_bytes": blobs.written if blobs is not None else 0,
            "seconds": seconds,
            "restored": self.state.restored,
            "changed": self.state.changed,
        }
        for stream, name in enumerate(self.job.names):
            known[f"rows_{name}"] = rows[stream] * int(self.counts[stream])
            known[f"dropped_{name}"] = self.dropped[stream] * int(self.counts[stream])
            known[f"resident_{name}"] = engine.residents[stream]
            known[f"bytes_{name}"] = engine.stored_bytes[stream] + self.job.set_aside // self.job.streams
            known[f"clock_{name}"] = engine.clocks[stream]
        if engine.budget is not None:
            allowed = engine.budget.total + self.job.set_aside
            if (control := self.state.control) is not None:
                known |= {"allowed": allowed, "limited": control.limited}
            if (follower := self.state.error) is not None:
                known |= follower.known(allowed)
        if (trying := engine.trying) is not None:
            known |= {"policy": repr(trying.now), "policy_changes": len(trying.changes), "policy_why": trying.why}
        if self.spec.dual is not None:
            known |= {"unprobed": counters["unprobed"] - before["unprobed"], "waiting": sum(engine.waiting)}
        if (foreseeing := engine.foreseeing) is not None:
            known |= {"what_if": written(engine.what_if_sums()), "what_if_why": foreseeing.why or None}
        if self._judges:
            known |= {name: counters[name] - before.get(name, 0) for name in ("certain", "unknown")}
            known["alone"] = known["results" if TYPES[self.spec.how].gives == FIRSTS else "certain"]
        if self.spec.selective is not None:
            known["fraction"] = engine.fraction
            known |= {name: counters[name] - before.get(name, 0) for name in ("partial", "compared")}
            for stream, name in enumerate(self.job.names):
                known[f"fraction_{name}"] = engine.fractions[stream]
                known[f"ranking_{name}"] = engine.ranking[stream]
        return known

    @property
    def _judges(self) -> bool:
        """Whether rows without a partner are judged: certain or unknown."""
        return bool(TYPES[self.spec.how].judged)

    def _recall(self) -> dict[str, Any]:
        """The estimate of recall, and the sums that it is made of."""
        if (live := self.state.live) is None:
            return {}
        now = live.estimate()
        return {
            **live.sums(),
            "recall_from": self.state.recall_from,
            "recall": now.recall,
            "recall_low": now.low,
            "recall_high": now.high,
            "importance_recall": now.importance,
            "importance_recall_low": now.importance_low,
            "importance_recall_high": now.importance_high,
        }


def _listed(key: pa.Array) -> pa.Array:
    """Attributes as a list of numbers, null where the row lacks one."""
    columns = [attribute.fill_null(0) for attribute in key.flatten()]
    many, rows = len(columns), len(key)
    flat = np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1).reshape(-1)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * many)
    return pa.ListArray.from_arrays(offsets, pa.array(flat, pa.int64()), mask=key.is_null())
