"""Output against speed on a virtual CPU: DUAL, rear-shedding alone, and the rivals (section 5).

The CPU does 100 probes or 400 updates in a time unit of 1000 ticks. (The paper does not print its V_j and V_w.) Speeds are
rows of both streams together in a time unit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.cpu.dual_speed import Speed
from shedjoin.lab.experiment import Figure, Measure, Params, Row, Scale, grid
from shedjoin.lab.plot import Panel, Plot
from shedjoin.lab.workloads import Workload, zipf

TICKS = 1000
PROBES, UPDATES = 100.0, 400.0
CPU = sj.VirtualCpu(capacity=1.0, probe=TICKS / PROBES, update=TICKS / UPDATES)
#: Rows that may wait.
QUEUE = 200
#: Speeds are measured and shares set this often.
PERIOD = 500
#: Rows of both streams in a time unit: V_w is 400.
SPEEDS = (40, 60, 80, 100, 120, 140, 160, 200, 250, 300, 400, 600)
METHODS = ("EXACT", "OPT", "DUAL", "PROB", "RAND")
CAPTION = (
    "Virtual CPU: 100 probes or 400 updates in a time unit; rows wait in a queue of 200. RAND drops from the queue at random, "
    "PROB the row with the fewest partners in the window's histogram. OPT: the best that any choice of probes can do that knows "
    "all partners in advance, with rows let in by lot. EXACT: a CPU that is fast enough. "
    "Row windows hold the last rows let in, so a queue that keeps popular keys (PROB) can meet more partners than EXACT."
)


def join_of(method: str, window: int, distribution: Any) -> sj.DualJoin:
    """The join that a method's name stands for."""
    shared: dict[str, Any] = dict(window=sj.RowWindow(window), cpu=CPU, queue=QUEUE, period=PERIOD)
    if method in ("DUAL", "REAR"):
        return sj.DualJoin(**shared, front=method == "DUAL", distribution=distribution)
    return sj.DualJoin(**shared, rear=False, front=False, drop="semantic" if method == "PROB" else "random")


def times(rows: int, speed: float) -> NDArray[np.int64]:
    """When the rows of one stream come, at `speed` rows of both in a time unit."""
    return (np.arange(rows) * 2 * TICKS / speed).astype(np.int64)


def best_speed(window: int, chances: Any) -> Speed:
    """V_opt in rows of both streams in a time unit."""
    found = join_of("DUAL", window, None).best_speed(chances)
    return Speed(found.rows * TICKS, found.shed, found.output * TICKS)


def run(workload: Workload, params: Params, chances: Any) -> Row:
    """One method at one speed: results in a time unit after the warm-up."""
    p: dict[str, Any] = dict(params)
    rows = len(workload.left["key"])
    ts = times(rows, p["speed"])
    start = int(ts[p["warmup"]])
    span = (int(ts[-1]) - start) / TICKS
    if p["method"] == "OPT":
        return {"rate": optimum(workload, p["window"], p["speed"]), "best": best_speed(p["window"], chances).rows}
    if p["method"] == "EXACT":
        spec = sj.JoinSpec(window=sj.RowWindow(p["window"]))
        done = sj.simulate(spec, {**workload.left, "ts": ts}, {**workload.right, "ts": ts}, warmup=start)
        return {"matches": done.matches, "rate": done.matches / span}
    engine = join_of(p["method"], p["window"], chances).build(seed=p["seed"], warmup=start, emit=False)
    engine.push(left={**workload.left, "ts": ts}, right={**workload.right, "ts": ts})
    counters = engine.counters
    rear, front = engine.shares
    # What is still in the queue and in the aux-windows has had no chance yet.
    span = ((engine.reached or start) - start) / TICKS
    return {
        "matches": counters["matches"],
        "rate": counters["matches"] / max(span, 1e-9),
        "best": best_speed(p["window"], chances).rows,
        "k_r": rear,
        "k_f": front,
        "dropped": counters["dropped"],
        "unprobed": counters["unprobed"],
    }


def optimum(workload: Workload, window: int, speed: float) -> float:
    """An upper bound: V (1 - k) rows probe, those with most partners of the whole stream, at the best V up to `speed`."""
    met = np.sort(np.concatenate([_partners(workload, stream, window) for stream in (0, 1)]))[::-1]
    kept = np.concatenate(([0.0], np.cumsum(met))) / met.size
    probing = np.linspace(0.0, 1.0, met.size + 1)
    rows = np.minimum(speed, PROBES / (PROBES / UPDATES + probing))
    return float(np.max(rows * kept))


def _partners(workload: Workload, stream: int, window: int) -> NDArray[np.int64]:
    """How many of the last `window` rows of the other stream have each row's key."""
    own = np.asarray(workload.streams[stream]["key"])
    other = np.asarray(workload.streams[1 - stream]["key"])
    counts = np.zeros(int(max(own.max(), other.max())) + 1, np.int64)
    met = np.empty(own.size, np.int64)
    for row in range(own.size):
        met[row] = counts[own[row]]
        counts[other[row]] += 1
        if row >= window:
            counts[other[row - window]] -= 1
    return met


def parameters(methods: tuple[str, ...], window: int, skew: float) -> Any:
    """Every method at every speed."""

    def of(scale: Scale) -> list[Params]:
        speeds = (60, 120, 400) if scale.quick else SPEEDS
        fixed: dict[str, Any] = {
            "window": [window],
            "domain": [50],
            "skew": [skew],
            "rows": [6 * window if scale.quick else 25 * window],
            "warmup": [3 * window if scale.quick else 5 * window],
        }
        return grid(method=methods, **fixed, speed=speeds, seed=range(scale.seeds))

    return of


def measure(params: Params, data: Path | None) -> list[Row]:
    """One method at one speed on Zipf keys."""
    del data
    p: dict[str, Any] = dict(params)
    workload = zipf(p["rows"], seed=p["seed"], domain=p["domain"], skew=p["skew"])
    assert workload.probabilities is not None  # Zipf keys have them
    return [{**params, **run(workload, params, workload.probabilities)}]


def against_speed(
    name: str, title: str, *, window: int, skew: float, methods: tuple[str, ...] = METHODS, how: Measure = measure
) -> Figure:
    """A figure of output against speed."""
    return Figure(
        paper="dual2006",
        name=name,
        title=title,
        parameters=parameters(methods, window, skew),
        measure=how,
        plot=Plot(
            x="speed",
            x_label="rows of both streams in a time unit (V_w = 400)",
            panels=(Panel("", "rate", "results in a time unit"),),
            caption=CAPTION,
        ),
        minutes=1.0,
    )
