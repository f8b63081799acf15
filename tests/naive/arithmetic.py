"""Arithmetic as compiled kernels do it, and their random numbers."""

from __future__ import annotations

import math

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


def mix(z: int) -> int:
    """splitmix64's finaliser."""
    z &= WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


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

    def below(self, n: int) -> int:
        return math.floor((self.draw() >> 11) * 2.0**-53 * n)
