"""A law is checked for all examples of a strategy, and the first that breaks it is shown."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from strategies.combinations import share

T = TypeVar("T")


def for_all(strategy: st.SearchStrategy[T], check: Callable[[T], None], *, label: object, examples: int) -> None:
    """Hold `check` against examples that depend on nothing but the label, or against a `share` of them.

    Hypothesis' own `derandomize` seeds by the source of the test: all parameters of a test would get the same inputs.
    """
    profile = settings(
        max_examples=share(examples),
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )

    @profile
    @seed(zlib.crc32(str(label).encode()))
    @given(strategy)
    def law(example: T) -> None:
        check(example)

    law()
