"""DUAL and its rivals: how each method's name runs on a virtual CPU (section 5).

The CPU does 100 probes or 400 updates in a time unit of 1000 ticks. (The paper does not print its V_j and V_w.) Speeds are
rows of both streams together in a time unit.

The paper says of its rivals only that RAND drops "tuples randomly from the join input buffers" and that PROB and OPT are those
of das2003. Both readings are run:

- *memory* (the names with ", memory"): as das2003 ran them, whose words these are. There is no queue. Each row probes, and what
  is dropped is dropped from the join's memory. A probe scans the memory, so the memory is cut until the CPU keeps up.
- *queue* (the names with ", queue"): every row let in probes a whole window, and what is dropped is dropped from a full queue
  in front, as RAND's "input buffers" may also mean.

PROB knows the frequency table of the whole stream, as in das2003's experiments. COUNTS knows nothing in advance: it is PROB
in a queue, by the partners that are in the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.cpu.dual_speed import Speed
from shedjoin.workloads import Workload
from shedjoin_lab.experiment import Params, Row

TICKS = 1000
PROBES, UPDATES = 100.0, 400.0
CPU = sj.VirtualCpu(capacity=1.0, probe=TICKS / PROBES, comparison=0.0, update=TICKS / UPDATES)
#: Rows of each stream that may wait.
QUEUE = 100
#: Speeds are measured and shares set this often.
PERIOD = 500
#: Rivals that keep less in memory.
MEMORY = ("OPT, memory", "PROB, memory", "RAND, memory")
#: Rivals that drop from the queue.
QUEUED = ("PROB, queue", "COUNTS, queue", "RAND, queue")
METHODS = ("EXACT", "BOUND", *MEMORY, "DUAL", *QUEUED)
#: Without chance in them: one seed stands for all, where the streams are the same for all.
CERTAIN = ("EXACT", "BOUND", "OPT, memory", "PROB, memory")


def run(workload: Workload, params: Params, chances: Any) -> Row:
    """One method at one speed: results in a time unit after the warm-up.

    `chances` is what DUAL is told of the values for V_opt. `rate` counts all results, `subset` those that the exact join has too
    (the paper's measure is a MAX-subset): where rows are dropped before the windows, windows of W rows reach further back.
    """
    p: dict[str, Any] = dict(params)
    method = p["method"]
    if method == "BOUND":
        rate = bound(workload, p["window"], p["speed"])
        return {"rate": rate, "best": best_speed(p["window"], chances).rows}
    if method == "EXACT":
        return _in_memory(workload, p, 1.0)
    if method in MEMORY:
        return _in_memory(workload, p, kept_share(p["speed"]))
    return _on_the_cpu(workload, p, chances)


def kept_share(speed: float) -> float:
    """The share of a window that may be kept for the CPU to keep up: a scan of it takes that share of a probe.

    Examples
    --------
    >>> [round(kept_share(speed), 3) for speed in (80, 160, 500)]
    [1.0, 0.375, 0.0]
    """
    return min(1.0, max(0.0, PROBES * (1.0 / speed - 1.0 / UPDATES)))


def times(rows: int, speed: float) -> NDArray[np.int64]:
    """When the rows of one stream come, at `speed` rows of both in a time unit."""
    return (np.arange(rows) * 2 * TICKS / speed).astype(np.int64)


def best_speed(window: int, chances: Any) -> Speed:
    """V_opt in rows of both streams in a time unit."""
    found = sj.best_speed(sj.DualJoin(sj.RowWindow(window), cpu=CPU), chances)
    return Speed(found.rows * TICKS, found.shed, found.output * TICKS)


def _in_memory(workload: Workload, p: dict[str, Any], share: float) -> Row:
    """A method that lets every row in, with this share of the windows in memory. Row beside row, so a step is a row."""
    kept = round(share * p["window"])
    rows = len(workload.left["key"])
    if kept == 0:
        matches = 0
    else:
        full = kept == p["window"]
        policy = sj.Rand() if p["method"] == "RAND, memory" else sj.Prob(_table(workload))
        spec = sj.JoinSpec(
            window=sj.TimeWindow(p["window"]),
            budget=None if full else sj.Budget(tuples=2 * kept, allocation="fixed"),
            policy=sj.KeepAll() if full else policy,
        )
        streams = workload.left, workload.right
        if p["method"] == "OPT, memory" and not full:
            matches = sj.optimum(spec, *streams, warmup=p["warmup"]).matches
        else:
            matches = sj.simulate(spec, *streams, warmup=p["warmup"], seed=p["seed"]).matches
    rate = matches / (2 * (rows - p["warmup"]) / p["speed"])
    return {"matches": matches, "rate": rate, "subset": rate, "kept": kept}


def _table(workload: Workload) -> sj.Table:
    """What PROB knows: how likely each key is in each stream."""
    assert workload.probabilities is not None  # generated streams and real ones side by side have them
    left, right = workload.probabilities
    return sj.Table(left, right)


def join_of(method: str, window: int, workload: Workload, chances: Any) -> sj.JoinSpec:
    """The join on the virtual CPU that a method's name stands for."""
    shared: dict[str, Any] = dict(window=sj.RowWindow(window), cpu=CPU, queue=QUEUE, period=PERIOD)
    if method in ("DUAL", "REAR"):
        return sj.DualJoin(**shared, front=method == "DUAL", distribution=chances)
    drops: dict[str, Any] = dict(zip(QUEUED, (_table(workload), "semantic", "random"), strict=True))
    return sj.DualJoin(**shared, rear=False, front=False, drop=drops[method])


def _on_the_cpu(workload: Workload, p: dict[str, Any], chances: Any) -> Row:
    ts = times(len(workload.left["key"]), p["speed"])
    start = int(ts[p["warmup"]])
    engine = join_of(p["method"], p["window"], workload, chances).engine(p["seed"], warmup=start)
    out = engine.push(left={**workload.left, "ts": ts}, right={**workload.right, "ts": ts})
    # What is still in the queue and in the aux-windows has had no chance yet.
    reached = max((clock for clock in engine.clocks if clock is not None), default=start)
    span = max((reached - start) / TICKS, 1e-9)
    counters = engine.counters
    rear, front = engine.shares
    return {
        "matches": len(out),
        "rate": len(out) / span,
        "subset": int((np.abs(out.left - out.right) < p["window"]).sum()) / span,
        "best": best_speed(p["window"], chances).rows,
        "k_r": rear,
        "k_f": front,
        "dropped": counters["dropped"],
        "unprobed": counters["unprobed"],
    }


def bound(workload: Workload, window: int, speed: float) -> float:
    """An upper bound on DUAL: V (1 - k) rows probe, those with most partners of the whole stream, at the best V up to `speed`."""
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
