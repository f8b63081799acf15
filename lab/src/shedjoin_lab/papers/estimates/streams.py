"""What estimates are measured on."""

from __future__ import annotations

from collections.abc import Callable

from shedjoin.workloads import zipf
from shedjoin_lab.papers.prospect.streams import BOTH, Stage
from shedjoin_lab.workloads import bursty, drifting, flashing

ROWS, WINDOW, KEYS = 4000, 300, 100


def _zipf(skew: float, ranks: str) -> Stage:
    return Stage(zipf(ROWS, seed=11, domain=KEYS, skew=skew, ranks=ranks), WINDOW)


#: By name. The streams are the same for all seeds: only the lots differ.
STREAMS: dict[str, Callable[[], Stage]] = {
    f"Zipf {skew:g}, {called}": lambda skew=skew, ranks=ranks: _zipf(skew, ranks)
    for skew in (0.0, 0.5, 1.0, 1.5, 2.0)
    for ranks, called in (("correlated", "equal ranks"), ("uncorrelated", "permuted ranks"))
    if skew or ranks == "correlated"
} | {
    "drift": lambda: Stage(drifting(ROWS, seed=11, domain=KEYS, skew=1.0, every=50, swaps=3), WINDOW),
    "drift, each its own": lambda: Stage(
        drifting(ROWS, seed=11, domain=KEYS, skew=1.0, every=20, swaps=4, together=False), WINDOW
    ),
    "bursts": lambda: Stage(bursty(ROWS, seed=11, bursts=BOTH[:3], domain=KEYS), WINDOW),
    "nearly unique keys": lambda: Stage(zipf(ROWS, seed=11, domain=ROWS, skew=0.0), WINDOW),
    "bursts of keys": lambda: Stage(flashing(ROWS, seed=11), WINDOW),
}
