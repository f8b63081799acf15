"""The engine of a join on a predicate in the state store: a base and the micro-batches since, with what was decided by the clock.

See `state`, whose blobs and log these are. What a deadline made of a micro-batch depends on how fast the machine was; so the
fractions that were chosen are written down, and a batch that is done again is done alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.budget import Budget
from shedjoin.cpu.engine import PredicateEngine
from shedjoin.cpu.join import PredicateJoin
from shedjoin.cpu.pace import Script
from shedjoin.cpu.rows import Rows
from shedjoin.errors import SnapshotError
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.predicate_values import as_column, rows_of, values_of
from shedjoin.spark.state import CODEC, LEAST_REDO, MOST_REDO, REPLAYED, Blobs, digest


class Done(NamedTuple):
    """What one micro-batch did to the engine: a new budget, if it got one, then rows at this pace, then clocks."""

    rows: Rows
    clocks: tuple[int | None, int | None]
    said: list[float] | None = None
    budget: dict[str, Any] | None = None


_TOLD = ("clocks", "said", "budget")


def done_blob(done: Done, kind: str) -> bytes:
    """One micro-batch, to be done again."""
    rows = done.rows
    columns = {
        "stream": pa.array(rows.stream.astype(np.int8)),
        "step": pa.array(np.diff(rows.ts, prepend=0)),
        "value": as_column(rows.values, kind),
    }
    if (rows.importance != 1.0).any():
        columns["importance"] = pa.array(rows.importance)
    made = pa.RecordBatch.from_pydict(columns)
    told = {name: json.dumps(getattr(done, name)) for name in _TOLD}
    return to_blob(made.replace_schema_metadata(told), codec=CODEC)


def read_done(blob: bytes, kind: str) -> Done:
    """What `done_blob` wrote."""
    (made,) = from_blob(blob)
    clocks, said, budget = (json.loads(made.schema.metadata[name.encode()]) for name in _TOLD)
    weighed = "importance" in made.schema.names
    rows = rows_of(
        made.column("stream").to_numpy().astype(np.int64),
        np.cumsum(made.column("step").to_numpy()).astype(np.int64),
        made.column("importance").to_numpy().astype(np.float64) if weighed else np.ones(made.num_rows),
        values_of(made.column("value"), kind),
    )
    return Done(rows, (clocks[0], clocks[1]), said, budget)


class PredicateLog:
    """The engine in the store: a base, the budget it had, and the batches since."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry

    @classmethod
    def new(cls, budget: dict[str, Any] | None) -> PredicateLog:
        """Of an engine that is not begun."""
        return cls(_entry(None, budget, 0, 0))

    def append(self, blobs: Blobs, blob: bytes) -> None:
        """One more batch."""
        self.entry["pieces"].append(blobs.put(f"redo-{self.entry['next']}", blob)[1])
        self.entry["chain"] = digest(self.entry["chain"].encode(), blob)
        self.entry["next"] += 1
        self.entry["bytes"] += len(blob)

    @property
    def is_long(self) -> bool:
        """Whether the log since the base is worth a new base."""
        count = self.entry["next"] - self.entry["first"]
        return bool(count >= MOST_REDO or self.entry["bytes"] >= max(LEAST_REDO, self.entry["base_bytes"]))

    def rebase(self, blobs: Blobs, engine: PredicateEngine, budget: dict[str, Any] | None) -> None:
        """The engine as it is now, and nothing to do again."""
        for place, pieces in enumerate(self.entry["pieces"]):
            blobs.remove([f"redo-{self.entry['first'] + place}", pieces, ""])
        if self.entry["base"] is not None:
            blobs.remove(self.entry["base"][:3])
        plain = engine.snapshot()
        packed = pa.compress(plain, codec=CODEC, asbytes=True)
        following = self.entry["next"]
        receipt = blobs.put(f"base-{following}", packed)
        self.entry = _entry([*receipt, len(plain)], budget, len(packed), following)

    def recover(self, blobs: Blobs, join: PredicateJoin, seed: int, part: tuple[int, int]) -> PredicateEngine:
        """The engine that was saved."""
        join = with_budget(join, self.entry["budget"])
        if self.entry["base"] is None:
            engine = join.build(seed, part=part)
        else:
            *receipt, size = self.entry["base"]
            engine = join.resume(pa.decompress(blobs.get(receipt), size, codec=CODEC, asbytes=True), part=part)
        for done in self._done(blobs, join.predicate.kind):
            if done.budget is not None:
                engine.set_budget(Budget(**_plain(done.budget)))
            pace = None if done.said is None else Script(done.said)
            for _ in engine.chunks(done.rows, limit=REPLAYED, clocks=done.clocks, pace=pace):
                pass
        return engine

    def _done(self, blobs: Blobs, kind: str) -> Iterator[Done]:
        chain, batches = "", []
        for place, pieces in enumerate(self.entry["pieces"]):
            number = self.entry["first"] + place
            parts = [blobs.store.get(f"redo-{number}", part) for part in range(pieces)]
            if any(part is None for part in parts):
                raise SnapshotError(f"the state store has lost batch {number}: restore the checkpoint from a copy")
            batches.append(b"".join(bytes(part) for part in parts if part is not None))
            chain = digest(chain.encode(), batches[-1])
        if chain != self.entry["chain"]:
            raise SnapshotError("the log in the state store is damaged: its checksum does not fit its contents")
        for blob in batches:
            yield read_done(blob, kind)


def _entry(base: list[Any] | None, budget: dict[str, Any] | None, size: int, following: int) -> dict[str, Any]:
    """What the head says of a log that begins with the batch of this number."""
    return {
        "base": base,
        "budget": budget,
        "base_bytes": size,
        "first": following,
        "next": following,
        "pieces": [],
        "bytes": 0,
        "chain": "",
    }


def with_budget(join: PredicateJoin, budget: dict[str, Any] | None) -> PredicateJoin:
    """The same join with the budget that these plain data speak of."""
    return join if budget is None else join.with_budget(Budget(**_plain(budget)))


def plain_budget(join: PredicateJoin) -> dict[str, Any] | None:
    """Its budget as plain data."""
    found: dict[str, Any] | None = join.to_dict().get("budget")
    return found


def _plain(budget: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in budget.items()}
