"""Pictures: drawn from stored rows alone, the same bytes each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab.figures import FIGURE
from shedjoin.errors import DataError
from shedjoin.lab.experiment import Figure, Scale, grid
from shedjoin.lab.plot import Panel, Plot
from shedjoin.lab.report import STYLES, draw
from shedjoin.lab.run import in_process, run
from shedjoin.lab.store import Store

BARS = replace(FIGURE, plot=Plot("method", "method", (Panel("all", "matches", "matches"),), "", "memory", "bars"))
TIME = replace(FIGURE, plot=replace(FIGURE.plot, kind="time"))
LOG = replace(
    FIGURE,
    plot=replace(FIGURE.plot, log_x=True, panels=(Panel("all", "matches", "matches", line=(1500.0, "the paper")),)),
)


def stored(tmp_path: Path, figure: Figure) -> Store:
    store = Store(tmp_path)
    run(figure, Scale(seeds=3), store, in_process)
    return store


@pytest.mark.parametrize("figure", [FIGURE, BARS, TIME, LOG], ids=["lines", "bars", "time", "log"])
def test_png_and_svg_are_drawn(tmp_path: Path, figure: Figure) -> None:
    png, svg = draw(figure, stored(tmp_path, figure))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_every_series_keeps_its_colour(tmp_path: Path) -> None:
    """Methods of near colours, as in das2003 fig07, must be told apart in the PNG too."""
    methods = ("RAND", "RANDV", "PROB", "PROBV")
    figure = replace(
        FIGURE,
        parameters=lambda scale: grid(method=methods, memory=[10, 20], seed=range(scale.seeds)),
        measure=lambda params, data: [{**params, "matches": 100 * methods.index(str(params["method"]))}],
    )
    png, _ = draw(figure, stored(tmp_path, figure))
    with Image.open(png) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for method in methods:
        wanted = np.array([int(STYLES[method][0][place : place + 2], 16) for place in (1, 3, 5)])
        assert np.sum(np.abs(pixels - wanted).max(axis=1) <= 4) > 50, method


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (draw(FIGURE, stored(tmp_path / name, FIGURE)) for name in ("one", "two"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_drawing_does_not_simulate(tmp_path: Path) -> None:
    store = stored(tmp_path, FIGURE)

    def refuse(*_: object) -> list[dict[str, object]]:
        raise AssertionError("a plot must read stored rows")

    assert draw(replace(FIGURE, measure=refuse), store)  # type: ignore[arg-type]


def test_nothing_stored_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing is stored for made_up fig01 .* run `shedjoin lab run made_up fig01`"):
        draw(FIGURE, Store(tmp_path))
