"""How much of the best output a ranking of basic windows can have (section 5.1.1): no streams, only areas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The window is cut into so many cells for the integrals.
CELLS = 2000
#: Positions of the first basic window over which its shift is averaged.
SHIFTS = 40

SHAPES = {"less skewed": 0.15, "more skewed": 0.05}


def density(shape: str) -> NDArray[np.float64]:
    """A match probability density over the window: a peak at 5/8 of it."""
    x = (np.arange(CELLS) + 0.5) / CELLS
    f = np.exp(-0.5 * ((x - 0.625) / SHAPES[shape]) ** 2)
    return np.asarray(f / f.sum())


def optimality(f: NDArray[np.float64], basic: float, load: float) -> float:
    """phi for basic windows of `basic` times the window, when the part `load` of it can be processed.

    Examples
    --------
    >>> round(optimality(density("less skewed"), 0.01, 0.3), 2)
    1.0
    """
    areas = _areas(f, basic)
    order = np.sort(areas)[::-1]
    whole = min(order.size, int(load / basic + 1e-9))
    used = order[:whole].sum()
    if whole < order.size:
        used += (load - whole * basic) / basic * order[whole]
    best = np.sort(f)[::-1][: max(1, round(min(1.0, load) * CELLS))].sum()
    return float(min(1.0, used / best))


def _areas(f: NDArray[np.float64], basic: float) -> NDArray[np.float64]:
    """p_j: the mean area under f that basic window j covers, while the first one fills."""
    below = np.concatenate(([0.0], np.cumsum(f)))
    edges = np.arange(CELLS + 1) / CELLS
    count = 1 + int(np.ceil(1.0 / basic - 1e-9))
    areas = np.zeros(count)
    for shift in (np.arange(SHIFTS) + 0.5) / SHIFTS:
        start = np.clip(shift * basic + (np.arange(1, count + 1) - 2) * basic, 0.0, 1.0)
        stop = np.clip(shift * basic + (np.arange(1, count + 1) - 1) * basic, 0.0, 1.0)
        areas += np.interp(stop, edges, below) - np.interp(start, edges, below)
    return areas / SHIFTS
