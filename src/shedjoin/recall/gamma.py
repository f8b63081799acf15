"""Quantiles of the gamma distribution, without scipy."""

from __future__ import annotations

import math
from statistics import NormalDist

#: From this shape on, the approximation of Wilson and Hilferty (the cube of a normal) has six correct digits.
LARGE = 1_000.0
TINY = 1e-300


def gamma_quantile(shape: float, probability: float) -> float:
    """The quantile of the gamma distribution with this shape and scale 1.

    Examples
    --------
    >>> round(gamma_quantile(1.0, 0.975), 6), round(gamma_quantile(10.0, 0.025), 6)
    (3.688879, 4.795389)
    """
    if shape <= 0.0:
        return 0.0
    z = NormalDist().inv_cdf(probability)
    root = 1.0 - 1.0 / (9.0 * shape) + z / (3.0 * math.sqrt(shape))
    if shape >= LARGE:
        return shape * root**3
    # Bisection on a logarithmic scale: quantiles of small shapes range over many orders of magnitude.
    guess = math.log(shape * root**3) if root > 0.1 else 0.0
    low, high = guess - 1.0, guess + 1.0
    while low > -690.0 and gamma_cdf(shape, math.exp(low)) > probability:
        low -= 2.0 * (high - low)
    while gamma_cdf(shape, math.exp(high)) < probability:
        high += high - low
    for _ in range(45):
        middle = (low + high) / 2.0
        if gamma_cdf(shape, math.exp(middle)) < probability:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2.0)


def gamma_cdf(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function, which is the distribution function."""
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape)) if x > 0.0 else 0.0
    return _series(shape, x, front) if x < shape + 1.0 else 1.0 - _fraction(shape, x, front)


def _series(shape: float, x: float, front: float) -> float:
    term = total = 1.0 / shape
    step = shape
    while term > total * 1e-16:
        step += 1.0
        term *= x / step
        total += term
    return front * total


def _fraction(shape: float, x: float, front: float) -> float:
    """The upper tail, by Lentz's continued fraction."""
    b = x + 1.0 - shape
    c, d = 1.0 / TINY, 1.0 / b
    value, n, change = d, 0, 0.0
    while abs(change - 1.0) > 1e-15:
        n += 1
        a = -n * (n - shape)
        b += 2.0
        d = 1.0 / (a * d + b or TINY)
        c = b + a / c or TINY
        change = d * c
        value *= change
    return front * value
