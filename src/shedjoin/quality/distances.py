"""Measures that need a distance between results: the Earth Mover's Distance and Match And Compare.

Results are points here: one row of numbers each (times, keys, attributes), with a multiplicity. scipy does the matching
and comes with the extra `quality`; docs/decisions/005 compares the solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import EnvironmentProblem, InputError, SpecError

Floats = NDArray[np.float64]
Distance = str | Callable[[Floats, Floats], Floats]
METRICS = ("euclidean", "cityblock", "chebyshev", "hamming")
#: Matching beats linear programming up to this many cells of the distance matrix, one row a unit of mass.
MATCHABLE = 2**25


def emd(
    x: ArrayLike,
    y: ArrayLike,
    *,
    x_mass: ArrayLike | None = None,
    y_mass: ArrayLike | None = None,
    distance: Distance = "euclidean",
) -> float:
    """The Earth Mover's Distance: the least work that turns `x` into a part of `y`.

    das2003 moves a set X into a set Y "of equal or greater mass", so a subset costs nothing, and the distance is not
    symmetric unless the masses are equal. Work is mass times distance, summed; it is not divided by the mass.

    Parameters
    ----------
    x, y
        Points, one a row (one-dimensional: numbers). `y` needs at least the mass of `x`.
    x_mass, y_mass
        How much lies at each point, above 0; 1 by default.
    distance
        One of euclidean, cityblock, chebyshev, hamming, or a function from two arrays of points to a matrix of distances of
        at least 0.

    Examples
    --------
    >>> emd([1, 2], [1, 2, 7])
    0.0
    >>> emd([0, 10], [3, 10, 50])
    3.0
    """
    here, there = _points("x", x), _points("y", y)
    supply, demand = _mass("x_mass", x_mass, len(here)), _mass("y_mass", y_mass, len(there))
    _same_space(here, there)
    if supply.sum() > demand.sum() * (1 + 1e-12):
        raise InputError(
            f"x has a mass of {supply.sum():g} and y of {demand.sum():g}: x must have at most the mass of y, "
            "since it is x that is moved into y"
        )
    _check_distance(distance)
    if isinstance(distance, str):
        # With a metric, mass that lies in both sets need not move at all.
        here, supply, there, demand = _without_common(here, supply, there, demand)
    if not len(here):
        return 0.0
    return _transport(_distances(distance, here, there), supply, demand)


def mac(x: ArrayLike, y: ArrayLike, *, distance: Distance = "euclidean", penalty: float = 1.0) -> float:
    """Match And Compare: the cost of the best edge cover between two multisets of points.

    Every point is matched with at least one of the other set. A cover C costs
    sum over its edges of distance + `penalty` * sum over all points of (edges at the point - 1), and the cheapest is taken.
    0 iff the multisets are equal; infinite if just one of them is empty, since there is no cover.

    das2003 (after Ioannidis and Poosala, VLDB 1999) finds a cover of least distance first and then makes "a function of the
    weights of the edges in the cover and the number of edges incident to each node" of it, without naming the function.
    Least covers are not unique and differ in their degrees, so here both parts are in one minimum: it is unique, and
    for a small penalty it is the two steps of the paper.

    Parameters
    ----------
    x, y
        Points, one a row; repeat a row for a multiplicity.
    distance
        As for `emd`.
    penalty
        What each match beyond a point's first costs, in the unit of the distance.

    Examples
    --------
    >>> mac([1, 5], [5, 1])
    0.0
    >>> mac([5], [5, 5, 5])
    2.0
    >>> mac([1, 5], [1, 5, 6], penalty=0.5)
    1.5
    """
    if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 < penalty < float("inf"):
        raise SpecError(f"penalty must be a finite number above 0, in the unit of the distance, not {penalty!r}")
    _check_distance(distance)
    here, there = _points("x", x), _points("y", y)
    _same_space(here, there)
    if not len(here) or not len(there):
        return 0.0 if len(here) == len(there) else float("inf")
    # An edge adds to the degree of two points: with 2 * penalty on each edge this is a plain least edge cover, and that is
    # each point's nearest edge, less what a matching saves by letting two points share one.
    cost = _distances(distance, here, there) + 2 * penalty
    nearest_x, nearest_y = cost.min(axis=1), cost.min(axis=0)
    saving = np.maximum(nearest_x[:, None] + nearest_y[None, :] - cost, 0)
    rows, columns = _scipy().optimize.linear_sum_assignment(saving, maximize=True)
    cover = nearest_x.sum() + nearest_y.sum() - saving[rows, columns].sum()
    return max(0.0, float(cover - penalty * (len(here) + len(there))))


def _transport(cost: Floats, supply: Floats, demand: Floats) -> float:
    whole = np.all(supply == np.rint(supply)) and np.all(demand == np.rint(demand))
    if whole and supply.sum() * demand.sum() <= MATCHABLE:
        units = cost[np.ix_(np.repeat(np.arange(supply.size), supply.astype(np.int64)),
                            np.repeat(np.arange(demand.size), demand.astype(np.int64)))]  # fmt: skip
        rows, columns = _scipy().optimize.linear_sum_assignment(units)
        return float(units[rows, columns].sum())
    return _linear_program(cost, supply, demand)


def _linear_program(cost: Floats, supply: Floats, demand: Floats) -> float:
    sparse, optimize = _scipy().sparse, _scipy().optimize
    leaves = sparse.kron(sparse.eye_array(supply.size), np.ones((1, demand.size)), format="csr")
    enters = sparse.kron(np.ones((1, supply.size)), sparse.eye_array(demand.size), format="csr")
    # Rounding may leave the whole of y a hair smaller than the whole of x.
    room = demand * max(1.0, supply.sum() / demand.sum())
    best = optimize.linprog(cost.ravel(), A_ub=enters, b_ub=room, A_eq=leaves, b_eq=supply, method="highs")
    if best.status != 0:
        raise InputError(f"no way to move x into y was found: {best.message}")
    return float(best.fun)


def _without_common(
    here: Floats, supply: Floats, there: Floats, demand: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    points, place = np.unique(np.concatenate((here, there)), axis=0, return_inverse=True)
    place = place.reshape(-1)
    in_x, in_y = (
        np.bincount(where, weights=mass, minlength=len(points)).astype(np.float64)
        for where, mass in ((place[: len(here)], supply), (place[len(here) :], demand))
    )
    left_x, left_y = np.maximum(in_x - in_y, 0), np.maximum(in_y - in_x, 0)
    return points[left_x > 0], left_x[left_x > 0], points[left_y > 0], left_y[left_y > 0]


def _points(name: str, values: ArrayLike) -> Floats:
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be points: an array of numbers, one row a point") from None
    if points.size == 0:
        return points.reshape(0, points.shape[1] if points.ndim == 2 else 1)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2:
        raise InputError(f"{name} must be points, one a row, not of shape {points.shape}")
    if not np.isfinite(points).all():
        raise InputError(f"{name} must hold finite numbers only")
    return points


def _same_space(here: Floats, there: Floats) -> None:
    if len(here) and len(there) and here.shape[1] != there.shape[1]:
        raise InputError(f"x has points of {here.shape[1]} numbers and y of {there.shape[1]}: they must have as many")


def _mass(name: str, values: ArrayLike | None, size: int) -> Floats:
    mass = np.ones(size) if values is None else np.asarray(values, dtype=np.float64)
    if mass.shape != (size,):
        raise InputError(f"{name} must have one number for each of {size} points, not shape {mass.shape}")
    if not np.all(np.isfinite(mass) & (mass > 0)):
        raise InputError(f"{name} must be finite and above 0 at every point")
    return mass


def _check_distance(distance: Distance) -> None:
    if not callable(distance) and distance not in METRICS:
        raise SpecError(f"distance must be one of {', '.join(METRICS)} or a function, not {distance!r}")


def _distances(distance: Distance, here: Floats, there: Floats) -> Floats:
    if isinstance(distance, str):
        return np.asarray(_scipy().spatial.distance.cdist(here, there, distance), dtype=np.float64)
    cost = np.asarray(distance(here, there), dtype=np.float64)
    if cost.shape != (len(here), len(there)):
        raise InputError(f"distance must give a matrix of shape {(len(here), len(there))}, not {cost.shape}")
    if not np.all(np.isfinite(cost) & (cost >= 0)):
        raise InputError("distance must give finite numbers of at least 0")
    return cost


def _scipy() -> Any:
    try:
        import scipy.optimize
        import scipy.sparse
        import scipy.spatial.distance
    except ImportError as reason:
        raise EnvironmentProblem("emd and mac need scipy: pip install 'shedjoin[quality]'") from reason
    return scipy
