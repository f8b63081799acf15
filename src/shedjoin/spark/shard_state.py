"""What a shard keeps between micro-batches: the engine, the columns of its rows, the estimate of recall, its part of the budget.

All of it is in Spark's state store (see `state`), and as a copy on the worker's host (see `host_copy`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.batch import Batch
from shedjoin.engine.engine import Engine
from shedjoin.engine.output import ShedLog
from shedjoin.engine.pace import Watch
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.plain_dict import make_policy
from shedjoin.recall.live import LiveRecall
from shedjoin.spark.budget_split import BudgetSplit
from shedjoin.spark.compatibility import changes, check_same, lasting
from shedjoin.spark.deadline import Pacing
from shedjoin.spark.error_columns import ErrorFollower
from shedjoin.spark.exchange import METRIC, OWN
from shedjoin.spark.host_cache import cache_root
from shedjoin.spark.host_copy import Copy
from shedjoin.spark.job import Job
from shedjoin.spark.micro_batch import MicroBatch
from shedjoin.spark.payload import COPIES, NUMBERED, Payload
from shedjoin.spark.state import (
    FORMAT,
    Blobs,
    EngineLog,
    Redo,
    Store,
    as_it_was,
    by_policy,
    changing,
    load_payload,
    read_head,
    save_payload,
    write_head,
)
from shedjoin.spark.task_report import Integers
from shedjoin.spark.weights import WEIGHTS_NOT_YET, check_weights_before
from shedjoin.spec import JoinSpec
from shedjoin.target import Target, TargetControl


class ShardState:
    """The state of one shard, for one micro-batch: opened, changed, saved.

    Parameters
    ----------
    job
        The join.
    number
        Which shard of it.
    store
        Where it is kept; None: nowhere (a batch join begins and ends with its input).
    """

    def __init__(self, job: Job, number: int, store: Store | None, clock: Callable[[], float]) -> None:
        self.job = job
        self.number = number
        self.store = store
        self.clock = clock
        self.spec = job.spec_of(number)
        self.part = job.part_of(number)
        self.pacing = Pacing(job.deadline, clock)
        self.blobs = Blobs(store) if store is not None else None
        self.log: EngineLog
        self.split: BudgetSplit | None = BudgetSplit.new(job.shards, job.streams) if job.adaptive else None
        self.head: dict[str, Any] | None = None
        self.batches = 0
        self.restored = False
        self.payloads = [Payload() for _ in range(job.streams)]
        self.engine: Engine
        self.live: LiveRecall | None = None
        self.control = TargetControl(Target(job.target), job.join) if job.target is not None else None
        self.error = ErrorFollower.of(job, self.spec, number) if job.error is not None else None
        self._root: Path | None = None  # where copies are kept
        self._copy: Copy | None = None
        self._lineage = secrets.token_hex(16)
        self.changed: str | None = None  # since the last micro-batch, in words
        self._policy_changed = self._share_changed = False
        self.recall_from = 0  # the micro-batch from which on recall counts
        self._recall_is_new = False
        self._drops = job.front

    # ------------------------------------------------------------------------------------------------------------ open

    def open(self) -> None:
        """The state as of the last micro-batch."""
        self.head = read_head(self.store) if self.store is not None else None
        if self.head is None or self.blobs is None:
            self.engine = self.spec.build(seed=self.job.seed_of(self.number), part=self.part)
            self.log = EngineLog.new(self.spec)
            self.live = self._estimate(self.spec)
            return
        check_same(self.head["join"], self._signature(), timestamps=self.job.timestamps)
        self._check_revision()
        self._lineage, self.batches = self.head["lineage"], self.head["batches"]
        self.blobs.free = self.head["free"]
        self.pacing.go_on(self.head)
        self.log = EngineLog(self.head["engine"])
        was = as_it_was(self.spec, self.head["budget"], self.head["policy"])
        if was.dual is not None:
            was = replace(was, dual=replace(was.dual, rear=self.head["settings"]["rear"]))
        if self.spec.budget is None:  # without a cap no row is evicted: the order stays as it is
            self.spec = as_it_was(self.spec, None, self.head["policy"])
        if self.split is not None and self.head["split"] is not None:
            self.split = BudgetSplit.from_dict(self.head["split"])
        goes_on = self.head["live"] and (self.head["drops"] or not self.job.front)
        self._drops = self.head["drops"] if goes_on else self.job.front
        self.recall_from = self.head.get("recall_from", 0)
        self.live = self._estimate(was) if goes_on else None
        if not self._open_copy(was):
            self.engine = self.log.recover(self.blobs, was, self.job.seed_of(self.number), self.live, self.part)
            entries = self.head["payloads"]
            self.payloads = [load_payload(self.blobs, kept["segments"], kept["next"]) for kept in entries]
            self.restored = True
        if self.control is not None and self.head.get("target") is not None:
            self.control.load(self.head["target"])
        if self.error is not None and self.head.get("error") is not None:
            self.error.control.load(self.blobs.get(self.head["error"]))
        self._change_policy(was)
        if not goes_on and (live := self._estimate(self.spec)) is not None:
            # It did not see the rows that are stored, nor what was shed of them: it is of results of later rows.
            live.start_at(self.engine.arrived, self.engine.clocks)
            self.live, self.recall_from, self._recall_is_new = live, self.batches, True
            if self.control is not None:
                self.control.measure_anew()
        if self.job.weights and not self.engine.weights_hold:
            raise SpecError(WEIGHTS_NOT_YET)
        self.changed = changes(self.head["settings"], self._settings, timestamps=self.job.timestamps)

    def _estimate(self, spec: JoinSpec) -> LiveRecall | None:
        """A new estimate of recall, if it is to be told, of a join that may lose results."""
        if self.control is None and (not self.job.recall or METRIC not in self.job.kinds):
            return None
        if spec.budget is None and spec.selective is None and spec.dual is None and not self._drops:
            return None
        return LiveRecall(spec, seed=self.job.seed_of(self.number), part=self.part, drops=self._drops)

    def _open_copy(self, spec: JoinSpec) -> bool:
        """Go on with the copy of the last micro-batch, if it is here."""
        assert self.head is not None
        self._root = cache_root(self.job.cache)
        self._copy = Copy.take(self._root, self._lineage, self.head["token"]) if self._root is not None else None
        if self._copy is None:
            return False
        self.engine = spec.build(part=self.part)
        try:
            self.payloads, saved = self._copy.load(self.engine)
            if self.live is not None:
                self.live.load(saved)
        except SnapshotError:
            self.discard_copy()
            return False
        return True

    def discard_copy(self) -> None:
        """A copy that was begun on is no copy any more."""
        if self._copy is not None:
            self._copy.discard()
            self._copy = None

    def _change_policy(self, was: JoinSpec) -> None:
        """Go on by the policy of now, and by its share of rear shedding."""
        self._policy_changed = self.spec.policy != was.policy
        self._share_changed = self.spec.dual != was.dual
        if self._policy_changed and self.job.weights:
            check_weights_before(was.budget, was.policy)
        if self._policy_changed or self._share_changed:
            self.engine = by_policy(self.engine, self.spec, self.part)

    def _check_revision(self) -> None:
        """Rows that a policy of another revision has seen would, pushed again, leave others in memory."""
        assert self.head is not None
        policy = make_policy(self.head["policy"])
        if policy.revision != self.head["revision"]:
            raise SnapshotError(
                f"this checkpoint was written with another revision of {policy!r}: go on with the version of shedjoin that wrote "
                "it, or start from a new checkpoint"
            )

    @property
    def _settings(self) -> dict[str, Any]:
        """What may change while the checkpoint lives, and is told when it does."""
        whole = self.job.spec
        policy = changing(self.spec)[1]
        rear = {} if self.spec.dual is None else {"rear": self.spec.dual.rear}
        return {"budget": self.job.asked or whole.get("budget"), "policy": policy, "shards": self.job.shards, **rear}

    def _signature(self) -> dict[str, Any]:
        spec = lasting(self.spec.to_dict())
        # Its own number is part of it: no shard ever takes up the state of another.
        own = {"seed": self.job.seed, "shards": list(self.job.labels), "shard": self.number}
        return {**spec, **own, **self.job.signature}

    # ---------------------------------------------------------------------------------------------------------- change

    def change_budget(self, batch: MicroBatch) -> ShedLog:
        """Fit what is stored into the budget of now; returns what had to go."""
        budget = self.spec.budget
        if self.split is not None:
            self.split = self.split.follow(batch.counts, batch.clocks, self.job.join)
            budget = self.split.part(self.number)
        if self.control is not None and budget is not None:
            budget = self.control.part_of(budget)
        if self.error is not None and budget is not None:
            self.error.control.fit(budget)
            budget = self.error.control.part_of(budget)
        if self.engine.budget == budget:
            return ShedLog((), self.engine.names)
        out = self.engine.set_budget(budget)
        if self.live is not None:
            self.live.follow(Batch.of(), out)
        return out.shed

    def look_at_target(self, batch: MicroBatch) -> None:
        """Measure recall, or errors. If memory is to change, it does so before the next micro-batch."""
        if self.control is not None and self.live is not None:
            self.control.measure(self.engine, self.live)
        if self.error is not None:
            self.error.see(batch, self.payloads)

    def live_rows(self, stream: int) -> Integers:
        """Rows of a stream whose columns are needed: those that the join stores, or a pilot."""
        live = self.engine.kept(stream)
        return live if self.error is None else np.union1d(live, self.error.control.pilot.live(stream))

    def _resident(self, stream: int) -> int:
        """How many these are at most."""
        pilot = 0 if self.error is None else self.error.control.pilot.residents[stream]
        return self.engine.residents[stream] + self.engine.waiting[stream] + pilot

    def _counted(self, stream: int) -> int | None:
        """What a budget in bytes counts for their columns."""
        if self.job.asked is None:
            return None
        engines = [self.engine, *([] if self.error is None else [self.error.control.pilot])]
        return sum(one.own_bytes(stream) for one in engines) + int(COPIES * NUMBERED) * self._resident(stream)

    def add_columns(self, tables: Sequence[pa.RecordBatch | None], numbers: Sequence[Integers]) -> None:
        """Columns of new rows."""
        for stream, table in enumerate(tables):
            if table is not None:
                kept = table.select([len(OWN) + place for place in self.job.kept[stream]])
                first = self.engine.arrived[stream]
                self.payloads[stream].add(kept, first, numbers[stream] if self.spec.counted_elsewhere else None)

    def keep_own_columns(self, tables: Sequence[pa.RecordBatch | None], before: Sequence[int]) -> None:
        """Now that they have probed, columns of rows that are stored elsewhere are of no use here."""
        if self.part[1] == 1:
            return
        for stream, table in enumerate(tables):
            if table is not None:
                segments = self.payloads[stream].segments
                last = segments.pop()
                live = self.live_rows(stream)
                if live.size and live[-1] >= before[stream]:
                    segments.append(last.only(live, last.number, last.level))

    # ------------------------------------------------------------------------------------------------------------ save

    def save(self, batch: MicroBatch, watch: Watch | None, *, moved: bool) -> None:
        """Write what this micro-batch did. `moved`: the budget has changed."""
        if self.blobs is None or self.store is None:
            return
        began = self.clock()
        now = self.spec.with_budget(self.engine.budget)
        budget, policy = changing(now)
        for stream, payload in enumerate(self.payloads):
            payload.tidy(self._resident(stream), partial(self.live_rows, stream), self._counted(stream))
        new = (budget or {}) if moved else None, policy if self._policy_changed else None
        said = None if watch is None else watch.said
        redo = Redo(batch.rows, batch.clocks, *new, batch.arrived, said, batch.dropped)
        # What was saved before has no estimate to go on from, or was done by another share.
        if self._recall_is_new or self._share_changed:
            self.log.keep_whole(self.blobs, self.engine, self.live, now)
        else:
            self.log.keep(self.blobs, redo, self.engine, self.live, now)
        self._write(now, began)

    def seed(self, engine: Engine, payloads: list[Payload], batches: int, shards: int) -> None:
        """Begin with what other shards have stored; `shards` is how many there were."""
        assert self.blobs is not None
        self.engine, self.payloads, self.batches = engine, payloads, batches - 1
        now = self.spec.with_budget(engine.budget)
        self.log = EngineLog.new(now)
        self.log.keep_whole(self.blobs, engine, None, now)
        self._write(now, self.clock(), shards=shards)

    def _write(self, now: JoinSpec, began: float, *, shards: int | None = None) -> None:
        """Write the columns of rows, and the head. `shards`: how many the change to these is to be told of."""
        assert self.blobs is not None
        assert self.store is not None
        budget, policy = changing(now)
        before = self.head["payloads"] if self.head is not None else [{"segments": []}] * len(self.payloads)
        payloads = [
            {"segments": save_payload(self.blobs, stream, payload, old["segments"]), "next": payload.next_number}
            for stream, (payload, old) in enumerate(zip(self.payloads, before, strict=True))
        ]
        token = secrets.token_hex(16)
        head = {
            "format": FORMAT,
            "token": token,
            "lineage": self._lineage,
            "join": self._signature(),
            "budget": budget,
            "policy": policy,
            "revision": make_policy(policy).revision,
            "settings": {**self._settings, "shards": shards or self.job.shards},
            "split": self.split.to_dict() if self.split is not None else None,
            "batches": self.batches + 1,
            "live": self.live is not None,
            "recall_from": self.recall_from,
            "target": self.control.to_dict() if self.control is not None else None,
            "error": self._write_error(),
            "drops": self._drops,
            "engine": self.log.entry,
            "free": self.blobs.free,
            "payloads": payloads,
            "saving": self.clock() - began,
            "gaps": self.pacing.gaps,
            "ended": time.time(),
        }
        self.blobs.written += write_head(self.store, head)
        self._leave_copy(token)

    def _write_error(self) -> list[Any] | None:
        """Write what an error target knows in place of what it knew."""
        assert self.blobs is not None
        if (before := (self.head or {}).get("error")) is not None:
            self.blobs.remove(before)
        return None if self.error is None else self.blobs.put(f"error-{self.batches}", self.error.control.to_bytes())

    def _leave_copy(self, token: str) -> None:
        if self._copy is None:
            root = self._root or cache_root(self.job.cache)
            if root is None:
                return
            try:
                self._copy = Copy.new(root, self._lineage)
            except OSError:
                return
        live = self.live.to_bytes() if self.live is not None else b""
        self._copy.give(token, self.engine, self.payloads, live, self.job.query)
