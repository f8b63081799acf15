"""The similar-news join on real items: selective processing against random dropping (section 1's first example)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.data.folder import data_set_folder
from shedjoin_lab.data.news import DATA_SET, news_sets
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.summary import shares

HOUR = 3_600_000
LOADS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def parameters(scale: Scale) -> list[Params]:
    """Capacities as multiples of the exact join's mean work; news come in bursts, which need many times the mean."""
    loads = (2.0,) if scale.quick else LOADS
    return [
        *grid(method=["EXACT"], load=[None], seed=[0]),
        *grid(method=["DROP", "ALL"], load=loads, seed=range(scale.seeds)),
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """At least 3 common keywords within 6 hours."""
    p: dict[str, Any] = dict(params)
    workload = news_sets(data_set_folder(DATA_SET, data))
    left, right = ({"ts": one["ts"], "x": sj.Sets(one["offsets"], one["items"])} for one in workload.streams)
    exact = _run(_join(), left, right, p["seed"])
    if p["method"] == "EXACT":
        return [{**params, "matches": exact["matches"], "dropped": 0}]
    span = max(int(one["ts"][-1]) for one in (left, right)) - min(int(one["ts"][0]) for one in (left, right))
    cpu = sj.VirtualCpu(capacity=p["load"] * exact["compared"] / span)
    done = _run(_join(p["method"], cpu), left, right, p["seed"])
    return [{**params, "matches": done["matches"], "dropped": done["dropped"]}]


def _join(method: str = "EXACT", cpu: sj.VirtualCpu | None = None) -> sj.JoinSpec:
    more: dict[str, Any] = {} if cpu is None else {"cpu": cpu, "queue": sj.Queue(span=HOUR // 4)}
    if method == "ALL":
        more["selective"] = sj.Selective(basic=HOUR // 4, period=HOUR // 2, rank_period=HOUR)
    return sj.PredicateJoin(sj.TimeWindow(6 * HOUR), sj.Overlap("x", at_least=3), index="scan", **more)


def _run(join: sj.JoinSpec, left: Any, right: Any, seed: int) -> dict[str, int]:
    engine = join.engine(seed, emit=False)
    engine.push(left=left, right=right)
    engine.flush()
    return engine.counters


def share_of_exact(rows: list[Row]) -> list[Row]:
    """Each row with its share of the exact join."""
    whole = [{**row, "seed": seed} for row in rows if row["method"] == "EXACT" for seed in {r["seed"] for r in rows}]
    others = [row for row in rows if row["method"] != "EXACT"]
    return [row for row in shares([*whole, *others], "matches", ("seed",)) if row["method"] != "EXACT"]


FIGURE = Figure(
    paper="gedik2007",
    name="news",
    title="Similar news items on a slow CPU: at least 3 common keywords within 6 hours",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="load",
        x_label="capacity / mean comparisons of the exact join",
        panels=(Panel("", "share", "output as a share of EXACT"),),
        caption="Reuters-21578, Distribution 1.0: items with place USA and others. Not a figure of the paper: its first example.",
    ),
    derive=share_of_exact,
    minutes=0.1,
    data=DATA_SET,
)
