"""Archives made by engines in this process: many random joins, each a shard of one archive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import shedjoin as sj
from shedjoin.spark.archive import shed_columns
from shedjoin.spark.keys import SIDES

Window = sj.TimeWindow | sj.RowWindow
#: shard, left row number, right row number
Pair = tuple[int, int, int]


class Row(NamedTuple):
    shard: int
    stream: int
    seq: int
    key: int | None
    ts: int
    batch: int


@dataclass
class Made:
    """What the engines were given, and what came out."""

    windows: tuple[Window, Window]
    rows: list[Row] = field(default_factory=list)
    shed: list[dict[str, Any]] = field(default_factory=list)
    met: dict[Pair, int] = field(default_factory=dict)  # and the batch it came in

    def exact(self) -> set[Pair]:
        """docs/semantics.md, "The exact join", word for word."""
        found = set()
        for shard in {row.shard for row in self.rows}:
            ours = [row for row in self.rows if row.shard == shard]
            found |= {
                (shard, r.seq, s.seq)
                for r in ours
                for s in ours
                if r.stream == 0 and s.stream == 1 and self.joins(r, s, ours)
            }
        return found

    def joins(self, r: Row, s: Row, rows: list[Row]) -> bool:
        if r.key is None or r.key != s.key:
            return False
        earlier, later = (r, s) if r.ts <= s.ts else (s, r)
        window = self.windows[earlier.stream]
        if isinstance(window, sj.TimeWindow) and not later.ts - earlier.ts < window.length:
            return False
        older, newer = sorted((r, s), key=lambda row: (row.batch, row.ts))
        window = self.windows[older.stream]
        if isinstance(window, sj.TimeWindow) or (older.batch, older.ts) == (newer.batch, newer.ts):
            return True
        arrived = sum(x.stream == older.stream and (x.batch, x.ts) <= (newer.batch, newer.ts) for x in rows)
        return older.seq >= arrived - window.rows


def make(
    windows: tuple[Window, Window], *, shards: int, batches: int, seed: int, rows: int = 8, lateness: int = 2
) -> Made:
    """Each shard has its own random rows and its own engine; a batch is sorted by time, as the operator does."""
    made = Made(windows)
    draw = np.random.default_rng(seed)
    for shard in range(shards):
        budget = sj.Budget(tuples=int(draw.integers(2, 7)), allocation=str(draw.choice(["fixed", "variable"])))
        policy = (sj.Rand(), sj.Prob(), sj.Life())[int(draw.integers(3))]
        skew = [None, 3][int(draw.integers(2))]
        spec = sj.JoinSpec(windows, budget=budget, policy=policy, lateness=lateness, max_skew=skew)
        engine, counts, clock = spec.build(seed=shard), [0, 0], 0
        for batch in range(batches):
            size = int(draw.integers(0, rows))
            stream = draw.integers(0, 2, size)
            lag = draw.choice([0, 0, 0, 1, 2, 9], size)
            ts = clock + np.cumsum(draw.integers(0, 3, size)) - lag
            clock += int(draw.integers(0, 6))
            keys = [None if key == 0 else int(key) for key in draw.choice([0, 1, 1, 1, 2], size)]
            order = np.lexsort((stream, ts))
            stream, ts, keys = stream[order], ts[order], [keys[place] for place in order]
            for side, time, key in zip(stream.tolist(), ts.tolist(), keys, strict=True):
                made.rows.append(Row(shard, side, counts[side], key, time, batch))
                counts[side] += 1
            if size == 0:
                continue
            out = engine.push(sj.Batch.rows({"stream": stream, "key": keys, "ts": ts}))
            pairs = zip(out.left.tolist(), out.right.tolist(), strict=True)
            made.met |= {(shard, left, right): batch for left, right in pairs}
            records = out.shed.to_arrow().drop_columns(["tick"]).to_pylist()
            made.shed += [{**record, "left_at": record["when"], "shard": shard, "batch": batch} for record in records]
    return made


ROW = {
    "label": pa.string(),
    "_sj_shard": pa.int32(),
    "_sj_seq": pa.int64(),
    "_sj_key": pa.int64(),
    "_sj_ts": pa.int64(),
    "_sj_imp": pa.float64(),
    "sj_batch": pa.int64(),
}
SHED = {name: pa.int64() for name in shed_columns(SIDES)} | {
    "shard": pa.int32(),
    "stream": pa.int32(),
    "why": pa.string(),
}


def tables(made: Made, upto: int, after: int = -1) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The archive and the shed log of some batches. Each row says in a column of its own who it is."""
    sides = [
        [
            dict(zip(ROW, (label(row), row.shard, row.seq, row.key, row.ts, 1.0, row.batch), strict=True))
            for row in made.rows
            if row.stream == side and after < row.batch <= upto
        ]
        for side in (0, 1)
    ]
    shed = [record for record in made.shed if after < record["batch"] <= upto]
    left, right = (pa.Table.from_pylist(side, pa.schema(ROW)) for side in sides)
    return left, right, pa.Table.from_pylist(shed, pa.schema(SHED))


def label(row: Row) -> str:
    return f"{row.shard}/{row.stream}/{row.seq}"
