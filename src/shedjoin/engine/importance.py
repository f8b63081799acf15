"""The importance of a result from that of its rows."""

from __future__ import annotations

from shedjoin.engine.jit import inlined


@inlined
def output_importance(code, a, b):
    """What a result of two rows matters, by the code of `codes.IMPORTANCE`."""
    if code == 0:
        return min(a, b)
    if code == 1:
        return max(a, b)
    if code == 2:
        return a + b
    if code == 3:
        return a * b
    return (a + b) / 2.0
