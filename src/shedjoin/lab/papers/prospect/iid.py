"""Streams that do not change: what does it cost to learn what PROB knows?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin.lab.papers.prospect.contest import ALLOCATIONS, MEMORIES
from shedjoin.lab.plot import Panel, Plot
from shedjoin.lab.summary import shares
from shedjoin.lab.workloads import zipf

WINDOW = 400
SAME = ("rows", "domain", "skew", "ranks", "part", "allocation", "seed")
KNOWS = "PROB, true table"


def parameters(scale: Scale) -> list[Params]:
    """Four skews, equal and unrelated ranks, few keys and many; a long stream, and the papers' 5,600 rows."""
    few = scale.quick
    return grid(
        rows=[5600] if few else [5600, 20_000],
        domain=[50] if few else [50, 1000],
        skew=[1.0] if few else [0.0, 0.5, 1.0, 1.5],
        ranks=["correlated", "uncorrelated"],
        part=[0.25] if few else MEMORIES,
        allocation=ALLOCATIONS,
        seed=range(scale.seeds),
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
            for rows in (5600, 20_000)
            for domain in (50, 1000)
        ),
        caption="Window 400. Mean over memories of 10, 25 and 50%, fixed and variable shares, equal and unrelated ranks.",
        derive=lost,
    ),
    minutes=2.0,
)
