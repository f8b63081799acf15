"""Progress: a line for each step where there is no terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from shedjoin.cli.progress import progress


def test_steps_are_lines_in_a_file() -> None:
    file = StringIO()
    with progress(Console(file=file, width=20), "starting Spark") as say:
        say("refining a directory with a long name")
    assert file.getvalue() == "starting Spark\nrefining a directory with a long name\n"


def test_steps_are_a_spinner_in_a_terminal() -> None:
    file = StringIO()
    with progress(Console(file=file, force_terminal=True), "starting Spark") as say:
        say("refining")
    assert "starting Spark\n" not in file.getvalue()
