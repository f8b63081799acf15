"""Joins on sets: the index against a scan with numpy, and what adapting costs. Ratios within one run; CPU time.

python benchmarks/predicates.py [--window 100000] [--write docs/...]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import shedjoin as sj

ITEMS, DISTINCT, AT_LEAST = 5, 100, 3


def sets(rows: int, seed: int) -> dict[str, Any]:
    """Rows of exactly ITEMS different items, uniform."""
    rng = np.random.default_rng(seed)
    items = np.argsort(rng.random((rows, DISTINCT)), axis=1)[:, :ITEMS]
    return {"x": sj.Sets(np.arange(rows + 1) * ITEMS, items.ravel()), "ts": np.arange(rows), "items": items}


def part(table: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    items = table["items"][start:stop]
    return {"x": sj.Sets(np.arange(len(items) + 1) * ITEMS, items.ravel()), "ts": table["ts"][start:stop]}


def numpy_scan(window: np.ndarray, probe: np.ndarray) -> np.ndarray:
    """One row against a window of (rows, ITEMS): membership by a table of bits, summed."""
    member = np.zeros(DISTINCT, np.uint8)
    member[probe] = 1
    # Column by column is about twice as fast as summing rows of five.
    common = member[window[0]]
    for column in window[1:]:
        common = common + member[column]
    return np.flatnonzero(common >= AT_LEAST)


def packed(items: np.ndarray) -> np.ndarray:
    """Sets as two words of bits each, which needs a domain of at most 128 items that is known beforehand."""
    bits = np.zeros((2, len(items)), np.uint64)
    for column in items.T:
        for word in range(2):
            here = column // 64 == word
            bits[word, here] |= np.uint64(1) << (column[here] % 64).astype(np.uint64)
    return bits


def packed_pace(window: int, probes: int) -> float:
    """As `numpy_pace`, with packed sets."""
    bits = [packed(sets(window + probes, seed)["items"]) for seed in (1, 2)]
    begin = time.process_time()
    for row in range(window, window + probes):
        for mine, other in ((0, 1), (1, 0)):
            there = bits[other][:, row - window + 1 : row + mine]
            common = np.bitwise_count(there[0] & bits[mine][0, row]) + np.bitwise_count(there[1] & bits[mine][1, row])
            np.flatnonzero(common >= AT_LEAST)
    return (time.process_time() - begin) / (2 * probes)


def engine_pace(window: int, probes: int, index: str, **more: Any) -> tuple[float, sj.Output, sj.Engine]:
    """CPU seconds for each row with full windows on both sides."""
    tables = [sets(window + probes, seed) for seed in (1, 2)]
    join = sj.PredicateJoin(sj.TimeWindow(window), sj.Overlap("x", AT_LEAST), index=index, **more)
    small = join.build()
    small.push(left=part(tables[0], 0, 50), right=part(tables[1], 0, 50))  # compiled
    engine = join.build()
    if more:
        engine.push(left=part(tables[0], 0, window), right=part(tables[1], 0, window))
    else:
        # Filling the windows with rows that meet nothing is the same store, without the waiting.
        empty = sj.PredicateJoin(sj.TimeWindow(window), sj.Overlap("x", 100), index=index).build()
        empty.push(left=part(tables[0], 0, window), right=part(tables[1], 0, window))
        engine._state = empty._state
    begin = time.process_time()
    out = engine.push(left=part(tables[0], window, window + probes), right=part(tables[1], window, window + probes))
    return (time.process_time() - begin) / (2 * probes), out, engine


def numpy_pace(window: int, probes: int) -> tuple[float, int]:
    tables = [sets(window + probes, seed) for seed in (1, 2)]
    found = 0
    columns = [np.ascontiguousarray(table["items"].T.astype(np.uint8)) for table in tables]
    begin = time.process_time()
    for row in range(window, window + probes):
        found += numpy_scan(columns[1][:, row - window + 1 : row], tables[0]["items"][row]).size
        found += numpy_scan(columns[0][:, row - window + 1 : row + 1], tables[1]["items"][row]).size
    return (time.process_time() - begin) / (2 * probes), found


def adapting_share() -> tuple[float, float]:
    """The share of the CPU that adapting takes: its own time, against that of the whole run (gedik2007's workload)."""
    rate, seconds, window = 500, 40, 20_000
    rows = rate * seconds
    tables = [sets(rows, seed) for seed in (1, 2)]
    for table in tables:
        table["ts"] = np.arange(rows) * 1000 // rate
        table["kind"] = np.arange(rows) % 3
    join = sj.PredicateJoin(
        sj.TimeWindow(window),
        sj.Overlap("x", AT_LEAST),
        index="scan",
        selective=sj.Selective(basic=1000, rate=False, fraction=0.3, types=3),
    )
    engine = join.build()
    begin = time.process_time()
    engine.push(
        left={**part(tables[0], 0, rows), "kind": tables[0]["kind"]},
        right={**part(tables[1], 0, rows), "kind": tables[1]["kind"]},
    )
    whole = time.process_time() - begin
    times = 1000
    begin = time.process_time()
    for _ in range(times):
        engine.set_fraction(0.3)  # shares r among windows and types anew
    once = (time.process_time() - begin) / times
    steps = 2 * seconds / 5  # rates and rankings, every 5 s
    return steps * once / whole, whole / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=int, default=100_000)
    parser.add_argument("--probes", type=int, default=1000)
    asked = parser.parse_args()
    print(f"overlap >= {AT_LEAST}, {ITEMS} items a set of {DISTINCT}, window {asked.window} sets, CPU time a probe")
    scan, found = numpy_pace(asked.window, min(asked.probes, 300))
    lists, out, _ = engine_pace(asked.window, asked.probes, "lists")
    ours, _, _ = engine_pace(asked.window, min(asked.probes, 300), "scan")
    print(f"  numpy scan  {1e6 * scan:8.1f} us   ({found} pairs of {min(asked.probes, 300)} probes a side)")
    tight = packed_pace(asked.window, min(asked.probes, 300))
    print(f"  packed      {1e6 * tight:8.1f} us   {scan / tight:6.1f} x   (numpy, the 100 items as bits of two words)")
    print(f"  our scan    {1e6 * ours:8.1f} us   {scan / ours:6.1f} x")
    print(f"  lists       {1e6 * lists:8.1f} us   {scan / lists:6.1f} x   ({len(out)} pairs)")
    share, load = adapting_share()
    print(f"adapting (rates, ranking, types) takes {100 * share:.4f}% of the CPU of a join at {100 * load:.0f}% load")


if __name__ == "__main__":
    main()
