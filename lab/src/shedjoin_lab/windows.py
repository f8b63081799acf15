"""Windows as golab2003 and gedik2007 have them: closed, a tuple of age T still joins."""

from __future__ import annotations

from shedjoin.window import TimeWindow


def closed(length: int) -> TimeWindow:
    """The window of all ages from 0 to `length`; times are whole numbers, so that it is the half-open one of one more.

    Examples
    --------
    >>> closed(400)
    TimeWindow(length=401)
    """
    return TimeWindow(length + 1)
