"""Fixed against variable memory shares when the streams differ in skew (section 4.3, told in words there)."""

from __future__ import annotations

from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.das2003.synthetic import READINGS, WORKLOAD, measure
from shedjoin_lab.summary import number

SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
#: The right stream stays as it is while the left one's skew grows.
RIGHT = (0.0, 0.5, 1.0)
#: Instants between two looks at the memory.
TRACE = 20


def parameters(scale: Scale) -> list[Params]:
    """Each method with halves and with a shared memory, at half and a quarter of the memory that exact needs."""
    fixed: dict[str, Any] = {"window": [400], "domain": [50], "trace": [TRACE]}
    return grid(
        method=["PROB", "PROBV", "RAND", "RANDV"],
        **fixed,
        skew_left=(0.0, 1.0, 2.0) if scale.quick else SKEWS,
        skew_right=(0.0,) if scale.quick else RIGHT,
        ranks=READINGS,
        memory=[400] if scale.quick else [200, 400],
        seed=range(scale.seeds),
    )


def gains(rows: list[Row]) -> list[Row]:
    """For each shared-memory row: its gain over halves on the same workload, and the left stream's share."""
    place = (*WORKLOAD, "memory")
    halves = {(row["method"], *(row[name] for name in place)): row for row in rows}
    result = []
    for row in rows:
        method = str(row["method"])
        half = halves.get((method.removesuffix("V"), *(row[name] for name in place)))
        if method.endswith("V") and half is not None:
            gain = number(row, "matches") / number(half, "matches") - 1
            series = f"{method}, right Zipf {row['skew_right']}"
            result.append(
                {**row, "gain": 100 * gain, "left_percent": 100 * number(row, "left_share"), "series": series}
            )
    return result


def _drawn(rows: list[Row]) -> list[Row]:
    return [row for row in gains(rows) if row["method"] == "PROBV"]


FIGURE = Figure(
    paper="das2003",
    name="fixed_vs_variable",
    title="PROBV against PROB when the streams differ in skew",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="skew_left",
        x_label="Zipf parameter of the left stream",
        series="series",
        panels=tuple(
            Panel(f"{what}, {title}", y, label, {"ranks": ranks, "memory": 400}, line, from_zero=False)
            for ranks, title in READINGS.items()
            for what, y, label, line in (
                ("gain", "gain", "more output than PROB (%)", (10.0, "the paper's bound")),
                ("memory", "left_percent", "left stream's share of the memory (%)", (75.0, "the paper's most")),
            )
        ),
        caption="The paper tells this in words. Window 400, M = 400, domain 50. Both readings of “uncorrelated”.",
    ),
    derive=_drawn,
    minutes=0.1,
)
