"""The error of the total beside that of uniform sampling, on longer streams and over enough seeds to tell their ratio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shedjoin.workloads import zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.estimates.accuracy import PARTS, in_per_cent, measured, plot
from shedjoin_lab.papers.prospect.streams import Stage

ROWS, WINDOW, KEYS = 12_000, 800, 200
#: Runs for each seed of the grid: five seeds make 200, which tell a ratio of two errors to about 7%.
LOTS = 40


def _zipf(skew: float, ranks: str) -> Stage:
    return Stage(zipf(ROWS, seed=11, domain=KEYS, skew=skew, ranks=ranks), WINDOW)


LONG: dict[str, Callable[[], Stage]] = {
    "Zipf 0, equal ranks": lambda: _zipf(0.0, "correlated"),
    "Zipf 1, equal ranks": lambda: _zipf(1.0, "correlated"),
    "Zipf 1, permuted ranks": lambda: _zipf(1.0, "uncorrelated"),
}


def parameters(scale: Scale) -> list[Params]:
    quick = scale.quick
    return grid(
        workload=["Zipf 1, permuted ranks"] if quick else LONG,
        part=[0.35] if quick else PARTS,
        method=["Sample", "uniform sampling"],
        seed=range(scale.seeds),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    del data
    return measured(params, LONG[str(params["workload"])](), LOTS)


FIGURE = Figure(
    paper="estimates",
    name="against_uniform",
    title="How far off the total is, beside uniform sampling, on streams of 12,000 rows",
    parameters=parameters,
    measure=measure,
    plot=plot(tuple(LONG)),
    derive=in_per_cent,
    minutes=2.0,
)
