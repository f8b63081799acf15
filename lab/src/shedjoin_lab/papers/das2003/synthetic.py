"""Synthetic streams of das2003 (section 4): Zipf keys, one tuple of each stream per time unit, counting from 2w on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.das2003.methods import METHODS
from shedjoin_lab.summary import number, shares, shares_of_opt

#: Tuples of each stream in every synthetic experiment.
ROWS = 5600
#: Memory as a share of the window; 2 would be exact.
MEMORY = (0.1, 0.25, 0.5, 1.0, 1.5)
#: The two readings of "uncorrelated Zipf distributions", and their titles.
READINGS = {"correlated": "equal popularity ranks", "uncorrelated": "ranks permuted at random"}
#: Rows that agree in these are of one workload.
WORKLOAD = ("window", "domain", "skew_left", "skew_right", "ranks", "seed")
SHARE = ("share", "output as a share of EXACT")
SHARE_OF_OPT = ("share", "output as a share of OPT")

BOTH = (
    "The paper's “uncorrelated” is read in two ways: independent draws with equal ranks, and ranks permuted at random."
)


def streams_of(params: Params, rows: int = ROWS) -> Workload:
    """The two streams of a row of parameters."""
    p: dict[str, Any] = dict(params)
    return zipf(rows, seed=p["seed"], domain=p["domain"], skew=(p["skew_left"], p["skew_right"]), ranks=p["ranks"])


def measure(params: Params, data: Path | None) -> list[Row]:
    """Simulate one method on one workload; with `trace`, also the left stream's share of memory after the warm-up."""
    del data
    p: dict[str, Any] = dict(params)
    workload = streams_of(params)
    warmup = 2 * p["window"]
    trace = p.get("trace", 0)
    run = METHODS[p["method"]](workload, Setting(p["window"], p["memory"], warmup, p["seed"], trace))
    row = {**params, "warmup": warmup, **counted(run)}
    if trace:
        row["left_share"] = left_share(run.trace, warmup)
    return [row]


def left_share(trace: Any, warmup: int) -> float:
    """The left stream's mean share of the stored tuples, from `warmup` on."""
    after = trace[trace[:, 0] >= warmup]
    return float(np.mean(after[:, 1] / np.maximum(after[:, 1] + after[:, 2], 1)))


def most_by_probability(row: Row) -> float:
    """The share of EXACT that a choice by key probabilities can keep on average, with halves of the memory.

    In the long run a stream holds at most window * p(key) live tuples of a key, each of which meets p'(key) partners per time
    unit; so the most is had by filling the memory in the order of p'.
    """
    window, memory = number(row, "window"), number(row, "memory")
    probabilities = streams_of(row, rows=0).probabilities
    assert probabilities is not None  # Zipf keys have them
    kept = 0.0
    for own, other in (probabilities, probabilities[::-1]):
        order = np.argsort(-other, kind="stable")
        live = window * own[order]
        places = np.clip(memory / 2 - np.concatenate(([0.0], np.cumsum(live)[:-1])), 0.0, live)
        kept += float(np.sum(places * other[order]))
    return kept / (2 * window * float(np.sum(probabilities[0] * probabilities[1])))


def memory_sweep(
    name: str, title: str, *, window: int, domain: int, skew: float, methods: tuple[str, ...], as_share: bool
) -> Figure:
    """Output against memory: Figures 3, 4, 5 (numbers of tuples) and 9, 10, 11 (shares).

    With skew 0 all ranks are alike and there is only one reading of "uncorrelated".
    """
    readings = READINGS if skew else {"correlated": "uniform keys"}

    def parameters(scale: Scale) -> list[Params]:
        sizes = [round(share * window) for share in ((0.25, 1.0) if scale.quick else MEMORY)]
        fixed: dict[str, Any] = {"window": [window], "domain": [domain], "skew_left": [skew], "skew_right": [skew]}
        seeds = range(scale.seeds)
        return [
            *grid(method=["EXACT"], **fixed, ranks=readings, memory=[None], seed=seeds),
            *grid(method=methods, **fixed, ranks=readings, memory=sizes, seed=seeds),
        ]

    panels = [
        Panel(text, y, y_label, {"ranks": ranks})
        for y, y_label in ((SHARE_OF_OPT,) if as_share else (("matches", "output tuples after the warm-up"), SHARE))
        for ranks, text in readings.items()
    ]
    return Figure(
        paper="das2003",
        name=name,
        title=title,
        parameters=parameters,
        measure=measure,
        plot=Plot(
            x="memory",
            x_label=f"memory M (tuples; exact needs {2 * window})",
            panels=tuple(panels),
            caption=BOTH if skew else "Uniform keys: all ranks are alike.",
        ),
        derive=share_of_opt if as_share else share_of_exact,
        minutes=0.5,
    )


def share_of_exact(rows: list[Row]) -> list[Row]:
    """Each row with its share of EXACT on the same workload."""
    return shares(rows, "matches", WORKLOAD)


def share_of_opt(rows: list[Row]) -> list[Row]:
    """Each row with its share of OPT on the same workload and with the same memory."""
    return shares_of_opt(rows, "matches", WORKLOAD)
