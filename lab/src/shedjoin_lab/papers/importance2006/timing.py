"""Running time of ODJA against ESJA (section 5.1): Figures 3 to 6. Every seed is a trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.importance2006.methods import METHODS
from shedjoin_lab.papers.importance2006.synthetic import UNCORRELATED, workload_of

METHODS_TIMED = ("ODJA", "ESJA", "ESJA, printed")
PRINTED = ("ESJA, printed",)
LENGTHS = (800, 1600, 2400, 3200, 4000, 4800, 5600)
WINDOWS = (100, 200, 300, 400, 500, 600, 700, 800)
CAPTION = (
    "CPU time of the one thread that works: the search for the schedule and its replay, which is short. Domain, skew and "
    "the window of Figures 3, 5 and 7 were lost with the figures: 100, Zipf 1 and 0, 100. “ESJA, printed” is das2003's graph as "
    "printed, a node for each tuple and instant, as far as it was solved."
)


def runs(
    scale: Scale,
    *,
    lengths: Sequence[int],
    windows: Sequence[int],
    half: Callable[[int], int],
    methods: Sequence[str] = METHODS_TIMED,
    nodes: int = 0,
) -> list[Params]:
    """Each method on every length and window; `half` is the memory of a stream for a window.

    The printed graph has a node for each tuple of a stream and instant of its life: it is solved up to so many `nodes`.
    """
    if scale.quick:
        lengths, windows = [length // 4 for length in lengths[:2]], windows[:2]
    few = [(length, window) for length in lengths for window in windows]
    return [
        line
        for length, window in few
        for line in grid(
            method=[one for one in methods if one not in PRINTED or length * window <= nodes],
            memory=[2 * half(window)],
            rows=[length],
            window=[window],
            warmup=[0],
            domain=[100],
            **UNCORRELATED,
            importance_of=["rare_high"],
            seed=range(min(scale.seeds, 2)),
        )
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """The time that a method takes to find its schedule. Of the CPU: other work on the machine takes part of the wall clock."""
    del data
    p: dict[str, Any] = dict(params)
    setting = Setting(p["window"], p["memory"], p["warmup"], p["seed"])
    method = METHODS[p["method"]]
    method(workload_of({**params, "rows": 10}), setting)  # loads the solver and what was compiled
    workload = workload_of(params)
    begin = time.process_time()
    run = method(workload, setting)
    return [{**params, **counted(run), "cpu_seconds": time.process_time() - begin}]


def time_figure(
    name: str, title: str, parameters: Callable[[Scale], list[Params]], *, x: str, x_label: str, minutes: float
) -> Figure:
    """Seconds against something."""
    return Figure(
        paper="importance2006",
        name=name,
        title=title,
        parameters=parameters,
        measure=measure,
        plot=Plot(
            x=x,
            x_label=x_label,
            panels=(Panel("running time", "cpu_seconds", "seconds (CPU)", log_y=True),),
            caption=CAPTION,
        ),
        minutes=minutes,
    )
