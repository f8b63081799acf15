"""Figure 8: how the streams share the memory over time, real weather reports (section 4.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting
from shedjoin_lab.papers.das2003.methods import METHODS
from shedjoin_lab.papers.das2003.weather import (
    DATA,
    HALVES,
    STAND_IN,
    WINDOW,
    YEARS_APART,
    fixed_parameters,
    workload_of,
)

#: Instants between two looks at the memory.
TRACE = 500


def parameters(scale: Scale) -> list[Params]:
    """Memory = window. PROBV has no chance in it; RANDV, and PROBV on the control, to compare."""
    fixed = fixed_parameters(scale.quick)
    rest: dict[str, Any] = {**fixed, "memory": fixed["window"], "trace": [TRACE], "seed": [0]}
    return [
        *grid(method=["PROBV", "RANDV"], streams=[YEARS_APART], **rest),
        *grid(method=["PROBV"], streams=[HALVES], **rest),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """One row for every `trace` instants: the tuples that each stream has in memory."""
    p: dict[str, Any] = dict(params)
    setting = Setting(p["window"], p["memory"], p["warmup"], p["seed"], p["trace"])
    run = METHODS[p["method"]](workload_of(params, data), setting)
    return [
        {**params, "ts": int(ts), "left_tuples": int(left), "right_tuples": int(right)} for ts, left, right in run.trace
    ]


def _one_row_a_stream(rows: list[Row]) -> list[Row]:
    return [
        {**row, "series": side, "tuples": row[column], "thousands": float(str(row["ts"])) / 1000}
        for column, side in (("left_tuples", "left stream"), ("right_tuples", "right stream"))
        for row in rows
    ]


FIGURE = Figure(
    paper="das2003",
    name="fig08",
    title="Tuples in memory over time, real weather reports, M = w = 5000",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="thousands",
        x_label="time (thousand steps)",
        series="series",
        kind="time",
        panels=tuple(
            Panel(title, "tuples", "tuples in memory", {"method": method, "streams": streams}, (WINDOW / 2, "half"))
            for title, method, streams in (
                ("PROBV, 1942 (left) and 1943 (right)", "PROBV", YEARS_APART),
                ("RANDV, 1942 (left) and 1943 (right)", "RANDV", YEARS_APART),
                ("control: PROBV, two halves of 1942", "PROBV", HALVES),
            )
        ),
        caption=f"RANDV and the control, the even and odd reports of one year, are added. {STAND_IN}",
    ),
    derive=_one_row_a_stream,
    minutes=0.1,
    data=DATA,
)
