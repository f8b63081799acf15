"""The metrics of a running query: one row for each shard and micro-batch, and a summary of the whole query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from shedjoin.join_type import sure_recall
from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, combine
from shedjoin.spark.keys import SIDES
from shedjoin.what_if import Curve, curve_of, read

Row = Mapping[str, Any]

_COUNTS = (
    "nulls",
    "late",
    "results",
    "evicted",
    "scheduled",
    "expired",
)
UNMATCHED = ("certain", "unknown", "alone")
REAR = ("unprobed", "waiting")
#: What is told of a shard that tries policies.
TRIES = {"policy": pa.string(), "policy_changes": pa.int64(), "policy_why": pa.string()}
#: Columns of a shard that tries other memories.
WHAT_IF = ("what_if", "what_if_why")
_PEAKS = ("peak_tuples", "peak_bytes")
_RECALLS = (
    "recall",
    "recall_low",
    "recall_high",
    "importance_recall",
    "importance_recall_low",
    "importance_recall_high",
)

_BY_STREAM = ("rows", "resident", "bytes")


#: What memory that follows an error adds.
ERROR = {"error": pa.float64(), "error_groups": pa.int64(), "error_small_groups": pa.int64()}


def metric_schema(
    names: Sequence[str],
    *,
    selective: bool = False,
    front: bool = False,
    unmatched: bool = False,
    target: bool = False,
    error: bool = False,
    rear: bool = False,
    tries: bool = False,
    what_if: bool = False,
) -> pa.Schema:
    """One row for each shard and micro-batch. Counts and peaks are of this batch; residents, bytes, clocks and recall are
    the values at its end. (Peaks are taken at the end of every instant, when the cap holds.) `recall_from` is the first
    micro-batch that recall counts: 0, or that of the first budget, or of the last change of the number of shards.

    Parameters
    ----------
    names
        Of the streams; `rows_...`, `resident_...`, `bytes_...` and `clock_...` are of each.
    selective
        Of joins that compare parts of windows: r; how much of each window is looked at; the ages of its basic windows, most
        profitable first; rows that were compared with a part of a window only; tuples that were looked at.
    front
        Of joins that drop rows before they are sent to shards: how many of each stream.
    unmatched
        Of outer, semi and anti joins: rows that left without a partner and certainly have none, those that may have one, and
        rows that were given alone (those of a semi or an anti join, and unmatched rows).
    target
        Of joins whose memory follows a target: `allowed`, the tuples or bytes that may be stored now, and `limited`, whether the
        budget keeps recall below the target, or errors above it.
    error
        Of joins whose memory follows an error: `error`, half of the widest interval that is expected, as a part of its sum; how
        many groups are held to the target; and how many have too few rows for that.
    rear
        Of joins with rear shedding: `unprobed`, the rows that were stored without a probe, and `waiting`, those that wait in the
        aux-windows now.
    tries
        Of joins with `Auto`: the policy in use, how often the shard went over to another, and why it is this one.
    what_if
        Of joins that try other memories: what miniatures found (`shedjoin.what_if`), as text, and why there is no curve.
    """
    rows, residents, sizes, clocks = ([f"{what}_{name}" for name in names] for what in (*_BY_STREAM, "clock"))
    return pa.schema(
        [
            pa.field("batch", pa.int64(), nullable=False),
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
            *(pa.field(name, pa.int64(), nullable=False) for name in (*rows, *_COUNTS, *residents, *sizes, *_PEAKS)),
            *(pa.field(name, pa.int64()) for name in clocks),
            pa.field("state_bytes", pa.int64(), nullable=False),
            pa.field("seconds", pa.float64(), nullable=False),
            pa.field("restored", pa.bool_(), nullable=False),
            pa.field("changed", pa.string()),
            pa.field("recall_from", pa.int64()),
            *(pa.field(name, pa.float64()) for name in (*_RECALLS, *LIVE_COLUMNS)),
            *(_selective_fields(names) if selective else ()),
            *(pa.field(f"dropped_{name}", pa.int64()) for name in names if front),
            *(pa.field(name, pa.int64()) for name in UNMATCHED if unmatched),
            *((pa.field("allowed", pa.int64()), pa.field("limited", pa.bool_())) if target else ()),
            *(pa.field(name, kind) for name, kind in ERROR.items() if error),
            *(pa.field(name, pa.int64()) for name in REAR if rear),
            *(pa.field(name, kind) for name, kind in TRIES.items() if tries),
            *(pa.field(name, pa.string()) for name in WHAT_IF if what_if),
        ]
    )


def _selective_fields(names: Sequence[str]) -> list[pa.Field]:
    return [
        pa.field("fraction", pa.float64()),
        *(pa.field(f"fraction_{name}", pa.float64()) for name in names),
        *(pa.field(f"ranking_{name}", pa.list_(pa.int64())) for name in names),
        pa.field("partial", pa.int64()),
        pa.field("compared", pa.int64()),
    ]


#: That of two streams.
METRIC_SCHEMA = metric_schema(SIDES)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a query or a part of it: sums of counts, and current levels.

    Attributes
    ----------
    batches
        The first and the last micro-batch.
    shards
        How many there are.
    since, at
        When the first and the last of these batches ended.
    seconds
        Time spent in the join: of each batch that of its slowest shard.
    rows_of
        Input rows of each stream, by its name.
    resident_of, bytes_of
        Stored now of each stream, in all shards.
    dropped_of
        Rows of each stream that were dropped before they were sent to shards.
    peak_tuples, peak_bytes
        The largest amount that was stored at once: the sum of the shards' peaks in one batch.
    recall
        Since the batch `recall_from`. None without a budget: then nothing is shed.
    recall_from
        Recall counts results of rows that arrived in this micro-batch or later: 0, unless a budget was added later or the
        number of shards has changed.
    certain, unknown
        Rows that left without a partner: those that certainly have none, and those that may have one. None in inner joins.
    alone
        Rows given alone: those of a semi or an anti join, and unmatched rows of an outer one. None in inner joins.
    what_if
        The recall of other memory sizes. None without `what_if`.
    """

    batches: tuple[int, int]
    shards: int
    since: datetime
    at: datetime
    rows_of: dict[str, int]
    nulls: int
    late: int
    results: int
    evicted: int
    scheduled: int
    expired: int
    resident_of: dict[str, int]
    bytes_of: dict[str, int]
    peak_tuples: int
    peak_bytes: int
    state_bytes: int
    seconds: float
    restored: int
    recall: RecallEstimate | None
    dropped_of: dict[str, int] = field(default_factory=dict)
    certain: int | None = None
    unknown: int | None = None
    alone: int | None = None
    recall_from: int = 0
    what_if: Curve | None = None

    @property
    def rows(self) -> int:
        return sum(self.rows_of.values())

    @property
    def sure_recall(self) -> float | None:
        """At least this share of the rows given alone was delivered in these batches, if none was late; None in inner joins."""
        return None if self.alone is None or self.unknown is None else sure_recall(self.alone, self.unknown)

    @property
    def shed(self) -> int:
        """Rows that left early, or were dropped. Late rows are joined with what is stored: they are not among them."""
        return self.evicted + self.scheduled + self.dropped

    @property
    def dropped(self) -> int:
        return sum(self.dropped_of.values())

    @property
    def shed_share(self) -> float:
        """The share of rows that was shed."""
        return self.shed / self.rows if self.rows else 0.0

    @property
    def resident(self) -> int:
        return sum(self.resident_of.values())

    @property
    def stored_bytes(self) -> int:
        return sum(self.bytes_of.values())


def summarise(rows: Iterable[Row], *, level: float = 0.95) -> Summary | None:
    """A summary of metric rows of any batches and shards; None if there are none.

    Parameters
    ----------
    rows
        With the columns of `METRIC_SCHEMA`, in any order.
    level
        Of the limits of recall.
    """
    known = list(rows)
    if not known:
        return None
    batches: dict[int, list[Row]] = {}
    for row in known:
        batches.setdefault(row["batch"], []).append(row)
    last = latest(known)
    counts = {name: sum(row[name] for row in known) for name in (*_COUNTS, "state_bytes", "restored")}
    if last[0].get("certain") is not None:
        counts |= {name: sum(row.get(name) or 0 for row in known) for name in UNMATCHED}

    def by_stream(what: str, some: Iterable[Row]) -> dict[str, int]:
        return {name: sum(row.get(f"{what}_{name}") or 0 for row in some) for name in streams_of(last[0])}

    return Summary(
        batches=(min(batches), max(batches)),
        shards=len(last),
        since=min(row["at"] for row in known),
        at=max(row["at"] for row in known),
        **{name: max(sum(row[name] for row in some) for some in batches.values()) for name in _PEAKS},
        seconds=sum(max(row["seconds"] for row in some) for some in batches.values()),
        recall=recall_of(last, level=level),
        recall_from=max(row.get("recall_from") or 0 for row in last),
        what_if=curve_of_rows(last, level=level),
        rows_of=by_stream("rows", known),
        resident_of=by_stream("resident", last),
        bytes_of=by_stream("bytes", last),
        dropped_of=by_stream("dropped", known),
        **counts,
    )


def streams_of(row: Row) -> list[str]:
    """The streams that a metric row speaks of, in their order."""
    return [name.removeprefix("rows_") for name in row if name.startswith("rows_")]


def fractions_of(rows: Iterable[Row]) -> tuple[float, ...] | None:
    """r, r_1, r_2, ... of a join that compares parts of windows, on average over these rows; None if it compares all."""
    known = [row for row in rows if row.get("fraction") is not None]
    if not known:
        return None
    names = ["fraction", *(f"fraction_{name}" for name in streams_of(known[0]))]
    return tuple(sum(row[name] for row in known) / len(known) for name in names)


def by_batch(rows: Iterable[Row], *, level: float = 0.95) -> list[Summary]:
    """One summary a micro-batch, in order: recall is since `recall_from`, all else of the batch."""
    batches: dict[int, list[Row]] = {}
    for row in rows:
        batches.setdefault(row["batch"], []).append(row)
    found = [summarise(batches[batch], level=level) for batch in sorted(batches)]
    return [summary for summary in found if summary is not None]


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each shard that there is, in their order."""
    known = list(rows)
    since = max((row["batch"] for row in known if "shards: " in str(row.get("changed"))), default=0)
    last: dict[int, Row] = {}
    for row in known:
        if row["batch"] < since:  # of shards that there were
            continue
        if row["shard"] not in last or last[row["shard"]]["batch"] <= row["batch"]:
            last[row["shard"]] = row
    return [last[shard] for shard in sorted(last)]


def curve_of_rows(rows: Iterable[Row], *, level: float = 0.95) -> Curve | None:
    """What other memories would deliver, from one row of each shard; None if that is not told, or not known yet."""
    parts = list(rows)
    found = read([row.get("what_if") for row in parts])
    return curve_of(found, live=recall_of(parts, level=level, recent=True), level=level) if found else None


def recall_of(rows: Iterable[Row], *, level: float = 0.95, recent: bool = False) -> RecallEstimate | None:
    """The recall of a query from one row of each of its shards; None unless all of them estimate it."""
    parts = list(rows)
    if not parts or any(row.get("live_results") is None for row in parts):
        return None
    return combine(parts, level, recent=recent)
