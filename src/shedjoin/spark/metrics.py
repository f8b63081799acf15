"""What a running query says of itself: one row a shard and micro-batch, and the same for the whole query."""

from __future__ import annotations

import pyarrow as pa

_COUNTS = (
    "rows_left",
    "rows_right",
    "nulls",
    "late",
    "results",
    "evicted",
    "scheduled",
    "expired",
)
_LEVELS = ("resident_left", "resident_right", "bytes_left", "bytes_right")
_RECALLS = (
    "recall",
    "recall_low",
    "recall_high",
    "importance_recall",
    "importance_recall_low",
    "importance_recall_high",
)

#: One row a shard and micro-batch. Counts are of this batch; residents, bytes and clocks are as they stood at its end.
METRIC_SCHEMA = pa.schema(
    [
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in (*_COUNTS, *_LEVELS)),
        pa.field("clock_left", pa.int64()),
        pa.field("clock_right", pa.int64()),
        pa.field("state_bytes", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("restored", pa.bool_(), nullable=False),
        *(pa.field(name, pa.float64()) for name in _RECALLS),
    ]
)

_WORDS = {
    "int64": "bigint",
    "int32": "int",
    "double": "double",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}

#: The same for Spark.
METRIC_DDL = ", ".join(f"{field.name} {_WORDS[str(field.type)]}" for field in METRIC_SCHEMA)
