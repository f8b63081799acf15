"""Index choice: the cost model against the rule of thumb, on golab2003's streams and virtual CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.join_order import Model, best_global
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.streams import TABLES, TEN_TIMES, run
from shedjoin_lab.papers.open.index_choice import by_cost, indexed, largest_first, plan_cost

STREAMS = {"table5": TABLES["table5"], "table7": TABLES["table7"], "fig03": TEN_TIMES}
BUCKETS = 10
METHODS = {"NO INDEX": lambda model, buckets, memory: (1,) * model.many, "LARGEST": largest_first, "BY COST": by_cost}


def parameters(scale: Scale) -> list[Params]:
    """Memory as a share of the tuples of all windows."""
    shares = (0.4,) if scale.quick else (0.1, 0.2, 0.4, 0.6, 0.8)
    rows = 3_000 if scale.quick else 12_000
    return grid(method=METHODS, streams=STREAMS, share_of_need=shares, rows=[rows], seed=range(min(scale.seeds, 3)))


def measure(params: Params, data: Path | None) -> list[Row]:
    """Tuples per million units of virtual CPU, and what the model says of the plan."""
    del data
    p: dict[str, Any] = dict(params)
    model = Model.of(STREAMS[p["streams"]])
    memory = p["share_of_need"] * sum(model.size(stream) for stream in range(model.many))
    buckets = METHODS[p["method"]](model, BUCKETS, memory)
    orders = best_global(indexed(model, buckets)).orders
    top = next(o for o, order in enumerate(orders) if all(orders[x][1] in (o, order[1]) for x in range(len(orders))))
    done = run(STREAMS[p["streams"]], orders[top], buckets, 0, p["rows"], p["seed"])
    return [{**params, **done, "buckets": ", ".join(map(str, buckets)), "cost": plan_cost(model, buckets)}]


FIGURE = Figure(
    paper="open",
    name="index",
    title="Which windows to index when memory does not suffice for all",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="share_of_need",
        x_label="tuples that may be indexed, as a share of all",
        panels=tuple(
            Panel(name, "rate", "tuples per million units of virtual CPU", {"streams": name}) for name in STREAMS
        ),
        caption=f"Indexes have {BUCKETS} buckets. LARGEST: the largest windows that fit. BY COST: the set whose best plan "
        "costs least. Streams of golab2003's Tables 5 and 7 and Figure 3(b).",
    ),
    minutes=0.1,
)
