"""Table 8: the best and the worst plan of Table 5's streams (section 6.2), on a virtual CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.join_order import Model, best_global
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.golab2003.exhaustive import costs_of_all
from shedjoin_lab.papers.golab2003.heuristics import heuristic
from shedjoin_lab.papers.golab2003.streams import TABLES, read_order, run, spoken

STREAMS = TABLES["table5"]
#: The paper's tuples per second: (buckets, tau) -> (best plan, worst plan).
PAPER = {
    (1, 0): (1614, 333),
    (1, 5): (1446, 296),
    (1, 10): (1332, 274),
    (5, 0): (11540, 2524),
    (5, 5): (8420, 2041),
    (5, 10): (7947, 1848),
}


def plans() -> dict[str, str]:
    """The orders of the best plan, the worst one, and the heuristic's."""
    model = Model.of(STREAMS)
    orders, costs = costs_of_all(model)
    return {
        "best": spoken(_global(best_global(model).orders)),
        "worst": spoken(orders[costs.argmax()].tolist()),
        "heuristic": spoken(_global(heuristic(model).orders)),
    }


def _global(orders: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    top = next(o for o, order in enumerate(orders) if all(orders[x][1] in (o, order[1]) for x in range(len(orders))))
    return orders[top]


def parameters(scale: Scale) -> list[Params]:
    """Nested loops and five buckets; eager, tau 5 and 10."""
    return [
        {**params, "order": order}
        for plan, order in plans().items()
        for params in grid(
            method=[plan],
            buckets=[1, 5],
            tau=[0, 5, 10],
            rows=[12_000 if scale.quick else 30_000],
            seed=range(scale.seeds),
        )
    ]


def measure(params: Params, data: Path | None) -> list[Row]:
    """Tuples per million units of virtual CPU."""
    del data
    p: dict[str, Any] = dict(params)
    buckets = (p["buckets"],) * len(STREAMS)
    return [{**params, **run(STREAMS, read_order(p["order"]), buckets, p["tau"], p["rows"], p["seed"])}]


def _drawn(rows: list[Row]) -> list[Row]:
    return [{**row, "what": f"{'NLJ' if row['buckets'] == 1 else 'hash'}, tau {row['tau']}"} for row in rows]


FIGURE = Figure(
    paper="golab2003",
    name="table8",
    title="Best and worst plan of Table 5's streams",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="what",
        x_label="algorithm",
        kind="bars",
        panels=(Panel("rate", "rate", "tuples per million units of virtual CPU"),),
        caption="The paper measured tuples per second of a Java program; benchmarks/nway.py has ours.",
    ),
    derive=_drawn,
    minutes=0.1,
)
