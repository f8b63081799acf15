"""What Prospect is measured on. It was tuned on other seeds, and on other parts of the real streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.workloads import Workload
from shedjoin_lab import data
from shedjoin_lab.workloads import Burst, bursty, drifting, flashing, rotating

BOTH = [Burst(start, start + 40, 10) for start in range(900, 5000, 700)]
IN_TURN = [Burst(start, start + 60, 10, (start // 500 % 2,)) for start in range(800, 5000, 500)]


class Stage(NamedTuple):
    """Streams and their window; results count from two windows on."""

    workload: Workload
    window: int


def _drift(seed: int, domain: int, skew: float, every: int, swaps: int, together: bool = True) -> Stage:
    streams = drifting(6000, seed=seed, domain=domain, skew=skew, every=every, swaps=swaps, together=together)
    return Stage(streams, 400)


def _rotation(seed: int, values: int, skew: float, shift: float = 5 / 8) -> Stage:
    return Stage(rotating(3000, seed=seed, window=400, values=values, skew=skew, rate=2, shift=shift), 400)


#: By kind and name. gedik2007's rotation is what is correlated in time.
SYNTHETIC: dict[str, Callable[[int], Stage]] = {
    "drift: slow": lambda seed: _drift(seed, 50, 1.0, every=100, swaps=2),
    "drift: fast": lambda seed: _drift(seed, 50, 1.0, every=20, swaps=2),
    "drift: each its own": lambda seed: _drift(seed, 200, 1.2, every=20, swaps=4, together=False),
    "burst: both streams": lambda seed: Stage(bursty(5000, seed=seed, bursts=BOTH, domain=100), 300),
    "burst: in turn": lambda seed: Stage(
        bursty(5000, seed=seed, bursts=IN_TURN, domain=100, ranks="uncorrelated"), 300
    ),
    "burst: of keys": lambda seed: Stage(flashing(6000, seed=seed), 400),
    "rotation: 0.6": lambda seed: _rotation(seed, 500, 0.6),
    "rotation: 0.8": lambda seed: _rotation(seed, 1000, 0.8),
    "rotation: shift 0.2": lambda seed: _rotation(seed, 500, 0.8, shift=0.2),
}


def _part(workload: Workload, start: int, end: int, unit: int = 1) -> Workload:
    """The rows from `start` to before `end`, in units of time; rows without a key are left out."""
    streams = []
    for stream in workload.streams:
        key, ts = stream["key"], np.asarray(stream["ts"]) // unit
        if isinstance(key, pa.Array):
            key = key.fill_null(-1)
        number = np.asarray(key).astype(np.int64)
        chosen = (ts >= start) & (ts < end) & (number >= 0)
        order = np.argsort(ts[chosen], kind="stable")
        streams.append({"key": number[chosen][order], "ts": ts[chosen][order] - start})
    return Workload(tuple(streams))


#: Hundredths of a second, from microseconds; a minute of them.
CENTI, MINUTE = 10_000, 6000
DAY = 24 * 3600

REAL: dict[str, Callable[[Path], Stage]] = {
    "ships, in step": lambda folder: Stage(_part(data.ships(folder), 40_000, 48_000), 800),
    "ships, by the hour": lambda folder: Stage(_part(data.ships(folder, steps=False), 3000, 3600), 24),
    "tower": lambda folder: Stage(_part(data.tower_temperatures(folder), 8200, 16_200), 600),
    "flights": lambda folder: Stage(_part(data.flight_connections(folder), 57_960, 58_740), 60),
    "names": lambda folder: Stage(_part(data.network_names(folder), 15 * MINUTE, 21 * MINUTE, CENTI), 1000),
    "clients": lambda folder: Stage(_part(data.network_logs(folder), 14 * MINUTE, 20 * MINUTE, CENTI), 1000),
    "clients, attacked": lambda folder: Stage(_part(data.network_logs(folder), 3 * MINUTE, 5 * MINUTE, CENTI), 200),
    "news": lambda folder: Stage(_part(data.news_keyed(folder), 20 * DAY, 40 * DAY, 1000), 6 * 3600),
}
