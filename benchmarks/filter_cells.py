"""Unmatched rows that are certain under a budget, by predicate: python benchmarks/filter_cells.py

Full outer joins of two streams of 400 rows, window 40, 60 tuples, RAND; beside them the unmatched rows of the exact join.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import shedjoin as sj

ROWS, WINDOW, TUPLES, SEED = 400, 40, 60, 1
SIZES = (0, 1, 2, 2, 3, 5)
Draw = Callable[[random.Random], Any]

JOINS: dict[str, tuple[Any, Draw]] = {
    "Band, numbers to 500, within 1": (sj.Band("x", within=1.0), lambda draw: draw.random() * 500),
    "Overlap(2) of up to 3 of 60 items": (
        sj.Overlap("x", at_least=2),
        lambda draw: set(draw.sample(range(60), draw.randrange(0, 4))),
    ),
    "Subset of up to 5 of 30 items": (sj.Subset("x"), lambda draw: set(draw.sample(range(30), draw.choice(SIZES)))),
    "Superset of the same": (sj.Superset("x"), lambda draw: set(draw.sample(range(30), draw.choice(SIZES)))),
    "InnerProduct of 2 of 100 items": (
        sj.InnerProduct("x", at_least=0.5),
        lambda draw: {item: draw.random() for item in draw.sample(range(100), 2)},
    ),
    "Theta": (sj.Theta("x", "<"), lambda draw: draw.random() * 500),
}


def counted(spec: sj.JoinSpec, tables: dict[str, Any]) -> dict[str, int]:
    engine = spec.build()
    engine.push(engine.batch(tables))
    engine.end()
    return engine.counters


def main() -> None:
    print("| | certain | unknown | exact |\n| --- | ---: | ---: | ---: |")
    for name, (predicate, make) in JOINS.items():
        draw = random.Random(SEED)
        tables = {side: {"x": [make(draw) for _ in range(ROWS)], "ts": np.arange(ROWS)} for side in ("left", "right")}
        window, budget = sj.TimeWindow(WINDOW), sj.Budget(tuples=TUPLES)
        capped = sj.JoinSpec(window, budget, sj.Rand(), on=predicate, how="full_outer")
        found, exact = (
            counted(capped, tables),
            counted(replace(capped, budget=None, policy=None), tables),
        )
        print(f"| {name} | {found['certain']} | {found['unknown']} | {exact['certain']} |")


if __name__ == "__main__":
    main()
