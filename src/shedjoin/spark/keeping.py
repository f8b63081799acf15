"""What every kind of shard keeps between micro-batches, and how: columns of rows, and copies of the state on the host."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.codes import WHY
from shedjoin.errors import SnapshotError
from shedjoin.spark.cache import cache_root
from shedjoin.spark.copies import Copy
from shedjoin.spark.exchange import LATE, OWN, Given, to_blob
from shedjoin.spark.payload import Payload
from shedjoin.spark.state import Blobs, Store, load_payload, save_payload

#: Results leave in blobs of about this many bytes and at most this many rows.
BLOB_BYTES, BLOB_ROWS = 1 << 24, 1 << 16
#: What is counted in each micro-batch, under the engine's own names.
_COUNTED = ("late", "results", "evicted", "scheduled", "expired")


class Task(Protocol):
    """What a shard is told, as far as it matters here."""

    @property
    def kept(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def cache(self) -> str | bool | None: ...
    @property
    def query(self) -> str: ...


class Counting(Protocol):
    """What metrics ask of any engine."""

    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def residents(self) -> tuple[int, ...]: ...
    @property
    def clocks(self) -> tuple[int | None, ...]: ...


class Keeping:
    """A shard's columns, its place in the state store and its copy on the host."""

    def __init__(self, job: Task, number: int, store: Store | None, streams: int) -> None:
        self._task = job
        self.number = number
        self.store = store
        self.blobs = Blobs(store) if store is not None else None
        self.head: dict[str, Any] | None = None
        self.copy: Copy | None = None
        self.lineage = ""
        self.batches = 0
        self.restored = False
        self.payloads = [Payload() for _ in range(streams)]

    def _begin(self) -> None:
        self.lineage = secrets.token_hex(16)

    def _go_on(self, head: dict[str, Any]) -> None:
        self.lineage, self.batches = head["lineage"], head["batches"]

    # ------------------------------------------------------------------------------------------------------ the copy

    def _take_copy(self, engine: Any) -> bytes | None:
        """Load the engine and the columns from the copy of the last micro-batch; what else was left there, None without one."""
        root = cache_root(self._task.cache)
        assert self.head is not None
        self.copy = Copy.take(root, self.lineage, self.head["token"]) if root is not None else None
        if self.copy is None:
            return None
        try:
            self.payloads, saved = self.copy.load(engine)
        except SnapshotError:
            self._drop_copy()
            return None
        return saved

    def _drop_copy(self) -> None:
        """A copy that was begun on is no copy any more."""
        if self.copy is not None:
            self.copy.discard()
            self.copy = None

    def _leave_copy(self, token: str, engine: Any, more: bytes = b"") -> None:
        root = cache_root(self._task.cache)
        if root is None:
            return
        if self.copy is None:
            try:
                self.copy = Copy.new(root, self.lineage)
            except OSError:
                return
        self.copy.give(token, engine, self.payloads, more, self._task.query)

    # --------------------------------------------------------------------------------------------------- the columns

    def _store_payload(
        self,
        tables: Sequence[pa.RecordBatch | None],
        seqs: Sequence[int],
        numbers: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        """Columns of new rows: numbered on from `seqs`, or by numbers of their own."""
        for stream, table in enumerate(tables):
            if table is not None:
                kept = [len(OWN) + place for place in self._task.kept[stream]]
                own = None if numbers is None else numbers[stream]
                self.payloads[stream].add(table.select(kept), seqs[stream], own)

    def _load_payloads(self) -> None:
        assert self.head is not None
        assert self.blobs is not None
        self.payloads = [load_payload(self.blobs, kept["segments"], kept["next"]) for kept in self.head["payloads"]]
        self.restored = True

    def _tidy(self, engine: Any) -> None:
        """Columns of rows that are gone go too, when they have become many."""
        for stream, payload in enumerate(self.payloads):
            payload.tidy(engine.residents[stream], partial(engine.live, stream))

    def _saved_payloads(self) -> list[dict[str, Any]]:
        """Write the columns that are new; where all of them are."""
        assert self.blobs is not None
        before = self.head["payloads"] if self.head is not None else [{"segments": []}] * len(self.payloads)
        return [
            {"segments": save_payload(self.blobs, stream, payload, old["segments"]), "next": payload.next_number}
            for stream, (payload, old) in enumerate(zip(self.payloads, before, strict=True))
        ]

    # -------------------------------------------------------------------------------------------------- what is given

    def _limit(self) -> int:
        """How many results make a blob."""
        rows = [max(payload.rows, 1) for payload in self.payloads]
        width = sum(payload.nbytes / count for payload, count in zip(self.payloads, rows, strict=True))
        return int(min(BLOB_ROWS, max(BLOB_BYTES / max(width, 1.0), 256)))

    def _shed_rows(
        self, log: Any, keys: pa.Array, names: Sequence[str], more: Mapping[str, pa.Array] | None = None
    ) -> pa.RecordBatch:
        """The shed log as rows, with more columns."""
        rows, seen = len(log), log.seen
        columns = {
            "shard": pa.array(np.full(rows, self.number, np.int32)),
            "stream": pa.array(log.stream.astype(np.int32)),
            "seq": pa.array(log.seq),
            "ts": pa.array(log.ts),
            "key": keys,
            "left_at": pa.array(log.when),
            "why": pa.array(np.array(WHY, dtype=object)[log.why], pa.string()),
            **{f"seen_{name}": pa.array(seen[:, place]) for place, name in enumerate(names)},
            "batch": pa.array(np.full(rows, self.batches, np.int64)),
            **(more or {}),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _late(self, engine: Counting, before: dict[str, int]) -> Iterator[Given]:
        """How many rows of this micro-batch were late, if there were any."""
        late = engine.counters["late"] - before["late"]
        if late:
            yield LATE, str(late).encode()

    def _told(
        self,
        engine: Counting,
        names: Sequence[str],
        before: dict[str, int],
        rows: Sequence[int],
        sizes: Sequence[int],
        seconds: float,
    ) -> dict[str, Any]:
        """What every metric row says. `before`: the engine's totals then; `rows`: new ones, `sizes`: bytes, of each stream."""
        counters = engine.counters
        known: dict[str, Any] = {
            name: counters.get(total, 0) - before.get(total, 0)
            for name, total in (("nulls", "null"), *((one, one) for one in _COUNTED))
        }
        known |= {
            "batch": self.batches,
            "shard": self.number,
            "at": datetime.now(UTC),
            "peak_tuples": counters["peak_tuples"],
            "state_bytes": self.blobs.written if self.blobs is not None else 0,
            "seconds": seconds,
            "restored": self.restored,
        }
        for stream, side in enumerate(names):
            known[f"rows_{side}"] = rows[stream]
            known[f"resident_{side}"] = engine.residents[stream]
            known[f"bytes_{side}"] = sizes[stream]
            known[f"clock_{side}"] = engine.clocks[stream]
        return known


def one_row(schema: pa.Schema, known: Mapping[str, Any]) -> bytes:
    """One row as a blob; what is not known is null."""
    arrays = [pa.array([known.get(field.name)], field.type) for field in schema]
    return to_blob(pa.RecordBatch.from_arrays(arrays, schema=schema))
