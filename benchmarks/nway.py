"""How fast the n-way loop is on golab2003's Table 5, against the paper's own figures: python benchmarks/nway.py

One process, one core, CPU time, the best of several rounds; every figure of the table from one run. Windows are filled
first and that time is not counted, as in the paper (section 6.1). The paper's figures are from a 1.2 GHz AMD and Java 1.3.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import shedjoin as sj
from shedjoin.join_order import Model, StreamStats, best_global
from shedjoin_lab.papers.golab2003.exhaustive import costs_of_all
from shedjoin_lab.workloads.multi import golab_streams

TABLE5 = [StreamStats(10, 100, 500), StreamStats(1, 100, 50), StreamStats(1, 200, 40), StreamStats(3, 100, 5)]
#: Tuples/s of Table 8: (what, index, tau, of the best plan, of the worst).
PAPER = [
    ("eager NLJ", "scan", 0, 1614, 333),
    ("lazy NLJ, tau 5", "scan", 5, 1446, 296),
    ("lazy NLJ, tau 10", "scan", 10, 1332, 274),
    ("eager hash, 5 buckets", 5, 0, 11540, 2524),
    ("lazy hash, tau 5", 5, 5, 8420, 2041),
    ("lazy hash, tau 10", 5, 10, 7947, 1848),
    ("eager hash, growing index", "auto", 0, 11540, 2524),
]
NAMES = ("s1", "s2", "s3", "s4")


def plans() -> dict[str, tuple[str, ...]]:
    model = Model.of(TABLE5)
    orders, costs = costs_of_all(model)
    best, worst = best_global(model).orders[0], orders[costs.argmax()].tolist()
    return {"best": tuple(NAMES[s] for s in best), "worst": tuple(NAMES[s] for s in worst)}


def rate(index: str | int, tau: int, order: tuple[str, ...], rows: int, *, emit: bool) -> float:
    """Tuples per second of CPU time, after the windows are full."""
    tables, lengths = golab_streams(TABLE5, rows + 4000, seed=1)
    spec = sj.MultiJoinSpec(
        windows={name: sj.TimeWindow(length) for name, length in lengths.items()},
        on="key",
        order=order,
        index=index,
        evaluate_every=tau * 15,
    )
    engine = spec.build()
    batch = engine.batch(tables)
    engine.push(batch.take(slice(0, 4000)))
    begin = time.process_time()
    for _ in engine.chunks(batch.take(slice(4000, None)), limit=1 << 16, emit=emit):
        pass
    engine.flush()
    return rows / (time.process_time() - begin)


def budget_cost(policy: sj.Policy, memory: int, rows: int) -> float:
    """CPU nanoseconds a tuple of a three-way join whose memory is full all the time, as many values as places in memory."""
    rng = np.random.default_rng(7)
    names = ("a", "b", "c")
    spec = sj.MultiJoinSpec(
        windows=dict.fromkeys(names, sj.TimeWindow(2 * memory)),
        on="key",
        order=names,
        budget=sj.Budget(tuples=memory, allocation="variable"),
        policy=policy,
    )
    engine = spec.build()
    tables = {name: {"key": rng.integers(0, memory, memory // 2 + rows)} for name in names}
    batch = engine.batch(tables)
    engine.push(batch.take(slice(0, 3 * (memory // 2))))
    begin = time.process_time()
    engine.push(batch.take(slice(3 * (memory // 2), None)))
    return 1e9 * (time.process_time() - begin) / (3 * rows)


def budgets(rows: int) -> None:
    """How the cost of a tuple grows with the memory: nothing scans it."""
    print(f"\nThree streams within a budget, {3 * rows} tuples with the memory full: ns a tuple")
    print("{:28} {:>10} {:>10} {:>10}".format("", "M=1,000", "M=10,000", "M=100,000"))
    policies = {
        "RAND": sj.Rand(),
        "PROB (History)": sj.Prob(),
        "PROB (InWindow)": sj.Prob(sj.InWindow()),
        "DIMPPROB": sj.DimpProb(),
        "SIMPPROB": sj.SimpProb(),
        "LIFE": sj.Life(),
        "DGL": sj.Dgl(),
    }
    for name, policy in policies.items():
        costs = [min(budget_cost(policy, memory, rows) for _ in range(2)) for memory in (1_000, 10_000, 100_000)]
        print("{:28} {:10,.0f} {:10,.0f} {:10,.0f}".format(name, *costs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    orders = plans()
    print(
        f"Table 5, {wanted.rows} tuples after the windows are full; best plan {orders['best']}, worst {orders['worst']}"
    )
    print(
        f"{'':28} {'paper':>8} {'ours':>12} {'times':>7} {'worst plan':>12} {'best/worst':>11} {'paper':>6} {'counted only':>13}"
    )
    for what, index, tau, best, worst in PAPER:
        rows = wanted.rows if index != "scan" else wanted.rows // 5
        rate(index, tau, orders["best"], 5000, emit=True)  # compiled and warm
        ours = max(rate(index, tau, orders["best"], rows, emit=True) for _ in range(wanted.rounds))
        counted = max(rate(index, tau, orders["best"], rows, emit=False) for _ in range(wanted.rounds))
        low = max(rate(index, tau, orders["worst"], rows // 2, emit=True) for _ in range(wanted.rounds))
        print(
            f"{what:28} {best:8,} {ours:12,.0f} {ours / best:7.0f} {low:12,.0f} {ours / low:11.1f} "
            f"{best / worst:6.1f} {counted:13,.0f}"
        )
    budgets(wanted.rows // 4)


if __name__ == "__main__":
    main()
