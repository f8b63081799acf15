"""EMD and MAC against enumeration of all transports and all edge covers."""

from __future__ import annotations

import builtins
from itertools import combinations, permutations, product
from math import inf, isclose
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shedjoin.errors import EnvironmentProblem, InputError, SpecError
from shedjoin.quality import distances, emd, mac

POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4)


def length(a: tuple[int, int], b: tuple[int, int]) -> float:
    return float(np.hypot(a[0] - b[0], a[1] - b[1]))


def table(points: list[tuple[int, int]]) -> np.ndarray:
    return np.array(points, dtype=float).reshape(-1, 2)


def slow_emd(x: list[tuple[int, int]], y: list[tuple[int, int]]) -> float:
    return min(sum(map(length, x, chosen)) for chosen in permutations(y, len(x)))


def slow_mac(x: list[tuple[int, int]], y: list[tuple[int, int]], penalty: float) -> float:
    edges = list(product(range(len(x)), range(len(y))))
    best = inf
    for count in range(len(edges) + 1):
        for cover in combinations(edges, count):
            if len({a for a, _ in cover}) == len(x) and len({b for _, b in cover}) == len(y):
                extra = 2 * len(cover) - len(x) - len(y)
                best = min(best, sum(length(x[a], y[b]) for a, b in cover) + penalty * extra)
    return best


@settings(deadline=None)
@given(POINTS, POINTS)
def test_emd_is_the_least_work(x: list[tuple[int, int]], y: list[tuple[int, int]]) -> None:
    x, y = sorted((x, y), key=len)
    assert isclose(emd(table(x), table(y)), slow_emd(x, y), abs_tol=1e-9)


@settings(deadline=None)
@given(POINTS, POINTS)
def test_emd_with_a_function_for_distance_agrees(x: list[tuple[int, int]], y: list[tuple[int, int]]) -> None:
    x, y = sorted((x, y), key=len)

    def taxi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.abs(a[:, None] - b[None]).sum(axis=2)

    assert isclose(emd(table(x), table(y), distance=taxi), emd(table(x), table(y), distance="cityblock"), abs_tol=1e-9)


@settings(deadline=None)
@given(POINTS, st.data())
def test_a_subset_needs_no_work(y: list[tuple[int, int]], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y)))
    x = [point for point, kept in zip(y, keep, strict=True) if kept]
    assert emd(table(x), table(y)) == 0.0


WEIGHTED = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=5)


@settings(max_examples=50, deadline=None)
@given(WEIGHTED, WEIGHTED)
def test_masses_are_multiplicities_and_both_solvers_agree(
    one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    x, y = sorted((one, two), key=lambda points: sum(mass for _, mass in points))
    (at_x, mass_x), (at_y, mass_y) = (np.array(points, dtype=float).T for points in (x, y))
    expanded = emd(np.repeat(at_x, mass_x.astype(int)), np.repeat(at_y, mass_y.astype(int)))
    assert isclose(emd(at_x, at_y, x_mass=mass_x, y_mass=mass_y), expanded, abs_tol=1e-9)
    cost = np.abs(at_x[:, None] - at_y[None])
    assert isclose(distances._linear_program(cost, mass_x, mass_y), expanded, abs_tol=1e-7)
    halved = emd(at_x, at_y, x_mass=mass_x / 2, y_mass=mass_y / 2)
    assert isclose(halved, expanded / 2, abs_tol=1e-7)


def test_one_dimensional_emd_is_the_area_between_the_distributions() -> None:
    from scipy.stats import wasserstein_distance

    draw = np.random.default_rng(5)
    x, y = draw.normal(size=200), draw.normal(1, 2, size=200)
    assert isclose(emd(x, y), 200 * wasserstein_distance(x, y), rel_tol=1e-9)


@settings(max_examples=60, deadline=None)
@given(POINTS.filter(lambda points: len(points) <= 3), POINTS, st.sampled_from((0.001, 0.5, 1.0, 7.0)))
def test_mac_is_the_cheapest_edge_cover(x: list[tuple[int, int]], y: list[tuple[int, int]], penalty: float) -> None:
    expected = 0.0 if not x and not y else slow_mac(x, y, penalty)
    assert isclose(mac(table(x), table(y), penalty=penalty), expected, abs_tol=1e-9)
    assert isclose(mac(table(y), table(x), penalty=penalty), expected, abs_tol=1e-9)


@settings(deadline=None)
@given(POINTS, POINTS)
def test_mac_is_zero_for_equal_multisets_alone(x: list[tuple[int, int]], y: list[tuple[int, int]]) -> None:
    assert (mac(table(x), table(y)) < 1e-9) == (sorted(x) == sorted(y))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: emd([1, 2, 3], [1]), InputError, "at most the mass of y"),
        (lambda: emd([1], [1], x_mass=[-1]), InputError, "x_mass"),
        (lambda: emd([1], [1, 2], y_mass=[1]), InputError, "y_mass"),
        (lambda: emd([1.0, np.nan], [1, 2]), InputError, "finite"),
        (lambda: emd(["a"], [1, 2]), InputError, "x must be points"),
        (lambda: emd([[1, 2]], [[1]]), InputError, "as many"),
        (lambda: emd([[[1]]], [1]), InputError, "shape"),
        (lambda: emd([1], [1], distance="miles"), SpecError, "euclidean"),
        (lambda: mac([1], [1], distance="miles"), SpecError, "euclidean"),
        (lambda: mac([1], [1], penalty=0), SpecError, "penalty"),
        (lambda: emd([1], [2], distance=lambda a, b: a), InputError, None),
        (lambda: emd([1], [2, 3], distance=lambda a, b: a), InputError, "matrix of shape"),
        (lambda: emd([1], [2], distance=lambda a, b: a @ b.T * -1.0), InputError, "at least 0"),
    ],
)
def test_bad_points_get_a_clear_word(call: Any, error: type[Exception], words: str | None) -> None:
    if words is None:  # one point each: any single number is a matrix of the right shape
        assert call() == 1.0
        return
    with pytest.raises(error, match=words):
        call()


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentProblem, match=r"shedjoin\[quality\]"):
        emd([1], [2])
