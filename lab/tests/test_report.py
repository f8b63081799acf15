"""Pictures: drawn from stored rows alone, the same bytes each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from figures import FIGURE
from shedjoin.errors import DataError
from shedjoin.plots.plot import Panel
from shedjoin_lab.experiment import Figure, Scale
from shedjoin_lab.report import draw
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import Store


def stored(tmp_path: Path, figure: Figure) -> Store:
    store = Store(tmp_path)
    run(figure, Scale(seeds=3), store, in_process)
    return store


def test_a_figure_is_drawn_as_png_and_svg(tmp_path: Path) -> None:
    png, svg = draw(FIGURE, stored(tmp_path, FIGURE))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "Mean of 3 seeds; bars: standard" in svg.read_text()


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (draw(FIGURE, stored(tmp_path / name, FIGURE)) for name in ("one", "two"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_drawing_does_not_simulate(tmp_path: Path) -> None:
    store = stored(tmp_path, FIGURE)

    def refuse(*_: object) -> list[dict[str, object]]:
        raise AssertionError("a plot must read stored rows")

    assert draw(replace(FIGURE, measure=refuse), store)  # type: ignore[arg-type]


def test_a_missing_number_is_told_with_what_to_do(tmp_path: Path) -> None:
    figure = replace(FIGURE, plot=replace(FIGURE.plot, panels=(Panel("all", "recall", "recall"),)))
    with pytest.raises(DataError, match="no number in 'recall' but None: run the figure again with --fresh"):
        draw(figure, stored(tmp_path, figure))


def test_nothing_stored_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing is stored for made_up fig01 .* run `shedjoin lab run made_up fig01`"):
        draw(FIGURE, Store(tmp_path))
