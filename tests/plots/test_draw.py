"""Drawing: every kind of plot, each series in its colour, the same bytes each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shedjoin.errors import DataError, SpecError
from shedjoin.plots.draw import STYLES, draw_rows
from shedjoin.plots.plot import Panel, Plot

PANEL = Panel("all", "matches", "matches")
LINES = Plot("memory", "memory (tuples)", (PANEL,), "Made up.")
#: Methods of near colours, as in das2003 fig07.
METHODS = ("RAND", "RANDV", "PROB", "PROBV")
KINDS = {
    "lines": LINES,
    "bars": replace(LINES, x="method", x_label="method", series="memory", kind="bars"),
    "time": replace(LINES, kind="time"),
    "log": replace(LINES, log_x=True, panels=(replace(PANEL, line=(150.0, "the paper"), log_y=True),)),
    "band": replace(LINES, panels=(replace(PANEL, band=("low", "high")),)),
}


def rows() -> list[dict[str, Any]]:
    return [
        {"method": method, "memory": memory, "matches": level, "low": level - 9, "high": level + 9}
        for place, method in enumerate(METHODS)
        for memory in (10, 20)
        for level in (100 * place + memory, 100 * place + memory + 5)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_png_and_svg_are_drawn(tmp_path: Path, kind: str) -> None:
    png, svg = draw_rows(KINDS[kind], rows(), "A title", [tmp_path / "a.png", tmp_path / "a.svg"])
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_every_series_keeps_its_colour(tmp_path: Path) -> None:
    (png,) = draw_rows(LINES, rows(), "A title", [tmp_path / "a.png"])
    with Image.open(png) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for method in METHODS:
        wanted = np.array([int(STYLES[method][0][place : place + 2], 16) for place in (1, 3, 5)])
        assert np.sum(np.abs(pixels - wanted).max(axis=1) <= 4) > 50, method


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.png", "a.svg"):
        one, other = (draw_rows(LINES, rows(), "A title", [tmp_path / part / name])[0] for part in ("1", "2"))
        assert one.read_bytes() == other.read_bytes()


def test_what_cannot_be_drawn_is_told_and_no_file_is_left(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"a plot must be a file that ends in \.png or \.svg, not 'a\.pdf'"):
        draw_rows(LINES, rows(), "A title", [tmp_path / "a.png", tmp_path / "a.pdf"])
    with pytest.raises(DataError, match="a row has no number in 'matches' but None"):
        draw_rows(LINES, [{**rows()[0], "matches": None}], "A title", [tmp_path / "a.png"])
    assert list(tmp_path.iterdir()) == []
