"""The groups with most results, from a join with little memory (golab2003's outlook: top-k and grouped answers)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.open.archive import RANKS

METHODS: dict[str, sj.Policy] = {"PROB": sj.Prob(), "Sample": sj.Sample(), "uniform": sj.Sample(power=0.0)}
#: Groups: the keys, or campaigns that have many keys or few.
GROUPS = {"key": "by key", "campaign": "by campaign"}
K, DOMAIN, CAMPAIGNS = 10, 300, 60
#: Runs of each row of parameters, on the same streams.
LOTS = 4
PARTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
PRECISION, CERTAIN = "precision of the top 10", "share that is certain"


def parameters(scale: Scale) -> list[Params]:
    """Window 400, Zipf 1, 300 keys."""
    return grid(
        method=METHODS,
        by=GROUPS,
        ranks=RANKS,
        part=(0.2,) if scale.quick else PARTS,
        rows=[2000 if scale.quick else 6000],
        window=[400],
        seed=range(scale.seeds),
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """How many of the ten groups found are right; how many are called certain, and in how many runs one of them is wrong."""
    del data
    p: dict[str, Any] = dict(params)
    workload = zipf(p["rows"], seed=p["seed"], domain=DOMAIN, skew=1.0, ranks=p["ranks"])
    exact = sj.simulate(sj.JoinSpec(sj.TimeWindow(p["window"])), workload.left, workload.right)
    groups = groups_of(workload, p["by"], p["seed"])
    counts = np.bincount(groups[exact.pairs()[0]], minlength=DOMAIN)
    least = np.sort(counts)[-K]
    budget = sj.Budget(tuples=round(p["part"] * exact.peak_tuples))
    spec = sj.JoinSpec(sj.TimeWindow(p["window"]), budget, METHODS[p["method"]])
    right, certain, wrong = 0, 0, 0
    for lot in range(LOTS):
        out = spec.build(seed=LOTS * p["seed"] + lot).push(left=workload.left, right=workload.right)
        found, sure = top(p["method"], out, groups)
        there = counts[found] >= least
        right += int(there.sum())
        certain += int(sure.sum())
        wrong += bool((sure & ~there).any())
    share = 1.0 / (K * LOTS)
    return [{**params, "lots": LOTS, "precision": right * share, "certain": certain * share, "wrong": wrong}]


def groups_of(workload: Workload, by: str, seed: int) -> NDArray[np.int64]:
    """The group of each left row. A campaign has keys drawn by lot; how many differs as Zipf 1."""
    keys = np.asarray(workload.left["key"]).astype(np.int64)
    if by == "key":
        return keys
    shares = 1.0 / np.arange(1, CAMPAIGNS + 1)
    return np.random.default_rng([seed, 3]).choice(CAMPAIGNS, DOMAIN, p=shares / shares.sum())[keys]


def top(method: str, out: sj.Output, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The groups with the most results, and which are certain; PROB has only the counts of what it delivered."""
    if method == "PROB":
        found = np.argsort(-np.bincount(groups[out.left], minlength=DOMAIN), kind="stable")[:K]
        return found, np.zeros(K, np.bool_)
    told = sj.estimate_top(out.weight, out.stored, groups[out.left], K)
    return told.group, told.certain


def _panels(column: str, label: str) -> list[Panel]:
    return [
        Panel(f"{text}, {title}", column, label, {"by": by, "ranks": ranks})
        for by, text in GROUPS.items()
        for ranks, title in RANKS.items()
    ]


FIGURE = Figure(
    paper="open",
    name="top",
    title="The ten groups with most results, from a join with little memory",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="part",
        x_label="memory, as a part of what the exact join stores",
        panels=(*_panels("precision", PRECISION), *_panels("certain", CERTAIN)),
        caption="Window 400, Zipf 1, 300 keys; 60 campaigns of few or many keys. Certain: one of the ten with 95% certainty, "
        "all of them together. PROB's counts say nothing of that.",
    ),
    minutes=0.2,
)
