"""Systems measured in turn, A B C A B C ...: a machine that slows down for a while slows all of them down."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from system_process import check_equal

Row = dict[str, Any]


class Store:
    """Finished runs, a line of JSON each. A benchmark that was interrupted goes on after the last of them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        known = path.read_text().splitlines() if path is not None and path.exists() else []
        self.rows: list[Row] = [json.loads(line) for line in known]

    def find(self, key: Row) -> Row | None:
        return next((row for row in self.rows if key.items() <= row.items()), None)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def in_turn(workload: Row, systems: list[str], rounds: int, measure: Callable[[str], Row], store: Store) -> list[Row]:
    """One row a system and round. All must have the same results; the first that differs stops the benchmark."""
    rows: list[Row] = []
    plan = [(number, system) for number in range(1, rounds + 1) for system in systems]
    for place, (number, system) in enumerate(plan, 1):
        key = {**workload, "round": number, "system": system}
        print(f"{workload['case']}: run {place} of {len(plan)}, round {number}, {system} ... ", end="", flush=True)
        row = store.find(key)
        known = row is not None
        if row is None:
            begin = time.perf_counter()
            row = {**measure(system), **key, "wall": time.perf_counter() - begin}
        rows.append(row)
        check_equal(rows)
        if not known:
            store.add(row)
        rest = [seconds_of(rows, left) for _, left in plan[place:]]
        left = f", about {sum(rest) / 60:.0f} min left" if rest and number > 1 else ""
        took = "stored" if known else f"{row['wall']:.0f} s"
        print(f"{row['steady']:,.0f} rows/s ({took}{left})", flush=True)
    return rows


def seconds_of(rows: list[Row], system: str) -> float:
    """How long the last run of a system took."""
    return next((float(row["wall"]) for row in reversed(rows) if row["system"] == system), 0.0)


def of_system(rows: list[Row], system: str, column: str) -> list[float]:
    """A column of a system, round by round."""
    return [row[column] for row in rows if row["system"] == system]


def middle(rows: list[Row], system: str, column: str) -> float:
    return median(of_system(rows, system, column))


def ratios(rows: list[Row], ours: str, peer: str) -> list[float]:
    """How many times as fast as a peer we were, round by round."""
    both = zip(of_system(rows, ours, "steady"), of_system(rows, peer, "steady"), strict=True)
    return [mine / theirs for mine, theirs in both]
