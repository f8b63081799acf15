"""What a join on a predicate says of itself beyond other joins: how much it compares, and where it looks first."""

from __future__ import annotations

import pyarrow as pa

from shedjoin.spark.metrics import METRIC_DDL, METRIC_SCHEMA

#: r; r_1 and r_2, how much of the left and of the right window is looked at; the ages of their basic windows, most profitable
#: first (null without a deadline); rows that were compared with a part of a window only; tuples or entries of lists looked at.
_MORE = {
    "fraction": (pa.float64(), "double"),
    "fraction_left": (pa.float64(), "double"),
    "fraction_right": (pa.float64(), "double"),
    "ranking_left": (pa.list_(pa.int64()), "array<bigint>"),
    "ranking_right": (pa.list_(pa.int64()), "array<bigint>"),
    "partial": (pa.int64(), "bigint"),
    "compared": (pa.int64(), "bigint"),
}
PREDICATE_METRICS = pa.schema([*METRIC_SCHEMA, *(pa.field(name, kind) for name, (kind, _) in _MORE.items())])
#: The same for Spark.
PREDICATE_DDL = ", ".join([METRIC_DDL, *(f"{name} {word}" for name, (_, word) in _MORE.items())])
