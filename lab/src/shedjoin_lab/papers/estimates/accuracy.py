"""Errors against memory, for all methods."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.estimates.methods import METHODS, Case
from shedjoin_lab.papers.estimates.streams import STREAMS
from shedjoin_lab.papers.prospect.streams import Stage

#: Parts of what the exact join stores, and how many seeds a row of parameters is.
PARTS, LOTS = (0.1, 0.2, 0.35, 0.5), 10
DRAWN = (
    "Zipf 0, equal ranks",
    "Zipf 1, equal ranks",
    "Zipf 1, permuted ranks",
    "Zipf 2, permuted ranks",
    "drift",
    "bursts",
)


def parameters(scale: Scale) -> list[Params]:
    quick = scale.quick
    return grid(
        workload=["Zipf 1, permuted ranks"] if quick else STREAMS,
        part=[0.35] if quick else PARTS,
        method=METHODS,
        seed=range(scale.seeds),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    del data
    return measured(params, STREAMS[str(params["workload"])]())


def measured(params: Params, stage: Stage, lots: int = LOTS) -> list[Row]:
    """Over several seeds: errors of the total and, on average, of groups; how often intervals hold; what is delivered."""
    case = Case.of(stage, float(str(params["part"])))
    told = [METHODS[str(params["method"])](case, lots * int(str(params["seed"])) + lot) for lot in range(lots)]
    there = case.counts > 0
    apart = np.array([one.value - case.counts for one in told])[:, there] / case.counts[there]
    low, high = (np.array([getattr(one, name) for one in told])[:, there] for name in ("low", "high"))
    known = ~np.isnan(low)
    holds = (low <= case.counts[there]) & (case.counts[there] <= high)
    return [
        {
            **params,
            "lots": lots,
            "bias": float(apart[:, -1].mean()),
            "square": float(np.square(apart[:, -1]).mean()),
            "group_square": float(np.square(apart[:, :-1]).mean()),
            "known": int(known.sum()),
            "held": int((holds & known).sum()),
            "delivered": float(np.mean([one.delivered for one in told])),
        }
    ]


def in_per_cent(rows: list[Row]) -> list[Row]:
    """Root mean squares over all seeds."""
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        places.setdefault(tuple(row[name] for name in ("workload", "part", "method")), []).append(row)
    made = []
    for some in places.values():
        known = sum(int(str(row["known"])) for row in some)
        of = {
            name: np.mean([float(str(row[name])) for row in some]) for name in ("square", "group_square", "delivered")
        }
        made.append(
            {
                **{name: some[0][name] for name in ("workload", "part", "method")},
                "total": 100.0 * float(np.sqrt(of["square"])),
                "groups": 100.0 * float(np.sqrt(of["group_square"])),
                "recall": 100.0 * float(of["delivered"]),
                "covered": 100.0 * sum(int(str(row["held"])) for row in some) / known if known else math.nan,
                "intervals": known,
            }
        )
    return made


def plot(workloads: tuple[str, ...]) -> Plot:
    return Plot(
        x="part",
        x_label="memory, as a part of what the exact join stores",
        panels=tuple(
            Panel(
                name if column == "total" else f"{name}: {label}",
                column,
                label,
                {"workload": name},
                log_y=column == "total",
            )
            for column, label in (
                ("total", "error of the total (RMSE), in %"),
                ("covered", "intervals that hold, in %"),
                ("recall", "results delivered, in %"),
            )
            for name in workloads
        ),
        caption="Universe sampling keeps all rows of some keys. The oracle knows the partners of each row.",
    )


FIGURE = Figure(
    paper="estimates",
    name="accuracy",
    title="How far off the counts of a join with little memory are, by method",
    parameters=parameters,
    measure=measure,
    plot=plot(DRAWN),
    derive=in_per_cent,
    minutes=4.0,
)
