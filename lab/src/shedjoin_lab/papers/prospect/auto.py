"""Auto, which tries policies while a join runs, beside each of them alone: how far behind the best, and what it costs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.errors import DataError
from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import unique
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.prospect.contest import MEMORIES
from shedjoin_lab.papers.prospect.streams import REAL, SYNTHETIC, Stage

SINGLES: dict[str, sj.Policy] = {
    "PROSPECT": sj.Prospect(),
    "AGE": sj.Age(),
    "PROB": sj.Prob(),
    "PROB, window": sj.Prob(sj.InWindow()),
    "LIFE": sj.Life(),
    "LIFE, window": sj.Life(sj.InWindow()),
    "DGL": sj.Dgl(),
    "RAND": sj.Rand(),
}
AUTO = "AUTO"
#: The streams are short, and their memories hold 80 to 1,000 rows: miniatures may have all rows.
OF_ALL = sj.Auto(memory=8.0)
#: Each key once a stream, but for some that come again; most clicks come soon, some very late.
UNIQUE = "unique keys"
#: The methods that are drawn.
DRAWN = (AUTO, "PROSPECT", "RAND")


def stage_of(workload: str, seed: int) -> Stage:
    return Stage(unique(12_000, seed=seed), 1000) if workload == UNIQUE else SYNTHETIC[workload](seed)


def parameters(scale: Scale) -> list[Params]:
    """Every workload and memory."""
    few = scale.quick
    return grid(
        workload=[UNIQUE] if few else [*SYNTHETIC, UNIQUE],
        part=[0.25] if few else MEMORIES,
        seed=range(scale.seeds),
    )


def real_parameters(scale: Scale) -> list[Params]:
    """Every real stream and memory, once."""
    few = scale.quick
    return grid(workload=["ships, by the hour"] if few else REAL, part=[0.25] if few else MEMORIES, seed=[0])


def measure(params: Params, data: Path | None) -> list[Row]:
    """A row a method, on one workload within one memory."""
    del data
    return _all_methods(params, stage_of(str(params["workload"]), int(str(params["seed"]))))


def measure_real(params: Params, data: Path | None) -> list[Row]:
    if data is None:
        raise DataError("this figure needs the real streams: give --data FOLDER")
    return _all_methods(params, REAL[str(params["workload"])](data))


def _all_methods(params: Params, stage: Stage) -> list[Row]:
    left, right = stage.workload.streams[:2]
    window, warmup = sj.TimeWindow(stage.window), 2 * stage.window
    exact = sj.simulate(sj.JoinSpec(window), left, right, warmup=warmup)
    budget = sj.Budget(tuples=max(4, int(float(str(params["part"])) * exact.peak_tuples)))
    rows: list[Row] = []
    for method, policy in {**SINGLES, AUTO: OF_ALL}.items():
        engine = sj.JoinSpec(window, budget, policy).engine(int(str(params["seed"])), warmup=warmup, emit=False)
        batch = engine.batch({"left": left, "right": right})
        begin = time.process_time()
        engine.push(batch)
        seconds = time.process_time() - begin
        trying = engine.trying
        rows.append(
            {
                **params,
                "method": method,
                "matches": engine.counters["matches"],
                "exact": int(exact.matches),
                "tuples": budget.total,
                "changes": 0 if trying is None else len(trying.changes),
                "cpu_seconds": seconds,
            }
        )
    return rows


def regrets(rows: list[Row]) -> list[Row]:
    """How far a method is below the best single policy, chosen afterwards, as a part of what that delivers."""
    by_place: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        place = tuple(row[name] for name in ("workload", "part", "seed"))
        by_place.setdefault(place, {})[str(row["method"])] = int(str(row["matches"]))
    found: list[Row] = []
    for (workload, part, seed), matches in by_place.items():
        if AUTO not in matches or not set(SINGLES) <= set(matches):
            continue
        best = max(SINGLES, key=lambda name: matches[name])
        for method in DRAWN:
            regret = 1.0 - matches[method] / max(matches[best], 1)
            known: Row = {"workload": workload, "memory": f"{part:.0%}", "seed": seed, "best": best}
            found.append({**known, "method": method, "regret": regret})
    return found


PLOT = Plot(
    x="workload",
    x_label="",
    panels=tuple(
        Panel(method, "regret", "behind the best single policy (share)", {"method": method}) for method in DRAWN
    ),
    caption=(
        "0: as good as the best of eight single policies, chosen afterwards for each workload, memory and seed; below 0: better. "
        "Memory as a share of what the exact join needs, shared by the streams. Auto's miniatures have all rows."
    ),
    series="memory",
    kind="bars",
)
FIGURE = Figure(
    paper="prospect",
    name="auto",
    title="How far Auto is behind the best single policy, on generated streams",
    parameters=parameters,
    measure=measure,
    plot=PLOT,
    derive=regrets,
    minutes=3.0,
)
REAL_FIGURE = Figure(
    paper="prospect",
    name="auto_real",
    title="How far Auto is behind the best single policy, on real streams",
    parameters=real_parameters,
    measure=measure_real,
    plot=PLOT,
    derive=regrets,
    minutes=1.0,
    data="ship_weather_ww2",
)
