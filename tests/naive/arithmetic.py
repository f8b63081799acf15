"""Arithmetic as compiled kernels do it, and their random numbers."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x)


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def power(x: float, y: float) -> float:
    if x == 0 and y < 0:
        return math.inf
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf


def times_log(b: float, m: float) -> float:
    """b * log(m) as `Multiplicative` means it."""
    if b == 0:
        return 0.0
    return -math.inf if m == 0 else b * math.log(m)


def added(numbers: Iterable[float]) -> float:
    """One after the other: `sum` corrects the rounding in newer Pythons, and kernels do not."""
    return functools.reduce(operator.add, numbers, 0.0)


def product(numbers: Iterable[float]) -> float:
    return functools.reduce(operator.mul, numbers, 1.0)


def at_least(k: int, mean: float) -> float:
    """P(Poisson(mean) >= k), from the k-th term on, so that small chances keep their order."""
    term = product([math.exp(-mean), *(mean / i for i in range(1, k + 1))])
    total = 0.0
    while total + term != total:
        total += term
        k += 1
        term *= mean / k
    return total


def combine(how: str, worths: list[float]) -> float:
    """The importance of an output."""
    match how:
        case "min":
            return min(worths)
        case "max":
            return max(worths)
        case "sum":
            return added(worths)
        case "product":
            return product(worths)
    return added(worths) / len(worths)


def mix(z: int) -> int:
    """splitmix64's finaliser."""
    z &= WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def hash_of_set(items: Iterable[int]) -> int:
    """What a sketch counts a whole set by."""
    return functools.reduce(lambda h, item: mix((h ^ item) + GOLDEN), sorted(items), 0)


class Generator:
    """xorshift64, started by splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = mix(seed + GOLDEN) or 1

    def draw(self) -> int:
        x = self.state
        x ^= (x << 13) & WORD
        x ^= x >> 7
        x ^= (x << 17) & WORD
        self.state = x
        return x

    def unit(self) -> float:
        """From 0 up to 1."""
        return (self.draw() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        return math.floor(self.unit() * n)
