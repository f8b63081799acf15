"""gedik2007's joins on a virtual CPU: sets with rotating popularity, rates that change, and four ways to cope (section 6).

Times are milliseconds, windows are closed. A comparison of two sets costs 1, of two single values 0.2, an entry of a list 0.1,
the lookup of a list 1, storing a tuple 1. (The paper measures on a Pentium 4.) Buffers hold one second.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.workloads import Workload
from shedjoin_lab.experiment import Params, Row
from shedjoin_lab.windows import closed
from shedjoin_lab.workloads import rotating, rotating_sets_at

SECOND = 1000
#: Units a millisecond, from the paper's own datum: about half of 50 tuples a second are dropped at windows of 125 s (section
#: 6.2). All of them need 100 probes a second of 6250 tuples; half of them a quarter of that.
CAPACITY = 625 / 4
#: Rates of the bursty profile: (seconds, tuples of each stream in a second).
PROFILE = ((60, 100), (15, 500), (30, 300), (15, 100))
QUICK_PROFILE = ((10, 20), (10, 60))
CAPTION = (
    "Virtual CPU of 156 units a millisecond (comparison of sets 1, of values 0.2, entry of a list 0.1, lookup 1, update 1); "
    "buffers of 1 s. DROP: random dropping and full joins. RATE: rate adaptation; TIME: and time correlation; ALL: and direction."
)


def times(params: Params) -> NDArray[np.int64]:
    """When the tuples of each stream come."""
    p: dict[str, Any] = dict(params)
    profile = ((p["seconds"], p["rate"]),) if p.get("rate") else QUICK_PROFILE if p.get("quick") else PROFILE
    parts, start = [], 0
    for seconds, rate in profile:
        parts.append(start + np.arange(seconds * rate) * SECOND // rate)
        start += seconds * SECOND
    return np.concatenate(parts).astype(np.int64)


def workload_of(params: Params) -> Workload:
    """Sets of about five items of 100, or single values of 5000, in the column `x`."""
    p: dict[str, Any] = dict(params)
    ts, window = times(params), p["window"] * SECOND
    if p["join"] == "equal":
        made = rotating(int(ts[-1]) + 1, seed=p["seed"], window=window, skew=p["skew"], shift=p["shift"])
        streams = [{"x": stream["key"][ts], "ts": ts} for stream in made.streams]
    else:
        made = rotating_sets_at(ts, seed=p["seed"], window=window, skew=p["skew"], shift=p["shift"])
        streams = [{"x": sj.Sets(stream["offsets"], stream["items"]), "ts": ts} for stream in made.streams]
    return Workload(tuple(streams))


def selective_of(params: Params) -> sj.Selective | None:
    """The adaptations that a method's name stands for."""
    p: dict[str, Any] = dict(params)
    method = p["method"]
    if method == "DROP":
        return None
    basic = p.get("basic") or p["window"] * SECOND
    learns = method != "RATE"
    return sj.Selective(
        basic=basic,
        correlation=learns and p.get("basic") != 0,
        direction=method in ("ALL", "UTILITY"),
        types=p["types"] if method == "UTILITY" else 0,
    )


def join_of(params: Params) -> sj.JoinSpec:
    """The join of a row of parameters."""
    p: dict[str, Any] = dict(params)
    equal = p["join"] == "equal"
    left = closed(p["window"] * SECOND)
    right = closed(0) if p.get("one_window") else left
    index = p.get("index", "scan")
    compare = 0.1 if index == "lists" else 0.2 if equal else 1.0
    return sj.PredicateJoin(
        (left, right),
        sj.Equal("x") if equal else sj.Overlap("x", at_least=p["at_least"]),
        index=index,
        selective=selective_of(params),
        cpu=sj.VirtualCpu(capacity=CAPACITY, comparison=compare, lookup=1.0, update=1.0),
        queue=sj.Queue(span=SECOND),
        importance="max",
    )


def measure(params: Params, data: Path | None) -> list[Row]:
    """One join over one workload: its output rate, or a row for each `every` seconds."""
    del data
    p: dict[str, Any] = dict(params)
    workload = workload_of(params)
    if p.get("types"):
        workload = typed(workload, params)
    return run(join_of(params), workload, params)


def run(join: sj.JoinSpec, workload: Workload, params: Params) -> list[Row]:
    """Run a workload through a join, whole or second by second."""
    p: dict[str, Any] = dict(params)
    warmup = p.get("warmup", 0) * SECOND
    engine = join.engine(p["seed"], warmup=warmup, emit=False)
    rows = engine.batch({"left": workload.left, "right": workload.right})
    end = int(rows.ts[-1])
    if not p.get("every"):
        start = int(np.searchsorted(rows.ts, warmup))
        engine.push(rows.take(slice(0, start)))
        before = engine.counters
        engine.push(rows.take(slice(start, None)))
        return [{**params, **_counted(engine, before, (end - warmup) / SECOND, join.selective is not None)}]
    result: list[Row] = []
    found, step = 0, p["every"] * SECOND
    cuts = np.searchsorted(rows.ts, np.arange(0, end + step, step))
    for start, stop in itertools.pairwise(cuts):
        engine.push(rows.take(slice(start, stop)))
        matches = engine.counters["matches"]
        left, right = engine.fractions if join.selective is not None else (1.0, 1.0)
        result.append(
            {
                **params,
                "time": int(rows.ts[start]) // SECOND,
                "arriving": (stop - start) / 2 / p["every"],
                "output": (matches - found) / p["every"],
                "r": engine.fraction if join.selective is not None else 1.0,
                "r1": left,
                "r2": right,
            }
        )
        found = matches
    return result


def _counted(engine: sj.Engine, before: dict[str, int], seconds: float, selective: bool) -> Row:
    """What was counted after the warm-up: `before` is what was there at its end."""
    counters = {name: count - before[name] for name, count in engine.counters.items()}
    return {
        "matches": counters["matches"],
        "output": counters["matches"] / seconds,
        "utility": engine.matched_importance / seconds,
        "drop_rate": counters["dropped"] / seconds,
        "dropped": counters["dropped"] / max(1, counters["rows"]),
        "r": engine.fraction if selective else 1.0,
    }


def typed(workload: Workload, params: Params) -> Workload:
    """Rows with a type each, and its utility as importance."""
    p: dict[str, Any] = dict(params)
    values = 1.0 / np.arange(1, p["types"] + 1) ** p["value_skew"]
    often = {"uniform": np.ones(p["types"]), "inverse": 1.0 / values, "direct": values}[p["frequency"]]
    rng = np.random.default_rng([p["seed"], 77])
    streams = []
    for stream in workload.streams:
        kind = rng.choice(p["types"], stream["ts"].size, p=often / often.sum())
        streams.append({**stream, "kind": kind, "importance": values[kind]})
    return Workload(tuple(streams))
