"""Hash buckets for windows of different sizes (golab2003, section 6.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from shedjoin.errors import SpecError
from shedjoin.join_order import Model, best_orders


def buckets_by_size(sizes: Sequence[float], total: int, *, least: int = 1) -> tuple[int, ...]:
    """Share out `total` buckets in proportion to the windows' sizes, at least `least` each.

    Examples
    --------
    >>> buckets_by_size([100, 100, 100, 5000], 48, least=5)
    (5, 5, 5, 33)
    """
    many = len(sizes)
    if least < 1 or total < least * many:
        raise SpecError(f"total must be at least {max(least, 1)} for each of {many} windows, not {total}")
    if many == 0 or min(sizes) < 0:
        raise SpecError(f"sizes must be one number of at least 0 for each window, not {list(sizes)}")
    return _shared_out(sizes, total, least)


def buckets_by_cost(model: Model, total: int, *, least: int = 1) -> tuple[int, ...]:
    """Share out `total` buckets so that the best order for them costs least; ours, not the paper's.

    For a given order the cost is a sum of a_j / b_j over the windows, which is least when b_j goes with the square root of
    a_j. Order and buckets are improved in turn.

    Examples
    --------
    >>> from shedjoin.join_order import StreamStats
    >>> slow, fast = StreamStats(1, 100, 50), StreamStats(50, 100, 50)
    >>> buckets_by_cost(Model.of([slow, slow, slow, fast]), 48)
    (6, 9, 12, 21)
    """
    many = model.many
    if least < 1 or total < least * many:
        raise SpecError(f"total must be at least {max(least, 1)} for each of {many} windows, not {total}")
    buckets = (1,) * many
    for _ in range(4):
        hashed = _with_buckets(model, buckets)
        orders = best_orders(hashed, general=model.tau > 0).orders
        costs = [0.0] * many
        for origin, order in enumerate(orders):
            for stream, cost in hashed.cost_by_window(origin, order).items():
                costs[stream] += cost * buckets[stream]
        found = _shared_out([math.sqrt(cost) for cost in costs], total, least)
        if found == buckets:
            break
        buckets = found
    return buckets


def _with_buckets(model: Model, buckets: Sequence[int]) -> Model:
    streams = tuple(replace(stream, buckets=float(b)) for stream, b in zip(model.streams, buckets, strict=True))
    return replace(model, streams=streams)


def _shared_out(sizes: Sequence[float], total: int, least: int) -> tuple[int, ...]:
    """In proportion to the sizes, at least `least` each, and not one left over."""
    many = len(sizes)
    # Windows whose part is less than the least get the least; the others share what is left, again and again.
    given: dict[int, int] = {}
    while True:
        open_ones = [window for window in range(many) if window not in given]
        left, all_sizes = total - sum(given.values()), sum(sizes[window] for window in open_ones)
        poor = [w for w in open_ones if all_sizes == 0 or left * sizes[w] / all_sizes < least]
        if not poor or len(poor) == len(open_ones):
            break
        given |= dict.fromkeys(poor, least)
    exact = {w: left * (sizes[w] / all_sizes if all_sizes else 1 / len(open_ones)) for w in open_ones}
    given |= {window: max(int(part), least) for window, part in exact.items()}
    rest = total - sum(given.values())
    for window in sorted(open_ones, key=lambda w: (int(exact[w]) - exact[w], w))[:rest]:
        given[window] += 1
    return tuple(given[window] for window in range(many))
