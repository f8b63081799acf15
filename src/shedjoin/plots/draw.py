"""Draw rows: PNG to look at, SVG to print, the same bytes for the same rows."""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shedjoin.atomic_file import write_atomic
from shedjoin.errors import EnvironmentProblem, SpecError
from shedjoin.plots.plot import Panel, Plot
from shedjoin.plots.summary import Mean, Row, number, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A method has one colour and marker in all figures (the colours of Okabe and Ito, safe for colour-blind readers).
STYLES = {
    "EXACT": ("#000000", ""),
    "OPT": ("#666666", "x"),
    "OPTV": ("#999999", "+"),
    "ODJA": ("#CC79A7", "*"),
    "ESJA": ("#666666", "x"),
    "SJA": ("#56B4E9", "D"),
    "PROB": ("#0072B2", "o"),
    "PROBV": ("#56B4E9", "D"),
    "LIFE": ("#009E73", "^"),
    "LIFEV": ("#7FD4B8", "v"),
    "RAND": ("#D55E00", "s"),
    "RANDV": ("#E69F00", "P"),
    "RAND, input": ("#E69F00", "P"),
    "DGL": ("#CC79A7", "*"),
    "DIMPPROB": ("#009E73", "^"),
    "SIMPPROB": ("#E69F00", "v"),
    "SIMP": ("#56B4E9", "D"),
    "PROSPECT": ("#CC79A7", "*"),
    "DUAL": ("#009E73", "^"),
    "REAR": ("#CC79A7", "v"),
    "BOUND": ("#999999", "+"),
    "OPT, memory": ("#666666", "x"),
    "PROB, memory": ("#0072B2", "o"),
    "RAND, memory": ("#D55E00", "s"),
    "PROB, queue": ("#56B4E9", "D"),
    "COUNTS, queue": ("#CC79A7", "*"),
    "RAND, queue": ("#E69F00", "P"),
    # The planner has the names of job files.
    "prob": ("#0072B2", "o"),
    "prob in_window": ("#56B4E9", "D"),
    "life": ("#009E73", "^"),
    "life in_window": ("#7FD4B8", "v"),
    "rand": ("#D55E00", "s"),
    "dgl": ("#CC79A7", "*"),
    "dimp_prob": ("#009E73", "^"),
    "dimp_prob in_window": ("#7FD4B8", "v"),
    "simp_prob": ("#E69F00", "v"),
    "simp_prob history": ("#E69F00", "v"),
    "simp": ("#56B4E9", "D"),
    "prospect": ("#CC79A7", "*"),
    "PROSPECT, true": ("#5E2A4B", ""),
    "RAND, true": ("#6B2F00", ""),
}
#: Colours and markers for series that are not methods, in their order.
OTHERS = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
    ("#8C6D31", "p"),
    ("#7F7F7F", "h"),
)
_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "shedjoin",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw_rows(plot: Plot, rows: list[Row], title: str, paths: list[Path]) -> list[Path]:
    """Draw rows into files, as their names end: .png or .svg."""
    for path in paths:
        if path.suffix not in _SAVE:
            raise SpecError(f"a plot must be a file that ends in {' or '.join(_SAVE)}, not {path.name!r}")
    matplotlib = _matplotlib()
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **_SETTINGS}):
        picture = _picture(title, plot, rows)
        for path in paths:
            write_atomic(path, partial(_SAVE[path.suffix], picture))
    return paths


def _save_svg(picture: Any, file: IO[bytes]) -> None:
    picture.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def _save_png(picture: Any, file: IO[bytes]) -> None:
    """A PNG of at most 256 colours, half the size; chosen to cover the colours in use, so that series keep theirs."""
    from PIL import Image  # matplotlib needs and brings it

    pixels = io.BytesIO()
    picture.savefig(pixels, format="png", dpi=100)
    with Image.open(pixels) as image:
        few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(file, "PNG", optimize=True)


_SAVE = {".png": _save_png, ".svg": _save_svg}


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise EnvironmentProblem("plots need matplotlib: pip install 'shedjoin[plot]'") from None
    return matplotlib


def _picture(title: str, plot: Plot, rows: list[Row]) -> Any:
    from matplotlib.figure import Figure as Canvas

    across = len(plot.panels) if len(plot.panels) <= 3 else (len(plot.panels) + 1) // 2
    down = -(-len(plot.panels) // across)
    canvas = Canvas(figsize=(max(4.2 * across, 6.0), 3.4 * down + 1.0), layout="constrained")
    axes = canvas.subplots(down, across, squeeze=False)
    for panel, one in zip(plot.panels, axes.flat, strict=False):
        _draw_panel(one, plot, panel, where(rows, **panel.where))
    title = title.replace(" = ", "\u00a0=\u00a0")  # not torn apart
    title = textwrap.fill(title, int(38 * max(across, 1.5)))
    canvas.suptitle(title, fontsize=11, fontweight="bold")
    handles: dict[str, Any] = {}
    for one in axes.flat:
        handles.update({label: handle for handle, label in zip(*one.get_legend_handles_labels(), strict=True)})
    for panel in plot.panels:  # lines for the eye come last
        if panel.line is not None:
            handles[panel.line[1]] = handles.pop(panel.line[1])
    canvas.legend(handles.values(), handles.keys(), loc="outside right center")
    canvas.supxlabel(textwrap.fill(plot.caption, int(58 * max(across, 1.5))), fontsize=7.5, color="#444444")
    return canvas


def _draw_panel(axes: Axes, plot: Plot, panel: Panel, rows: list[Row]) -> None:
    names = list(dict.fromkeys(str(row[plot.series]) for row in rows))
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(panel.y_label)
    draw_series = {"lines": _draw_line, "time": _draw_time}.get(plot.kind)
    if draw_series is None:
        _draw_bars(axes, plot, panel, rows, names)
    else:
        for place, name in enumerate(names):
            chosen = [row for row in rows if str(row[plot.series]) == name]
            style = _style(name, place, len(names))
            draw_series(axes, name, _points(chosen, plot.x, panel.y), style)
            if panel.band is not None:
                _draw_band(axes, plot.x, panel.band, chosen, style)
    if panel.line is not None:
        axes.axhline(panel.line[0], color="#888888", linestyle=":", linewidth=1.2, label=panel.line[1])
    if plot.log_x:
        ticks = sorted({number(row, plot.x) for row in rows if row[plot.x] is not None})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:.0f}" if tick >= 10 else f"{tick:.1f}" for tick in ticks])
        axes.minorticks_off()
    if panel.log_y:
        _make_log(axes)
    elif panel.from_zero:
        axes.set_ylim(bottom=0)


def _make_log(axes: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axes.tick_params(which="minor", left=False, labelleft=False)


@dataclass(frozen=True, slots=True)
class _Style:
    color: str
    marker: str
    size: float


def _style(name: str, place: int, names: int) -> _Style:
    """Later series have smaller markers, so that equal values show as one marker on another."""
    color, marker = STYLES.get(name) or OTHERS[place % len(OTHERS)]
    return _Style(color, marker, 8.5 - 4.5 * place / max(names - 1, 1))


def _points(rows: list[Row], x: str, y: str) -> list[tuple[float | None, Mean]]:
    """The mean and spread at each x, in order; x is None for what does not depend on it."""
    values: dict[float | None, list[float]] = {}
    for row in rows:
        values.setdefault(None if row[x] is None else number(row, x), []).append(number(row, y))
    ordered = sorted(values.items(), key=lambda item: (item[0] is not None, item[0] or 0.0))
    return [(place, Mean.of(numbers)) for place, numbers in ordered]


def _draw_line(axes: Axes, name: str, points: list[tuple[float | None, Mean]], style: _Style) -> None:
    color = style.color
    for level in (mean for place, mean in points if place is None):
        axes.axhline(level.value, color=color, linestyle="--", linewidth=1.2, label=name)
        if level.spread:
            axes.axhspan(level.value - level.spread, level.value + level.spread, color=color, alpha=0.08, linewidth=0)
    placed = [(place, mean) for place, mean in points if place is not None]
    if placed:
        axes.errorbar(
            [place for place, _ in placed],
            [mean.value for _, mean in placed],
            yerr=[mean.spread for _, mean in placed] if any(mean.spread for _, mean in placed) else None,
            color=color,
            marker=style.marker,
            linestyle="-" if style.marker else "--",
            markersize=style.size,
            linewidth=1.4,
            capsize=2.5,
            label=name,
        )


def _draw_time(axes: Axes, name: str, points: list[tuple[float | None, Mean]], style: _Style) -> None:
    placed = [(place, mean.value) for place, mean in points if place is not None]
    axes.plot(*zip(*placed, strict=True), color=style.color, linewidth=1.0, label=name)


def _draw_band(axes: Axes, x: str, band: tuple[str, str], rows: list[Row], style: _Style) -> None:
    limited = sorted(
        (number(row, x), number(row, band[0]), number(row, band[1])) for row in rows if row.get(band[0]) is not None
    )
    if limited:
        places, low, high = (list(column) for column in zip(*limited, strict=True))
        axes.fill_between(places, low, high, color=style.color, alpha=0.25, linewidth=0)


def _draw_bars(axes: Axes, plot: Plot, panel: Panel, rows: list[Row], names: list[str]) -> None:
    groups = list(dict.fromkeys(str(row[plot.x]) for row in rows))
    width = 0.8 / max(len(names), 1)
    for place, name in enumerate(names):
        values: dict[str, list[float]] = {}
        for row in rows:
            if str(row[plot.series]) == name:
                values.setdefault(str(row[plot.x]), []).append(number(row, panel.y))
        means = [Mean.of(some) for some in values.values()]
        axes.bar(
            [groups.index(group) + (place - (len(names) - 1) / 2) * width for group in values],
            [mean.value for mean in means],
            width,
            yerr=[mean.spread for mean in means],
            color=OTHERS[place % len(OTHERS)][0],
            capsize=2.5,
            label=name,
        )
    axes.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
