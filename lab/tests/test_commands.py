"""`shedjoin lab` as a user types it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from shedjoin.cli import main
from shedjoin.errors import DataError, EnvironmentProblem, SpecError
from shedjoin_lab.catalogue import PAPERS
from shedjoin_lab.commands import add_arguments


def lab(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="shedjoin")
    add_arguments(parser.add_subparsers(required=True).add_parser("lab"))
    args = parser.parse_args(["lab", *words])
    return int(args.handler(args))


def test_shedjoin_finds_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert re.search("^ +lab +run the papers' experiments", capsys.readouterr().out, re.MULTILINE)
    assert main(["lab", "list", "--out", str(tmp_path)]) == 0
    assert "das2003" in capsys.readouterr().out


def test_every_action_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["lab"], *(["lab", action] for action in ("list", "run", "plot", "claims"))):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"])
        assert stop.value.code == 0
        own = capsys.readouterr().out
        assert own.startswith(f"usage: shedjoin {' '.join(words)} [-h]")
        assert len(own.split("\n\n")) > 2  # what it is for, and its options


def test_list_shows_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab("list", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert all(figure.name in printed and figure.title in printed for figures in PAPERS.values() for figure in figures)
    assert printed.count("not run") == sum(len(figures) for figures in PAPERS.values())


def test_run_plot_list_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--quick", "--out", str(tmp_path))
    assert lab("run", "das2003", "fig05", "--no-spark", "--seeds", "1", *place) == 0
    assert "9 simulations" in capsys.readouterr().out
    assert lab("run", "das2003", "fig05", "--no-spark", "--seeds", "1", *place) == 0
    assert "nothing left to run" in capsys.readouterr().out
    assert lab("plot", "das2003", "fig05", *place) == 0
    assert (tmp_path / "quick" / "das2003" / "fig05.png").exists()
    capsys.readouterr()
    assert lab("list", *place) == 0
    assert "stored, 1 seed " in capsys.readouterr().out
    table = tmp_path / "claims.md"
    assert lab("claims", "das2003", "--write", str(table), *place) == 0
    assert "| das2003.uniform-equal |" in capsys.readouterr().out
    assert "| holds |" in next(line for line in table.read_text().splitlines() if "uniform-equal" in line)


def test_one_figure_without_its_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no data set ship_weather_ww2"):
        lab("run", "das2003", "fig07", "--no-spark", "--data", str(tmp_path), "--out", str(tmp_path / "out"))


def test_of_several_figures_those_with_nothing_stored_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab("plot", "das2003", "--out", str(tmp_path)) == 0
    assert capsys.readouterr().err.count("not drawn: nothing is stored for das2003") == len(PAPERS["das2003"])


def test_what_is_no_master_is_refused_before_java_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shedjoin.spark.java.check_java", lambda: pytest.fail("something was started"))
    with pytest.raises(SpecError, match=r"--master must be a master of Spark: .*, not 'nonsense'"):
        lab("run", "das2003", "--quick", "--master", "nonsense", "--out", str(tmp_path))


def test_without_java_the_way_without_spark_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"has no bin/java.* add --no-spark"):
        lab("run", "das2003", "fig05", "--out", str(tmp_path))


@pytest.mark.parametrize("words", [("run", "das1903"), ("run", "das2003", "fig05", "--seeds", "0"), ("dance",)])
def test_wrong_words_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lab(*words)
    assert "error" in capsys.readouterr().err


def test_a_figure_of_all_papers_is_not_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="figure 'fig03' of which paper"):
        lab("plot", "all", "fig03", "--out", str(tmp_path))
