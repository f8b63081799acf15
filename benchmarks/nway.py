"""How fast the n-way loop is on golab2003's Table 5, against the paper's own figures: python benchmarks/nway.py

One process, one core, CPU time, the best of several rounds; every figure of the table from one run. Windows are filled
first and that time is not counted, as in the paper (section 6.1). The paper's figures are from a 1.2 GHz AMD and Java 1.3.
"""

from __future__ import annotations

import argparse
import time

import shedjoin as sj
from shedjoin.lab.workloads.multi import golab_streams
from shedjoin.ordering import Model, StreamStats, best_global, costs_of_all

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


if __name__ == "__main__":
    main()
