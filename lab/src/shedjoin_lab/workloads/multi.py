"""Streams for n-way joins, made as golab2003 made them (section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shedjoin.join_order import StreamStats
from shedjoin.workloads.workload import Columns, generators, whole


def golab_streams(streams: Sequence[StreamStats], rows: int, seed: int) -> tuple[dict[str, Columns], dict[str, int]]:
    """Tuples one after the other, each from a random stream by rate, its value uniform over 0 .. v - 1.

    A tuple's time is its number, so that a time unit of the paper is as many steps as all rates together. Values are
    drawn from the front of one list, so that streams with few values hold those that the others hold too.

    Returns
    -------
    tuple
        The columns of each stream (s1, s2, ...) and the length of each window in steps.
    """
    whole("rows", rows, 1)
    choose, draw = generators(seed, 2)
    rates = np.array([stream.rate for stream in streams])
    origin = choose.choice(len(streams), size=rows, p=rates / rates.sum())
    values = draw.random(rows)
    tables: dict[str, Columns] = {}
    lengths: dict[str, int] = {}
    for number, stream in enumerate(streams):
        ts = np.flatnonzero(origin == number)
        tables[f"s{number + 1}"] = {"key": (values[ts] * stream.values).astype(np.int64), "ts": ts.astype(np.int64)}
        lengths[f"s{number + 1}"] = max(1, round(stream.window * rates.sum()))
    return tables, lengths
