"""One shard of a join on a predicate: blobs in, blobs out, state kept, and a deadline held.

It does what `operator.Shard` does for joins on keys. Here a row may be sent to all shards: each stores some of the rows and
compares all of them with what it has stored.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.batch import ROW_BYTES
from shedjoin.cpu.engine import PredicateEngine
from shedjoin.cpu.pace import Watch
from shedjoin.spark.exchange import METRIC, RESULT, SHED, Given, Message, to_blob
from shedjoin.spark.job import PredicateJob
from shedjoin.spark.keeping import BLOB_ROWS, Keeping, one_row
from shedjoin.spark.keys import SIDES
from shedjoin.spark.lasting import check_budget, check_same, may_change
from shedjoin.spark.payload import gather
from shedjoin.spark.predicate_exchange import STREAMS, Arrived, arrange
from shedjoin.spark.predicate_metrics import PREDICATE_METRICS
from shedjoin.spark.predicate_state import Done, PredicateLog, plain_budget, with_budget
from shedjoin.spark.state import FORMAT, Store, read_head, write_head

#: The kinds of joins whose kernels this process has.
_LOADED: set[str] = set()
#: Not all of the deadline is planned for: no two micro-batches are alike.
AIM = 0.9
#: However late a micro-batch is, the join gets this part of its deadline.
LEAST_AIM = 0.1
#: Between a shard's end and the next micro-batch Spark commits, writes results and plans. What that takes is the shortest such
#: gap of the last few; more than this part of the deadline is idle time.
GAPS, MOST_GAP = 3, 0.5


class PredicateShard(Keeping):
    """One shard, for one micro-batch.

    Parameters
    ----------
    job
        The join.
    number
        Which shard of it.
    store
        Where its state is kept; None: nowhere (a batch join begins and ends with its input).
    clock
        In seconds, for the deadline.
    """

    def __init__(
        self,
        job: PredicateJob,
        number: int,
        store: Store | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(job, number, store, STREAMS)
        self.job = job
        self.join = job.join_of(number)
        self.part = job.part_of(number)
        self.clock = clock
        self.log = PredicateLog.new(self.join)
        self.saving = 0.0  # how long it took the last time
        self.gaps: list[float] = []
        self.engine: PredicateEngine

    def run(self, messages: Iterable[Message]) -> Iterator[Given]:
        """Take in a micro-batch, give what comes of it, and save the state."""
        began = self.clock()
        try:
            self._open()
            before = self.engine.counters
            arrived = arrange(messages, self.join.predicate.kind, self.job.spread)
            waited = self._waited(arrived)
            budget = self._change_budget()
            self.engine.forget_peaks()
            seqs = self.engine.arrived
            self._store_payload(arrived.tables, seqs)  # of all rows: whoever probes may be part of a result
            spent = max(waited, self.clock() - began)
            # The start of a process is not paid for by rows that would not be compared for want of time.
            watch = self._watch(0.0 if self._loads_kernels(arrived) else spent)
            yield from self._join(arrived, watch)
            self._keep_own(arrived, seqs)
            self._save(Done(arrived.rows, arrived.clocks, None if watch is None else watch.said, budget))
            yield from self._late(self.engine, before)
            if METRIC in self.job.kinds:
                yield METRIC, self._metric(before, seqs, self.clock() - began)
        except BaseException:  # also when Spark stops reading
            self._drop_copy()
            raise

    def _waited(self, arrived: Arrived) -> float:
        """How long ago the micro-batch began, as far as is known; and how long after the last one that was."""
        if arrived.began is None:
            return 0.0
        if self.head is not None:
            self.gaps = [*self.gaps, max(0.0, arrived.began - self.head["ended"])][-GAPS:]
        return max(0.0, time.time() - arrived.began)

    def _loads_kernels(self, arrived: Arrived) -> bool:
        """Whether this process has run no such join yet. If so, its kernels are loaded: by an engine that nobody will ask."""
        kind = f"{type(self.join.predicate).__name__} {self.join.policy!r}"
        if self.job.deadline is None or kind in _LOADED or len(arrived.rows) == 0:
            return False
        _LOADED.add(kind)
        some = arrived.rows.take(np.arange(min(len(arrived.rows), 4)))
        for _ in self.join.build(part=self.part).chunks(some, limit=BLOB_ROWS, pace=Watch(1.0)):
            pass
        return True

    def _watch(self, spent: float) -> Watch | None:
        """Holds the join to what is left of the deadline."""
        seconds = self.job.deadline
        if seconds is None or self.join.selective is None:
            return None
        around = min(min(self.gaps, default=0.0), MOST_GAP * seconds)
        left = AIM * seconds - spent - self.saving - around
        return Watch(max(left, LEAST_AIM * seconds), boost=self.join.selective.boost, clock=self.clock)

    # --------------------------------------------------------------------------------------------------- the state

    def _open(self) -> None:
        """The state as of the last micro-batch."""
        self.head = read_head(self.store) if self.store is not None else None
        if self.head is None or self.blobs is None:
            self.engine = self.join.build(self.job.seed_of(self.number), part=self.part)
            self._begin()
            return
        check_budget(self.head["budget"] is not None, self.join.budget is not None, predicate=True)
        words = may_change(predicate=True)
        check_same(self.head.get("join", {}), self._signature(), words, timestamps=self.job.timestamps)
        self._go_on(self.head)
        self.saving, self.gaps = self.head["saving"], self.head["gaps"]
        self.log = PredicateLog(self.head["engine"])
        was = with_budget(self.join, self.head["budget"])
        self.engine = was.build(part=self.part)
        if self._take_copy(self.engine) is None:
            self.engine = self.log.recover(self.blobs, was, self.job.seed_of(self.number), self.part)
            self._load_payloads()

    def _change_budget(self) -> dict[str, Any] | None:
        """Go on within the budget of now; what no longer fits goes with the next instant. Returns it if it is another one."""
        if self.engine.budget == self.join.budget:
            return None
        self.engine.set_budget(self.join.budget)
        return plain_budget(self.join)

    def _signature(self) -> dict[str, Any]:
        spec = {name: value for name, value in self.join.to_dict().items() if name != "budget"}
        # Its own number is part of it: no shard ever takes up the state of another.
        return {
            **spec,
            "budget or none": self.join.budget is not None,
            "seed": self.job.seed,
            "shards": list(self.job.labels),
            "shard": self.number,
            **self.job.signature,
        }

    def _save(self, done: Done) -> None:
        if self.blobs is None or self.store is None:
            return
        began = self.clock()
        self._tidy(self.engine)
        self.log.keep(self.blobs, done, self.engine, self.join)
        token = secrets.token_hex(16)
        payloads = self._saved_payloads()
        head = {
            "format": FORMAT,
            "token": token,
            "lineage": self.lineage,
            "join": self._signature(),
            "budget": plain_budget(self.join),
            "batches": self.batches + 1,
            "saving": self.clock() - began,
            "gaps": self.gaps,
            "ended": time.time(),
            "engine": self.log.entry,
            "payloads": payloads,
        }
        self.blobs.written += write_head(self.store, head)
        self._leave_copy(token, self.engine)

    # ------------------------------------------------------------------------------------------------------ the join

    def _keep_own(self, arrived: Arrived, seqs: tuple[int, int]) -> None:
        """Now that they have probed, columns of rows that are stored elsewhere are of no use here."""
        if self.part[1] == 1:
            return
        for stream, table in enumerate(arrived.tables):
            if table is None:
                continue
            segments = self.payloads[stream].segments
            last = segments.pop()
            live = self.engine.live(stream)
            if live.size and live[-1] >= seqs[stream]:
                segments.append(last.only(live, last.number, last.level))

    def _join(self, arrived: Arrived, watch: Watch | None) -> Iterator[Given]:
        for out in self.engine.chunks(arrived.rows, limit=self._limit(), clocks=arrived.clocks, pace=watch):
            if len(out):
                yield RESULT, to_blob(*gather(self.payloads[0], self.payloads[1], (out.left, out.right)))
            if SHED in self.job.kinds and len(out.shed):
                yield SHED, to_blob(self._shed_rows(out.shed, pa.nulls(len(out.shed), pa.int64()), SIDES))

    def _metric(self, before: dict[str, int], seqs: tuple[int, int], seconds: float) -> bytes:
        """One row that says how the shard fared in this micro-batch."""
        engine = self.engine
        rows = [self._own(first, end) for first, end in zip(seqs, engine.arrived, strict=True)]
        known = self._told(engine, SIDES, before, rows, [held * ROW_BYTES for held in engine.residents], seconds)
        known["peak_bytes"] = engine.counters["peak_tuples"] * ROW_BYTES
        known["fraction"] = engine.fraction
        for name in ("partial", "compared"):
            known[name] = engine.counters[name] - before.get(name, 0)
        for stream, side in enumerate(SIDES):
            known[f"fraction_{side}"] = engine.fractions[stream]
            known[f"ranking_{side}"] = engine.ranking[stream] if self.join.selective is not None else None
        return one_row(PREDICATE_METRICS, known)

    def _own(self, first: int, end: int) -> int:
        """How many of these rows are stored here: each is counted by one shard."""
        which, parts = self.part
        return len(range(first + (which - first) % parts, end, parts))
