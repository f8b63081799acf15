"""Two builds in turn on the same joins: python benchmarks/versus.py ../before/src src --cases exact PROB

A process for each build waits for the name of a case, runs it, and says how long it took; the next turn is the other build's.
What counts is CPU time. Other work on the machine slows both builds down, so read the ratios; their quartiles say
how far the rounds differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from policies import EXACT_WINDOW, policies, workload

import shedjoin as sj
from predicates import AT_LEAST, sets
from shedjoin.engine.engine import Engine

Result = tuple[float, int, int]
#: CPU seconds, tuples and results of a run.
Case = Callable[[], Result]


def timed(push: Callable[[], Any], tuples: int, results: Callable[[], int]) -> Result:
    begin = time.process_time()
    push()
    return time.process_time() - begin, tuples, results()


def two_streams(rows: int, memories: list[int]) -> dict[str, Case]:
    """Those of policies.py."""
    batch, table = workload(rows)

    def case(spec: sj.JoinSpec, emit: bool = False) -> Case:
        def run() -> Result:
            engine = Engine(spec.plan(), 0, emit=emit)
            return timed(lambda: engine.push(batch), len(batch), lambda: engine.counters["results"])

        return run

    exact = sj.JoinSpec(window=sj.TimeWindow(EXACT_WINDOW))
    cases = {"exact": case(exact), "exact, pairs out": case(exact, emit=True), "exact, where": conditional(rows)}
    for memory in memories:
        window, budget = sj.TimeWindow(memory), sj.Budget(tuples=memory, allocation="fixed")
        for name, policy in policies(table, memory, rows).items():
            cases[f"{name}, M = {memory:,}"] = case(sj.JoinSpec(window=window, budget=budget, policy=policy))
    return cases


def conditional(rows: int) -> Case:
    """A condition that half of the pairs pass, with about 150 candidates a row."""
    rng, keys = np.random.default_rng(5), 20_000
    popularity = 1 / np.arange(1, keys + 1)
    sides = {
        name: {"key": rng.choice(keys, rows, p=popularity / popularity.sum()), "p": rng.integers(0, 1000, rows)}
        for name in ("left", "right")
    }

    def run() -> Result:
        # Made here, since builds of before have no conditions.
        spec = sj.JoinSpec(window=sj.TimeWindow(EXACT_WINDOW), where="left.p < right.p")
        engine = Engine(spec.plan(), 0, emit=False)
        batch = engine.batch(sides)
        return timed(lambda: engine.push(batch), len(batch), lambda: engine.counters["results"])

    return run


def n_streams(rows: int, memories: list[int]) -> dict[str, Case]:
    """Three streams on a key and along a join graph; those with a full memory have as many values as places in it."""
    rng = np.random.default_rng(7)

    def case(windows: dict[str, int], columns: dict[str, int], on: Any, rows: int = rows, **settings: Any) -> Case:
        tables = {name: {c: rng.integers(0, values, rows) for c, values in columns.items()} for name in windows}
        kept = {name: sj.TimeWindow(length) for name, length in windows.items()}
        spec = sj.MultiJoinSpec(windows=kept, on=on, **({"order": tuple(windows)} | settings))

        def run() -> Result:
            engine = spec.build()
            batch = engine.batch(tables)

            def push() -> None:
                for _ in engine.chunks(batch, limit=1 << 16, emit=False):
                    pass
                engine.flush()

            return timed(push, len(batch), lambda: engine.counters["results"])

        return run

    def full(memory: int, policy: sj.Policy) -> dict[str, Any]:
        return {"budget": sj.Budget(tuples=memory, allocation="variable"), "policy": policy}

    wide = dict.fromkeys("abc", EXACT_WINDOW)
    cases = {"three streams, exact": case(wide, {"key": 4 * EXACT_WINDOW}, "key")}
    policies = {"PROB": sj.Prob(), "RAND": sj.Rand(), "LIFE": sj.Life(), "DGL": sj.Dgl()}
    for memory in memories:
        for name, policy in policies.items():
            windows = dict.fromkeys("abc", 2 * memory)
            cases[f"three streams, {name}, M = {memory:,}"] = case(
                windows, {"key": memory}, "key", **full(memory, policy)
            )
    edges, columns, windows = ["a.x = b.x", "b.y = c.y"], {"x": 3_000, "y": 3_000}, dict.fromkeys("bac", 1_000)
    cases["join graph, exact"] = case(windows, columns, edges)
    for name in ("PROB", "RAND"):
        cases[f"join graph, {name}, M = 1,000"] = case(windows, columns, edges, **full(1_000, policies[name]))
    unequal = {"a": 500, "b": 100, "c": 50, "d": 10}
    cases["four streams, scan"] = case(unequal, {"key": 100}, "key", rows=rows // 20, index="scan")
    cases["four streams, 5 buckets"] = case(unequal, {"key": 100}, "key", rows=rows // 5, index=5)
    cases["four streams, 5 buckets, lazy"] = case(
        unequal, {"key": 100}, "key", rows=rows // 5, index=5, evaluate_every=100
    )
    return cases


def predicates(rows: int) -> dict[str, Case]:
    """Sets that share items, by lists and by a scan, and numbers that are near each other."""
    rng = np.random.default_rng(7)
    tables = [{"x": sets(rows, seed)["x"]} for seed in (1, 2)]
    numbers = [{"x": rng.integers(0, 100_000, rows).astype(float)} for _ in "xy"]

    def case(predicate: sj.Predicate, inputs: list[dict[str, Any]], window: int, index: str) -> Case:
        spec = sj.PredicateJoin(sj.TimeWindow(window), predicate, index=index)

        def run() -> Result:
            engine = spec.build()
            return timed(
                lambda: engine.push(left=inputs[0], right=inputs[1]), 2 * rows, lambda: engine.counters["results"]
            )

        return run

    return {
        "overlap, lists": case(sj.Overlap("x", AT_LEAST), tables, 10_000, "lists"),
        "overlap, scan": case(sj.Overlap("x", AT_LEAST), tables, 500, "scan"),
        "band, lists": case(sj.Band("x", 20.0), numbers, 10_000, "lists"),
    }


@cache
def cases_of(rows: int, memories: tuple[int, ...]) -> dict[str, Case]:
    several = list(memories)
    return two_streams(rows, several) | n_streams(rows // 2, several) | predicates(rows // 4)


def serve(rows: int, memories: tuple[int, ...]) -> None:
    """In the process of a build: run what is asked for, a line each."""
    cases = cases_of(rows, memories)
    for line in sys.stdin:
        print(json.dumps(cases[line.strip()]()), flush=True)


class Build:
    """A process that runs the code of one build."""

    def __init__(self, source: Path, arguments: list[str]) -> None:
        if not (source / "shedjoin").is_dir():
            sys.exit(f"{source} has no shedjoin: name the src directory of a build")
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(source.resolve())},
        )

    def run(self, case: str) -> Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(case, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"{case}: a build has failed, see above")
        seconds, tuples, results = json.loads(answer)
        return seconds, tuples, results


def compare(builds: list[Build], case: str, rounds: int) -> str:
    """One line: both builds in turn, the first round not counted; the build that begins changes from round to round."""
    runs: list[list[Result]] = [[], []]
    for number in range(rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            result = builds[which].run(case)
            if number:
                runs[which].append(result)
    before, now = ([1e9 * seconds / tuples for seconds, tuples, _ in some] for some in runs)
    ratios = [mine / theirs for mine, theirs in zip(now, before, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    same = "" if runs[0][0][2] == runs[1][0][2] else f"  results: {runs[0][0][2]:,} and {runs[1][0][2]:,}"
    return (
        f"{case:34} {min(before):9.1f} {min(now):9.1f} {min(now) / min(before):7.3f} "
        f"{median(ratios):8.3f} {low:7.3f} - {high:.3f}{same}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("builds", type=Path, nargs="*", help="the src directories of the build before and of this one")
    parser.add_argument("--cases", nargs="+", help="those whose names begin with one of these words (default: all)")
    parser.add_argument("--rows", type=int, default=200_000, help="tuples a stream (default 200,000)")
    parser.add_argument("--memories", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=7, help="of each case (default 7)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    memories = tuple(args.memories)
    if args.serve:
        serve(args.rows, memories)
        return
    if len(args.builds) != 2 or args.rounds < 2:
        parser.error("two builds are compared, in at least 2 rounds")
    names = [
        name
        for name in cases_of(args.rows, memories)
        if args.cases is None or any(name.startswith(some) for some in args.cases)
    ]
    arguments = ["--rows", str(args.rows), "--memories", *map(str, memories)]
    builds = [Build(source, arguments) for source in args.builds]
    print("CPU ns a tuple, the best of all rounds; ratios below 1: this build is faster")
    print(f"{'':34} {'before':>9} {'now':>9} {'ratio':>7} {'median':>8} {'quartiles':>15}")
    for name in names:
        print(compare(builds, name, args.rounds), flush=True)


if __name__ == "__main__":
    main()
