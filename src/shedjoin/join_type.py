"""Join types: which rows a join gives beside pairs, by Spark's names."""

from __future__ import annotations

from dataclasses import dataclass

from shedjoin.errors import SpecError

#: What a join gives: pairs of rows, a row of the first stream at its first partner, or only rows without one.
PAIRS, FIRSTS, UNMATCHED = range(3)


@dataclass(frozen=True, slots=True)
class JoinType:
    """What a type gives.

    Attributes
    ----------
    name
        As `how` calls it.
    gives
        `PAIRS`; `FIRSTS`: a row of the first stream at its first partner; or `UNMATCHED`: nothing but rows without one.
    preserved
        The streams whose rows without a partner are given.
    judged
        The streams of which it matters whether a row has a partner.
    """

    name: str
    gives: int = PAIRS
    preserved: tuple[int, ...] = ()
    judged: tuple[int, ...] = ()


#: All types.
TYPES = {
    one.name: one
    for one in (
        JoinType("inner"),
        JoinType("left_semi", FIRSTS, (), (0,)),
        JoinType("left_anti", UNMATCHED, (0,), (0,)),
        JoinType("left_outer", PAIRS, (0,), (0,)),
        JoinType("right_outer", PAIRS, (1,), (1,)),
        JoinType("full_outer", PAIRS, (0, 1), (0, 1)),
    )
}
#: What Spark calls them as well, without underscores.
_ALIASES = {
    "semi": "left_semi",
    "anti": "left_anti",
    "left": "left_outer",
    "right": "right_outer",
    "outer": "full_outer",
    "full": "full_outer",
} | {name.replace("_", ""): name for name in TYPES}


def sure_recall(alone: int, unknown: int) -> float:
    """At least this share of the rows that a join gives alone was delivered, if no row was late.

    An unknown row may belong to them or not. So the exact join has at most all of them besides: this is no estimate.

    Parameters
    ----------
    alone
        Rows delivered alone: those of a semi or an anti join, and unmatched rows of an outer one.
    unknown
        Rows that left, or were shed, before that was decided.

    Examples
    --------
    >>> sure_recall(90, 10), sure_recall(0, 0)
    (0.9, 1.0)
    """
    return alone / (alone + unknown) if unknown else 1.0


def check_how(argument: str, how: object) -> str:
    """The name of a join type, by whichever of Spark's names it is given."""
    name = _ALIASES.get(how.lower().replace("_", "")) if isinstance(how, str) else None
    if name is None:
        raise SpecError(f"{argument} must be one of {', '.join(TYPES)}, or what Spark calls these, not {how!r}")
    return name


def check_matches(argument: str, matches: object, streams: int) -> tuple[int | None, ...] | None:
    """After how many partners a row leaves, for each stream; None where there is no limit."""
    if matches is None:
        return None
    fits = isinstance(matches, list | tuple) and len(matches) == streams
    if not fits or not all(one is None or (type(one) is int and 1 <= one < 2**31) for one in matches):  # type: ignore[attr-defined]
        raise SpecError(
            f"{argument} must have one number from 1 on, or None (in a job file 0), for each of {streams} streams, "
            f"not {matches!r}"
        )
    return tuple(matches)  # type: ignore[arg-type]
