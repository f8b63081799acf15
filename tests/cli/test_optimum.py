"""`shedjoin optimum`: a job file or two files, what it prints and writes, what it refuses, and Ctrl-C."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.cli import main

#: The example of das2003, Figure 2.
LEFT = {"ad": ["a", "a", "a", "c", "b"], "at": [0, 1, 2, 3, 4], "bid": [1, 2, 1, 3, 1]}
RIGHT = {"ad": ["b", "c", "a", "a", "c"], "at": [0, 1, 2, 3, 4], "bid": [1, 1, 2, 1, 1]}
JOB = """
[join]
window = {time = 3}
budget = {tuples = 2, allocation = "fixed"}
[left]
path = "left.parquet"
key = "ad"
[right]
path = "right.csv"
key = "ad"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table(LEFT), tmp_path / "left.parquet")
    pyarrow.csv.write_csv(pa.table(RIGHT), tmp_path / "right.csv")
    (tmp_path / "job.toml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = [
    "left.parquet",
    "right.csv",
    "--key",
    "ad",
    "--ts",
    "at",
    "--window",
    "3",
    "--budget",
    "2",
    "--allocation",
    "fixed",
]


@pytest.mark.parametrize("inputs", [["job.toml"], FILES], ids=["job", "files"])
def test_a_job_and_two_files_say_the_same(folder: Path, inputs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimum", *inputs, "--schedule", "until.parquet"]) == 0
    printed = capsys.readouterr().out
    assert "5 (proved optimal)" in printed
    assert "5 of 7 (71.4%)" in printed
    assert "of the optimum" in printed
    until = pq.read_table(folder / "until.parquet").to_pydict()
    assert (until["stream"], until["row"]) == (["left"] * 5 + ["right"] * 5, [0, 1, 2, 3, 4] * 2)
    spec = sj.JoinSpec(
        sj.TimeWindow(3), sj.Budget(tuples=2, allocation="fixed"), sj.Replay(until["until"][:5], until["until"][5:])
    )
    numbers = [[ord(letter) for letter in side["ad"]] for side in (LEFT, RIGHT)]
    assert sj.simulate(spec, {"key": numbers[0]}, {"key": numbers[1]}).matches == 5


def test_one_memory_for_both_and_importance(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["optimum", *FILES, "--allocation", "variable", "--importance", "bid", "--objective", "importance"]) == 0
    )
    printed = " ".join(capsys.readouterr().out.split())  # titles are wrapped
    assert "the most importance over TimeWindow(length=3), 2 tuples, variable" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["job.toml", "--window", "3"], "--window is for two files"),
        (["left.parquet", "right.csv", "--key", "ad", "--window", "3"], "--budget is missing"),
        (["right.csv", *FILES], "one job file or two data files"),
        (["left.parquet", "right.csv", "--key", "id", "--window", "3", "--budget", "2"], "left.key is 'id', but"),
        ([*FILES, "--window", "soon"], "--window must be"),
        ([*FILES, "--within", "2"], "shedjoin: --within must be a share"),
        ([*FILES, "--policy", "luck"], "--policy"),
        (
            [*FILES, "--schedule", "nowhere/x.parquet"],
            "--schedule must be a file in an existing directory, not now",
        ),
    ],
)
def test_what_makes_no_sense_is_told(
    folder: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimum", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_what_an_interrupt_leaves_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `optimum` ends when Ctrl-C stopped it: the exit code says so, and value and bound are there."""
    module = importlib.import_module("shedjoin.cli.optimum")
    (folder / "job.toml").write_text(
        '[join]\nwindow = {time = 60}\nbudget = 60\n[workload]\nrows = 1500\nseed = 1\ndomain = 20\nranks = "uncorrelated"\n'
    )
    solver = importlib.import_module("shedjoin.offline.solver")
    monkeypatch.setattr(solver, "BLOCK", 100)
    found = module.optimum

    def stopped(*arguments: Any, **options: Any) -> sj.Optimum:
        tell = options.pop("progress")

        def progress(stage: str, done: int, total: int) -> None:
            tell(stage, done, total)
            if done == 3:
                raise KeyboardInterrupt

        return found(*arguments, **options, progress=progress)

    monkeypatch.setattr(module, "optimum", stopped)
    assert main(["optimum", "job.toml"]) == 130
    printed = capsys.readouterr().out
    assert "interrupted" in printed
    assert "gap" in printed
