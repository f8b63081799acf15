"""Age beside the other policies: the 17 workloads of the lab, and keys that come once. Prints the table of docs/policies.md.

python benchmarks/ages.py [--data FOLDER] [--seed 1]

Each figure is results as a share of OPT's with the same memory and allocation, results counted from two windows on. Memory is a
share of what the exact join needs at most. Needs the lab (`pip install ./lab`); without --data only generated streams run.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import shedjoin as sj
from shedjoin.workloads import unique
from shedjoin_lab.papers.prospect.contest import ALLOCATIONS, MEMORIES
from shedjoin_lab.papers.prospect.streams import REAL, SYNTHETIC, Stage

UNIQUE = "unique keys"
POLICIES: dict[str, sj.Policy] = {
    "`Rand()`": sj.Rand(),
    "`Prob()`": sj.Prob(),
    "`Prob(InWindow())`": sj.Prob(sj.InWindow()),
    "`Life()`": sj.Life(),
    "`Dgl()`": sj.Dgl(),
    "`Prospect()`": sj.Prospect(),
    "`Age()`": sj.Age(),
    "`Age(History())`": sj.Age(sj.History()),
    "`Age(InWindow())`": sj.Age(sj.InWindow()),
}


def shares(stage: Stage, part: float, allocation: str) -> dict[str, tuple[float, float]]:
    """Of each policy the share of OPT's results, and of all."""
    left, right = stage.workload.streams[:2]
    window, warmup = sj.TimeWindow(stage.window), 2 * stage.window
    exact = sj.simulate(sj.JoinSpec(window), left, right, warmup=warmup)
    budget = sj.Budget(tuples=max(4, int(part * exact.peak_tuples)), allocation=allocation)
    opt = sj.optimum(sj.JoinSpec(window, budget), left, right, warmup=warmup)
    made = {name: sj.JoinSpec(window, budget, policy) for name, policy in POLICIES.items()}
    runs = {name: sj.simulate(spec, left, right, warmup=warmup) for name, spec in made.items()}
    return {name: (run.matches / opt.matches, run.matches / exact.matches) for name, run in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    stages = {name: make(args.seed) for name, make in SYNTHETIC.items()}
    if args.data is not None:
        stages |= {name: make(args.data) for name, make in REAL.items()}
    stages[UNIQUE] = Stage(unique(6000, seed=args.seed), 600)
    found: dict[tuple[str, bool, float, str], list[tuple[float, float]]] = defaultdict(list)
    worst: dict[str, float] = defaultdict(lambda: 1.0)
    for name, stage in stages.items():
        for part in MEMORIES:
            for allocation in ALLOCATIONS:
                for policy, share in shares(stage, part, allocation).items():
                    found[policy, name == UNIQUE, part, allocation].append(share)
                    if name != UNIQUE:
                        worst[policy] = min(worst[policy], share[0])
                    print(name, part, allocation, policy, *(f"{one:.4f}" for one in share), sep="\t", flush=True)
    columns = [f"{part:.0%}" for part in MEMORIES]
    print("| policy |", " | ".join([f"{len(stages) - 1} workloads: {columns[0]}", *columns[1:], "mean", "worst"]), "|",
          " | ".join([f"unique keys, recall: {columns[0]}", *columns[1:]]), "|")  # fmt: skip
    print("| ---", "| ---: " * (2 * len(columns) + 2), "|", sep="")
    for policy in POLICIES:
        means = [fmean(one[0] for how in ALLOCATIONS for one in found[policy, False, part, how]) for part in MEMORIES]
        recalls = [found[policy, True, part, "variable"][0][1] for part in MEMORIES]
        figures = [*(f"{one:.3f}" for one in (*means, fmean(means), worst[policy])), *(f"{one:.3f}" for one in recalls)]
        print("|", policy, "|", " | ".join(figures), "|")


if __name__ == "__main__":
    main()
