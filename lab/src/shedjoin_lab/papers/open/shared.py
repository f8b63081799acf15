"""Four joins that share one memory: equal parts, parts by window, and parts by marginal gain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.open.division import Floats, divide, gains

#: (window, domain, Zipf) of each join.
JOINS = ((400, 50, 1.0), (400, 200, 0.5), (200, 20, 1.5), (800, 500, 1.0))
METHODS = ("EQUAL", "BY WINDOW", "BY GAIN")


def parameters(scale: Scale) -> list[Params]:
    """Memory as a share of what all four need to be exact."""
    shares = (0.25,) if scale.quick else (0.05, 0.1, 0.25, 0.5, 0.75)
    return grid(method=METHODS, share_of_need=shares, rows=[2000 if scale.quick else 6000], seed=range(scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    """Results of all four joins together, each with PROB within its part."""
    del data
    p: dict[str, Any] = dict(params)
    workloads = [
        zipf(p["rows"], seed=100 * p["seed"] + place, domain=domain, skew=skew, ranks="correlated")
        for place, (_, domain, skew) in enumerate(JOINS)
    ]
    curves = [_curve(workload, window) for workload, (window, *_) in zip(workloads, JOINS, strict=True)]
    pairs = parts(p["method"], curves, round(p["share_of_need"] * sum(window for window, *_ in JOINS)))
    matches = sum(
        _matches(workload, window, part, p["seed"])
        for workload, (window, *_), part in zip(workloads, JOINS, pairs, strict=True)
    )
    expected = sum(curve[:part].sum() for curve, part in zip(curves, pairs, strict=True))
    most = sum(curve.sum() for curve in curves)
    exact = sum(
        _matches(workload, window, None, p["seed"]) for workload, (window, *_) in zip(workloads, JOINS, strict=True)
    )
    split = ", ".join(str(2 * part) for part in pairs)
    return [
        {**params, "split": split, "matches": matches, "share": matches / exact, "expected": float(expected / most)}
    ]


def parts(method: str, curves: list[Floats], pairs: int) -> tuple[int, ...]:
    """Pairs of tuples for each join."""
    if method == "BY GAIN":
        return divide(curves, pairs)
    weights = [1] * len(JOINS) if method == "EQUAL" else [window for window, *_ in JOINS]
    return tuple(pairs * weight // sum(weights) for weight in weights)


def _curve(workload: Workload, window: int) -> Floats:
    assert workload.probabilities is not None  # Zipf keys have them
    left, right = workload.probabilities
    return gains(left, right, window)


def _matches(workload: Workload, window: int, pairs: int | None, seed: int) -> int:
    if pairs == 0:
        return 0
    budget = None if pairs is None else sj.Budget(tuples=2 * pairs, allocation="fixed")
    policy = sj.KeepAll() if pairs is None else sj.Prob(estimator=workload.table())
    spec = sj.JoinSpec(sj.TimeWindow(window), budget=budget, policy=policy)
    return int(sj.simulate(spec, workload.left, workload.right, warmup=2 * window, seed=seed).matches)


FIGURE = Figure(
    paper="open",
    name="shared",
    title="Four joins that share one memory",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="share_of_need",
        x_label="memory as a share of what all joins need",
        panels=(Panel("", "share", "results of all joins, as a share of the exact ones"),),
        caption="Windows 400, 400, 200, 800; domains 50, 200, 20, 500; Zipf 1, 0.5, 1.5, 1. PROB with the true table "
        "in each join.",
    ),
    minutes=0.1,
)
