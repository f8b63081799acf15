"""Row windows over several shards, their state and their copies, without Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shards import Shards, job, messages, numbers, pairs, table

import shedjoin as sj
from shedjoin.spark import payload, state
from shedjoin.spark.exchange import METRIC, RESULT, SHED, Message, inputs_of
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.micro_batch import arrange
from shedjoin.spark.state import Redo, read_redo, redo_blob
from shedjoin.spark.task_report import RowTimes, TaskReport

T, R = sj.TimeWindow, sj.RowWindow
NAMES = ("a", "b", "c")
WINDOWS = [(R(40), R(25)), (T(60), R(30)), (R(30), T(40), R(20))]
EVERY_WINDOW = pytest.mark.parametrize("windows", WINDOWS, ids=str)
Tables = list[tuple[list[pa.RecordBatch], ...]]


def spec_of(windows: tuple[Any, ...], shards: int = 3, **more: Any) -> sj.JoinSpec:
    given = windows if len(windows) == 2 else dict(zip(NAMES, windows, strict=True))
    return sj.JoinSpec(given, lateness=15, counted_elsewhere=shards > 1, **more)


def batches(windows: tuple[Any, ...], count: int = 150, pieces: int = 6, tasks: int = 3) -> Tables:
    """Micro-batches of several tasks each: equal times, nulls, and rows out of order, some of them late."""
    random, made = np.random.default_rng(4), []
    for _ in windows:
        ts = np.arange(count) // 2 * 3
        lag = np.where(random.random(count) < 0.05, 90, random.integers(0, 30, count))
        ts = ts[np.argsort(ts + lag, kind="stable")]
        keys = [None if one == 3 else int(one) for one in random.integers(0, 6, count)]
        edges = np.sort([0, *random.integers(0, count, pieces * tasks - 1), count])
        parts = [table(keys[a:b], ts[a:b].tolist(), a) for a, b in pairwise(edges.tolist())]
        made.append([parts[place : place + tasks] for place in range(0, pieces * tasks, tasks)])
    return list(zip(*made, strict=True))


def found(given: dict[str, list[dict[str, Any]]], streams: int) -> list[tuple[int, ...]]:
    return pairs(given[RESULT]) if streams == 2 else numbers(given[RESULT], streams)  # type: ignore[return-value]


@EVERY_WINDOW
def test_three_shards_give_what_one_gives(windows: Any) -> None:
    one, three = Shards(job(spec_of(windows, 1))), Shards(job(spec_of(windows), 3))
    total = late = 0
    for given in batches(windows):
        alone, together = one.batch(*given), three.batch(*given)
        expected = found(alone, len(windows))
        assert found(together, len(windows)) == expected
        total += len(expected)
        late += sum(row["late"] for row in alone[METRIC])
        for name in ("rows", "resident"):
            for stream, window in zip(spec_of(windows).names, windows, strict=True):
                if name == "rows" or isinstance(window, R):
                    sums = [sum(row[f"{name}_{stream}"] for row in told[METRIC]) for told in (alone, together)]
                    assert sums[0] == sums[1]
    assert total > 200
    assert late > 0


@EVERY_WINDOW
def test_archive_and_shed_log_have_numbers_over_all_shards(windows: Any) -> None:
    """What is missing follows from them: with the results it is what the join finds without a budget."""
    streams, names = len(windows), spec_of(windows).names
    kinds = (RESULT, SHED, METRIC, *inputs_of(names))
    shedding = Shards(job(spec_of(windows, budget=sj.Budget(tuples=30)), 3, kinds=kinds))
    exact = Shards(job(spec_of(windows), 3))
    number_of: list[dict[int, int]] = [{} for _ in names]
    left: dict[tuple[int, int], list[int]] = {}
    delivered, expected = [], []
    for given in batches(windows):
        before = [len(known) for known in number_of]
        told = shedding.batch(*given)
        delivered += found(told, streams)
        expected += found(exact.batch(*given), streams)
        for stream, kind in enumerate(inputs_of(names)):  # the user's columns come first: the row's name, its text
            new = {row["a0"]: row["a3"] for row in told[kind]}
            assert sorted(new.values()) == list(range(before[stream], before[stream] + len(new)))
            number_of[stream] |= new
        for row in (row for row in told[SHED] if row["why"] != "late"):
            left[row["stream"], row["seq"]] = [row[f"seen_{name}"] for name in names]
        assert sum(row[f"resident_{name}"] for row in told[METRIC] for name in names) <= 30
    missing = []
    for result in expected:
        seqs = [number_of[stream][row] for stream, row in enumerate(result)]
        gone = ((one, left[one, seq]) for one, seq in enumerate(seqs) if (one, seq) in left)
        if any(seqs[other] >= seen[other] for one, seen in gone for other in range(streams) if other != one):
            missing.append(result)
    assert sorted(delivered + missing) == sorted(expected)
    assert 0 < len(missing) < len(expected)
    if streams == 2:
        known = told[METRIC]
        assert all(0 <= row["recall_low"] <= row["recall"] <= row["recall_high"] <= 1 for row in known)
        assert sum(row["live_missing"] for row in known) == pytest.approx(len(missing), rel=0.2)


@pytest.mark.parametrize("budget", [None, sj.Budget(tuples=40)], ids=["exact", "shedding"])
@pytest.mark.parametrize("way", ["copy", "turns"])
def test_however_the_state_is_kept_the_output_is_the_same(
    budget: sj.Budget | None, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, spec = WINDOWS[0], spec_of(WINDOWS[0], budget=budget)
    plain = Shards(job(spec, 3))
    expected = [plain.batch(*given) for given in batches(windows)]
    monkeypatch.setattr(state, "LEAST_REDO", 9000)  # so that there are several bases in this short run
    monkeypatch.setattr(payload, "SLACK", 20)
    kept = Shards(job(spec, 3, cache=str(tmp_path)))
    fresh = Shards(job(spec, 3), kept.stores)
    for place, given in enumerate(batches(windows)):
        now = (fresh if way == "turns" and place % 3 == 2 else kept).batch(*given)
        assert pairs(now[RESULT]) == pairs(expected[place][RESULT])
        assert now[SHED] == expected[place][SHED]
        told = [
            {name: row[name] for name in row if name.startswith(("resident", "live", "rows"))} for row in now[METRIC]
        ]
        assert told == [
            {name: row[name] for name in one} for one, row in zip(told, expected[place][METRIC], strict=True)
        ]


def test_the_redo_log_keeps_numbers() -> None:
    batch = sj.Batch.of({"key": [1, 2, None], "ts": [3, 3, 9]}, {"key": [2], "ts": [3]}).numbered((10, 4))
    for some in (batch, batch.take(np.array([1, 3])), batch.take(slice(0, 0))):
        redo = read_redo(redo_blob(Redo(some, (9, None), arrived=(13, 5))))
        assert redo.arrived == [13, 5]
        assert some.numbers is not None
        assert redo.batch.numbers is not None
        assert redo.batch.numbers.seq.tolist() == some.numbers.seq.tolist()
        assert redo.batch.numbers.arrived.tolist() == some.numbers.arrived.tolist()


def test_a_task_that_read_other_rows_is_noticed() -> None:
    sent, again = (
        list(messages(([table([1] * 3, ts)], [table([1], [3])]), (0, 1), numbered=True))
        for ts in ([5, 9, 7], [5, 8, 7])
    )
    label = next(row["label"] for row in sent if row["rows"])
    mixed = [row for row in sent if row["rows"]] + [row for row in again if not row["rows"] and row["label"] == label]
    told = [Message(*(row[name] for name in Message._fields)) for row in mixed]
    with pytest.raises(sj.InputError, match="a task that was run again has read other rows"):
        arrange(told, spec_of((R(3), R(3))), HyperCube.of_key(2, 2), (0, 1).index(label), (0, 0))


def sent_of(times: np.ndarray) -> bytes:
    """What a task tells whose rows all went to the first shard."""
    sent = TaskReport(rows=RowTimes.of([times], [np.zeros(times.size, np.uint16)])).to_bytes()
    assert sent is not None
    return sent


@pytest.mark.parametrize(
    "values",
    [[], [7], [-5, -5, 3], [0, 200, 70_000, 2**40], [-(2**53), 2**53]],
    ids=str,
)
def test_times_come_back(values: list[int]) -> None:
    told = TaskReport.from_bytes(sent_of(np.array(values, np.int64))).rows
    assert told is not None
    assert told.times.tolist() == values
    assert told.mine(HyperCube.of_key(2, 2), 0, 0).tolist() == list(range(len(values)))


def test_times_take_few_bytes() -> None:
    random = np.random.default_rng(1)
    ts = np.sort(random.integers(0, 10**9, 100_000))  # a hundred a second, in microseconds
    assert len(sent_of(ts)) < 2 * ts.size + 1000
    assert len(sent_of(np.sort(random.integers(0, 10**6, 100_000)))) < ts.size


def test_shares_of_row_windows_follow_the_rows_of_the_window() -> None:
    """A key with most of the rows gets most of the memory, whatever the times are."""
    spec = spec_of((R(200), R(200)), budget=sj.Budget(tuples=200), policy=sj.Rand())
    shards = Shards(job(spec, 3))
    ts = list(range(0, 40_000, 100))
    for _ in range(3):
        told = shards.batch([table([1] * 300 + list(range(100)), ts)], [table(list(range(400)), ts)])[METRIC]
        ts = [one + 40_000 for one in ts]
    left = sorted(row["resident_left"] + row["resident_right"] for row in told)
    assert sum(left) <= 200
    assert left[-1] > left[0] + 30


def test_shards_and_row_windows_may_not_change(tmp_path: Path) -> None:
    one = Shards(job(spec_of((R(3), R(3)), 1)))
    one.batch([table([1], [1])], [table([1], [1])])
    three = Shards(job(spec_of((R(3), R(3))), 3), [*one.stores, *Shards(job(spec_of((R(3), R(3))), 3)).stores[1:]])
    with pytest.raises(sj.SnapshotError, match="another shards"):
        three.batch([table([1], [1])], [table([1], [1])])
