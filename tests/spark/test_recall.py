"""Live recall on Spark can be left out, and once it was it stays out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shards import Shards, job, table

import shedjoin as sj
from shedjoin.cli.stream_job import read_stream_job
from shedjoin.recall.live import one_log

SPEC = sj.JoinSpec(window=sj.TimeWindow(100), budget=sj.Budget(tuples=4))


def told(shards: Shards, start: int) -> list[float | None]:
    ts = range(start, start + 20)
    both = table([place % 3 for place in ts], ts)
    return [row["recall"] for row in shards.batch([both], [both])["metric"]]


def test_recall_is_told_unless_it_is_left_out() -> None:
    with_it, without = Shards(job(SPEC)), Shards(job(SPEC, recall=False))
    for start in (0, 20):
        assert None not in told(with_it, start)
        assert told(without, start) == [None]


def test_recall_that_was_left_out_begins_later() -> None:
    """It has not seen the rows of before, and is of the results of later rows."""
    first = Shards(job(SPEC, recall=False))
    assert told(first, 0) == [None]
    second = Shards(replace(first.job, recall=True), first.stores)
    ts = range(20, 40)
    both = table([place % 3 for place in ts], ts)
    (metric,) = second.batch([both], [both])["metric"]
    assert metric["recall_from"] == 1
    assert metric["recall"] is not None
    assert metric["live_results"] < metric["results"]


def test_the_log_of_a_push_is_read_where_it_is() -> None:
    """A copy of it costs more than all that the estimate does."""
    rows = {"key": list(range(9)), "ts": list(range(9))}
    logs = [SPEC.build().push(left=rows, right=rows).shed for _ in range(2)]
    assert len(logs[0])
    assert one_log(logs[:1], SPEC.names) is logs[0]
    assert one_log(logs, SPEC.names).seq.tolist() == logs[0].seq.tolist() * 2
    assert len(one_log([], SPEC.names)) == 0


def test_a_job_file_can_leave_it_out(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    sides, output = '[left]\npath = "a"\n[right]\npath = "b"\n', '[output]\npath = "out"\n'
    text = f'{sides}[join]\non = "k"\ntime = "at"\nwindow = 5\nlateness = 0\n{output}'
    for more, recall in (("", True), ("recall = true\n", True), ("recall = false\n", False)):
        (tmp_path / "job.toml").write_text(text + more)
        assert read_stream_job(tmp_path / "job.toml").output.recall is recall
