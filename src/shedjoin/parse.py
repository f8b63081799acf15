"""Parse durations, budgets, windows and policies: "10 minutes", "200k tuples", "512 MB", "prob".

Each function also takes the object that the text describes, and returns it unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeVar

from shedjoin.budget import Budget
from shedjoin.errors import SpecError
from shedjoin.plain_dict import make_policy
from shedjoin.policies import POLICIES, Policy
from shedjoin.window import UNLIMITED, RowWindow, TimeWindow, Window, check_interval

Made = TypeVar("Made")
#: Microseconds of each unit, the largest first. Months and years are left out: they have no fixed length.
UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SHORT = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "µs": "microsecond",  # the micro sign
    "μs": "microsecond",  # the Greek letter
}
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = r"(\d(?:[\d_]*\d)?(?:\.\d+)?)"
_PART = re.compile(rf"\s*{_AMOUNT}\s*([^\W\d_]+)\s*(?:,|and\b)?")
_TUPLES = re.compile(rf"{_AMOUNT}\s*([kmgt]?)\s*(?:tuples?|rows?)", re.IGNORECASE)
_BARE = re.compile(rf"{_AMOUNT}\s*[kmgt]?", re.IGNORECASE)
_BYTES = re.compile(rf"{_AMOUNT}\s*([kmgt]i?|)\s*(?:b|bytes?)", re.IGNORECASE)


def parse_duration(value: object, *, argument: str) -> int:
    """Microseconds of a duration: text, a timedelta, or a whole number in the unit of the streams' time.

    Examples
    --------
    >>> parse_duration("1 hour 30 minutes", argument="window")
    5400000000
    >>> parse_duration("250 ms", argument="lateness")
    250000
    >>> parse_duration("soon", argument="lateness")
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: lateness must be a duration such as '10 minutes', '1 hour 30 minutes' or '250 ms', not 'soon'
    """
    match value:
        case timedelta():
            made = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        case bool():
            raise _no_duration(argument, value)
        case int():
            made = value
        case str():
            made = _duration(value, argument)
        case _:
            raise _no_duration(argument, value)
    if not 0 <= made < 2**50:
        raise SpecError(f"{argument} must be at least 0 and below 2**50 microseconds (35 years), not {value!r}")
    return made


def format_duration(microseconds: int) -> str:
    """A duration in words, which `parse_duration` reads.

    Examples
    --------
    >>> format_duration(5_400_000_000)
    '1 hour 30 minutes'
    """
    parts, rest = [], microseconds
    for unit, size in UNITS.items():
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount} {unit}{'s' if amount != 1 else ''}")
    return " ".join(parts) or "0 seconds"


def parse_lateness(value: object, *, argument: str = "lateness") -> int:
    """A lateness from a duration; None and "unlimited": rows are never late and never expire.

    Examples
    --------
    >>> parse_lateness("5 seconds"), parse_lateness(None) == parse_lateness("unlimited") == UNLIMITED
    (5000000, True)
    """
    return UNLIMITED if value in (None, "unlimited", UNLIMITED) else parse_duration(value, argument=argument)


def format_lateness(lateness: int) -> str:
    """A lateness in words, which `parse_lateness` reads.

    Examples
    --------
    >>> format_lateness(5_000_000), format_lateness(UNLIMITED)
    ('5 seconds', 'unlimited')
    """
    return "unlimited" if lateness == UNLIMITED else format_duration(lateness)


def parse_budget(
    value: object,
    *,
    allocation: str | None = None,
    shares: Sequence[float] | None = None,
    argument: str = "budget",
) -> Budget | None:
    """A budget from text ("200k tuples", "1.5M tuples", "512 MB", "2 GiB"), a number (tuples), a table, or a `Budget`.

    Parameters
    ----------
    allocation, shares
        As in `Budget`. They override those of a `Budget`; a table must not contradict them.
    argument
        What to call the value in an error.

    Examples
    --------
    >>> parse_budget("200k tuples")
    Budget(tuples=200000, bytes=None, allocation='variable', shares=None)
    >>> parse_budget("2 GiB").bytes
    2147483648
    >>> parse_budget(500) == parse_budget("500 tuples")
    True
    >>> parse_budget("10")
    Traceback (most recent call last):
    ...
    shedjoin.errors.SpecError: budget must be an amount of tuples or bytes, such as '200k tuples', '512 MB' or '2 GiB', not '10',
    which has no unit. Perhaps '10 tuples'
    """
    if value is None:
        return None
    given: dict[str, Any] = {}
    if allocation is not None:
        given["allocation"] = allocation
    if shares is not None:
        given["shares"] = tuple(shares)
    match value:
        case Budget():
            return _named_errors(argument, lambda: replace(value, **given)) if given else value
        case int() if not isinstance(value, bool):
            return _named_errors(argument, lambda: Budget(tuples=value, **given))
        case str():
            amount = _amount(value, argument)
            return _named_errors(argument, lambda: Budget(**amount, **given))
        case Mapping():
            return _budget_table(value, given, argument)
    raise _no_budget(argument, value)


def format_budget(budget: Budget) -> str:
    """The amount of a budget in words, which `parse_budget` reads.

    Examples
    --------
    >>> format_budget(Budget(tuples=200_000)), format_budget(Budget(bytes=2**31))
    ('200k tuples', '2 GiB')
    """
    amount = budget.total
    scales = _DECIMAL if budget.unit == "tuples" else _DECIMAL | _BINARY
    for name, size in sorted(scales.items(), key=lambda item: -item[1]):
        if name and amount % size == 0:
            prefix = {"k": "k", "ki": "Ki"}.get(name, name.capitalize())
            return f"{amount // size}{prefix} tuples" if budget.unit == "tuples" else f"{amount // size} {prefix}B"
    return f"{amount} {budget.unit}"


def format_age(seconds: float) -> str:
    """How long ago something was.

    Examples
    --------
    >>> format_age(3.2), format_age(300), format_age(86_400)
    ('3 s ago', '5 minutes ago', '24 hours ago')
    """
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} minutes ago" if seconds < 7200 else f"{seconds / 3600:.0f} hours ago"


def format_bytes(count: float) -> str:
    """Bytes, rounded to three digits.

    Examples
    --------
    >>> format_bytes(900), format_bytes(1_536_000)
    ('900 bytes', '1.54 MB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def parse_window(value: object, *, argument: str = "window") -> Window | tuple[Window, Window]:
    """A window from a duration ("10 minutes"), a number of rows ("1000 rows"), a table, an object; or a pair of such.

    Examples
    --------
    >>> parse_window("10 minutes")
    TimeWindow(length=600000000)
    >>> parse_window(("1 hour", "50k rows"))
    (TimeWindow(length=3600000000), RowWindow(rows=50000))
    """
    left, right = parse_windows(value, 2, argument=argument)
    return left if left == right else (left, right)


def parse_windows(value: object, streams: int, *, argument: str = "window") -> tuple[Window, ...]:
    """The window of each of some streams, from one for all, or one each.

    Examples
    --------
    >>> parse_windows("10 s", 3)
    (TimeWindow(length=10000000), TimeWindow(length=10000000), TimeWindow(length=10000000))
    """
    if not isinstance(value, tuple | list):
        return (_one_window(value, argument),) * streams
    if len(value) != streams:
        each = "a pair, for the left and the right" if streams == 2 else f"one for each of {streams} streams"
        raise SpecError(f"{argument} must be one window or {each}, not {value!r}")
    return tuple(_one_window(one, f"{argument}[{place}]") for place, one in enumerate(value))


def parse_interval(value: object, *, argument: str = "between") -> tuple[int, int]:
    """The ends of an interval: two durations, each of which may have a sign.

    Examples
    --------
    >>> parse_interval(("-5 seconds", "10 minutes"))
    (-5000000, 600000000)
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SpecError(f"{argument} must be a pair (low, high), such as ('0 seconds', '10 minutes'), not {value!r}")
    low, high = (_signed(one, f"{argument}[{place}]") for place, one in enumerate(value))
    if low > high:
        raise SpecError(f"{argument} must have low <= high, not {tuple(value)!r}: no row would join")
    return check_interval(argument, (low, high))


def _signed(value: object, argument: str) -> int:
    """A duration with a sign."""
    if isinstance(value, str) and (sign := value.strip()[:1]) in ("-", "+"):
        if not _PART.match(value.strip()[1:]):
            raise _no_duration(argument, value)
        return parse_duration(value.strip()[1:], argument=argument) * (-1 if sign == "-" else 1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, timedelta) and value < timedelta(0):
        return -parse_duration(-value, argument=argument)
    return parse_duration(value, argument=argument)


def format_interval(low: int, high: int) -> str:
    """An interval in words.

    Examples
    --------
    >>> format_interval(-5_000_000, 600_000_000)
    'from -5 seconds to 10 minutes'
    """
    ends = (f"-{format_duration(-end)}" if end < 0 else format_duration(end) for end in (low, high))
    return "from {} to {}".format(*ends)


def format_window(window: Window) -> str:
    """A window in words, which `parse_window` reads.

    Examples
    --------
    >>> format_window(TimeWindow(600_000_000)), format_window(RowWindow(1))
    ('10 minutes', '1 rows')
    """
    return format_duration(window.length) if isinstance(window, TimeWindow) else f"{window.rows} rows"


def parse_policy(value: object, *, argument: str = "policy") -> Policy | None:
    """A policy from its name, from a table with its name and settings, or a policy as it is; None leaves it to the spec.

    A half-life may be a duration in words.

    Examples
    --------
    >>> parse_policy("PROB")
    Prob(estimator=History())
    >>> parse_policy({"name": "prob", "estimator": {"name": "decayed", "half_life": "10 minutes"}})
    Prob(estimator=Decayed(half_life=600000000.0))
    """
    if value is None or isinstance(value, Policy):
        return value
    if isinstance(value, str):
        return _policy(value, {}, argument)
    if isinstance(value, Mapping):
        return _policy(value.get("name"), {key: one for key, one in value.items() if key != "name"}, argument)
    raise SpecError(
        f"{argument} must be a policy, its name, or a table with a name and its settings, not {value!r}: "
        f"the names are {', '.join(POLICIES)}"
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that may have been meant.

    Examples
    --------
    >>> nearest("windw", ["on", "window"]), nearest("speed", ["on", "window"])
    ('window', None)
    """
    return next(iter(get_close_matches(name, known, 1)), None)


def _no_duration(argument: str, value: object) -> SpecError:
    return SpecError(
        f"{argument} must be a duration such as '10 minutes', '1 hour 30 minutes' or '250 ms', not {value!r}"
    )


def _duration(text: str, argument: str) -> int:
    total, place = Fraction(0), 0
    while place < len(text.rstrip()):
        part = _PART.match(text, place)
        if part is None:
            raise _no_duration(argument, text)
        amount, word = part.groups()
        total += Fraction(amount.replace("_", "")) * _unit(word, text, argument)
        place = part.end()
    if place == 0:
        raise _no_duration(argument, text)
    if total.denominator != 1:
        raise SpecError(f"{argument} must be a whole number of microseconds, not {text!r}")
    return int(total)


def _unit(word: str, text: str, argument: str) -> int:
    unit = _SHORT.get(word) or _SHORT.get(word.lower(), word.lower())
    for name in (unit, unit.removesuffix("s"), _SHORT.get(unit.removesuffix("s"), "")):
        if name in UNITS:
            return UNITS[name]
    why = ": months and years have no fixed length" if unit.removesuffix("s") in ("month", "year", "mo", "y") else ""
    raise SpecError(f"{argument} has no unit {word!r} in {text!r}; there are {', '.join(UNITS)}{why}")


def _no_budget(argument: str, value: object) -> SpecError:
    return SpecError(
        f"{argument} must be an amount of tuples or bytes, such as '200k tuples', '512 MB' or '2 GiB', not {value!r}"
    )


def _amount(text: str, argument: str) -> dict[str, Any]:
    for unit, pattern in (("tuples", _TUPLES), ("bytes", _BYTES)):
        found = pattern.fullmatch(text.strip())
        if found is not None:
            return {unit: _whole(found[1], found[2], text, argument)}
    if _BARE.fullmatch(text.strip()):
        raise SpecError(f"{_no_budget(argument, text)}, which has no unit. Perhaps '{text.strip()} tuples'")
    raise _no_budget(argument, text)


def _whole(amount: str, prefix: str, text: str, argument: str) -> int:
    number = Fraction(amount.replace("_", "")) * {**_DECIMAL, **_BINARY}[prefix.lower()]
    if number.denominator != 1:
        raise SpecError(f"{argument} must be a whole number, not {text!r}")
    return int(number)


def _budget_table(data: Mapping[Any, Any], given: dict[str, Any], argument: str) -> Budget:
    known = ("tuples", "bytes", "allocation", "shares")
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise SpecError(f"{argument} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    made = dict(data)
    if isinstance(made.get("shares"), list):
        made["shares"] = tuple(made["shares"])
    for name, value in given.items():
        if made.setdefault(name, value) != value:
            raise SpecError(f"{argument} has {name}={made[name]!r}, but {name}={value!r} is also given: give only one")
    return _named_errors(argument, lambda: Budget(**made))


def _named_errors(argument: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except SpecError as reason:
        raise SpecError(f"{argument}: {reason}") from None


def _one_window(value: object, argument: str) -> Window:
    if isinstance(value, TimeWindow | RowWindow):
        return value
    if isinstance(value, Mapping):
        if len(value) != 1 or next(iter(value)) not in ("time", "row"):
            raise SpecError(f"{argument} must be {{'time': length}} or {{'row': rows}}, not {dict(value)!r}")
        kind, size = next(iter(value.items()))
        if kind == "row":
            return _named_errors(argument, lambda: RowWindow(size))
        return _time_window(size, argument)
    if isinstance(value, str):
        found = _TUPLES.fullmatch(value.strip())
        if found is not None:
            rows = _whole(found[1], found[2], value, argument)
            return _named_errors(argument, lambda: RowWindow(rows))
    return _time_window(value, argument)


def _time_window(value: object, argument: str) -> TimeWindow:
    negative = (isinstance(value, int) and value < 0) or (isinstance(value, timedelta) and value < timedelta(0))
    length = 0 if negative else parse_duration(value, argument=argument)
    if length < 1:
        raise SpecError(f"{argument} must be longer than 0, not {value!r}: such a window holds no tuple")
    return TimeWindow(length)


def _policy(name: object, settings: dict[str, Any], argument: str) -> Policy:
    if isinstance(name, str):
        name = name.lower()
    estimator = settings.get("estimator")
    if isinstance(estimator, Mapping) and isinstance(estimator.get("half_life"), str):
        half_life = parse_duration(estimator["half_life"], argument=f"{argument}.estimator.half_life")
        settings["estimator"] = {**estimator, "half_life": half_life}
    try:
        return make_policy({"name": name, **settings})
    except SpecError as reason:
        text = str(reason)
        raise SpecError(text if text.startswith(argument) else f"{argument}: {text}") from None
