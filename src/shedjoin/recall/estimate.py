"""The estimate of recall from sums over a sample, with confidence limits. `shedjoin.recall.pairs` has the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shedjoin.errors import SpecError
from shedjoin.recall.gamma import gamma_quantile

#: The share of the error allowed by the level that is used; the rest is for what a model of rare events leaves out.
CAUTION = 0.5

_RESULTS = ("results", "missing", "missing_square", "missing_cube")
_IMPORTANCE = ("importance", "importance_missing", "importance_missing_square", "importance_missing_cube")
_RECENT = tuple(f"recent_{name}" for name in _RESULTS + _IMPORTANCE)
#: The names in `LiveRecall.sums`. The sums of several shards are added, and `combine` estimates the recall of the whole.
LIVE_COLUMNS = tuple(f"live_{name}" for name in (*_RESULTS, *_IMPORTANCE, *_RECENT, "shed", "unit", "late"))


@dataclass(frozen=True, slots=True)
class RecallEstimate:
    """The share of the results that was delivered, with confidence limits.

    Attributes
    ----------
    recall, low, high
        The share of results, with its confidence limits.
    importance, importance_low, importance_high
        The share of the summed importance of results, with its confidence limits.
    results, missing, missing_low, missing_high
        Results delivered (known) and missing (estimated). Decayed numbers in a recent estimate.
    shed, late
        Rows shed, and rows that arrived late. What late rows missed because it had expired is not part of the estimate.
    level
        The level of the limits, such as 0.95.
    """

    recall: float
    low: float
    high: float
    importance: float
    importance_low: float
    importance_high: float
    results: float
    missing: float
    missing_low: float
    missing_high: float
    shed: int
    late: int
    level: float


def combine(parts: Iterable[Mapping[str, float]], level: float = 0.95, *, recent: bool = False) -> RecallEstimate:
    """The estimate for a join from the sums of its shards.

    Examples
    --------
    >>> half = dict.fromkeys(LIVE_COLUMNS, 0.0) | {"live_results": 10.0, "live_importance": 10.0}
    >>> combine([half, half]).recall
    1.0
    """
    check_level(level)
    total = dict.fromkeys(LIVE_COLUMNS, 0.0)
    for part in parts:
        for name in LIVE_COLUMNS:
            total[name] += part[name]
    prefix = "live_recent_" if recent else "live_"
    results, missing, square, cube = (total[prefix + name] for name in _RESULTS)
    importance, importance_missing, importance_square, importance_cube = (total[prefix + name] for name in _IMPORTANCE)
    unit = total["live_unit"] / total["live_shed"] if total["live_shed"] else 0.0
    each = (importance + importance_missing) / (results + missing) if results + missing > 0.0 else 1.0
    low, high = _limits(missing, square, cube, unit, level)
    least, most = _limits(importance_missing, importance_square, importance_cube, unit * each, level)
    return RecallEstimate(
        recall=_share(results, missing),
        low=_share(results, high),
        high=_share(results, low),
        importance=_share(importance, importance_missing),
        importance_low=_share(importance, most),
        importance_high=_share(importance, least),
        results=results if recent else int(results),
        missing=missing,
        missing_low=low,
        missing_high=high,
        shed=int(total["live_shed"]),
        late=int(total["live_late"]),
        level=level,
    )


def _limits(missing: float, square: float, cube: float, unit: float, level: float) -> tuple[float, float]:
    """Fay and Feuer's limits of a sum of weighted rare events, from the sums of z, (1 - p) z^2 and (1 - p) z^3."""
    tail = CAUTION * (1.0 - level) / 2.0
    low = high = missing
    if square > 0.0 and missing > 0.0:
        low = square / missing * gamma_quantile(missing**2 / square, tail)
    more = max(cube / square if square > 0.0 else 0.0, unit)
    if more > 0.0:
        mean, variance = missing + more, square + more**2
        high = variance / mean * gamma_quantile(mean**2 / variance, 1.0 - tail)
    return low, max(high, missing)


def _share(delivered: float, missing: float) -> float:
    return delivered / (delivered + missing) if missing > 0.0 else 1.0


def check_level(level: object) -> None:
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise SpecError(f"level must be a number between 0 and 1, such as 0.95, not {level!r}")
