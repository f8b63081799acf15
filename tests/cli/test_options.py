"""What is wrong with an option is told by its name, before any work."""

from __future__ import annotations

import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.spark import refine


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--upto", "-1"], "--upto must be the number of a batch, from 0 on, not -1"),
        (["--into", __file__], f"--into must be a directory, but {__file__} is a file"),
        (["--into", f"file://{__file__}"], "--into must be a directory, but file://"),
    ],
)
def test_refine_says_what_is_wrong_before_any_work(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["refine", "out", *options]) == 2
    assert capsys.readouterr().err.startswith(f"shedjoin: {words}")
    with pytest.raises(sj.SpecError, match=words.removeprefix("--")):
        refine("out", **{options[0][2:]: int(options[1]) if options[0] == "--upto" else options[1]})  # type: ignore[arg-type]
