"""`shedjoin plan`: a job file or two files, what it prints, draws and writes, what it refuses, and an early end."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.cli.sampled_job import read_sampled_job

JOB = """
[join]
window = 30
importance = "max"
[left]
path = "left.parquet"
key = "ad"
ts = "at"
[right]
path = "right.csv"
key = "ad"
ts = "at"
"""
FILES = ["left.parquet", "right.csv", "--key", "ad", "--ts", "at", "--window", "30"]
QUICK = ["--policies", "prob,rand", "--allocation", "variable", "--target", "0.8"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = np.random.default_rng(2)
    sides = [
        pa.table({"ad": [f"a{key}" for key in draw.zipf(1.5, 300) % 20], "at": range(300), "bid": draw.random(300) + 1})
        for _ in range(2)
    ]
    pq.write_table(sides[0], tmp_path / "left.parquet")
    pyarrow.csv.write_csv(sides[1], tmp_path / "right.csv")
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_job_and_two_files_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "job.toml", *QUICK, "--plot", "plan.svg", "--rows", "plan.csv"]) == 0
    printed, drawn, _ = capsys.readouterr().out.partition("the curve is drawn in plan.svg\n")
    assert drawn
    assert "share of the exact join's results, one memory for both streams" in printed
    assert "For 0.8 of the results, run Prob(estimator=History()) within" in printed
    assert "An exact join needs 60 tuples (11.5 kB)" in printed
    assert (folder / "plan.svg").read_text().startswith("<?xml")
    assert main(["plan", *FILES, *QUICK, "--rows", "plan.parquet"]) == 0
    assert capsys.readouterr().out == f"{printed}the curve is written to plan.parquet\n"
    rows = pq.read_table("plan.parquet").to_pylist()
    assert {row["policy"] for row in rows} == {"prob", "rand", "OPT"}
    assert pyarrow.csv.read_csv("plan.csv").num_rows == len(rows)


def test_a_sample_importance_and_memories(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--importance", "bid", "--sample", "400 rows", "--memory", "10,20", "--no-optimum"]
    assert main(["plan", *FILES, *QUICK, *options]) == 0
    printed = capsys.readouterr().out
    assert "share of the exact join's importance" in printed
    assert "OPT" not in printed
    assert printed.splitlines()[1].split()[:3] == ["tuples", "10", "20"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["job.toml", "--window", "3"], "--window is for two files"),
        (["left.parquet", "right.csv", "--key", "ad"], "--window is missing"),
        (["right.csv", *FILES], "plan needs one job file or two data files"),
        ([*FILES, "--target", "2"], "shedjoin: --target must be a share"),
        ([*FILES, "--sample", "10 rows"], "take a longer sample"),
        ([*FILES, "--policies", "luck"], "shedjoin: --policies[0]"),
        ([*FILES, "--memory", "few"], "shedjoin: --memory must have whole numbers"),
        ([*FILES, "--sample", "0 rows"], "shedjoin: --sample"),
        ([*FILES, "--within", "2"], "shedjoin: --within must be a share"),
        ([*FILES, "--plot", "plan.gif"], "--plot must be a file that ends in .png or .svg"),
        ([*FILES, "--rows", "nowhere/plan.csv"], "in an existing directory"),
    ],
)
def test_what_makes_no_sense_is_told(
    folder: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_an_early_end_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "job.toml", "--time-limit", "-1"]) == 2
    assert "--time-limit must be a number of seconds, 0 or more, not -1" in capsys.readouterr().err
    assert main(["plan", "job.toml", "--time-limit", "0"]) == 130
    assert "ended early" in capsys.readouterr().out


RUN = """
[left]
path = "shown"
[right]
path = "clicked"
[join]
on = [{left = "ad", right = "of"}, "site"]
time = ["shown_at", "clicked_at"]
window = "30 seconds"
lateness = 0
%s
[output]
path = "out"
"""


@pytest.fixture
def streams(folder: Path) -> Path:
    """The same rows as two directories of files, with other names, a second key column and timestamps."""
    sides = (("shown", "ad", "shown_at"), ("clicked", "of", "clicked_at"))
    tables = (pq.read_table("left.parquet"), pyarrow.csv.read_csv("right.csv"))
    for (name, key, time), table in zip(sides, tables, strict=True):
        (folder / name).mkdir()
        at = pa.array(np.arange(300) * 1_000_000, pa.timestamp("us", "UTC"))
        made = pa.table({key: table["ad"], "site": ["s"] * 300, time: at})
        for part in (0, 150):
            pq.write_table(made.slice(part, 150), folder / name / f"{part}.parquet")
    return folder


@pytest.mark.parametrize("more", ["", 'policy = "rand"\nbudget = 9'])
def test_a_job_to_run_is_planned_from_its_files(streams: Path, more: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *FILES, *QUICK]) == 0
    printed = capsys.readouterr().out
    (streams / "job.toml").write_text(RUN % more)
    assert main(["plan", "job.toml", *QUICK]) == 0
    again = capsys.readouterr().out
    assert again.partition("For 0.8")[0] == printed.partition("For 0.8")[0]
    assert again.partition("[join]")[2] == printed.partition("[join]")[2]
    settings = tomllib.loads(printed[printed.index("[join]") :])["join"]
    assert settings.pop("budget") < 60
    assert settings == {"allocation": "variable", "policy": {"name": "prob", "estimator": "history"}}


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ('how = "left_outer"', {"how": "left_outer"}),
        ('how = "left_semi"', {"how": "left_semi"}),
        ('how = "left_anti"', {"how": "left_anti"}),
        ('where = "left.bid < right.bid"', {"where": "left.bid < right.bid"}),
        ("matches = [1, 0]", {"matches": (1, None)}),
    ],
)
def test_a_plan_counts_the_rows_of_any_join(
    streams: Path, settings: str, given: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("shown", "clicked"):
        for part in (0, 150):
            path = f"{name}/{part}.parquet"
            table = pq.read_table(path)
            bids = pa.array((np.arange(150) + part) * (7 if name == "shown" else 11) % 23)
            pq.write_table(table.append_column("bid", bids), path)
    (streams / "job.toml").write_text(RUN % settings)
    assert main(["plan", "job.toml", "--target", "0.8", "--policies", "prob", "--rows", "plan.csv"]) == 0
    assert "OPT" not in capsys.readouterr().out.partition("For 0.8")[0]
    job = read_sampled_job(Path("job.toml"))
    assert {name: getattr(job.spec, name) for name in given} == given
    rows = [row for row in pyarrow.csv.read_csv("plan.csv").to_pylist() if row["matches"] is not None]
    made = sj.plan(job.left, job.right, window=job.spec.window, policies=["prob"], target=0.8, **given)
    assert [row["matches"] for row in rows] == [row["matches"] for row in made.rows() if row["matches"] is not None]
    point = made.recommendation
    engine = point.spec.engine(warmup=int(job.left["ts"][0].as_py()) + 30_000_000, emit=False)
    engine.push(left=job.left, right=job.right)
    assert engine.counters["matches"] / made.need.matches == pytest.approx(point.share)
    with pytest.raises(sj.SpecError, match="OPT is that of inner joins"):
        sj.plan(job.left, job.right, window=job.spec.window, optimum=True, **given)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("window", 'predicate = {name = "band", column = "ad", within = 1}\nwindow'), "on"),
        (("lateness", 'where = "left.site LIKE right.site"\nlateness'), "join.where: plan evaluates it without Spark"),
        (("lateness", 'where = "left.bid < right.bid"\nlateness'), "left has no column 'bid'"),
        (("lateness", 'where = "left.key < right.key"\nlateness'), "left has no column 'key'"),
        (('"shown"', '"shown"\nselect = ["ad"]'), "left.select: plan reads columns as they are"),
        (('"shown"', '"shown"\nformat = "json"\nschema = "ad string"'), "left.format is 'json', and plan reads"),
        (('"clicked_at"]', '"then"]'), "right has no column 'then'; it has of, site, clicked_at"),
        (('"clicked_at"]', '"of"]'), "of is string, and must be a timestamp or a whole number"),
    ],
)
def test_a_job_to_run_that_no_plan_can_count_is_refused(
    streams: Path, change: tuple[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (streams / "job.toml").write_text((RUN % "").replace(*change, 1))
    assert main(["plan", "job.toml", *QUICK]) == 2
    assert sentence in capsys.readouterr().err
