"""Job files of `shedjoin run`: what is read, and one sentence with the place in the file for what makes no sense."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.cli.preflight import check_formats
from shedjoin.cli.stream_job import OutputTable, RunTable, StreamJob, read_stream_job
from shedjoin.parse import parse_policy
from shedjoin.spark.join_args import PARAMETERS
from shedjoin.spark.sources import Sink, Source

SIDES = '[left]\npath = "a"\n[right]\npath = "b"\n'
OUTPUT = '[output]\npath = "out"\n'
JOIN = '[join]\non = "k"\ntime = "at"\nwindow = "10 minutes"\nlateness = 0\n'
GOOD = SIDES + OUTPUT + JOIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        table = pa.table({"k": [1], "at": pa.array([0], pa.timestamp("us", tz="UTC")), name: ["text"], "x": [True]})
        pq.write_table(table, tmp_path / name / "0.parquet")
    return tmp_path


def read(folder: Path, text: str) -> StreamJob:
    (folder / "job.toml").write_text(text)
    return read_stream_job(folder / "job.toml")


def test_the_least_that_is_needed(folder: Path) -> None:
    job = read(folder, GOOD)
    assert job.sources[0] == Source("left", "parquet", str(folder / "a"))
    assert job.spec == sj.JoinSpec(sj.TimeWindow(600_000_000))
    assert job.on.keys == (("k", "k"),)
    assert job.output == OutputTable(str(folder / "out"))
    assert (job.sink, job.run, job.run.spark_trigger()) == (None, RunTable(), None)


SOURCES = """
[left]
format = "csv"
path = "a"
schema = {k = "bigint", "odd name" = "string", at = "timestamp"}
options = {maxFilesPerTrigger = 3, header = true, "a.b" = 0.5}
[right]
format = "rate"
options.rowsPerSecond = 10
select = ["value % 7 AS k", "timestamp AS at"]
"""
SETTINGS = """
[join]
on = ["k", {left = "x", right = "y"}, ["v", "w"]]
time = ["at", "then"]
window = {left = "1 minute", right = "2 minutes"}
budget = 500
allocation = "variable"
policy = {name = "prob", estimator = {name = "decayed", half_life = "1 hour"}}
importance = {left = "bid"}
lateness = "2 seconds"
max_skew = "1 hour"
shards = 4
select = {a = "left.x", b = "y"}
suffixes = ["_l", "_r"]
combine = "sum"
seed = 3
shares = "equal"
cache = false
"""
TARGETS = """
[output]
path = "/abs/out"
archive = true
checkpoint = "elsewhere"
[sink]
format = "delta"
path = "s3://bucket/table"
mode = "append"
batch_column = "batch"
[run]
trigger = "10 seconds"
name = "ads"
metrics_port = 9464
metrics_host = "0.0.0.0"
[spark]
master = "local[4]"
sql.shuffle.partitions = 4
"spark.ui.enabled" = true
"""
EVERYTHING = SOURCES + SETTINGS + TARGETS


def test_everything_that_can_be_said_of_sources(folder: Path) -> None:
    job = read(folder, EVERYTHING)
    assert job.sources[0].schema == "`k` bigint, `odd name` string, `at` timestamp"
    assert job.sources[0].options == {"maxFilesPerTrigger": "3", "header": "true", "a.b": "0.5"}
    assert job.sources[1] == Source(
        "right", "rate", None, None, {"rowsPerSecond": "10"}, ("value % 7 AS k", "timestamp AS at")
    )


def test_everything_that_can_be_said_of_the_join(folder: Path) -> None:
    job = read(folder, EVERYTHING)
    assert job.on.keys == (("k", "k"), ("x", "y"), ("v", "w"))
    assert job.times == ("at", "then")
    assert job.importances == ("bid", None)
    assert (job.join["cache"], job.join["seed"], job.join["shards"], job.join["shares"]) == (False, 3, 4, "equal")
    assert job.spec == sj.JoinSpec(
        (sj.TimeWindow(60_000_000), sj.TimeWindow(120_000_000)),
        budget=sj.Budget(tuples=500, allocation="variable"),
        policy=sj.Prob(estimator=sj.Decayed(half_life=3_600_000_000)),
        importance="sum",
        lateness=2_000_000,
        max_skew=3_600_000_000,
    )


def test_everything_that_can_be_said_of_where_results_go_and_how_it_runs(folder: Path) -> None:
    job = read(folder, EVERYTHING)
    assert job.output == OutputTable("/abs/out", archive=True, checkpoint=str(folder / "elsewhere"))
    assert job.sink == Sink("delta", "s3://bucket/table", {}, "append", "batch")
    assert job.run.spark_trigger() == {"processingTime": "10000 milliseconds"}
    assert job.run == RunTable("10 seconds", "ads", 9464, "0.0.0.0")
    assert job.settings == {
        "spark.master": "local[4]",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "true",
    }


@pytest.mark.parametrize("words", ["available now", "available-now"])
def test_a_finite_source_has_an_end(folder: Path, words: str) -> None:
    assert read(folder, GOOD + f'[run]\ntrigger = "{words}"\n').run.spark_trigger() == {"availableNow": True}


MANY = "".join(f'[streams.{name}]\npath = "{path}"\n' for name, path in (("x", "a"), ("y", "b"), ("z", "a")))
THREE = MANY + OUTPUT + JOIN
LIKE = 'predicate = {name = "overlap", column = "tags", at_least = 2}'
ITEMS = GOOD.replace('on = "k"', LIKE)
BAD = [
    (
        THREE.replace("streams.x", "left"),
        "streams must have three tables or more, and no [left] or [right], not left",
    ),
    (THREE.replace('"at"', "['at', 'at']"), "join.time must be one for all streams, or one each (x, y, z)"),
    (
        THREE.replace('on = "k"', 'on = {x = "k"}'),
        "join.on must be a column name, a tuple of one name a stream (x name, y name, z name), or a list",
    ),
    (THREE.replace('path = "b"', 'path = "c"'), "streams.y.path: there is no"),
    (THREE + "suffixes = ['_x', '_y']\n", "join.suffixes must be a tuple of one text a stream"),
    (THREE + "budget = 5\nshards = 2\n", "join.budget: 5 tuples are too few for 2 shards"),
    (
        THREE.replace("streams.y", "streams.'y z'"),
        "streams: names must be simple words that differ, not ('x', 'y z', 'z')",
    ),
    (THREE.replace("streams.y", "streams.X"), "streams: names must be simple words that differ"),
    (
        GOOD + "predicate = {name = 'band', column = 'x', within = 1}\n",
        "join.on and predicate cannot both be given",
    ),
    (ITEMS.replace("overlap", "alike"), "join.predicate must be a predicate such as Overlap"),
    (ITEMS.replace("{name", "3 # {name"), "join.predicate must be a predicate such as Overlap"),
    (ITEMS.replace("at_least", "atleast"), "join.predicate overlap does not take these settings"),
    (ITEMS.replace("= 2", "= 0"), "join.predicate: Overlap.at_least must be a whole number from 1"),
    (ITEMS.replace('"tags"', "3"), "join.predicate: Overlap.column must be the name of a column, or a pair"),
    (
        ITEMS + "budget = 9\npolicy = 'prospect'\n",
        "join.policy: Prospect() learns from a key that all streams share",
    ),
    (ITEMS + "budget = 9\nshares = 'adaptive'\n", "join.shares must be 'equal' for a join on a predicate"),
    (THREE.replace('on = "k"', LIKE), "join.on: A predicate compares two streams"),
    (GOOD + "front = 2\n", "join.front must be a share from 0 to 1"),
    (GOOD + "cpu = {name = 'virtual', capacity = 5}\n", "join.cpu: A virtual CPU works in virtual time"),
    (GOOD + "deadline = 'soon'\n", "join.deadline must be a duration such as"),
    (GOOD + "deadline = 0\n", "join.deadline must be above 0"),
    (GOOD + "deadline = true\n", "join.deadline must be a duration such as '2 seconds', or a number of seconds"),
    ("[joint]\n", "unknown table `[joint]`; perhaps `join`"),
    ("", "[left] is missing: a job to run needs the tables"),
    (SIDES + JOIN, "[output] is missing"),
    (SIDES + OUTPUT, "[join] is missing"),
    ("[workload]\nrows = 3\n", "workload: generated streams are for `shedjoin simulate`"),
    ("left = 3\nright = 3\njoin = 3\noutput = 3\n", "left must be a table of settings, not 3"),
    (GOOD.replace("window", "windw"), "unknown setting `[join] windw`; perhaps `window`"),
    (GOOD.replace("on = ", "# "), "join.on is missing"),
    (GOOD.replace('on = "k"', "on = []"), "join.on must name at least one key column"),
    (GOOD.replace('on = "k"', "on = [['a', 'b', 'c']]"), "join.on must be a column name"),
    (GOOD.replace('on = "k"', "on = 3"), "join.on must be a column name"),
    (GOOD.replace("time = ", "# "), "join.time is missing"),
    (GOOD.replace('time = "at"', "time = 3"), "join.time must be a column name"),
    (GOOD.replace('time = "at"', "time = ['a', 'b', 'c']"), "join.time must be one for both sides, or a pair"),
    (GOOD.replace("window = ", "# "), "join.window is missing"),
    (GOOD.replace("10 minutes", "soon"), "join.window must be a duration"),
    (GOOD.replace("10 minutes", "3 months"), "join.window has no unit 'months'"),
    (GOOD.replace("10 minutes", "0 s"), "join.window must be longer than 0"),
    (
        GOOD.replace("10 minutes", "50 rows") + "shards = 2\nbudget = 9\npolicy = 'prospect'\n",
        "join.policy: Prospect() is not available for row windows over several shards",
    ),
    (GOOD.replace('"10 minutes"', "['1 s', 'x']"), "join.window[1] must be a duration"),
    (
        GOOD.replace('"10 minutes"', "{left = '1 s', up = 3}"),
        "join.window: there is no stream 'up'; there are left, right",
    ),
    (GOOD + "budget = 'much'\n", "join.budget must be an amount of tuples or bytes"),
    (GOOD + "budget = '200k'\n", "join.budget must be an amount of tuples or bytes"),
    (GOOD + "budget = true\n", "join.budget must be an amount of tuples or bytes"),
    (GOOD + "budget = -3\n", "join.budget: Budget.tuples must be a whole number of at least 1"),
    (GOOD + "budget = 1\nallocation = 'fixed'\n", "join: Budget(tuples=1) leaves stream 0 with no tuple"),
    (GOOD + "budget = 5\nshards = 3\n", "join.budget: 5 tuples are too few for 3 shards"),
    (GOOD + "budget = {tuple = 5}\n", "join.budget has no setting 'tuple'"),
    (GOOD + "budget = 5\nallocation = 'some'\n", "join.allocation must be one of fixed, variable, not 'some'"),
    (GOOD + "policy = 'best'\n", "join.policy must be one of additive, age, auto"),
    (GOOD + "policy = 'life'\n", "join.policy Life(estimator=History()) is given without a budget"),
    (GOOD + "policy = {name = 'prob', speed = 3}\n", "join.policy: Prob has no setting 'speed'; it has estimator"),
    (GOOD + "budget = 9\npolicy = 'keep_all'\n", "join.policy: KeepAll() keeps everything"),
    (GOOD.replace("lateness = 0", "lateness = 'x'"), "join.lateness must be a duration"),
    (GOOD.replace("lateness = 0\n", ""), 'join.lateness is missing: set it, such as lateness = "5 minutes"'),
    (GOOD + "max_skew = -1\n", "join.max_skew must be at least 0"),
    (GOOD + "shards = 0\n", "join.shards must be a whole number from 1 to 1024, not 0"),
    (GOOD + "seed = 'x'\n", "join.seed must be a whole number"),
    (GOOD + "combine = 'median'\n", "join.combine must be one of min, max"),
    (GOOD + "importance = 3\n", "join.importance must be a column name"),
    (GOOD + "select = 'k'\n", "join.select must be a list of column names"),
    (GOOD + "select = {a = 3}\n", "join.select must be a list of column names, or a dict from new names"),
    (GOOD + "suffixes = '_x'\n", "join.suffixes must be a pair of texts"),
    (GOOD + "cache = 3\n", "join.cache must be a directory, False (none)"),
    (GOOD + "shares = 'most'\n", "join.shares must be one of adaptive, equal, not 'most'"),
    (GOOD + "where = 'left.k <'\n", "join.where cannot be read"),
    (GOOD + "where = 3\n", "join.where must be an SQL condition such as"),
    (GOOD + "where = 'max(left.k) > 1'\n", "join.where has the aggregate max, but it looks at one row of each stream"),
    (GOOD.replace('"a"', '"nowhere"'), "left.path: there is no "),
    (GOOD.replace('"b"', "3"), "right.path must be a text, not 3"),
    (GOOD.replace('path = "b"', 'path = "b"\nform = "csv"'), "unknown setting `[right] form`; perhaps `format`"),
    (GOOD.replace('path = "b"', 'path = "b"\nformat = "csv"'), "right.schema is missing: csv files do not store types"),
    (GOOD.replace('path = "b"', 'format = "json"'), "right.path is missing"),
    (GOOD.replace('path = "b"', 'path = "b"\nschema = {k = 3}'), "right.schema.k must be a type"),
    (GOOD.replace('path = "b"', 'path = "b"\noptions = 3'), "right.options must be a table of settings"),
    (GOOD.replace('path = "b"', 'path = "b"\noptions = {x = [1]}'), "right.options.x must be a text, a number"),
    (GOOD.replace('path = "b"', 'path = "b"\nselect = "k"'), "right.select must be a list of texts"),
    (GOOD.replace('path = "out"', ""), "output.path is missing"),
    (GOOD.replace('"out"', '"job.toml"'), "output.path must be a directory, but "),
    (
        GOOD.replace('"out"', '"s3://bucket/out"'),
        "output.path must be the path of a directory, not an address: 's3://b",
    ),
    (GOOD.replace('path = "out"', 'path = "out"\narchive = "yes"'), "output.archive must be true or false, not 'yes'"),
    (GOOD + "[sink]\nformat = 'csv'\n", "sink.path is missing"),
    (GOOD + "[sink]\npath = 'x'\nmode = 'append'\n", "sink.mode: parquet files are written one directory"),
    (GOOD + "[sink]\nformat = 'jdbc'\nmode = 'add'\n", "sink.mode must be one of append, overwrite"),
    (GOOD + "[run]\ntrigger = 'often'\n", "run.trigger must be 'available now' or a duration"),
    (GOOD + "[run]\nmetrics_port = 70000\n", "run.metrics_port must be a whole number from 0 to 65535"),
    (GOOD + "[run]\nspeed = 1\n", "unknown setting `[run] speed`; there are trigger, name, metrics_port, metrics_host"),
    (
        GOOD + "[spark]\nmaster = 'nonsense'\n",
        "spark.master must be a master of Spark: local, local[N], local[*], spark",
    ),
    (GOOD + "[spark]\nmaster = 'local[0]'\n", "spark.master must be a master of Spark: "),
    (GOOD + "[spark]\nmaster = 4\n", "spark.master must be a master of Spark: "),
    (GOOD + "[spark]\nremote = 'host:15002'\n", "spark.remote must be a server of Spark Connect: sc://HOST:PORT, not "),
    (GOOD + "[spark]\nsql.x = [1]\n", "spark.sql.x must be a text, a number"),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_a_bad_job_gets_one_sentence_before_anything_starts(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.setattr("shedjoin.cli.run.check_java", lambda: pytest.fail("something was started"))
    (folder / "job.toml").write_text(text)
    for command in ("explain", "run"):
        assert main([command, str(folder / "job.toml")]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"shedjoin: {words}")
        assert said.count("\n") == 1


def explained(folder: Path, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    (folder / "job.toml").write_text(text)
    assert main(["explain", str(folder / "job.toml")]) == 0
    return capsys.readouterr().out


def test_explain_shows_memory_by_shard_and_stream(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = "budget = {tuples = 1000, shares = [3, 1]}\nshards = 3\n"
    text = GOOD.replace("lateness = 0", 'lateness = "5 seconds"')
    said = explained(folder, text + budget, capsys, monkeypatch)
    assert "10 minutes, by at and at" in said
    assert "5 seconds: a row is kept for 10 minutes 5 seconds" in said
    assert "Prospect()" in said
    assert "3 shards (join.shards)" in said
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    # A row has two numbers of 8 bytes, a truth value and a text: 49 bytes of columns.
    assert ["0", "250 tuples", "84 tuples", "2.4 MB to 2.74 MB"] in rows
    assert ["2", "250 tuples", "83 tuples", "2.4 MB to 2.74 MB"] in rows
    assert ["all", "750 tuples", "250 tuples", "7.21 MB to 8.23 MB"] in rows
    assert not (folder / "out").exists()


def test_explain_says_what_join_types_on_predicates_copy(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace('on = "k"', 'predicate = {name = "band", column = "k", within = 1}') + 'how = "left"\n'
    assert "1 shard (more would store rows several times)" in explained(folder, text, capsys, monkeypatch)
    assert "each row of left goes to 1, of right to 4" in explained(folder, text + "shards = 4\n", capsys, monkeypatch)


@pytest.mark.parametrize(("shards", "policy"), [(1, "Prospect()"), (3, "Prob(")])
def test_explain_knows_the_policy_of_row_windows(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shards: int, policy: str
) -> None:
    """The number of shards decides, also when it is not in the file."""
    text = GOOD.replace("10 minutes", "50 rows") + "budget = 90\n"
    said = explained(folder, text + f'[spark]\nmaster = "local[{shards}]"\n', capsys, monkeypatch)
    assert f"{shards} shard" in said
    assert policy in said


CSV = 'format = "csv"\nschema = "`k` bigint, at timestamp, pay struct<x: int, y: int>"'
MISSING = [
    (GOOD.replace('"k"', '"kk"'), "join.on: left has no column 'kk'; it has k, at, a, x"),
    (GOOD.replace('"at"', '["at", "then"]'), "join.time: right has no column 'then'; it has k, at, b, x"),
    (GOOD + 'importance = {left = "bid"}\n', "join.importance: left has no column 'bid'"),
    (ITEMS, "join.predicate: left has no column 'tags'"),
    (GOOD + 'where = "left.k < right.q"\n', "join.where: right has no column 'q'; it has k, at, b, x"),
    (GOOD + 'where = "q > 1"\n', "join.where: there is no column 'q'; left has k, at, a, x, right has k, at, b, x"),
    (GOOD.replace('"k"', '"left.k < right.b2"'), "join.on: right has no column 'b2'; it has k, at, b, x"),
    (
        GOOD.replace('path = "b"', f'path = "b"\n{CSV}').replace('on = "k"', 'on = ["K", ["a", "pay.x"], ["a", "z"]]'),
        "join.on: right has no column 'z'; it has k, at, pay",
    ),
]


@pytest.mark.parametrize(("text", "words"), MISSING, ids=[words for _, words in MISSING])
def test_explain_misses_a_column_before_spark_does(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (folder / "job.toml").write_text(text)
    assert main(["explain", str(folder / "job.toml")]) == 2
    assert capsys.readouterr().err.startswith(f"shedjoin: {words}")


def test_explain_says_where_a_condition_is_evaluated(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = """where = "left.x AND (left.k < right.k OR right.x) AND b LIKE 'A%' AND concat(a, b) = 'AB'"\n"""
    said = explained(folder, GOOD + where, capsys, monkeypatch)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert [row for row in rows if row[0].startswith("where")] == [
        ["where, before the join", "left.x AND right.b LIKE 'A%'"],
        ["where, in the workers", "left.k < right.k OR right.x"],
        [
            "where, behind the join",
            "CONCAT(left.a, right.b) = 'AB' (one side of a comparison is of several streams)",
        ],
    ]


def test_explain_shared_memory_in_bytes_and_an_unknown_source(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace('path = "b"', 'format = "rate"') + (
        'budget = "8 MB"\nallocation = "variable"\n[spark]\nmaster = "local[2]"\n[run]\nmetrics_port = 9464\n'
        "[sink]\nformat = 'console'\n"
    )
    said = explained(folder, text, capsys, monkeypatch)
    assert "2 shards (one a core)" in said
    assert "4,000,000 bytes" in said
    assert "shared" in said
    parts = r"beside its rows a shard takes .* MB \(arrays and filters .*, samples for live recall .*\); a row takes up to \d+ "
    assert re.search(parts, " ".join(said.split()))
    assert "http://127.0.0.1:9464/metrics" in said
    assert "console" in said
    assert "not known before it is read" in said


def test_explain_without_a_budget_says_that_there_is_no_cap(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = explained(folder, GOOD + "[spark]\nmaster = 'spark://host:7077'\n", capsys, monkeypatch)
    assert "none: exact, without a cap" in said
    assert "no budget: as much as the window holds" in said
    assert "a cluster's cores are not known here" in said


def test_three_streams(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = THREE.replace('on = "k"', 'on = ["k", {x = "a", z = "a", y = "b"}]') + (
        'importance = {y = "k"}\nbudget = "900 tuples"\nallocation = "fixed"\nshards = 2\nsuffixes = ["_x", "", "_z"]\n'
    )
    text = text.replace('window = "10 minutes"', 'window = {x = "10 minutes", y = "1 minute", z = "1 minute"}')
    job = read(folder, text)
    assert job.join["names"] == job.names == ("x", "y", "z")
    assert job.on.keys == (("k",) * 3, ("a", "b", "a"))
    assert job.importances == (None, "k", None)
    assert [window.size // 60_000_000 for window in job.spec.windows] == [10, 1, 1]
    said = explained(folder, text, capsys, monkeypatch)
    assert "k, x.a = y.b = z.a" in said
    assert "10 minutes (x), 1 minute (y), 1 minute (z), by at, at and at" in said
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["1", "150 tuples", "150 tuples", "150 tuples"] in [row[:4] for row in rows]


GRAPH = THREE.replace('on = "k"', 'on = ["x.k = y.k", "y.x < z.k"]')


def test_a_join_graph(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    job = read(folder, GRAPH + "budget = 90\nshards = 7\n")
    assert isinstance(job.spec, sj.JoinSpec)
    assert (job.spec.on, job.on.keys) == (("x.k = y.k", "y.x < z.k"), ())
    said = explained(folder, GRAPH + "budget = 90\nshards = 7\n", capsys, monkeypatch)
    assert "x.k = y.k, y.x < z.k" in said
    shares = "shares: x.k=y.k 3, rows of z 2: 6 shards, each row of x goes to 2, of y to 2, of z to 3"
    assert f"{shares} (join.shards allows 7)" in " ".join(said.split())
    assert "live recall" in said
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["5", "15 tuples", "shared", "shared"] in [row[:4] for row in rows]
    rates = GRAPH + "shards = 4\nrates = {x = 1, y = 1, z = 1000}\n"
    assert "rows of z 4: 4 shards" in " ".join(explained(folder, rates, capsys, monkeypatch).split())


def test_a_join_graph_goes_on_with_its_cube(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = sj.JoinSpec(dict.fromkeys("xyz", sj.TimeWindow(600_000_000)), on=("x.k = y.k", "y.x < z.k"))
    cube = {"spec": spec.to_dict(), "shards": 2, "cube": [1, 2], "on": [], "streams": ["x", "y", "z"]}
    begun(folder, **cube, time=["at"] * 3, importance=[None] * 3)
    (folder / "job.toml").write_text(GRAPH + "shards = 4\n")
    assert main(["explain", str(folder / "job.toml")]) == 0
    assert "rows of z 2: 2 shards" in " ".join(capsys.readouterr().out.split())
    (folder / "job.toml").write_text(GRAPH + "shards = 1\n")
    assert main(["explain", str(folder / "job.toml")]) == 2
    assert "another shards: it has 2, this query 1" in capsys.readouterr().err


def said_of(folder: Path, predicate: str) -> object:
    return read(folder, GOOD.replace('on = "k"', f"predicate = {predicate}")).on.predicate


def test_predicates_by_their_names(folder: Path) -> None:
    assert said_of(folder, '{name = "band", column = "x", within = 0.5}') == sj.Band("x", within=0.5)
    assert said_of(folder, '{name = "theta", column = {left = "bid", right = "ask"}, operator = ">=", offset = 1}') == (
        sj.Theta(("bid", "ask"), ">=", offset=1.0)
    )
    assert said_of(folder, '{name = "subset", column = ["a", "b"]}') == sj.Subset(("a", "b"))
    assert said_of(folder, '{name = "superset", column = "a"}') == sj.Superset("a")
    assert said_of(folder, '{name = "same_set", column = "a"}') == sj.SameSet("a")
    assert said_of(folder, '{name = "inner_product", column = "a", at_least = 0.8}') == sj.InnerProduct(
        "a", at_least=0.8
    )
    equal = read(folder, GOOD.replace('on = "k"', 'predicate = {name = "equal", column = ["a", "b"]}'))
    assert (equal.on.keys, equal.on.predicate) == ((("a", "b"),), None)
    assert isinstance(equal.spec, sj.JoinSpec)


def test_a_predicate_and_a_deadline(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = 'budget = 90\nallocation = "fixed"\npolicy = "simp"\ndeadline = "5 seconds"\nshards = 2\n'
    job = read(folder, ITEMS + more)
    assert (job.spec.on, job.spec.policy) == (sj.Overlap("tags", at_least=2), sj.Simp())
    assert job.spec.selective is not None
    assert (job.on.predicate, job.on.keys, job.join["deadline"]) == (job.spec.on, (), "5 seconds")
    assert list(job.join) == list(PARAMETERS)
    said = explained(folder, ITEMS.replace('"tags"', '["a", "b"]') + more, capsys, monkeypatch)
    assert "overlap of left.a and right.b, at_least 2" in said
    assert "5 s a micro-batch" in said
    assert "2 shards (join.shards); each stores its part of the rows, and compares all with it" in said
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["1", "23 tuples", "22 tuples"] in rows or ["1", "22 tuples", "22 tuples"] in rows
    how = "selective = {basic = '30 seconds', sample = 0.2, types = 2}\nkind = 'x'\n"
    said = explained(folder, GOOD + "deadline = 2\n" + how, capsys, monkeypatch)
    assert (
        "basic windows of 30 seconds, ranked by a sample of 20% of the rows, by importance and 2 types of rows" in said
    )
    said = explained(folder, GOOD + "selective = {fraction = 0.5, correlation = false}\n", capsys, monkeypatch)
    assert "always 50% of the windows: basic windows of 30 seconds, the newest first" in said
    said = explained(folder, GOOD + "front = {right = 0.25}\n", capsys, monkeypatch)
    assert "25% of right, by lot" in said
    assert "exact" not in said
    said = explained(folder, GOOD + "deadline = 2\n", capsys, monkeypatch)
    assert "none: without a cap" in said
    assert "exact" not in said
    assert "each has the keys that hash to it" in said


def begun(folder: Path, **changes: object) -> None:
    """An output directory in which the job of `GOOD` has begun, with DGL and a budget of 9 tuples."""
    spec = sj.JoinSpec(sj.TimeWindow(600_000_000), sj.Budget(tuples=9), sj.Dgl())
    job = {
        "format": 4, "spec": spec.to_dict(), "shards": 1, "seed": 0, "on": [["k", "k"]], "time": ["at", "at"],
        "importance": [None, None], "streams": ["left", "right"], "columns": [], "archive": False, "checkpoint": None,
        "timestamps": True,
    }  # fmt: skip
    (folder / "out" / "checkpoint").mkdir(parents=True)
    (folder / "out" / "metrics" / "batch=0").mkdir(parents=True)
    (folder / "out" / "job.json").write_text(json.dumps(job | changes))


DGL = 'budget = 9\npolicy = "dgl"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("10 minutes", "10 minutes 1 us") + DGL, "has 10 minutes, this query 10 minutes 1 microsecond. "),
        (GOOD.replace('on = "k"', 'on = ["k", "x"]') + DGL, "another on: it has k = k, this query k = k, x = x. "),
        (GOOD.replace('"out"\n', '"out"\narchive = true\n') + DGL, "began without an archive, which cannot change"),
        (GOOD.replace('"out"\n', '"out"\ncheckpoint = "c"\n') + DGL, "checkpoint was "),
    ],
)
@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_query_goes_on_as_it_began(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, text: str, words: str
) -> None:
    begun(folder)
    (folder / "job.toml").write_text(text)
    assert main([command, str(folder / "job.toml")]) == 2
    assert words in capsys.readouterr().err


def test_explain_lets_a_query_go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(folder)
    for more in (
        DGL,
        'budget = 12\npolicy = {name = "dgl", gain = 2.0}\n',
        'budget = 9\npolicy = "age"\n',
        "budget = 9\nshards = 2\n",
    ):
        (folder / "job.toml").write_text(GOOD + more)
        assert main(["explain", str(folder / "job.toml")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for change in ("budget: 9 tuples -> 12 tuples", "Dgl", "Age", "shards: 1 -> 2"):
        assert change in said
    (folder / "out" / "checkpoint").rmdir()
    assert main(["explain", str(folder / "job.toml")]) == 2
    assert "its checkpoint" in capsys.readouterr().err


def test_the_keys_of_a_table_are_left_to_spark(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    table = "budget = 9\npolicy = {name = 'prob', estimator = {name = 'table', left = {a = 1}, right = {a = 1}}}\n"
    (folder / "job.toml").write_text(GOOD + table)
    spec = sj.JoinSpec(sj.TimeWindow(600_000_000), sj.Budget(tuples=9), sj.Prob(sj.Table({-5: 1.0}, {-5: 1.0})))
    begun(folder, spec=spec.to_dict())
    assert main(["explain", str(folder / "job.toml")]) == 0
    assert "Table(1 keys such as 'a'" in capsys.readouterr().out


KAFKA = '[left]\nformat = "kafka"\n[right]\npath = "b"\n'
POSTGRES = 'format = "jdbc"\noptions.url = "jdbc:postgresql://host/db"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            KAFKA + OUTPUT + JOIN,
            'left.format: kafka needs a jar that Spark does not have: set jars.packages = "org.apache.spark:',
        ),
        (GOOD + "[sink]\n" + POSTGRES, "sink.format: jdbc needs the database's driver, a jar that Spark does not have"),
        (GOOD + '[sink]\npath = "job.toml/below"\n', "sink.path: the directory "),
        (GOOD.replace('"out"', '"job.toml/out"'), "output.path: the directory "),
        (
            GOOD.replace('"out"', '"/proc/out"'),
            "output.path: the directory /proc/out cannot be written, because /proc cannot",
        ),
        (GOOD.replace('"a"', '"a/0.parquet"'), "left.path must be a directory of files, but "),
        (GOOD + 'budget = "900 TB"\n', "join.budget: 900 TB are more than this machine has, "),
        (
            GOOD.replace('"10 minutes"', "600"),
            "join.window=600 has no unit, but times are timestamps: say '600 seconds'",
        ),
        (GOOD.replace("lateness = 0", "lateness = 60"), "join.lateness=60 has no unit, but times are timestamps"),
        (
            GOOD.replace('time = "at"', 'time = "x"'),
            "join.time: left.x must be a timestamp or a whole number, not bool",
        ),
        (
            GOOD + "how = 'left_outer'\nwhere = 'levenshtein(a, b) < 2'\n",
            "join.where: LEVENSHTEIN(left.a, right.b) < 2 cannot be decided while rows are joined",
        ),
        (GOOD + "where = 'left.k <<< 2'\n", "join.where cannot be read as SQL at '<'"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "run"])
def test_what_cannot_run_is_refused_before_spark_starts(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, text: str, words: str
) -> None:
    (folder / "job.toml").write_text(text)
    assert main([command, str(folder / "job.toml")]) == 2
    assert words in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"a", "b", "job.toml"}


@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_directory_without_files_has_no_columns(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (folder / "a" / "0.parquet").rename(folder / "a" / "_0.parquet")
    (folder / "job.toml").write_text(GOOD)
    assert main([command, str(folder / "job.toml")]) == 2
    assert "has no parquet files yet, so its columns are not known: give schema" in capsys.readouterr().err


def test_a_jar_that_is_given_is_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = read(folder, GOOD + '[sink]\nformat = "kafka"\n[spark]\njars.packages = "org.apache.spark:kafka:1"\n')
    check_formats(sink)
    cluster = read(folder, GOOD + '[sink]\nformat = "kafka"\n[spark]\nmaster = "yarn"\n')
    check_formats(cluster)
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    check_formats(read(folder, GOOD + '[sink]\nformat = "kafka"\n'))


def test_the_weights_of_a_table_are_there_or_in_files_beside_the_job(folder: Path) -> None:
    weights = "{name = 'table', left = {a = 0.5, 'b c' = 1}, right = 'weights/right.csv'}"
    job = read(folder, GOOD + f"budget = 9\npolicy = {{name = 'prob', estimator = {weights}}}\n")
    table = parse_policy(job.join["policy"]).estimator
    assert table == sj.Table({"a": 0.5, "b c": 1.0}, str(folder / "weights/right.csv"))
    assert job.spec.policy == sj.Prob(sj.Table({}, {}))
    assert f"Table(2 keys such as 'a', {str(folder)!r}"[:30] in str(table)
