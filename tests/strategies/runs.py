"""How a case is run on the engine, and what comes out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import shedjoin as sj
from naive import Record, Row
from strategies.joins import Case


class Told(NamedTuple):
    """What a push (or a change of the budget) told, and what was stored after it."""

    results: list[tuple[float, ...]]
    shed: list[Record]
    residents: tuple[int, ...]
    used: tuple[int, ...]


def side_table(case: Case, stream: int) -> dict[str, Any]:
    """The columns of one stream, with types that hold for no rows too."""
    rows = case.side(stream)
    return {
        "key": pa.array([row.value for row in rows], type=pa.int64()),
        "ts": np.array([row.ts for row in rows], dtype=np.int64),
        "importance": np.array([row.importance for row in rows], dtype=np.float64),
        "bytes": np.array([row.bytes for row in rows], dtype=np.int64),
    }


def batch(rows: list[Row]) -> sj.Batch:
    """Rows as they are pushed. Made by hand: reading tables is not what is tested here, and takes longer than the join."""
    columns = zip(*((*row, row.value is None) for row in rows), strict=True) if rows else ((),) * 8
    stream, key, ts, importance, size, *_, null = columns
    return sj.Batch(
        stream=np.array(stream, dtype=np.int64),
        key=np.array([one or 0 for one in key], dtype=np.int64),
        null=np.array(null, dtype=np.bool_),
        ts=np.array(ts, dtype=np.int64),
        importance=np.array(importance, dtype=np.float64),
        bytes=np.array(size, dtype=np.int64),
    ).in_canonical_order()


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    """Rows of any number of streams, whose values are attributes by column, as the n-way engine takes them."""
    names = sorted({column for row in rows for column in row.value})
    return {
        "stream": [row.stream for row in rows],
        "ts": [row.ts for row in rows],
        "importance": [row.importance for row in rows],
        "bytes": [row.bytes for row in rows],
        **{column: [row.value.get(column) for row in rows] for column in names},
    }


def records(log: sj.ShedLog) -> list[Record]:
    columns = (log.stream, log.seq, log.ts, log.when, log.tick, log.why, log.seen, log.expired)
    return [
        Record(stream, seq, ts, when, tick, sj.WHY[why], tuple(seen), tuple(expired))
        for stream, seq, ts, when, tick, why, seen, expired in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def told(engine: sj.Engine, out: sj.Output) -> Told:
    results = zip(out.left.tolist(), out.right.tolist(), out.importance.tolist(), strict=True)
    residents, used = tuple(engine.residents), tuple(engine.used)
    return Told(sorted(results), records(out.shed), (residents[0], residents[1]), (used[0], used[1]))


def go_on(engine: sj.Engine, case: Case, first: int = 0, last: int | None = None) -> list[Told]:
    """Push the pushes from `first` to before `last`, with the changes of the budget that come before each."""
    history = []
    for number, rows in list(enumerate(case.pushes))[first:last]:
        if number in case.changes:
            history.append(told(engine, engine.set_budget(case.changes[number])))
        if number in case.policies:
            engine.set_policy(case.policies[number])
        history.append(told(engine, engine.push(batch(rows))))
    return history


def run_engine(case: Case) -> list[Told]:
    return go_on(case.spec.build(seed=case.seed), case)


def results_of(history: list[Told]) -> list[tuple[int, int, float]]:
    return sorted(result for one in history for result in one.results)


def pairs_of(history: list[Told]) -> list[tuple[int, int]]:
    return [(left, right) for left, right, _ in results_of(history)]


def shed_by(history: list[Told]) -> list[Record]:
    return [record for one in history for record in one.shed]
