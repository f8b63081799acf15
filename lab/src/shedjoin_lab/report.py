"""Pictures of stored rows, beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shedjoin.errors import DataError
from shedjoin.plots.draw import draw_rows
from shedjoin_lab.experiment import Figure
from shedjoin_lab.store import Store
from shedjoin_lab.summary import hint_to_rerun


def draw(figure: Figure, store: Store) -> list[Path]:
    """Draw a figure's stored rows beside them, as PNG and SVG.

    Raises
    ------
    DataError
        If nothing is stored.
    """
    rows = store.read(figure)
    if not rows:
        raise DataError(
            f"nothing is stored for {figure.paper} {figure.name} at {store.path(figure)}: "
            f"run `shedjoin lab run {figure.paper} {figure.name}` first"
        )
    seeds = len({row.get("seed") for row in rows})
    spread = f"Mean of {seeds} seeds; bars: standard deviation. " if seeds > 1 else ""
    plot = replace(figure.plot, caption=spread + figure.plot.caption)
    title = f"{figure.paper} {figure.name}: {figure.title}"
    drawn = figure.derive(rows)
    with hint_to_rerun():
        return draw_rows(plot, drawn, title, [store.path(figure, ".png"), store.path(figure, ".svg")])
