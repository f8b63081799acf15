"""Join orders in words: names of streams become numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shedjoin.engine.plan import Orders
from shedjoin.errors import SpecError


def orders_of(order: Sequence[str] | Mapping[str, Sequence[str]], names: Sequence[str]) -> Orders:
    """Orders by number: of one global order (new tuples come first), or as given for each origin."""
    if isinstance(order, Mapping):
        if sorted(order) != sorted(names):
            raise SpecError(f"order must have an order for each of {', '.join(names)}, not for {', '.join(order)}")
        return tuple(_numbers(order[name], names) for name in names)
    numbers = _numbers(order, names)
    return tuple((origin, *(stream for stream in numbers if stream != origin)) for origin in range(len(names)))


def _numbers(order: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    if not isinstance(order, list | tuple) or sorted(map(str, order)) != sorted(names):
        raise SpecError(f"order must name each of {', '.join(names)} once, not {order!r}")
    return tuple(list(names).index(name) for name in order)
