"""Output directories of made-up queries, written as `start` writes them."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.spark.metrics import metric_schema

NAMES = ("impressions", "clicks")
SCHEMA = metric_schema(NAMES, unmatched=True)
BUDGET = {"tuples": 4000, "bytes": None, "allocation": "variable"}


def write_query(
    folder: Path,
    batches: int,
    *,
    shards: int = 2,
    budget: dict[str, Any] | None = BUDGET,
    changes: tuple[dict[str, Any], ...] = (),
    ended: datetime | None = None,
) -> Path:
    """A query that finished so many micro-batches, 10 seconds each, the last of them at `ended` (default: now)."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = {"budget": budget, "policy": {"name": "prospect"} if budget else {"name": "keep_all"}, "how": "left_outer"}
    job = {"format": 4, "spec": spec, "shards": shards, "timestamps": True, "changes": list(changes)}
    (folder / "job.json").write_text(json.dumps(job))
    start = (ended or datetime.now(UTC)) - timedelta(seconds=10 * batches)
    rows = [
        metric(batch, shard, start + timedelta(seconds=10 * (batch + 1)), budget is not None, shards)
        for batch in range(batches)
        for shard in range(shards)
    ]
    table = pa.Table.from_pylist(rows, SCHEMA).drop_columns(["batch"])
    for batch in range(batches):
        write(folder, batch, table.slice(batch * shards, shards))
    return folder


def write_batch(folder: Path, batch: int) -> None:
    """One more micro-batch, which ends now."""
    rows = [metric(batch, shard, datetime.now(UTC)) for shard in range(2)]
    write(folder, batch, pa.Table.from_pylist(rows, SCHEMA).drop_columns(["batch"]))


def write(folder: Path, batch: int, rows: pa.Table) -> None:
    """As Spark does: a file, and a note that all is there."""
    place = folder / "metrics" / f"batch={batch}"
    place.mkdir(parents=True)
    pq.write_table(rows, place / "part-0.parquet", compression="none")
    (place / "_SUCCESS").touch()


def metric(batch: int, shard: int, at: datetime, recall: bool = True, shards: int = 2) -> dict[str, Any]:
    """The metrics of a shard: a load that comes and goes."""
    load = 1.0 + 0.5 * math.sin(batch / 9) + 0.1 * shard
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names, 0)
    row |= dict.fromkeys(LIVE_COLUMNS, 0.0 if recall else None)
    row |= {"batch": batch, "shard": shard, "at": at, "seconds": 1.5 * load, "restored": batch == 0, "changed": None}
    row |= {"rows_impressions": int(3000 * load), "rows_clicks": int(1000 * load), "results": int(700 * load)}
    row |= {
        "evicted": int(900 * load),
        "late": int(20 * load),
        "certain": int(300 * load),
        "unknown": int(40 * load),
        "alone": int(300 * load),
    }
    row |= {
        "resident_impressions": int(2400 / shards * min(load, 1.2)),
        "resident_clicks": int(900 / shards * min(load, 1.2)),
        "peak_tuples": 4000 // shards,
    }
    row |= {"bytes_impressions": 90_000, "bytes_clicks": 50_000}
    if recall:
        row |= {
            "live_results": 700.0 * (batch + 1),
            "live_missing": 175.0 * (batch + 1) * (1 + 0.2 * math.sin(batch / 30)),
        }
        row |= {
            "live_missing_square": 4000.0 * (batch + 1),
            "live_missing_cube": 90_000.0,
            "live_recent_results": 700.0,
        }
        row |= {"live_recent_missing": 150.0 + 60 * math.sin(batch / 9), "live_recent_missing_square": 900.0}
    return row
