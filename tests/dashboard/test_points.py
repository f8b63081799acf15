"""Points of charts: merging loses no count, and what is sent in parts is the whole."""

from __future__ import annotations

import pytest

from shedjoin.dashboard.points import Point, Series


def point(batch: int) -> Point:
    return Point(batch, 10.0 * batch, [batch], [batch], None, None, 9, interval=10.0, rows=[batch, 2], late=batch % 3)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100, 1000])
def test_a_series_keeps_every_count_in_few_points(count: int) -> None:
    series = Series(8)
    for batch in range(count):
        series.add(point(batch))
    told = series.since(-1, 0)
    assert len(told["points"]) <= 8
    assert sum(one["batches"] for one in told["points"]) == count
    assert sum(one["late"] for one in told["points"]) == sum(batch % 3 for batch in range(count))
    assert sum(one["rows"][0] for one in told["points"]) == count * (count - 1) // 2
    assert all(one["batches"] == told["width"] for one in told["points"][:-1])
    assert told["points"][-1]["stored"] == [count - 1]


@pytest.mark.parametrize("merge", [True, False])
def test_a_reader_that_asks_for_news_has_all(merge: bool) -> None:
    """Follows the steps of the page's `take`."""
    series = Series(8, merge=merge)
    epoch, first, known = -1, 0, []
    for batch in range(100):
        series.add(point(batch))
        if batch % 3:
            continue
        told = series.since(epoch, max(first + len(known) - 1, 0))
        if told["epoch"] != epoch or not first <= told["from"] <= first + len(known):
            first, known = told["from"], told["points"]
        else:
            known = known[: told["from"] - first] + told["points"]
            known = known[told["first"] - first :]
            first = told["first"]
        epoch = told["epoch"]
        assert known == series.since(-1, 0)["points"]
    assert known[-1]["batch"] == 99


def test_recent_points_are_of_one_micro_batch() -> None:
    series = Series(5, merge=False)
    for batch in range(12):
        series.add(point(batch))
    assert [one["batch"] for one in series.since(0, 0)["points"]] == [7, 8, 9, 10, 11]
    assert [one["batch"] for one in series.since(0, 10)["points"]] == [10, 11]
