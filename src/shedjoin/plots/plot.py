"""How rows become a picture, as plain data: it needs no plotting library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Parameters
    ----------
    title
        Above the axes.
    y, y_label
        The column drawn upwards, and what it is, with its unit.
    where
        Only rows with these values are drawn.
    line
        A horizontal line for the eye, such as the paper's value, and its label.
    from_zero
        Whether the y axis starts at 0.
    band
        Columns with the limits of y, for lines: the space between them is shaded.
    log_y
        Whether the y axis is logarithmic; then it does not start at 0.
    """

    title: str
    y: str
    y_label: str
    where: Mapping[str, Any] = field(default_factory=dict)
    line: tuple[float, str] | None = None
    from_zero: bool = True
    band: tuple[str, str] | None = None
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure's panels over one x axis. Rows of one series and x are one point: their mean, with their spread.

    Parameters
    ----------
    x, x_label
        The column drawn to the right, and what it is, with its unit. Rows without a value there (EXACT needs no memory
        setting) become a horizontal line.
    panels
        Side by side.
    caption
        What differs from the paper's figure.
    series
        The column whose values are different lines.
    kind
        ``"lines"``, ``"time"`` (many points, no markers) or ``"bars"`` (x is not a number).
    log_x
        Whether the x axis is logarithmic, with a tick at each value.
    """

    x: str
    x_label: str
    panels: tuple[Panel, ...]
    caption: str
    series: str = "method"
    kind: str = "lines"
    log_x: bool = False
