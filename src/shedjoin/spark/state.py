"""What is in Spark's state store: a head, and blobs with checksums. Data, never code.

What a micro-batch writes grows with the batch: its rows' payload (segments), its engine columns (redo). The engine itself
is written anew only when the redo log since has grown as large, or when it is less to write than the batch (base). To recover
is to resume the base and push the redo log again: the same input gives the same state.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES, Batch
from shedjoin.engine.engine import Engine
from shedjoin.engine.pace import Script
from shedjoin.errors import SnapshotError
from shedjoin.recall.live import LiveRecall
from shedjoin.row_numbers import RowNumbers
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.micro_batch import dropped_here
from shedjoin.spark.payload import Payload, Segment
from shedjoin.spark.values import from_column, to_column
from shedjoin.spec import JoinSpec

Integers = NDArray[np.int64]
#: Higher whenever a state is kept in another way, or the same rows, pushed again, could give another state.
FORMAT = 13
#: A value in the state store has at most this many bytes.
PIECE = 1 << 23
#: Values up to this size are written over when they are of no use any more: that takes one message to Java in place of two.
SMALL = 1 << 14
CODEC = "lz4"
#: The redo log may always grow to this many bytes, and never beyond this many batches.
LEAST_REDO, MOST_REDO = 1 << 22, 4096
#: The first base is not made of fewer rows than this.
LEAST_ROWS = 1 << 14
#: About how many bytes a row takes in the redo log: its key, and little more.
REDO_BYTES = 8
#: When batches are run again, results are made in pieces of this many.
REPLAYED = 1 << 16


class Store(Protocol):
    """Named values."""

    def head(self) -> bytes | None: ...
    def set_head(self, value: bytes) -> None: ...
    def get(self, name: str, part: int) -> bytes | None: ...
    def put(self, name: str, part: int, value: bytes) -> None: ...
    def remove(self, name: str, part: int) -> None: ...


def digest(*parts: bytes) -> str:
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(part)
    return made.hexdigest()


#: How the names of small values begin.
_SMALL = "small "


class Blobs:
    """Values of any size in a store, each in pieces; counts what it writes.

    `free` has the names of small values that are of no use any more, and stay until others are written over them.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.written = 0
        self.free: list[str] = []

    def put(self, name: str, value: bytes) -> list[Any]:
        """Writes a value; returns what `get` needs to find and check it."""
        pieces = range(0, max(len(value), 1), PIECE)
        for part, start in enumerate(pieces):
            self.store.put(name, part, value[start : start + PIECE])
        self.written += len(value)
        return [name, len(pieces), digest(value)]

    def put_over(self, name: str, value: bytes) -> list[Any]:
        """Writes a value, if it is small over one that is of no use."""
        if len(value) > SMALL:
            return self.put(name, value)
        return self.put(self.free.pop() if self.free else f"{_SMALL}{name}", value)

    def give_up(self, receipt: list[Any]) -> None:
        """What `put_over` wrote is of no use any more."""
        if receipt[0].startswith(_SMALL):
            self.free.append(receipt[0])
        else:
            self.remove(receipt)

    def get(self, receipt: list[Any]) -> bytes:
        name, pieces, mark = receipt
        parts = []
        for part in range(pieces):
            value = self.store.get(name, part)
            if value is None:
                raise SnapshotError(f"the state store has lost a part of {name!r}: restore the checkpoint from a copy")
            parts.append(bytes(value))
        value = b"".join(parts)
        if digest(value) != mark:
            raise SnapshotError(f"{name!r} in the state store is damaged: its checksum does not fit its contents")
        return value

    def remove(self, receipt: list[Any]) -> None:
        name, pieces, _ = receipt
        for part in range(pieces):
            self.store.remove(name, part)


def read_head(store: Store) -> dict[str, Any] | None:
    """The head, checked; None before the first micro-batch."""
    value = store.head()
    if value is None:
        return None
    text, _, mark = bytes(value).rpartition(b"\n")
    if digest(text) != mark.decode(errors="replace"):
        raise SnapshotError("the head in the state store is damaged: its checksum does not fit its contents")
    head: dict[str, Any] = json.loads(text)
    if head["format"] != FORMAT:
        raise SnapshotError(
            f"the state in this checkpoint has format {head['format']}, this shedjoin reads format {FORMAT}: go on with the "
            "version that wrote it, or start from a new checkpoint"
        )
    return head


def write_head(store: Store, head: dict[str, Any]) -> int:
    """Writes the head; returns its size."""
    text = json.dumps(head).encode()
    value = text + b"\n" + digest(text).encode()
    store.set_head(value)
    return len(value)


# ------------------------------------------------------------------------------------------------------------ payload


def segment_name(stream: int, segment: Segment) -> str:
    return f"segment-{stream}-{segment.number}"


def segment_blob(segment: Segment) -> bytes:
    """A segment's columns, its row numbers last where they are not plain."""
    return to_blob(with_numbers(segment), codec=CODEC)


def with_numbers(segment: Segment) -> pa.RecordBatch:
    if segment.seqs is None:
        return segment.batch
    schema = segment.batch.schema.append(pa.field("_sj_seq", pa.int64()))
    return pa.RecordBatch.from_arrays([*segment.batch.columns, pa.array(segment.seqs)], schema=schema)


def without_numbers(batch: pa.RecordBatch, number: int, level: int, first: int, plain: bool) -> Segment:
    """The segment of which `with_numbers` made this."""
    if plain:
        return Segment(number, level, first, batch)
    seqs = batch.column(batch.num_columns - 1).to_numpy()
    schema = batch.schema.remove(batch.num_columns - 1)
    return Segment(number, level, first, pa.RecordBatch.from_arrays(batch.columns[:-1], schema=schema), seqs)


def describe(segment: Segment) -> list[Any]:
    return [segment.number, segment.level, segment.first, segment.seqs is None]


def save_payload(blobs: Blobs, stream: int, payload: Payload, before: list[Any]) -> list[Any]:
    """Write new segments, give up old ones; returns the entries of the head."""
    known = {entry[0][0]: entry for entry in before}
    now = {segment.number for segment in payload.segments}
    for number, entry in known.items():
        if number not in now:
            blobs.give_up(entry[1])
    return [
        known.get(segment.number)
        or [describe(segment), blobs.put_over(segment_name(stream, segment), segment_blob(segment))]
        for segment in payload.segments
    ]


def load_payload(blobs: Blobs, entries: list[Any], next_number: int) -> Payload:
    segments = []
    for (number, level, first, plain), receipt in entries:
        (batch,) = from_blob(blobs.get(receipt))
        segments.append(without_numbers(batch, number, level, first, plain))
    return Payload(segments, next_number)


# ------------------------------------------------------------------------------------------------------------- engine


class Redo(NamedTuple):
    """What one micro-batch did to the engine: a new policy and a new budget ({}: no limit any more), if it got one, then
    rows, then clocks, and the number of rows anywhere where they are counted elsewhere. Rows that were dropped in front have
    their keys: the estimate of recall counts what they would have met."""

    batch: Batch
    clocks: tuple[int | None, ...]
    budget: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    arrived: tuple[int, ...] | None = None
    said: list[float] | None = None  # what a deadline made of r: a batch that is done again is done alike
    dropped: NDArray[np.bool_] | None = None


_TOLD = ("clocks", "budget", "policy", "arrived", "said")


def redo_blob(redo: Redo) -> bytes:
    """One micro-batch, to be done again. Rows are in order of time, so the steps between them are small numbers."""
    batch = redo.batch
    steps = np.diff(batch.ts, prepend=0)
    columns = {
        "stream": pa.array(batch.stream.astype(np.int8)),
        "key": pa.array(batch.key if batch.key.ndim == 1 else batch.key[:, 0], mask=batch.null),
        "step": pa.array(steps),
    }
    for place in range(1, 1 if batch.key.ndim == 1 else batch.key.shape[1]):  # further attributes of a join graph
        columns[f"key {place}"] = pa.array(batch.key[:, place])
    if (batch.importance != 1.0).any():
        columns["importance"] = pa.array(batch.importance)
    if (batch.bytes != ROW_BYTES).any():
        columns["bytes"] = pa.array(batch.bytes.astype(np.int32))
    if batch.kind is not None:
        columns["kind"] = pa.array(batch.kind)
    if batch.numbers is not None:
        columns |= _number_columns(batch.stream, batch.numbers)
    if batch.values is not None:
        columns["value"] = to_column(batch.values)
    if redo.dropped is not None:
        columns["dropped"] = pa.array(redo.dropped)
    made = pa.RecordBatch.from_pydict(columns)
    told = {name: json.dumps(getattr(redo, name)) for name in _TOLD}
    return to_blob(made.replace_schema_metadata(told), codec=CODEC)


def _number_columns(stream: Integers, numbers: RowNumbers) -> dict[str, pa.Array]:
    """Row numbers and counts, which rise from row to row: as small numbers."""
    steps = np.diff(numbers.arrived, axis=0, prepend=0)
    behind = numbers.arrived[np.arange(stream.size), stream] - numbers.seq
    return {
        "behind": pa.array(behind),
        **{f"came {one}": pa.array(np.ascontiguousarray(steps[:, one])) for one in range(steps.shape[1])},
    }


def _numbers_in(made: pa.RecordBatch, stream: Integers) -> RowNumbers | None:
    """What `_number_columns` wrote, if it did."""
    came = [made.column(name).to_numpy() for name in made.schema.names if name.startswith("came ")]
    if not came:
        return None
    arrived = np.cumsum(np.stack(came, axis=1), axis=0, dtype=np.int64)
    return RowNumbers(arrived[np.arange(stream.size), stream] - made.column("behind").to_numpy(), arrived)


def read_redo(blob: bytes) -> Redo:
    """What `redo_blob` wrote."""
    (made,) = from_blob(blob)
    clocks, budget, policy, arrived, said = (json.loads(made.schema.metadata[name.encode()]) for name in _TOLD)
    key = made.column("key")
    rows = made.num_rows

    def column(name: str, default: float, kind: Any) -> Any:
        there = name in made.schema.names
        return made.column(name).to_numpy().astype(kind) if there else np.full(rows, default, kind)

    keys = key.fill_null(0).to_numpy().astype(np.int64)
    further = [made.column(name).to_numpy() for name in made.schema.names if name.startswith("key ")]
    if further:
        keys = np.ascontiguousarray(np.stack([keys, *further], axis=1))
    stream = made.column("stream").to_numpy().astype(np.int64)
    batch = Batch(
        stream=stream,
        key=keys,
        null=np.asarray(key.is_null().to_numpy(zero_copy_only=False), np.bool_),
        ts=np.cumsum(made.column("step").to_numpy()),
        importance=column("importance", 1.0, np.float64),
        bytes=column("bytes", ROW_BYTES, np.int64),
        kind=column("kind", 0, np.int64) if "kind" in made.schema.names else None,
        values=from_column(made.column("value")) if "value" in made.schema.names else None,
        numbers=_numbers_in(made, stream),
    )
    dropped = made.column("dropped").to_numpy(zero_copy_only=False) if "dropped" in made.schema.names else None
    return Redo(batch, tuple(clocks), budget, policy, arrived, said, dropped)


def as_it_was(spec: JoinSpec, budget: dict[str, Any] | None, policy: dict[str, Any]) -> JoinSpec:
    """The same join with what may change as it was: budget and policy as plain data."""
    if changing(spec) == (budget, policy):  # nothing to read and check again
        return spec
    return JoinSpec.from_dict({**spec.to_dict(), "budget": budget, "policy": policy})


def changing(spec: JoinSpec) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What may change of a join, as plain data: its budget and its policy."""
    data = spec.to_dict()
    return data.get("budget"), data["policy"]


def by_policy(engine: Engine, spec: JoinSpec, part: tuple[int, int] = (0, 1)) -> Engine:
    """The same engine by the policy of a spec, within the budget that it has."""
    return spec.with_budget(engine.budget).resume(engine.snapshot(), part=part)


class EngineLog:
    """An engine in the store: a base (none at first), with the estimate of recall, the budget and policy of then, and the
    batches since."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry

    @classmethod
    def new(cls, spec: JoinSpec) -> EngineLog:
        """Of an engine that is not begun."""
        return cls(_begun(None, spec, 0, 0))

    def _engine_is_less(self, batch: int, rows: int, residents: int) -> bool:
        """Whether the engine is less to write than a batch of so many bytes: rows of which most are gone need not be told.

        Without a base its size is estimated from the rows.
        """
        if self.entry["base"] is None:
            return rows > max(4 * residents, LEAST_ROWS)
        return bool(batch > self.entry["base_bytes"])

    @property
    def _is_long(self) -> bool:
        """Whether the log since the base is worth a new base."""
        count = self.entry["next"] - self.entry["first"]
        return bool(count >= MOST_REDO or self.entry["bytes"] >= max(LEAST_REDO, self.entry["base_bytes"]))

    def _append(self, blobs: Blobs, blob: bytes) -> None:
        mark = digest(self.entry["chain"].encode(), blob)
        pieces = blobs.put(f"redo-{self.entry['next']}", blob)[1]
        if pieces > 1:  # the log's entries are found by their numbers alone
            self.entry.setdefault("long", {})[str(self.entry["next"])] = pieces
        self.entry["next"] += 1
        self.entry["bytes"] += len(blob)
        self.entry["chain"] = mark

    def _put_base(self, blobs: Blobs, plain: bytes, spec: JoinSpec) -> None:
        """Replace the whole log by the current engine."""
        for number in range(self.entry["first"], self.entry["next"]):
            blobs.remove([f"redo-{number}", self._pieces(number), ""])
        if self.entry["base"] is not None:
            blobs.remove(self.entry["base"][:3])
        packed = pa.compress(plain, codec=CODEC, asbytes=True)
        following = self.entry["next"] + 1  # a batch that was not written has a number too: no name comes again
        receipt = blobs.put(f"base-{following}", packed)
        self.entry = _begun([*receipt, len(plain)], spec, len(packed), following)

    def _base(self, blobs: Blobs) -> bytes | None:
        """The engine of the base."""
        if self.entry["base"] is None:
            return None
        *receipt, size = self.entry["base"]
        return bytes(pa.decompress(blobs.get(receipt), size, codec=CODEC, asbytes=True))

    def _since(self, blobs: Blobs) -> list[bytes]:
        """The batches since the base, all of them there and whole."""
        chain, batches = "", []
        for number in range(self.entry["first"], self.entry["next"]):
            parts = [blobs.store.get(f"redo-{number}", part) for part in range(self._pieces(number))]
            if any(part is None for part in parts):
                raise SnapshotError(f"the state store has lost batch {number}: restore the checkpoint from a copy")
            batches.append(b"".join(bytes(part) for part in parts if part is not None))
            chain = digest(chain.encode(), batches[-1])
        if chain != self.entry["chain"]:
            raise SnapshotError("the log in the state store is damaged: its checksum does not fit its contents")
        return batches

    def _pieces(self, number: int) -> int:
        return int(self.entry.get("long", {}).get(str(number), 1))

    def keep(self, blobs: Blobs, redo: Redo, engine: Engine, live: LiveRecall | None, spec: JoinSpec) -> None:
        """One more batch: what it did, or the engine (with its estimate of recall) as it is now, whatever is less to write."""
        rows = len(redo.batch)
        if not self._engine_is_less(REDO_BYTES * rows, rows, sum(engine.residents)):
            self._append(blobs, redo_blob(redo))
            if not self._is_long:
                return
        self.keep_whole(blobs, engine, live, spec)

    def keep_whole(self, blobs: Blobs, engine: Engine, live: LiveRecall | None, spec: JoinSpec) -> None:
        """The engine as it is now, with its budget and policy, and nothing to do again."""
        if self.entry["base"] is not None:
            blobs.remove(self.entry["live"])
        self._put_base(blobs, engine.snapshot(), spec)
        estimate = live.to_bytes() if live is not None else b""
        self.entry["live"] = blobs.put(f"live-{self.entry['first']}", estimate)
        self.entry["base_bytes"] += len(estimate)

    def recover(
        self, blobs: Blobs, spec: JoinSpec, seed: int, live: LiveRecall | None, part: tuple[int, int] = (0, 1)
    ) -> Engine:
        """The engine that was saved; a new estimate of recall becomes the one that was saved with it."""
        spec = as_it_was(spec, self.entry["budget"], self.entry["policy"])
        base = self._base(blobs)
        engine: Engine = spec.build(seed=seed, part=part) if base is None else spec.resume(base, part=part)
        if base is not None and live is not None:
            live.load(blobs.get(self.entry["live"]))
        for batch, clocks, budget, policy, arrived, said, dropped in map(read_redo, self._since(blobs)):
            if policy is not None:
                spec = as_it_was(spec, None, policy)
                engine = by_policy(engine, spec, part)
            if budget is not None:
                shed = engine.set_budget(as_it_was(spec, budget or None, changing(spec)[1]).budget)
                if live is not None:
                    live.follow(Batch.of(), shed)
            pace = None if said is None else Script(said)
            joined = batch.without(dropped)
            pieces = engine.chunks(
                joined, limit=REPLAYED, clocks=clocks, arrived=arrived, emit=live is not None, pace=pace
            )
            if live is not None:
                live.begin(batch)
                live.drop(dropped_here(batch, dropped, engine.arrived, part))
            for _ in pieces if live is None else live.followed(batch, pieces, clocks, arrived):
                pass
        return engine


def _begun(base: list[Any] | None, spec: JoinSpec, size: int, following: int) -> dict[str, Any]:
    """What the head says of a log that begins with the batch of this number."""
    budget, policy = changing(spec)
    counts = {"base_bytes": size, "first": following, "next": following, "bytes": 0}
    return {"base": base, "budget": budget, "policy": policy, **counts, "chain": ""}
