"""When ours agrees with the paper's: one rule for all claims, and what makes a verdict of its parts.

The rule was written before the rows that it judges were made. No claim has a threshold of its own.

- A share printed in per cent agrees within `POINTS` percentage points.
- Any other number (a ratio, a rate, a gain such as "+100%", which is a ratio of 2) agrees within a factor of `FACTOR`.
- "The same", "constant", "linear", "very close", "marginal": within `POINTS` per cent.
- "Far above", "much better", "considerably": at least `FACTOR` times.
- A bound that the paper prints ("over 90%", "at most 10%") is held as printed.
- "Better", "more": the mean over the seeds is larger. "At least as good" allows a tie, `TIE` below.
- "Grows", "falls": the last mean against the first. An order is judged by each pair of neighbours.

A claim is judged at each place that it speaks of. It holds at all places, at some (it "holds in part"), or at none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from shedjoin.plots.summary import Mean

#: Percentage points, and per cent for "the same".
POINTS = 10.0
#: For all other numbers, either way; and for "far".
FACTOR = 1.25
#: How far below the other, in its own parts, still counts as a tie.
TIE = 0.01

HOLDS = "holds"
PARTLY = "holds in part"
FAILS = "does not hold"

#: A mean of seeds, or a number in which nothing is random.
Number = Mean | float


def _value(number: Number) -> float:
    return number.value if isinstance(number, Mean) else float(number)


def same_percentage(ours: Number, paper: float) -> bool:
    """Both in per cent.

    Examples
    --------
    >>> same_percentage(83.0, 75.3), same_percentage(86.0, 75.3)
    (True, False)
    """
    return abs(_value(ours) - paper) <= POINTS + 1e-9


def same_number(ours: Number, paper: float) -> bool:
    """A ratio, a rate, a count.

    Examples
    --------
    >>> same_number(2.5, 2.0), same_number(2.6, 2.0), same_number(1.6, 2.0), same_number(1.5, 2.0)
    (True, False, True, False)
    """
    value = _value(ours)
    return value > 0.0 and 1 / FACTOR - 1e-9 <= value / paper <= FACTOR + 1e-9


def same_gain(ours: Number, paper: float) -> bool:
    """Both in per cent of what is improved: +100% is a ratio of 2.

    Examples
    --------
    >>> same_gain(91.0, 100.0), same_gain(57.0, 100.0), same_gain(20.0, 0.0)
    (True, False, True)
    """
    return same_number(1.0 + _value(ours) / 100.0, 1.0 + paper / 100.0)


def alike(ours: Number, other: Number = 1.0) -> bool:
    """ "The same", "constant", "linear".

    Examples
    --------
    >>> alike(1.09), alike(0.89)
    (True, False)
    """
    one, two = _value(ours), _value(other)
    return abs(one - two) <= POINTS / 100.0 * abs(two) + 1e-9


def far_above(ours: Number, other: Number = 1.0) -> bool:
    """ "By far", "much better".

    Examples
    --------
    >>> far_above(1.25), far_above(1.2)
    (True, False)
    """
    return _value(ours) >= FACTOR * _value(other) - 1e-9


def above(ours: Number, other: Number) -> bool:
    """ "Better", "more"."""
    return _value(ours) > _value(other)


def at_least(ours: Number, other: Number) -> bool:
    """ "At least as good": a tie is allowed.

    Examples
    --------
    >>> at_least(0.995, 1.0), at_least(0.98, 1.0)
    (True, False)
    """
    return _value(ours) >= (1.0 - TIE) * _value(other)


def grows(values: Sequence[Number]) -> bool:
    """The last is above the first.

    Examples
    --------
    >>> grows([1.0, 3.0, 2.0]), grows([2.0, 3.0, 1.0])
    (True, False)
    """
    return above(values[-1], values[0])


def in_order(values: Mapping[str, Number]) -> dict[str, bool]:
    """ "First >= second >= ...": each pair of neighbours is a place.

    Examples
    --------
    >>> in_order({"DGL": 3.0, "PROB": 1.0, "RAND": 2.0})
    {'DGL >= PROB': True, 'PROB >= RAND': False}
    """
    return {f"{one} >= {two}": at_least(values[one], values[two]) for one, two in pairwise(values)}


def verdict(places: Mapping[str, bool]) -> str:
    """What a claim's places make together.

    Examples
    --------
    >>> verdict({"M 200": True, "M 400": True}), verdict({"M 200": True, "M 400": False}), verdict({"": False})
    ('holds', 'holds in part', 'does not hold')
    """
    if all(places.values()):
        return HOLDS
    return PARTLY if any(places.values()) else FAILS


def where_not(places: Mapping[str, bool], most: int = 4) -> str:
    """Where a claim that holds in part does not; the first few of many.

    Examples
    --------
    >>> where_not({"M 200": True, "M 400": False})
    'not at 1 of 2: M 400'
    """
    failing = [place for place, holds in places.items() if not holds]
    shown = "; ".join(failing[:most]) + (f"; and {len(failing) - most} more" if len(failing) > most else "")
    return f"not at {len(failing)} of {len(places)}: {shown}"
