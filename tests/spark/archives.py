"""Archives made by engines in this process, each a shard of one archive.

With time windows every shard is a random join of its own. Row windows count the rows of all shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import shedjoin as sj
from shedjoin.engine.codes import WHY
from shedjoin.engine.records import NEVER
from shedjoin.spark.archive import LEFT_OUT_COLUMNS, shed_columns
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


@dataclass(eq=False)
class Made:
    """What the engines were given, and what came out."""

    windows: tuple[Window, ...]
    rows: list[Row] = field(default_factory=list)
    shed: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, int]] = field(default_factory=list)
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
                if r.stream == 0 and s.stream == 1 and self.joins(r, s)
            }
        return found

    def joins(self, r: Row, s: Row) -> bool:
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
        return older.seq >= self.arrived(older.stream, newer.batch, newer.ts) - window.rows

    def arrived(self, stream: int, batch: int, ts: int) -> int:
        """Rows of a stream, in all shards, by the end of an instant."""
        return int(np.searchsorted(self._places[stream], batch * FAR + ts, side="right"))

    @cached_property
    def _places(self) -> list[Any]:
        """Where the rows of each stream stand in the order of instants."""
        mine = [
            [row.batch * FAR + row.ts for row in self.rows if row.stream == stream]
            for stream in range(len(self.windows))
        ]
        return [np.sort(np.array(places, np.int64)) for places in mine]


#: Batches are farther apart than times.
FAR = 10**6


def make(
    windows: tuple[Window, ...],
    *,
    shards: int,
    batches: int,
    seed: int,
    rows: int = 8,
    lateness: int = 2,
    names: Sequence[str] = SIDES,
    selective: sj.Selective | None = None,
) -> Made:
    """Each shard has its own random rows and its own engine; a batch is sorted by time, as the operator does."""
    made, streams = Made(windows), len(windows)
    draw = np.random.default_rng(seed)
    counted = any(isinstance(window, sj.RowWindow) for window in windows)
    engines = [
        _engine(draw, dict(zip(names, windows, strict=True)), counted, lateness, shard, selective)
        for shard in range(shards)
    ]
    clocks, counts = [0] * shards, [(0,) * streams] * shards
    for batch in range(batches):
        came = [_rows(draw, streams, int(draw.integers(0, rows)), clocks[shard]) for shard in range(shards)]
        clocks = [clock + int(draw.integers(0, 6)) for clock in clocks]
        columns = {name: np.concatenate([one[name] for one in came]) for name in ("stream", "key", "ts")}
        owner = np.repeat(np.arange(shards), [one["ts"].size for one in came])
        order = np.lexsort((columns["stream"], columns["ts"]))
        keys = [None if key == 0 else int(key) for key in columns["key"][order]]
        table = {"stream": columns["stream"][order], "ts": columns["ts"][order], "key": keys}
        whole, owner = engines[0].rows(table), owner[order]
        if counted:
            whole = whole.numbered(counts[0])
            counts = [
                tuple(int(total) for total in np.add(counts[0], np.bincount(whole.stream, minlength=streams)))
            ] * shards
        for shard, engine in enumerate(engines):
            mine = whole.take(np.flatnonzero(owner == shard))
            numbers = (mine if counted else mine.numbered(engine.arrived)).numbers
            assert numbers is not None
            described = zip(mine.stream, numbers.seq, mine.key, mine.null, mine.ts, strict=True)
            made.rows += [
                Row(shard, int(s), int(q), None if n else int(k), int(t), batch) for s, q, k, n, t in described
            ]
            if not len(mine) and not counted:
                continue
            out = engine.push(mine, arrived=counts[shard] if counted else None)
            made.met |= {(shard, *row): batch for row in out.rows.tolist()}  # type: ignore[misc]
            for record in out.shed.records():
                seen = {f"seen_{name}": int(count) for name, count in zip(names, record["seen"], strict=True)}
                expired = zip(names, record["expired"].tolist(), strict=True)
                seen |= {f"expired_{name}": None if time == NEVER else time for name, time in expired}
                told = {name: int(record[name]) for name in ("stream", "seq", "ts", "key")}
                known = {"shard": shard, "batch": batch, "left_at": int(record["when"]), "why": WHY[record["why"]]}
                made.shed.append({**told, **seen, **known})
            for record in out.left_out.records():
                stretch = {name: int(record[name]) for name in record.dtype.names}
                made.left_out.append({**stretch, "shard": shard, "batch": batch})
    return made


def _engine(
    draw: np.random.Generator,
    windows: dict[str, Window],
    counted: bool,
    lateness: int,
    seed: int,
    selective: sj.Selective | None,
) -> sj.Engine:
    least = len(windows)
    budget = sj.Budget(tuples=int(draw.integers(least, least + 5)), allocation=str(draw.choice(["fixed", "variable"])))
    policy = (sj.Rand(), sj.Prob(), sj.Life())[int(draw.integers(3))]
    skew = [None, 3][int(draw.integers(2))]
    settings = {"budget": budget, "policy": policy, "lateness": lateness, "max_skew": skew, "selective": selective}
    return sj.JoinSpec(windows, counted_elsewhere=counted, **settings).build(seed=seed)  # type: ignore[arg-type]


def _rows(draw: np.random.Generator, streams: int, size: int, clock: int) -> dict[str, Any]:
    """Late rows and nulls (0) among them."""
    lag = draw.choice([0, 0, 0, 1, 2, 9], size)
    return {
        "stream": draw.integers(0, streams, size),
        "ts": clock + np.cumsum(draw.integers(0, 3, size)) - lag,
        "key": draw.choice([0, 1, 1, 1, 2], size),
    }


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


LEFT_OUT = {name: pa.int64() for name in LEFT_OUT_COLUMNS} | dict.fromkeys(("shard", "stream", "other"), pa.int32())


def stretches(made: Made, upto: int) -> pa.Table:
    """What rows of some batches were not compared with."""
    return pa.Table.from_pylist([one for one in made.left_out if one["batch"] <= upto], pa.schema(LEFT_OUT))


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
