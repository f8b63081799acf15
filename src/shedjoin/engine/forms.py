"""The forms of the loop over two streams, see docs/decisions/016-one-loop-in-forms.md.

`PAIR` knows every policy. `PLAIN` is the exact join by time of streams in order: policy stages are left out by type, and
the settings that it stands for are constants. Both work on the same state, so a join can change its form between two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from shedjoin.engine.codes import PLAIN
from shedjoin.engine.operation import Kernel, operation
from shedjoin.engine.state import PLAIN_STATE


def is_plain(how: NDArray[Any]) -> bool:
    """Whether the settings are those that PLAIN stands for."""
    return all(how[0][name] == value for name, value in PLAIN.items())


def in_plain(other: Kernel | None) -> Callable[[Kernel], Kernel]:
    """Make a kernel an operation that the form PLAIN has another kernel for."""
    return lambda kernel: operation(kernel, {PLAIN_STATE: other})


#: A stage that only policies, or rows out of order, need: PLAIN does nothing there.
unless_plain = in_plain(None)
