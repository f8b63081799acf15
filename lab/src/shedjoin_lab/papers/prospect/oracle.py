"""What could be attained: a policy that is told the true rates of all keys, and nothing of what will be drawn from them.

OPT knows the draws, which no policy can. An oracle is told how many rows of each key are to be expected: at the next time
only, or at all times to come, with every swap and every flash that nobody could foresee. What it closes of the gap to OPT
is about what there is to be won by learning.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.workloads.workload import Rates
from shedjoin_lab.papers.prospect.streams import Stage

KNOWS_NOW, KNOWS_AHEAD = "KNOWS NOW", "KNOWS AHEAD"
ORACLES = (KNOWS_NOW, KNOWS_AHEAD)


def schedules(stage: Stage, memory: int, allocation: str) -> Iterator[tuple[str, sj.Replay]]:
    """What each oracle would keep, for how long; nothing where the truth is not known."""
    if stage.workload.rates is None:
        return
    ahead = tuple(_up_to(rates, stage.window) for rates in stage.workload.rates())
    for name in ORACLES:
        yield name, _schedule(stage, memory, allocation, ahead, farthest=1 if name == KNOWS_NOW else stage.window)


def _up_to(rates: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Rows to be expected before each time; after the last there are none."""
    before = np.zeros((1 + len(rates) + window, rates.shape[1]))
    np.cumsum(rates, axis=0, out=before[1 : 1 + len(rates)])
    before[1 + len(rates) :] = before[len(rates)]
    return before


class _Memory:
    """What is stored of both streams, in the order of arrival."""

    def __init__(self, rows: tuple[NDArray[np.int64], ...], window: int) -> None:
        self.stream, self.key, self.ts = rows
        self.window = window
        self.stored = np.empty(0, dtype=np.int64)
        self.until = self.ts + window

    def expire(self, now: int) -> None:
        self.stored = self.stored[self.ts[self.stored] > now - self.window]

    def shed(self, places: NDArray[np.int64], now: int) -> None:
        self.until[self.stored[places]] = now
        self.stored = np.delete(self.stored, places)


def _schedule(stage: Stage, memory: int, allocation: str, ahead: Rates, farthest: int) -> sj.Replay:
    sizes = [len(columns["ts"]) for columns in stage.workload.streams[:2]]
    stream = np.repeat([0, 1], sizes)
    key, ts = (np.concatenate([columns[name] for columns in stage.workload.streams[:2]]) for name in ("key", "ts"))
    order = np.lexsort((stream, ts))
    held = _Memory((stream[order], key[order], ts[order]), stage.window)
    horizons = sorted(
        {int(2.0 ** (step / 2)) for step in range(2 * farthest.bit_length()) if 2.0 ** (step / 2) <= farthest}
    )
    # Fixed shares: half and half, as the engine has them.
    groups = [((0,), memory // 2), ((1,), memory - memory // 2)] if allocation == "fixed" else [((0, 1), memory)]
    times, first = np.unique(held.ts, return_index=True)
    for now, rows in zip(times.tolist(), np.split(np.arange(held.ts.size), first[1:]), strict=True):
        held.expire(now)
        held.stored = np.concatenate((held.stored, rows))
        for streams, cap in groups:
            of_group = np.flatnonzero(np.isin(held.stream[held.stored], streams))
            over = of_group.size - cap
            if over > 0:
                worth = _worth(held, held.stored[of_group], ahead, now, horizons)
                # A stable sort: on equal worth the earlier arrival goes, as everywhere.
                held.shed(of_group[np.argsort(worth, kind="stable")[:over]], now)
    until = np.empty_like(held.until)
    until[order] = held.until
    return sj.Replay(until[: sizes[0]], until[sizes[0] :])


def _worth(held: _Memory, rows: NDArray[np.int64], ahead: Rates, now: int, horizons: list[int]) -> NDArray[np.float64]:
    """Partners to be expected per unit of memory and time, over the best of these horizons within what is left of a life."""
    other, key = 1 - held.stream[rows], held.key[rows]
    left = held.ts[rows] + held.window - 1 - now
    so_far = _at(ahead, other, now + 1, key)
    best: NDArray[np.float64] = np.zeros(rows.size)
    for horizon in horizons:
        gained = (_at(ahead, other, now + 1 + horizon, key) - so_far) / horizon
        np.maximum(best, gained, out=best, where=horizon <= left)
    return best


def _at(ahead: Rates, stream: NDArray[np.int64], time: int, key: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(np.where(stream == 0, ahead[0][time, key], ahead[1][time, key]), dtype=np.float64)
