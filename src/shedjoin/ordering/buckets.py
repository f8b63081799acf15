"""Hash buckets for windows of different sizes (golab2003, section 6.5)."""

from __future__ import annotations

from collections.abc import Sequence

from shedjoin.errors import SpecError


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
