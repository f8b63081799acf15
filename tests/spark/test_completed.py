"""Joins on predicates and with deadlines are completed from their archive: results and refined rows are the exact join."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from plans import large_plans
from streams import read, write

import shedjoin as sj
from shedjoin.quality.arrivals import Arrivals
from shedjoin.quality.missing import exact_rows
from shedjoin.spark import refine, start

WINDOW, ROWS = 12, 60
#: No machine compares anything in this time, so that rows are compared with parts of windows.
HURRY = {"deadline": 1e-6}
SMALL = {"budget": "16 tuples", "policy": "rand"}
NAMES = ("a", "b", "c")
Row = dict[str, Any]


def overlap(rows: tuple[Row, ...]) -> bool:
    left, right = (row["items"] for row in rows)
    return left is not None and right is not None and len({*left} & {*right}) >= 2


def inner(rows: tuple[Row, ...]) -> bool:
    left, right = (dict(row["weights"]) for row in rows)
    return sum(left[item] * right[item] for item in sorted({*left} & {*right})) >= 0.5


def same_key(rows: tuple[Row, ...]) -> bool:
    return rows[0]["k"] is not None and len({row["k"] for row in rows}) == 1


CASES: dict[str, tuple[int, dict[str, Any], Callable[[tuple[Row, ...]], bool]]] = {
    "overlap": (2, {"predicate": sj.Overlap("items", at_least=2), **HURRY, **SMALL}, overlap),
    "inner product": (2, {"predicate": sj.InnerProduct("weights", at_least=0.5), **HURRY}, inner),
    "same set": (
        2,
        {"predicate": sj.SameSet("items"), **HURRY, **SMALL},
        lambda rows: None not in (rows[0]["items"], rows[1]["items"]) and {*rows[0]["items"]} == {*rows[1]["items"]},
    ),
    "three on a key": (3, {"on": "k", "names": NAMES, **HURRY, **SMALL}, same_key),
    "join graph": (
        3,
        {"on": ["a.k = b.k", "b.n <= c.n"], "names": NAMES, "shards": 2, **HURRY},
        lambda rows: rows[0]["k"] is not None and rows[0]["k"] == rows[1]["k"] and rows[1]["n"] <= rows[2]["n"],
    ),
}
#: A key of two streams with parts of windows is in test_missing, a band in the test of row windows.
#: This one is completed in two steps, the second after the query went on. (test_graph does so with join graphs, test_refine with
#: a key, test_nway_missing with three streams of a key and parts of windows.)
GROWS = ("overlap",)


def table(seed: int, name: str) -> pa.Table:
    """Rows of which some are late and some null."""
    draw = np.random.default_rng(seed)
    items = [sorted(draw.choice(5, draw.integers(0, 4), replace=False).tolist()) for _ in range(ROWS)]
    return pa.table(
        {
            "at": np.arange(ROWS) - draw.choice([0, 0, 0, 0, 9], ROWS),
            "k": pa.array([None if key == 0 else int(key) for key in draw.integers(0, 5, ROWS)], pa.int64()),
            "n": draw.integers(0, 20, ROWS),
            "x": draw.normal(0.0, 2.0, ROWS),
            "items": pa.array([None if draw.random() < 0.1 else one for one in items], pa.list_(pa.int64())),
            "weights": pa.array([[(item, 0.5) for item in one] for one in items], pa.map_(pa.int64(), pa.float64())),
            name: np.arange(ROWS),
        }
    )


def exact(tables: list[pa.Table], names: tuple[str, ...], holds: Any) -> list[tuple[int, ...]]:
    found = []
    for rows in product(*(one.to_pylist() for one in tables)):
        times = [row["at"] for row in rows]
        if max(times) - min(times) < WINDOW and holds(rows):
            found.append(tuple(row[name] for row, name in zip(rows, names, strict=True)))
    return sorted(found)


@pytest.mark.parametrize("case", CASES)
def test_results_and_refined_rows_are_the_exact_join(spark: Any, tmp_path: Path, cache: str, case: str) -> None:
    streams, options, holds = CASES[case]
    names = NAMES[:streams]
    tables = [table(seed, name) for seed, name in enumerate(names, start=7)]
    given = {"time": "at", "window": WINDOW, "lateness": 2, "select": list(names), "shards": 2, **options}
    output, done = tmp_path / "out", []
    steps = (0, 40, ROWS) if case in GROWS else (0, ROWS)
    for step, (first, last) in enumerate(pairwise(steps)):
        for name, one in zip(names, tables, strict=True):
            write(tmp_path / name, one.slice(first, last - first), 2, first=2 * step)
        frames = [read(spark, tmp_path / name) for name in names]
        query = start(*frames, output=output, archive=True, cache=cache, trigger={"availableNow": True}, **given)
        query.awaitTermination()
        with large_plans(spark):
            done.append(refine(output))
    assert all(one.new > 0 for one in done)
    results = spark.read.parquet(str(output / "results")).select(*names).collect()
    refined = done[-1].rows.select(*names).collect()
    assert sorted([*map(tuple, results), *map(tuple, refined)]) == exact(tables, names, holds)
    shed = spark.read.parquet(str(output / "shed")).select("why").distinct().collect()
    words = {row.why for row in shed}
    assert "late" in words
    assert ("partial" in words) == ("deadline" in options)
    assert ("evicted" in words) == ("budget" in options)


def test_row_windows_of_a_predicate(spark: Any, tmp_path: Path, cache: str) -> None:
    """Row windows count the rows of all shards, each of which archives the rows that it stores."""
    tables = [table(seed, name) for seed, name in ((3, "a"), (4, "b"))]
    windows, band = (sj.RowWindow(8), sj.TimeWindow(WINDOW)), sj.Band("x", within=1.0)
    for name, one in zip("ab", tables, strict=True):
        write(tmp_path / name, one, 3)
    frames = [read(spark, tmp_path / name) for name in "ab"]
    output = tmp_path / "out"
    query = start(
        *frames, predicate=band, time="at", window=windows, lateness=2, budget="12 tuples", policy="rand", shards=2,
        select=["a", "b"], output=output, archive=True, cache=cache, trigger={"availableNow": True},
    )  # fmt: skip
    query.awaitTermination()
    with large_plans(spark):
        done = refine(output)
    results = spark.read.parquet(str(output / "results")).select("a", "b").collect()
    found = sorted([*map(tuple, results), *map(tuple, done.rows.select("a", "b").collect())])
    assert results
    assert done.new > 0
    assert found == exact_in_batches(tables, sj.JoinSpec(windows, on=band), 3)


def exact_in_batches(tables: list[pa.Table], spec: sj.JoinSpec, files: int) -> list[tuple[int, ...]]:
    """The exact join of files that come one after the other, each sorted by time."""
    engine, size = spec.build(), ROWS // files
    pushes, names = [], [[], []]  # type: ignore[var-annotated]
    for file in range(files):
        sides = [one.slice(file * size, size).sort_by("at") for one in tables]
        timed = [side.rename_columns({"at": "ts"}) for side in sides]
        pushes.append(engine.batch({"left": timed[0], "right": timed[1]}))
        for stream, side in enumerate(sides):
            names[stream] += side["ab"[stream]].to_pylist()
    whole = exact_rows(Arrivals.pushed(pushes), spec)
    return sorted((names[0][i], names[1][j]) for i, j in zip(*whole, strict=True))
