"""What "matches in the opposite window" may mean: counts in memory, in the whole window, or of everything so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.importance2006.methods import METHODS, method
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, ROWS, UNCORRELATED, share_of_exact, workload_of

ESTIMATORS: dict[str, sj.Estimator] = {
    "in memory": sj.InMemory(),
    "in the window": sj.InWindow(),
    "so far": sj.History(),
}
POLICIES: dict[str, Callable[[sj.Estimator], sj.Policy]] = {
    "DGL": lambda estimator: sj.Dgl(estimator=estimator),
    "DIMPPROB": lambda estimator: sj.DimpProb(estimator=estimator),
    "SIMPPROB": lambda estimator: sj.SimpProb(estimator=estimator),
    "PROB": lambda estimator: sj.Prob(estimator=estimator),
}


def parameters(scale: Scale) -> list[Params]:
    """Each method with each estimator, in the settings of Figure 9, Figure 10 and Table 1."""
    small: dict[str, Any] = {"rows": [ROWS], "window": [400], "warmup": [800]}
    large: dict[str, Any] = {"rows": [56000], "window": [2000], "warmup": [4000]}
    memory, domains = ((100, 400), (50, 800)) if scale.quick else ((100, 200, 300, 400, 600), (50, 200, 800, 1600))
    rows = _setting(scale, "fig09", memory, domain=[100], **small)
    rows += _setting(scale, "fig10", (200,), domain=domains, **small)
    return rows if scale.quick else rows + _setting(scale, "table1", (800,), domain=[2000], **large)


def _setting(scale: Scale, name: str, memory: tuple[int, ...], **fixed: Any) -> list[Params]:
    common: dict[str, Any] = {**fixed, **UNCORRELATED, "importance_of": IMPORTANCE, "seed": range(scale.seeds)}
    return [
        *grid(setting=[name], method=["EXACT"], estimator=[None], memory=[None], **common),
        *grid(setting=[name], method=POLICIES, estimator=ESTIMATORS, memory=memory, **common),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """Simulate one method with one estimator."""
    del data
    p: dict[str, Any] = dict(params)
    exact = p["method"] == "EXACT"
    run = METHODS["EXACT"] if exact else method(POLICIES[p["method"]](ESTIMATORS[p["estimator"]]))
    setting = Setting(p["window"], p["memory"], p["warmup"], p["seed"])
    return [{**params, **counted(run(workload_of(params), setting))}]


def _drawn(rows: list[Row]) -> list[Row]:
    shown = [row for row in share_of_exact(rows) if row["setting"] == "fig09" and row["method"] != "EXACT"]
    return [{**row, "series": f"matches {row['estimator']}"} for row in shown]


FIGURE = Figure(
    paper="importance2006",
    name="estimators",
    title="Where matches are counted, settings of Figure 9",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="memory",
        x_label="memory M (tuples; exact needs 800)",
        series="series",
        panels=tuple(
            Panel(
                f"{name}\n{text}", "share", "importance as a share of EXACT's", {"method": name, "importance_of": kind}
            )
            for kind, text in IMPORTANCE.items()
            for name in POLICIES
        ),
        caption="Not in the paper, whose methods look at the opposite window; the lab's default is what is in memory. "
        "Stored as well: the settings of Figure 10 and Table 1.",
    ),
    derive=_drawn,
    minutes=0.1,
)
