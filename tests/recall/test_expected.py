"""Expected results, counted by products, against the enumeration of all combinations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shedjoin.engine.codes import IMPORTANCE
from shedjoin.recall.expected import COLUMNS, Rows, expected_results

OF = {"min": min, "max": max, "sum": sum, "product": math.prod, "mean": lambda values: sum(values) / len(values)}


def random_rows(draw: np.random.Generator, size: int, streams: int) -> Rows:
    """Times that tie, and run back and forth."""
    made = {
        "stream": draw.integers(0, streams, size),
        "key": draw.integers(0, 3, size),
        "ts": np.sort(draw.integers(0, 12, size)) - draw.choice([0, 0, 0, 4], size),
        "importance": draw.choice([1.0, 2.5, 0.5, -1.0], size) if draw.random() < 0.8 else np.full(size, 2.0),
    }
    return {name: made[name].astype(kind) for name, kind in COLUMNS.items()}


def slow(old: Rows, new: Rows, lengths: np.ndarray, importance: str) -> dict[int, tuple[int, float]]:
    """Combinations of one row of each stream, of one key, one of them new, each in its window at the time of the newest."""
    rows = [
        (*(part[name][place] for name in ("stream", "key", "ts", "importance")), part is new)
        for part in (old, new)
        for place in range(part["key"].size)
    ]
    found = {int(key): (0, 0.0) for key in new["key"]}
    for combination in itertools.product(*([row for row in rows if row[0] == one] for one in range(lengths.size))):
        newest = max(row[2] for row in combination)
        if len({row[1] for row in combination}) > 1 or not any(row[4] for row in combination):
            continue
        if all(newest - row[2] < lengths[row[0]] for row in combination):
            count, total = found[int(combination[0][1])]
            found[int(combination[0][1])] = count + 1, total + OF[importance]([row[3] for row in combination])
    return found


@pytest.mark.small
@pytest.mark.parametrize("importance", OF)
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_products_equal_the_enumeration(importance: str, streams: int) -> None:
    draw = np.random.default_rng(streams)
    for _ in range(6):
        old, new = random_rows(draw, int(draw.integers(0, 16)), streams), random_rows(draw, 12, streams)
        lengths = draw.integers(1, 9, streams)
        keys, found = expected_results(old, new, lengths, IMPORTANCE[importance])
        wanted = slow(old, new, lengths, importance)
        assert keys.tolist() == sorted(wanted)
        assert found[0].tolist() == [wanted[key][0] for key in sorted(wanted)]
        assert found[1] == pytest.approx([wanted[key][1] for key in sorted(wanted)], abs=1e-9)
