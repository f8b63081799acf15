"""What charts show: one point a micro-batch, or one for several when there are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from shedjoin.spark.metrics import Row, Summary, latest, recall_of, streams_of, summarise

#: The most points of a chart.
MOST = 1024
#: This many of the last micro-batches have a point each, however long the query runs.
RECENT = 600
#: With more shards than this, the page shows the smallest, the mean and the largest memory.
SHARDS = 16
Share = tuple[float, float, float]

_SUM, _MAX = ({"merge": how} for how in ("sum", "max"))


@dataclass(slots=True)
class Point:
    """One micro-batch, or several in a row. Without a note a field is as it stood at the end of the last of them.

    Attributes
    ----------
    at, interval
        When it ended, in seconds since 1970; seconds since the one before ended, or spent in the join if there was none.
    first
        Whether it is the query's first micro-batch, and no other.
    rows, stored
        Of each stream; `stored` in the unit of the budget.
    recall, recent
        An estimate and its limits; None if it is not known.
    peak, cap
        The most that was stored at once, and the budget; None without one.
    shards
        What each shard stores; of many shards the smallest, the mean and the largest.
    seconds
        Of the slowest shard.
    """

    batch: int
    at: float
    stored: list[int]
    shards: list[float]
    recall: Share | None
    recent: Share | None
    cap: int | None
    first: bool = False
    batches: int = field(default=1, metadata=_SUM)
    interval: float = field(default=0.0, metadata=_SUM)
    rows: list[int] = field(default_factory=list, metadata=_SUM)
    results: int = field(default=0, metadata=_SUM)
    evicted: int = field(default=0, metadata=_SUM)
    scheduled: int = field(default=0, metadata=_SUM)
    dropped: int = field(default=0, metadata=_SUM)
    late: int = field(default=0, metadata=_SUM)
    certain: int | None = field(default=None, metadata=_SUM)
    unknown: int | None = field(default=None, metadata=_SUM)
    alone: int | None = field(default=None, metadata=_SUM)
    seconds: float = field(default=0.0, metadata=_MAX)
    peak: int = field(default=0, metadata=_MAX)

    def followed_by(self, after: Point) -> Point:
        """Both as one.

        Examples
        --------
        >>> first = Point(0, 10.0, [5], [5], None, None, 9, rows=[3], late=1, seconds=2.0)
        >>> both = first.followed_by(Point(1, 20.0, [7], [7], None, None, 9, rows=[4], late=2, seconds=1.0))
        >>> both.batch, both.stored, both.rows, both.late, both.seconds, both.batches
        (1, [7], [7], 3, 2.0, 2)
        """
        merged = {
            one.name: _merged(one.metadata.get("merge"), getattr(self, one.name), getattr(after, one.name))
            for one in fields(self)
        }
        return Point(**merged)


def _merged(how: str | None, before: Any, after: Any) -> Any:
    if how is None or before is None or after is None:
        return after
    if how == "max":
        return max(before, after)
    return [a + b for a, b in zip(before, after, strict=True)] if isinstance(after, list) else before + after


def point_of(rows: Sequence[Row], unit: str, cap: int | None, before: float | None) -> Point:
    """Of the metric rows of one micro-batch.

    Parameters
    ----------
    unit
        "tuples" or "bytes".
    cap
        The budget at that time.
    before
        When the micro-batch before ended; None: there was none.
    """
    found = summarise(rows)
    assert found is not None  # a complete micro-batch has a row of each shard
    at = found.at.timestamp()
    stored = found.resident_of if unit == "tuples" else found.bytes_of
    return Point(
        batch=found.batches[1],
        at=at,
        stored=list(stored.values()),
        shards=_of_shards(latest(rows), unit),
        recall=share_of(found),
        recent=_recent(rows),
        cap=cap,
        first=before is None,
        interval=found.seconds if before is None else max(at - before, 0.0),
        rows=list(found.rows_of.values()),
        results=found.results,
        evicted=found.evicted,
        scheduled=found.scheduled,
        dropped=found.dropped,
        late=found.late,
        certain=found.certain,
        unknown=found.unknown,
        alone=found.alone,
        seconds=found.seconds,
        peak=found.peak_tuples if unit == "tuples" else found.peak_bytes,
    )


def shard_memory(rows: Sequence[Row], unit: str) -> dict[int, list[int]]:
    """What each shard stores of each stream."""
    prefix = "resident" if unit == "tuples" else "bytes"
    return {row["shard"]: [row[f"{prefix}_{name}"] for name in streams_of(row)] for row in rows}


def _of_shards(rows: Sequence[Row], unit: str) -> list[float]:
    each = [sum(amounts) for amounts in shard_memory(rows, unit).values()]
    return [*each] if len(each) <= SHARDS else [min(each), sum(each) / len(each), max(each)]


def share_of(found: Summary) -> Share | None:
    """Recall since the beginning, with its limits."""
    return None if found.recall is None else (found.recall.recall, found.recall.low, found.recall.high)


def _recent(rows: Sequence[Row]) -> Share | None:
    found = recall_of(latest(rows), recent=True)
    return None if found is None else (found.recall, found.low, found.high)


class Series:
    """Points in order, at most `most`. Those that are many are merged by twos, or the oldest go.

    Parameters
    ----------
    merge
        Whether to merge. A series that was merged has another `epoch`: readers take it anew.
    """

    def __init__(self, most: int = MOST, *, merge: bool = True) -> None:
        self._most, self._merge = most, merge
        self.epoch = 0
        self._first = 0  # the number of the oldest point that is here
        self._points: list[Point] = []

    @property
    def width(self) -> int:
        """How many micro-batches a point stands for."""
        return 1 << self.epoch

    def add(self, point: Point) -> None:
        """Add a micro-batch, the next one."""
        last = self._points[-1] if self._points else None
        if len(self._points) == self._most and (last is None or last.batches >= self.width or not self._merge):
            self._make_room()
            last = self._points[-1]
        if self._merge and last is not None and last.batches < self.width:
            self._points[-1] = last.followed_by(point)
        else:
            self._points.append(point)

    def _make_room(self) -> None:
        if self._merge:
            olds = self._points
            self._points = [
                olds[at].followed_by(olds[at + 1]) if at + 1 < len(olds) else olds[at] for at in range(0, len(olds), 2)
            ]
            self.epoch += 1
        else:
            del self._points[0]
            self._first += 1

    def since(self, epoch: int, start: int) -> dict[str, Any]:
        """The points from number `start` on, as plain data; all of them if the reader knows another epoch."""
        start = max(start, self._first) if epoch == self.epoch else self._first
        points = [asdict(point) for point in self._points[start - self._first :]]
        return {"epoch": self.epoch, "width": self.width, "first": self._first, "from": start, "points": points}
