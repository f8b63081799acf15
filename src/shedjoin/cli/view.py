"""A running query in numbers: made of its metric rows, or of what its Prometheus endpoint says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shedjoin.spark.metrics import Row, Summary, latest, recall_of, summarise
from shedjoin.spark.prometheus import Samples

SIDES = ("left", "right")
WHY = ("evicted", "late", "schedule")
#: A share with its limits.
Share = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class View:
    """What a frame shows.

    Attributes
    ----------
    rows, results, shed, nulls
        Counts, over `seconds` or since the endpoint was opened; `shed` by reason.
    rates
        Rows of left, of right and results, a second; None if that is not known yet.
    recall, recent, importance
        Shares with their limits; None if there is no budget.
    tuples, bytes
        Stored of each stream.
    budget
        (unit, amount) of the whole query.
    age
        Seconds since the last batch ended.
    """

    batch: int
    shards: int
    over: str
    rows: tuple[int, int]
    results: int
    nulls: int
    shed: dict[str, int]
    rates: tuple[float, float, float] | None
    recall: Share | None
    recent: Share | None
    importance: Share | None
    tuples: tuple[int, int]
    bytes: tuple[int, int]
    budget: tuple[str, int] | None
    age: float = field(default=0.0, compare=False)

    @property
    def all_rows(self) -> int:
        return sum(self.rows)


def of_rows(rows: Iterable[Row], budget: dict[str, Any] | None, now: datetime | None = None) -> View | None:
    """From the metric rows of the last batches; None if there are none."""
    known = list(rows)
    found = summarise(known)
    if found is None:
        return None
    now = now or datetime.now(UTC)
    recent = recall_of(latest(known), recent=True)
    batches = found.batches[1] - found.batches[0] + 1
    return View(
        batch=found.batches[1],
        shards=found.shards,
        over=f"last {batches} batches" if batches > 1 else "last batch",
        rows=(found.rows_left, found.rows_right),
        results=found.results,
        nulls=found.nulls,
        shed=dict(zip(WHY, (found.evicted, found.late, found.scheduled), strict=True)),
        rates=_rates(known, found),
        recall=None if found.recall is None else (found.recall.recall, found.recall.low, found.recall.high),
        recent=None if recent is None else (recent.recall, recent.low, recent.high),
        importance=None
        if found.recall is None
        else (found.recall.importance, found.recall.importance_low, found.recall.importance_high),
        tuples=(found.resident_left, found.resident_right),
        bytes=(found.bytes_left, found.bytes_right),
        budget=_budget(budget),
        age=max((now - found.at).total_seconds(), 0.0),
    )


def _rates(rows: list[Row], found: Summary) -> tuple[float, float, float] | None:
    """Over the time from the beginning of the first of these batches to the end of the last."""
    first = max(row["seconds"] for row in rows if row["batch"] == found.batches[0])
    seconds = (found.at - found.since).total_seconds() + first
    if seconds <= 0:
        return None
    return found.rows_left / seconds, found.rows_right / seconds, found.results / seconds


def _budget(data: dict[str, Any] | None) -> tuple[str, int] | None:
    for unit in ("tuples", "bytes"):
        if data is not None and data.get(unit) is not None:
            return unit, int(data[unit])
    return None


def of_samples(now: Samples, before: Samples | None, seconds: float) -> View | None:
    """From the samples of an endpoint, and those of some seconds ago; None before the first batch."""
    if not now.get("batch"):
        return None
    sides = {
        name: tuple(int(total(now, name, side=side)) for side in SIDES) for name in ("rows_total", "resident_tuples")
    }
    sizes = tuple(int(total(now, "resident_bytes", side=side)) for side in SIDES)
    rates = None
    if before is not None and seconds > 0:
        rates = tuple(
            max(total(now, name, **labels) - total(before, name, **labels), 0.0) / seconds
            for name, labels in (
                ("rows_total", {"side": "left"}),
                ("rows_total", {"side": "right"}),
                ("results_total", {}),
            )
        )
    ended = now.get("last_batch_timestamp_seconds", [({}, 0.0)])[0][1]
    caps = [(unit, int(total(now, f"budget_{unit}"))) for unit in ("tuples", "bytes") if f"budget_{unit}" in now]
    return View(
        batch=int(max(value for _, value in now["batch"])),
        shards=len(now["batch"]),
        over="since its start",
        rows=(sides["rows_total"][0], sides["rows_total"][1]),
        results=int(total(now, "results_total")),
        nulls=int(total(now, "null_keys_total")),
        shed={why: int(total(now, "shed_total", why=why)) for why in WHY},
        rates=None if rates is None else (rates[0], rates[1], rates[2]),
        recall=_share(now, "recall"),
        recent=_share(now, "recent_recall"),
        importance=_share(now, "importance_recall"),
        tuples=(sides["resident_tuples"][0], sides["resident_tuples"][1]),
        bytes=(sizes[0], sizes[1]),
        budget=caps[0] if caps else None,
        age=max(datetime.now(UTC).timestamp() - ended, 0.0),
    )


def total(samples: Samples, name: str, **labels: str) -> float:
    """The sum over shards of the samples that have these labels."""
    return sum(value for found, value in samples.get(name, []) if labels.items() <= found.items())


def _share(samples: Samples, name: str) -> Share | None:
    if name not in samples:
        return None
    estimate, low, high = (total(samples, name, bound=bound) for bound in ("estimate", "low", "high"))
    return estimate, low, high
