"""What the dashboard says of queries in all states, and to whom."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from outputs import BUDGET, SCHEMA, metric, write, write_batch, write_query

from shedjoin.cli import main
from shedjoin.dashboard.query import Query
from shedjoin.dashboard.server import FILES, PAGE, Dashboard
from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.lock import Owner, is_running
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.what_if import FACTORS, GROUPS, written


def followed(folder: Path) -> Query:
    query = Query(folder)
    while query.read():
        pass
    return query


def shown(query: Query) -> dict[str, Any]:
    return json.loads(json.dumps(query.page("whole", -1, 0), allow_nan=False))


def test_a_query_in_numbers(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    change = {"at": (now - timedelta(seconds=45)).isoformat(), "what": "budget: 900 tuples -> 4000 tuples"}
    page = shown(followed(write_query(tmp_path, 10, changes=({**change, "budget_before": {"tuples": 900}},))))
    points = page["series"]["points"]
    assert page["state"] == "running"
    assert page["streams"] == ["impressions", "clicks"]
    assert [one["batch"] for one in points] == [*range(10)]
    assert [one["cap"] for one in points] == [900] * 5 + [4000] * 5  # from when the query began anew
    assert points[0]["rows"] == [3000 + 3300, 1000 + 1100]
    assert sum(points[0]["shards"]) == sum(points[0]["stored"])
    assert page["recall"][1] < page["recall"][0] < page["recall"][2]
    assert points[5]["interval"] == pytest.approx(10.0)
    assert [one["what"] for one in page["events"]] == ["budget: 900 tuples -> 4000 tuples"]
    assert page["settings"] == {"how": "left_outer", "budget": "4000 tuples", "policy": "Prospect()", "shards": "2"}


def test_a_query_that_cannot_be_read_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = followed(write_query(tmp_path, 3))

    def stale(*_: object) -> list[int]:
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as broken:
        broken.setattr(MetricFiles, "batches", stale)
        assert not query.follow()
        assert shown(query)["state"] == "broken"
        assert any("Stale file handle" in note for note in shown(query)["notes"])
    query.follow()
    assert shown(query)["state"] == "running"


def test_news_come_without_a_restart(tmp_path: Path) -> None:
    query = followed(write_query(tmp_path, 3))
    write_batch(tmp_path, 3)
    (tmp_path / "metrics" / "batch=4").mkdir()  # still being written
    query.read()
    told = query.page("recent", 0, 2)["series"]
    assert [one["batch"] for one in told["points"]] == [2, 3]


def test_many_shards_and_no_budget(tmp_path: Path) -> None:
    page = shown(followed(write_query(tmp_path, 2, shards=20, budget=None)))
    assert len(page["shards"]) == 20
    low, mean, high = page["series"]["points"][0]["shards"]
    assert low <= mean <= high
    assert page["recall"] is None
    assert page["notes"] == ["No budget: nothing is shed. The results are exact, but for those of late rows."]


def test_every_state_is_a_plain_sentence(tmp_path: Path) -> None:
    card = followed(tmp_path / "none").card()
    assert (card["state"], card["words"]) == (
        "absent", f"No query was started in {tmp_path / 'none'} yet: it has no job.json.",
    )  # fmt: skip
    empty = write_query(tmp_path / "empty", 0)
    assert followed(empty).card()["words"] == "No micro-batch is finished yet."
    owner = Owner.of(str(empty))
    assert followed(empty).card()["words"] == "The query runs, and has not finished its first micro-batch yet."
    owner.release()
    assert followed(empty).card()["words"] == "The query stopped before its first micro-batch was finished."
    old = write_query(tmp_path / "old", 3, ended=datetime.now(UTC) - timedelta(hours=5))
    words = "No news: the last micro-batch 2 ended 5 hours ago. The query waits for input, or has stopped."
    assert (followed(old).card()["state"], followed(old).card()["words"]) == ("quiet", words)
    Owner.of(str(old)).release()
    assert (
        followed(old).card()["words"]
        == "Stopped: the last micro-batch 2 ended 5 hours ago. The figures are as of then."
    )
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "job.json").write_text("{")
    assert followed(tmp_path / "bad").card()["words"].endswith("job.json is not the job file of a shedjoin query")


def test_a_broken_file_is_left_out(tmp_path: Path) -> None:
    write_query(tmp_path, 4)
    (tmp_path / "metrics" / "batch=2" / "part-0.parquet").write_text("no parquet")
    page = shown(followed(tmp_path))
    assert [one["batch"] for one in page["series"]["points"]] == [0, 1, 3]
    (note,) = page["notes"]
    assert "batch=2" in note
    assert note.endswith("The charts leave this micro-batch out.")
    for batch in (0, 1, 3):
        (tmp_path / "metrics" / f"batch={batch}" / "part-0.parquet").write_text("no parquet")
    assert followed(tmp_path).card()["state"] == "broken"


def test_a_lock_is_looked_up_and_not_taken(tmp_path: Path) -> None:
    assert is_running(tmp_path) is None
    owner = Owner.of(str(tmp_path))
    assert is_running(tmp_path) is True
    owner.release()
    assert is_running(tmp_path) is False
    (tmp_path / "_owner").write_text("process 1 on elsewhere.example, since 2026\n")
    assert is_running(tmp_path) is None


def test_the_server_answers_this_machine_alone(tmp_path: Path) -> None:
    write_query(tmp_path, 1)
    with Dashboard([tmp_path]) as page:
        assert asked(page, "/")[0] == 200
        for path in FILES:
            assert asked(page, path)[0] == 200, path
        assert json.loads(asked(page, "/queries")[1])[0]["path"] == str(tmp_path)
        for path in (
            "/query/1",
            "/query/x",
            "/query/0?view=none",
            "/query/0?from=x",
            "/../job.json",
            "/page/index.html",
        ):
            assert asked(page, path)[0] == 404, path
        assert asked(page, "/", host="example.org")[0] == 403
        with pytest.raises(EnvironmentProblem, match=r"cannot listen at 127\.0\.0\.1:.* Name another with --port"):
            Dashboard([tmp_path], port=int(page.url.rpartition(":")[2].strip("/")))


def asked(page: Dashboard, path: str, host: str | None = None) -> tuple[int, bytes]:
    at = urlsplit(page.url)
    connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=30)
    connection.request("GET", path, headers={"Host": host or at.netloc})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_page_takes_nothing_from_elsewhere() -> None:
    for file, _ in FILES.values():
        text = (
            (PAGE / file).read_text().replace("http://www.w3.org/", "").replace("https://github.com/leeoniya/uPlot", "")
        )
        assert "http:" not in text, file
        assert "https:" not in text, file
    assert "MIT" in (PAGE / "uPlot.LICENSE").read_text()


def test_the_command_runs_until_it_is_told_to_end(tmp_path: Path) -> None:
    write_query(tmp_path, 1, budget=BUDGET)
    words = [sys.executable, "-m", "shedjoin.cli", "dashboard", str(tmp_path), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("dashboard at http://127.0.0.1:")
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--port", "70000"], "--port must be from 0 to 65535, not 70000"), ([], "is a file: name the output directory")],
)
def test_bad_arguments_get_one_sentence(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["dashboard", str(tmp_path / "file"), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_page_says_what_to_set(tmp_path: Path) -> None:
    idle = {**BUDGET, "tuples": 1_000_000, "allocation": "fixed"}
    (note,) = shown(followed(write_query(tmp_path / "idle", 2, budget=idle)))["notes"]
    assert "of the budget is unused" in note
    folder = write_query(tmp_path / "curve", 2)
    sums = np.zeros((1, len(FACTORS) + 2, 2 * GROUPS))
    sums[0, :, :GROUPS] = np.array([300, 500, 700, 900, 1000, 740, 1000])[:, None]
    found = {"rows": 5000, "policy": "Prob()", "rivals": ["Rand()"], "held": 512.0, "need": 8.0, "sampled": [0.1, 1.0]}
    found |= {"seen": 10_000.0, "delivered": [7000.0], "sums": sums.tolist()}
    rows = pa.Table.from_pylist([metric(2, shard, datetime.now(UTC)) for shard in (0, 1)], SCHEMA)
    write(folder, 2, rows.drop_columns(["batch"]).append_column("what_if", pa.array([written(found)] * 2)))
    notes = shown(followed(folder))["notes"]
    assert notes[0].startswith("With twice the memory recall would be about")
