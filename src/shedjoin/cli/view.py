"""The figures of a running query, from its metric rows or its Prometheus endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shedjoin.parse import parse_budget
from shedjoin.spark.advice import idle_memory
from shedjoin.spark.metrics import Row, Summary, curve_of_rows, fractions_of, latest, recall_of, summarise
from shedjoin.spark.prometheus import BEST, Samples
from shedjoin.what_if import Point

WHY = ("evicted", "late", "schedule")
#: Of rows that are dropped before they are sent to shards.
FRONT = "dropped"
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
        Rows of each stream, and last results, a second; None if that is not known yet.
    recall, recent, importance
        Shares with their limits; None if there is no budget.
    recall_from
        The first micro-batch that recall counts; None if not known.
    names, tuples, bytes
        The names of the streams, and the stored tuples and bytes of each.
    partial
        How often a shard compared a row with only a part of the window, in a join with a deadline.
    fractions
        r, r_1, r_2, ... of such a join, on average over the shards.
    ranking
        The ages of its most profitable basic windows, of each stream, in the first shard.
    unmatched
        Of outer, semi and anti joins: unmatched rows, certain and unknown.
    sure
        Of these joins: at least this share of the rows that they give alone was delivered.
    budget
        (unit, amount) of the whole query.
    allowed, limited
        With a target: how much may be stored now, and whether the budget keeps recall below the target, or errors above it.
    error
        With an error target: half of the widest interval that is expected, as a part of its sum, in the worst shard.
    idle
        Advice if memory is unused while rows are evicted.
    peak
        The peak of stored tuples or bytes in these batches.
    what_if
        With `what_if`: the share of results by multiples of the budget.
    by_policy
        The same for policies with the current memory, first the one in use.
    age
        Seconds since the last batch ended.
    """

    batch: int
    shards: int
    over: str
    names: tuple[str, ...]
    rows: tuple[int, ...]
    results: int
    nulls: int
    shed: dict[str, int]
    rates: tuple[float, ...] | None
    recall: Share | None
    recent: Share | None
    importance: Share | None
    tuples: tuple[int, ...]
    bytes: tuple[int, ...]
    budget: tuple[str, int] | None
    partial: int = 0
    fractions: tuple[float, ...] | None = None
    ranking: tuple[tuple[int, ...], ...] | None = None
    unmatched: tuple[int, int] | None = None
    sure: float | None = None
    allowed: int | None = None
    limited: bool = False
    error: float | None = None
    idle: str | None = None
    peak: int | None = None
    policies: tuple[str, ...] | None = None
    policy_changes: int = 0
    recall_from: int | None = None
    policy_why: tuple[str, ...] = ()
    what_if: tuple[tuple[float, Share], ...] = ()
    by_policy: tuple[tuple[str, Share], ...] = ()
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
    curve = curve_of_rows(latest(known))
    batches = found.batches[1] - found.batches[0] + 1
    return View(
        batch=found.batches[1],
        shards=found.shards,
        over=f"in the last {batches} batches" if batches > 1 else "in the last batch",
        names=tuple(found.rows_of),
        rows=tuple(found.rows_of.values()),
        results=found.results,
        nulls=found.nulls,
        shed=dict(zip((*WHY, FRONT), (found.evicted, found.late, found.scheduled, found.dropped), strict=True)),
        rates=_rates(known, found),
        recall=None if found.recall is None else (found.recall.recall, found.recall.low, found.recall.high),
        recent=None if recent is None else (recent.recall, recent.low, recent.high),
        importance=None
        if found.recall is None
        else (found.recall.importance, found.recall.importance_low, found.recall.importance_high),
        tuples=tuple(found.resident_of.values()),
        bytes=tuple(found.bytes_of.values()),
        budget=_budget(budget),
        partial=sum(row.get("partial") or 0 for row in known),
        fractions=fractions_of(latest(known)),
        ranking=_ranking(latest(known)[0], tuple(found.rows_of)),
        unmatched=None if found.certain is None or found.unknown is None else (found.certain, found.unknown),
        sure=found.sure_recall,
        allowed=_allowed(latest(known)),
        limited=any(row.get("limited") for row in latest(known)),
        error=max((row["error"] for row in latest(known) if row.get("error") is not None), default=None),
        policies=tuple(row["policy"] for row in latest(known)) if latest(known)[0].get("policy") is not None else None,
        policy_why=tuple(row["policy_why"] for row in latest(known) if row.get("policy_why")),
        policy_changes=sum(row.get("policy_changes") or 0 for row in latest(known)),
        recall_from=found.recall_from,
        idle=None if budget is None else idle_memory(found, parse_budget(budget)),
        peak=found.peak_bytes if "bytes" in (_budget(budget) or ()) else found.peak_tuples,
        what_if=() if curve is None else tuple((factor, _limits(one)) for factor, one in curve.recall.items()),
        by_policy=() if curve is None else tuple((policy, _limits(one)) for policy, one in curve.policies.items()),
        age=max((now - found.at).total_seconds(), 0.0),
    )


def _allowed(rows: list[Row]) -> int | None:
    if any(row.get("allowed") is None for row in rows):
        return None
    return sum(int(row["allowed"]) for row in rows)


def _ranking(row: Row, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...] | None:
    if row.get("fraction") is None:
        return None
    return tuple(tuple(row[f"ranking_{name}"][:BEST]) for name in names)


def _rates(rows: list[Row], found: Summary) -> tuple[float, ...] | None:
    """Over the time from the beginning of the first of these batches to the end of the last."""
    first = max(row["seconds"] for row in rows if row["batch"] == found.batches[0])
    seconds = (found.at - found.since).total_seconds() + first
    if seconds <= 0:
        return None
    return tuple(count / seconds for count in (*found.rows_of.values(), found.results))


def _budget(data: dict[str, Any] | None) -> tuple[str, int] | None:
    for unit in ("tuples", "bytes"):
        if data is not None and data.get(unit) is not None:
            return unit, int(data[unit])
    return None


def of_samples(now: Samples, before: Samples | None, seconds: float) -> View | None:
    """From the samples of an endpoint, and those of some seconds ago; None before the first batch."""
    if not now.get("batch"):
        return None
    names = tuple(dict.fromkeys(labels["side"] for labels, _ in now["rows_total"]))
    by_side = {
        name: tuple(int(total(now, name, side=side)) for side in names)
        for name in ("rows_total", "resident_tuples", "resident_bytes")
    }
    rates = None
    if before is not None and seconds > 0:
        counted: list[tuple[str, dict[str, str]]] = [("rows_total", {"side": side}) for side in names]
        rates = tuple(
            max(total(now, name, **labels) - total(before, name, **labels), 0.0) / seconds
            for name, labels in [*counted, ("results_total", {})]
        )
    ended = now.get("last_batch_timestamp_seconds", [({}, 0.0)])[0][1]
    caps = [(unit, int(total(now, f"budget_{unit}"))) for unit in ("tuples", "bytes") if f"budget_{unit}" in now]
    return View(
        batch=int(max(value for _, value in now["batch"])),
        shards=len(now["batch"]),
        over="since its start",
        names=names,
        rows=by_side["rows_total"],
        results=int(total(now, "results_total")),
        nulls=int(total(now, "null_keys_total")),
        shed={why: int(total(now, "shed_total", why=why)) for why in WHY} | {FRONT: int(total(now, "dropped_total"))},
        rates=rates,
        recall=_share(now, "recall"),
        recent=_share(now, "recent_recall"),
        importance=_share(now, "importance_recall"),
        tuples=by_side["resident_tuples"],
        bytes=by_side["resident_bytes"],
        budget=caps[0] if caps else None,
        partial=int(total(now, "partial_probes_total")),
        fractions=_fractions(now, names),
        ranking=_first_ranking(now, names),
        allowed=int(total(now, "allowed")) if now.get("allowed") else None,
        limited=total(now, "limited") > 0,
        error=max((value for _, value in now.get("error", [])), default=None),
        policies=tuple(labels["policy"] for labels, _ in now["policy"]) if "policy" in now else None,
        policy_changes=int(total(now, "policy_changes")),
        unmatched=_unmatched(now),
        sure=total(now, "sure_recall") if "sure_recall" in now else None,
        what_if=tuple((float(name), share) for name, share in _shares(now, "what_if_recall", "memory")),
        by_policy=tuple(_shares(now, "what_if_policy_recall", "policy")),
        age=max(datetime.now(UTC).timestamp() - ended, 0.0),
    )


def total(samples: Samples, name: str, **labels: str) -> float:
    """The sum over shards of the samples that have these labels."""
    return sum(value for found, value in samples.get(name, []) if labels.items() <= found.items())


def _unmatched(samples: Samples) -> tuple[int, int] | None:
    if not samples.get("certain_total"):
        return None
    return int(total(samples, "certain_total")), int(total(samples, "unknown_total"))


def _fractions(samples: Samples, names: tuple[str, ...]) -> tuple[float, ...] | None:
    shards = len(samples.get("fraction", []))
    if not shards:
        return None
    each = (total(samples, "window_fraction", side=name) for name in names)
    return tuple(one / shards for one in (total(samples, "fraction"), *each))


def _first_ranking(samples: Samples, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...] | None:
    found = samples.get("basic_window_age", [])
    if not found:
        return None
    shard = found[0][0]["shard"]
    return tuple(
        tuple(int(age) for labels, age in found if labels["shard"] == shard and labels["side"] == name)
        for name in names
    )


def _limits(point: Point) -> Share:
    return point.recall, point.low, point.high


def _shares(samples: Samples, name: str, label: str) -> list[tuple[str, Share]]:
    """The shares of each value of a label, in their order."""
    values = dict.fromkeys(labels[label] for labels, _ in samples.get(name, []))
    return [
        (one, (estimate, low, high))
        for one in values
        for estimate, low, high in [
            [total(samples, name, bound=bound, **{label: one}) for bound in ("estimate", "low", "high")]
        ]
    ]


def _share(samples: Samples, name: str) -> Share | None:
    if name not in samples:
        return None
    estimate, low, high = (total(samples, name, bound=bound) for bound in ("estimate", "low", "high"))
    return estimate, low, high
