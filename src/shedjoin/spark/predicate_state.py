"""The engine of a join on a predicate in the state store: a base and the micro-batches since, with what was decided by the clock.

See `state`, whose blobs and log these are. What a deadline made of a micro-batch depends on how fast the machine was; so the
fractions that were chosen are written down, and a batch that is done again is done alike.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.budget import Budget
from shedjoin.cpu.engine import PredicateEngine
from shedjoin.cpu.join import PredicateJoin
from shedjoin.cpu.pace import Script
from shedjoin.cpu.rows import Rows
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.predicate_values import as_column, rows_of, values_of
from shedjoin.spark.state import CODEC, REPLAYED, Blobs, Log


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


class PredicateLog(Log):
    """The log of a join on a predicate: what may change is its budget."""

    def __init__(self, entry: dict[str, Any]) -> None:
        # Heads of earlier versions count the pieces of every batch, not only of long ones.
        pieces = entry.pop("pieces", [])
        long = {str(entry["first"] + place): count for place, count in enumerate(pieces) if count > 1}
        super().__init__({**entry, "long": long} if long else entry)

    @classmethod
    def new(cls, join: PredicateJoin) -> PredicateLog:
        """Of an engine that is not begun."""
        return cls(cls.begun(None, {"budget": plain_budget(join)}, 0, 0))

    def keep(self, blobs: Blobs, done: Done, engine: PredicateEngine, join: PredicateJoin) -> None:
        """One more batch: what it did, or the engine as it is now, whatever is less to write."""
        blob = done_blob(done, join.predicate.kind)
        if not self._engine_is_less(len(blob), len(done.rows), sum(engine.residents)):
            self._append(blobs, blob)
            if not self._is_long:
                return
        self._put_base(blobs, engine.snapshot(), {"budget": plain_budget(join)})

    def recover(self, blobs: Blobs, join: PredicateJoin, seed: int, part: tuple[int, int]) -> PredicateEngine:
        """The engine that was saved."""
        join = with_budget(join, self.entry["budget"])
        base = self._base(blobs)
        engine = join.build(seed, part=part) if base is None else join.resume(base, part=part)
        for done in (read_done(blob, join.predicate.kind) for blob in self._since(blobs)):
            if done.budget is not None:
                engine.set_budget(Budget(**_plain(done.budget)))
            pace = None if done.said is None else Script(done.said)
            for _ in engine.chunks(done.rows, limit=REPLAYED, clocks=done.clocks, pace=pace):
                pass
        return engine


def with_budget(join: PredicateJoin, budget: dict[str, Any] | None) -> PredicateJoin:
    """The same join with the budget that these plain data speak of."""
    return join if budget is None else join.with_budget(Budget(**_plain(budget)))


def plain_budget(join: PredicateJoin) -> dict[str, Any] | None:
    """Its budget as plain data."""
    found: dict[str, Any] | None = join.to_dict().get("budget")
    return found


def _plain(budget: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in budget.items()}
