"""The Archive-metric online: incomplete tuples of policies, and the least that any policy can leave (das2003's future work)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin.quality import incomplete_rows
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.open.whole_keys import fewest_incomplete, priorities

ONLINE = ("RAND", "PROB", "LIFE", "KEYS")
RANKS = {"correlated": "equal popularity ranks", "uncorrelated": "ranks permuted at random"}


def parameters(scale: Scale) -> list[Params]:
    """das2003's streams: w 400, Zipf 1, 50 values."""
    shares = (0.5,) if scale.quick else (0.1, 0.25, 0.5, 1.0, 1.5)
    fixed: dict[str, Any] = {"window": [400], "domain": [50], "skew": [1.0], "rows": [1600 if scale.quick else 5600]}
    memory = [round(400 * share) for share in shares]
    return grid(method=[*ONLINE, "BOUND"], **fixed, ranks=RANKS, memory=memory, seed=range(scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    """Incomplete tuples of both streams, of all tuples."""
    del data
    p: dict[str, Any] = dict(params)
    workload = zipf(p["rows"], seed=p["seed"], domain=p["domain"], skew=p["skew"], ranks=p["ranks"])
    if p["method"] == "BOUND":
        keys = [stream["key"] for stream in workload.streams]
        return [{**params, "incomplete": fewest_incomplete(keys, p["window"], p["memory"])}]
    spec = sj.JoinSpec(
        sj.TimeWindow(p["window"]),
        budget=sj.Budget(tuples=p["memory"], allocation="fixed"),
        policy=policy(p["method"], workload, p["window"], p["memory"]),
    )
    out = spec.build(seed=p["seed"]).push(left=workload.left, right=workload.right)
    masks = incomplete_rows(out.shed, workload.left, workload.right, spec)
    return [{**params, "incomplete": int(sum(mask.sum() for mask in masks))}]


def policy(method: str, workload: Workload, window: int, memory: int) -> sj.Policy:
    """The policies of das2003 with the true table, and the one that gives up whole keys."""
    if method == "RAND":
        return sj.Rand()
    if method == "LIFE":
        return sj.Life(estimator=workload.table())
    return sj.Prob(estimator=workload.table() if method == "PROB" else whole_keys(workload, window, memory))


def whole_keys(workload: Workload, window: int, memory: int) -> sj.Estimator:
    """The order of giving up in place of probabilities: PROB looks up a tuple's key in the other stream's table."""
    assert workload.probabilities is not None  # Zipf keys have them
    left, right = workload.probabilities
    of_left, of_right = priorities(left, right, window, memory)
    total = of_left.sum()
    return replace(workload, probabilities=(of_right / total, of_left / total)).table()


def _drawn(rows: list[Row]) -> list[Row]:
    return [{**row, "share": float(str(row["incomplete"])) / (2 * float(str(row["rows"])))} for row in rows]


FIGURE = Figure(
    paper="open",
    name="archive",
    title="Incomplete tuples against memory, window 400, Zipf 1",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="memory",
        x_label="memory M (tuples; exact needs 800)",
        panels=tuple(
            Panel(title, "share", "incomplete, as a share of all tuples", {"ranks": r}) for r, title in RANKS.items()
        ),
        caption="KEYS gives up whole keys, those whose loss spoils fewest tuples for the memory it frees. "
        "BOUND: no policy leaves fewer.",
    ),
    derive=_drawn,
    minutes=0.1,
)
