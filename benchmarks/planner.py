"""What does a plan cost, and does what it recommends hold on rows that it has not seen?

Real streams: names looked up and then connected to (network_wrccdc_2018), window a minute. The plan is made from the first half
and held against the second. Prints the plan and its costs for docs/planner.md, and draws docs/figures/planner-network.png.
Without the data, streams are made up, and nothing is drawn.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import shedjoin as sj
from shedjoin.errors import DataError
from shedjoin.workloads import zipf
from shedjoin_lab import data

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "figures" / "planner-network.png"
TARGET = 0.9


def streams(folder: Path | None) -> tuple[dict[str, Any], dict[str, Any], int, bool]:
    """Two streams, a window, and whether they are real."""
    try:
        workload = data.network_names(data.data_folder(folder))
    except DataError as reason:
        print(f"made-up streams: {reason}")
        made = zipf(20_000, seed=0, domain=650, ranks="uncorrelated")
        return plain(made.left), plain(made.right), 1_000, False
    return plain(workload.left), plain(workload.right), 60_000_000, True


def plain(side: Any) -> dict[str, Any]:
    return {"key": side["key"], "ts": np.asarray(side["ts"])}


def between(side: dict[str, Any], begin: float, end: float) -> dict[str, Any]:
    """The rows of a sample of time."""
    chosen = (side["ts"] >= begin) & (side["ts"] < end)
    return {
        "key": side["key"].filter(chosen) if hasattr(side["key"], "filter") else side["key"][chosen],
        "ts": side["ts"][chosen],
    }


def one_optimum(seen: list[dict[str, Any]], window: int, first: int, memory: int, allocation: str) -> float:
    """The CPU time of one optimum."""
    spec = sj.JoinSpec(sj.TimeWindow(window), sj.Budget(tuples=memory, allocation=allocation))
    begin = time.process_time()
    sj.optimum(spec, *seen, warmup=first + window)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None, help="folder of the real data sets")
    left, right, window, real = streams(parser.parse_args().data)
    first, last = (int(pick(side["ts"][place] for side in (left, right))) for pick, place in ((min, 0), (max, -1)))
    middle = first + (last - first) // 2
    seen = [between(side, first, middle) for side in (left, right)]
    spent: dict[str, float] = {}
    now = [time.process_time()]

    def tell(stage: str, done: int, total: int) -> None:
        """CPU time belongs to the stage that was told of last; the solver's own stages to the optimum."""
        name = {"policies": "policies", "target": "policies", "exact": "policies"}.get(stage, "optimum")
        spent[name] = spent.get(name, 0.0) - now[0] + time.process_time()
        now[0] = time.process_time()

    sj.plan({"key": [1, 2] * 20}, {"key": [1, 2] * 20}, window=4, target=0.5)  # loads what was compiled
    now[0] = time.process_time()
    plan = sj.plan(*seen, window=window, target=TARGET, progress=tell)
    print(plan, "\n")
    said = plan.recommendation
    hardest = 0.0
    for allocation in ("fixed", "variable"):
        one = {memory: one_optimum(seen, window, first, memory, allocation) for memory in (*plan.memories, said.tuples)}
        print(
            f"one optimum, {allocation}, CPU s:", {memory: round(seconds, 2) for memory, seconds in sorted(one.items())}
        )
        hardest += max(one.values())
    print({name: round(seconds, 2) for name, seconds in spent.items()}, "CPU s in all")
    print(f"the curves of OPT cost {spent['optimum'] / hardest:.2f} times one optimum of each at its hardest memory")
    rest = [between(side, middle, last + 1) for side in (left, right)]
    held = sj.simulate(said.spec, *rest, warmup=middle + window).matches
    exact = sj.simulate(sj.JoinSpec(sj.TimeWindow(window)), *rest, warmup=middle + window)
    print(
        f"on the other half: {held:,} of {exact.matches:,} results, {held / exact.matches:.1%}; exact stores "
        f"{exact.peak_tuples:,}"
    )
    if real:
        plan.plot(PICTURE)
        print(f"drawn: {PICTURE}")


if __name__ == "__main__":
    main()
