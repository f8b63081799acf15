"""Streams that do not change: what does it cost to learn what PROB knows?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.prospect.contest import ALLOCATIONS, MEMORIES
from shedjoin_lab.summary import shares

WINDOW = 400
SIZES = (5600, 20_000, 200_000, 1_000_000)
#: Streams from so many rows on are run with one seed only: they take long, and differ less.
LONG = 200_000
DOMAINS = (50, 1000)
SAME = ("rows", "domain", "skew", "ranks", "part", "allocation", "seed")
KNOWS = "PROB, true table"


def parameters(scale: Scale) -> list[Params]:
    """Four skews, equal and unrelated ranks, few keys and many; from the papers' 5,600 rows to a million."""
    if scale.quick:
        return _parameters(5600, [50], [1.0], [0.25], scale.seeds)
    skews = (0.0, 0.5, 1.0, 1.5)
    return [
        params
        for rows in SIZES
        for params in _parameters(rows, DOMAINS, skews, MEMORIES, scale.seeds if rows < LONG else 1)
    ]


def _parameters(
    rows: int, domains: Iterable[int], skews: Iterable[float], parts: Iterable[float], seeds: int
) -> list[Params]:
    ranks = ["correlated", "uncorrelated"]
    return grid(
        rows=[rows], domain=domains, skew=skews, ranks=ranks, part=parts, allocation=ALLOCATIONS, seed=range(seeds)
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """PROB with the true table, PROB with its counts so far, and Prospect."""
    del data
    p: dict[str, Any] = dict(params)
    streams = zipf(p["rows"], seed=p["seed"], domain=p["domain"], skew=p["skew"], ranks=p["ranks"])
    budget = sj.Budget(tuples=int(p["part"] * 2 * WINDOW), allocation=p["allocation"])
    policies = {KNOWS: sj.Prob(streams.table()), "PROB, History": sj.Prob(), "PROSPECT": sj.Prospect()}
    rows = []
    for method, policy in policies.items():
        spec = sj.JoinSpec(sj.TimeWindow(WINDOW), budget, policy)
        run = sj.simulate(spec, streams.left, streams.right, warmup=2 * WINDOW)
        rows.append({**params, "method": method, "matches": int(run.matches)})
    return rows


def lost(rows: list[Row]) -> list[Row]:
    """In per cent of what PROB has that knows the table."""
    return [
        {**row, "lost": 100.0 * (1.0 - float(str(row["share"])))}
        for row in shares(rows, "matches", SAME, of=KNOWS)
        if row["method"] != KNOWS
    ]


FIGURE = Figure(
    paper="prospect",
    name="iid",
    title="What is lost against PROB with the true table, on streams that do not change",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="skew",
        x_label="Zipf parameter of both streams",
        panels=tuple(
            Panel(
                f"{rows:,} rows, {domain} keys", "lost", "lost, in %", {"rows": rows, "domain": domain}, from_zero=False
            )
            for rows in SIZES
            for domain in DOMAINS
        ),
        caption=(
            "Window 400. Mean over memories of 10, 25 and 50%, fixed and variable shares, equal and unrelated ranks. "
            "One seed only from 200,000 rows on."
        ),
    ),
    derive=lost,
    minutes=12.0,
)
