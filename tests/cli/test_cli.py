"""The command line: what it prints, what it returns, and that no stack trace reaches a user."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distributions, version
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.cli import COMMANDS, demo_simulated, main
from shedjoin.cli.file_job import read_file_job

LEFT = {"ad": ["a", "a", "a", "c", "b"], "at": [0, 1, 2, 3, 4], "bid": [1.0, 2.0, 1.0, 1.0, 1.0]}
RIGHT = {"ad": ["b", "c", "a", "a", "c"], "at": [0, 1, 2, 3, 4]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table(LEFT), tmp_path / "left.parquet")
    pyarrow.csv.write_csv(pa.table(RIGHT), tmp_path / "right.csv")
    return tmp_path


def write(folder: Path, text: str) -> str:
    path = folder / "job.toml"
    path.write_text(text)
    return str(path)


FILES = """
[left]
path = "left.parquet"
key = "ad"
ts = "at"
importance = "bid"
[right]
path = "right.csv"
key = "ad"
ts = "at"
"""


STREAMED = """
[left]
format = "rate"
[right]
format = "rate"
[join]
on = "value"
time = "timestamp"
window = "3 seconds"
lateness = 0
[output]
path = "out"
"""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"shedjoin {sj.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], [command, "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
    listed, own = capsys.readouterr().out.split("usage: ")[1:]
    assert f"\n  {command} " in listed
    assert own.startswith(f"shedjoin {command} [-h]")
    assert len(own.split("\n\n")) > 2  # what it is for, and its options


def test_a_command_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["simulated"])
    assert stop.value.code == 2
    assert "invalid choice: 'simulated'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "brings"),
    [(["--help"], set()), (["explain", "job.toml"], {"rich", "numba"}), (["simulate", "job.toml"], {"rich", "numba"})],
)
def test_a_command_imports_what_it_needs_and_no_more(folder: Path, words: list[str], brings: set[str]) -> None:
    program = """
import sys
from shedjoin.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
print(*({"numba", "pyspark", "rich", "shedjoin_lab"} & {*sys.modules}), file=sys.stderr)
"""
    write(folder, STREAMED if "explain" in words else "[join]\nwindow = {time = 3}\n" + FILES)
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {*done.stderr.split()} == brings


def test_simulate_files_with_text_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(folder, "[join]\nwindow = {time = 3}\n" + FILES)
    pairs = folder / "pairs.parquet"
    assert main(["simulate", path, "--pairs", str(pairs)]) == 0
    assert "7 of 7 (100.0%)" in capsys.readouterr().out
    found = pq.read_table(pairs).to_pydict()
    assert sorted(zip(found["left"], found["right"], strict=True)) == [
        (0, 2), (1, 2), (1, 3), (2, 2), (2, 3), (3, 1), (3, 4),
    ]  # fmt: skip


def test_simulate_within_a_budget_says_what_was_shed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(folder, "[join]\nwindow = {time = 3}\nbudget = {tuples = 2}\npolicy = 'simp'\n" + FILES)
    log = folder / "shed.parquet"
    assert main(["simulate", path, "--shed", str(log)]) == 0
    spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=sj.Simp())
    numbers = {"a": 1, "b": 2, "c": 3}
    left, right = ({"key": [numbers[ad] for ad in side["ad"]], "ts": side["at"]} for side in (LEFT, RIGHT))
    run = sj.simulate(spec, left | {"importance": LEFT["bid"]}, right)
    printed = capsys.readouterr().out
    assert f"{run.matches} of 7" in printed
    assert f"{len(run.shed)} evicted" in printed
    assert f"{run.peak_tuples} of 2 tuples" in printed
    assert pq.read_table(log)["why"].to_pylist() == ["evicted"] * len(run.shed)


def test_simulate_a_made_up_workload(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    [join]
    window = {row = 20}
    budget = {bytes = 4000, allocation = "variable"}
    policy = {name = "dgl", loss = 0.9, estimator = "in_window"}
    importance = "mean"
    [workload]
    rows = 200
    domain = 5
    skew = [0.0, 1.0]
    importance = "pareto"
    [run]
    seed = 3
    warmup = 40
    """
    assert main(["simulate", write(folder, text)]) == 0
    printed = capsys.readouterr().out
    assert "400 (0 with a null key)" in printed
    assert "of 4,000 bytes" in printed


@pytest.mark.parametrize("budget", ["2", "'2 tuples'", "{tuples = 2}"])
def test_a_plain_number_is_a_budget_of_tuples(folder: Path, budget: str) -> None:
    made = read_file_job(Path(write(folder, f"[join]\nwindow = {{time = 3}}\nbudget = {budget}\n" + FILES)))
    assert made.spec.budget == sj.Budget(tuples=2)
    assert sj.JoinSpec.from_dict({"window": {"time": 3}, "budget": 2}).budget == sj.Budget(tuples=2)


def test_windows_may_be_words(folder: Path) -> None:
    made = read_file_job(Path(write(folder, "[join]\nwindow = ['1 minute', '5 rows']\nlateness = '2 ms'\n" + FILES)))
    assert made.spec.windows == (sj.TimeWindow(60_000_000), sj.RowWindow(5))
    assert made.spec.lateness == 2000


def test_null_keys_of_files_stay_null(folder: Path) -> None:
    pq.write_table(pa.table({"ad": ["a", None, None], "at": [0, 1, 2], "bid": [1.0] * 3}), folder / "left.parquet")
    made = read_file_job(Path(write(folder, "[join]\nwindow = {time = 3}\n" + FILES)))
    assert made.left["key"].null_count == 2
    assert sj.simulate(made.spec, made.left, made.right).matches == 1


JOIN = "[join]\nwindow = {time = 3}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[join", "is not valid TOML"),
        ("[left]\npath = 'x'\n", "needs a table [join]"),
        ("[joint]\n", "unknown table `[joint]`; perhaps `join`"),
        ("join = 3\n", "join must be a table of settings"),
        (JOIN + "policy = 'best'\n" + FILES, "join.policy must be one of additive, age, auto"),
        ("[join]\nwindow = {time = -3}\n" + FILES, "join.window must be longer than 0, not -3"),
        (JOIN, "needs a table [left]"),
        (JOIN + "[left]\nkey = 'ad'\n", "left.path is missing"),
        (JOIN + "[left]\npath = 'left.parquet'\nkey = 'add'\n", "has the columns ad, at, bid"),
        (JOIN + "[left]\npath = 'left.txt'\nkey = 'ad'\n", "must end in .csv or .parquet"),
        (JOIN + "[left]\npath = '.'\nkey = 'ad'\n", "must have .csv or .parquet files, and has both"),
        (JOIN + "[left]\npath = 'left.parquet'\nkey = 5\n", "left.key must be the name of a column, not 5"),
        (JOIN + "[left]\npath = 'left.parquet'\nkey = ['ad']\n", "left.key must be the name of a column, not ['ad']"),
        (JOIN + "[left]\npath = 'left.parquet'\nkey = 'ad'\nts = 3\n", "left.ts must be the name of a column, not 3"),
        (
            JOIN + "[left]\npath = 'left.parquet'\nkey = 'ad'\nimportance = {a = 1}\n",
            "left.importance must be the name of a column, not {'a': 1}",
        ),
        (JOIN + "[left]\npath = 'left.parquet'\nkey = 'ad'\nbytes = ''\n", "left.bytes must be the name of a column"),
        (JOIN + "[left]\npath = 'none.csv'\nkey = 'ad'\n", "cannot be read"),
        (JOIN + "[left]\npath = 'job.parquet'\nkey = 'ad'\n", "cannot be read"),
        (JOIN + FILES + "[workload]\nrows = 5\n", "not both"),
        (JOIN + "[workload]\nrow = 5\n", "unknown setting `[workload] row`; perhaps `rows`"),
        (JOIN + "[workload]\nranks = 'same'\n", "ranks must be one of"),
        (JOIN + "[workload]\nrows = 'many'\n", "workload does not make sense"),
        (JOIN + FILES + "[run]\nlate = 'drop'\n", "late must be one of refuse, log"),
        (JOIN + FILES + "[run]\npace = 3\n", "unknown setting `[run] pace`; there are warmup, seed, late"),
        (JOIN + "[run]\n" + FILES.replace('ts = "at"', 'ts = "ad"'), "left.ts must be a column of whole numbers"),
    ],
)
def test_a_bad_job_gets_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    assert main(["simulate", write(folder, text)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("shedjoin: ")
    assert words in said
    assert "Traceback" not in said


KEYED = {"left": "zero.csv", "right": "one.parquet"}


def test_whether_keys_are_equal_does_not_depend_on_other_rows(folder: Path) -> None:
    (folder / "zero.csv").write_text("ad,at\n01,1\n1,2\n,3\n")
    pq.write_table(pa.table({"ad": [1, 1], "at": [1, 2]}), folder / "one.parquet")
    sides = "".join(f"[{side}]\npath = '{file}'\nkey = 'ad'\nts = 'at'\n" for side, file in KEYED.items())
    text = "[join]\nwindow = 9\n" + sides
    made = read_file_job(Path(write(folder, text)))
    run = sj.simulate(made.spec, made.left, made.right)
    assert (run.matches, run.counters["null"]) == (2, 1)
    times = pa.array([1, 1], pa.timestamp("us"))
    pq.write_table(pa.table({"ad": times, "at": [1, 2]}), folder / "one.parquet")
    with pytest.raises(sj.InputError, match="keys must be of one type, or whole numbers and text"):
        read_file_job(Path(write(folder, text)))


def test_a_missing_job_file_gets_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "nowhere.toml"]) == 2
    assert capsys.readouterr().err == "shedjoin: the job file nowhere.toml cannot be read: No such file or directory\n"


def test_demo_compares_the_policies(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_simulated, "WINDOW", 200)
    monkeypatch.setattr(demo_simulated, "WARMUP", 400)
    assert main(["demo", "--simulate", "--rows", "400"]) == 2
    assert "--rows must be at least 401, not 400" in capsys.readouterr().err
    assert main(["demo", "--simulate", "--rows", "1000"]) == 0
    printed = capsys.readouterr().out
    assert "Exact needs 400 tuples; the policies get 100." in printed
    assert all(policy.name in printed for policy in demo_simulated.POLICIES)
    assert "100.0%" in printed
    assert printed.startswith("loading kernels (the first time they are compiled")  # no status is shown here


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Install a distribution that adds a command."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())  # whatever is installed here

    def install(command: str, summary: str) -> None:
        info = tmp_path / "somewhat-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: somewhat\nVersion: 1.0\nSummary: {summary}\n")
        (info / "entry_points.txt").write_text(f"[shedjoin.commands]\n{command} = somewhat_commands\n")
        (tmp_path / "somewhat_commands.py").write_text(
            "def add_arguments(parser):\n"
            "    parser.add_argument('number', type=int)\n"
            "    parser.set_defaults(handler=lambda args: print(args.number + 1) or 0)\n"
        )
        found = [entry for one in distributions(path=[str(tmp_path)]) for entry in one.entry_points]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [e for e in found if e.group == group])
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_other_distributions_add_commands(
    added: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    added("lab", "100% of it")
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert re.search(r"^  lab +100% of it$", capsys.readouterr().out, re.MULTILINE)
    assert "somewhat_commands" not in sys.modules
    assert main(["lab", "41"]) == 0
    assert capsys.readouterr().out == "42\n"


def test_no_distribution_takes_the_place_of_a_command(
    added: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    added("static", "something else")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "something else" not in capsys.readouterr().out


def test_without_the_lab_it_is_said_how_to_install_it(
    added: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["lab"], ["lab", "run", "das2003", "--quick"], ["lab", "--help"]):
        assert main(words) == 2
        assert (
            capsys.readouterr().err == "shedjoin: `shedjoin lab` is in a separate package: pip install shedjoin-lab\n"
        )
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "\n  lab " not in capsys.readouterr().out


def test_check_prints_versions_and_finds_java(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    printed = capsys.readouterr().out
    assert f"numba {version('numba')}" in printed
    assert "Java " in printed


def test_check_without_java_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["check"]) == 2
    assert "Install a Java runtime of version 17 or newer" in capsys.readouterr().err


def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("shedjoin.cli.simulate")

    def without(args: object) -> int:
        raise ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql")

    monkeypatch.setattr(module, "handle", without)
    assert main(["simulate", "job.toml"]) == 2
    assert capsys.readouterr().err == "shedjoin: this needs pyspark: pip install 'shedjoin[spark]'\n"


def test_an_interrupt_is_no_stack_trace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("shedjoin.cli.demo"), "handle", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "shedjoin: interrupted\n"
