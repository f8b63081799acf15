"""Set-theoretic measures of das2003 section 2.2 between two multisets of results.

A multiset of results is a pair of int64 arrays: the left and the right row numbers, as `run.pairs()` and
`out.left, out.right` give them. Order is of no account; a pair that occurs twice counts twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import InputError, SpecError

Pairs = tuple[ArrayLike, ArrayLike]
COSINES = ("printed", "usual")


def symmetric_difference(exact: Pairs, approximate: Pairs) -> int:
    """Results in one multiset and not in the other, |(X - Y) u (Y - X)|.

    Examples
    --------
    >>> symmetric_difference(([1, 1, 2], [5, 5, 6]), ([1, 3], [5, 7]))
    3
    """
    return _sizes(exact, approximate).different


def max_subset(exact: Pairs, approximate: Pairs) -> int:
    """How many results are missing: the symmetric difference when the answer is part of the exact one.

    Examples
    --------
    >>> max_subset(([1, 2, 3], [1, 2, 3]), ([2], [2]))
    2
    """
    sizes = _sizes(exact, approximate)
    extra = sizes.approximate - sizes.common
    if extra:
        raise InputError(
            f"approximate must be part of exact, but has {extra} results that exact has not: "
            "for such answers use symmetric_difference"
        )
    return sizes.exact - sizes.common


def matching(exact: Pairs, approximate: Pairs) -> int:
    """The matching coefficient |X n Y|."""
    return _sizes(exact, approximate).common


def dice(exact: Pairs, approximate: Pairs) -> float:
    """The Dice coefficient 2 |X n Y| / (|X| + |Y|); 1 for two empty answers.

    Examples
    --------
    >>> dice(([1, 2, 3], [1, 2, 3]), ([2], [2]))
    0.5
    """
    return _sizes(exact, approximate).dice()


def jaccard(exact: Pairs, approximate: Pairs) -> float:
    """The Jaccard coefficient |X n Y| / |X u Y|; 1 for two empty answers."""
    return _sizes(exact, approximate).jaccard()


def cosine(exact: Pairs, approximate: Pairs, which: str = "printed") -> float:
    """The cosine coefficient.

    Parameters
    ----------
    exact, approximate
        The two multisets of results.
    which
        ``"printed"``: |X n Y| / sqrt(|X| + |Y|), as das2003 has it; it grows with the answers and is not bounded by 1.
        ``"usual"``: |X n Y| / sqrt(|X| |Y|), as the literature that das2003 cites has it.

    Examples
    --------
    >>> same = ([1, 2], [1, 2])
    >>> cosine(same, same), cosine(same, same, which="usual")
    (1.0, 1.0)
    >>> cosine((range(8), range(8)), (range(8), range(8)))
    2.0
    """
    if which not in COSINES:
        raise SpecError(f"which must be one of {', '.join(COSINES)}, not {which!r}")
    sizes = _sizes(exact, approximate)
    return sizes.cosine_printed() if which == "printed" else sizes.cosine_usual()


def overlap(exact: Pairs, approximate: Pairs) -> float:
    """The overlap coefficient |X n Y| / min(|X|, |Y|): 1 for every subset, the empty one included."""
    return _sizes(exact, approximate).overlap()


@dataclass(frozen=True, slots=True)
class Comparison:
    """An answer beside the exact one, by every measure that needs no distance between results.

    `incomplete_left` and `incomplete_right` add up to the Archive-metric `arm`: rows that did not meet all their partners.
    """

    exact: int
    approximate: int
    matching: int
    missing: int
    extra: int
    symmetric_difference: int
    recall: float
    dice: float
    jaccard: float
    cosine: float
    cosine_usual: float
    overlap: float
    incomplete_left: int
    incomplete_right: int

    @property
    def arm(self) -> int:
        return self.incomplete_left + self.incomplete_right

    def to_dict(self) -> dict[str, Any]:
        """One flat row."""
        return {**asdict(self), "arm": self.arm}


def compare(exact: Pairs, approximate: Pairs) -> Comparison:
    """Every measure at once, from the results.

    Examples
    --------
    >>> exact = ([0, 1, 1, 2, 2, 3, 3], [2, 2, 3, 2, 3, 1, 4])  # das2003, Figure 2: R = 1, 1, 1, 3, 2 and S = 2, 3, 1, 1, 3
    >>> optimum = ([0, 2, 2, 3, 3], [2, 2, 3, 1, 4])
    >>> quality = compare(exact, optimum)
    >>> quality.missing, quality.arm, round(quality.recall, 3)
    (2, 3, 0.714)
    """
    distinct = _distinct(exact, approximate)
    lost = distinct.exact > distinct.approximate
    incomplete = tuple(int(np.unique(side[lost]).size) for side in (distinct.left, distinct.right))
    return comparison(distinct.sizes(), (incomplete[0], incomplete[1]))


@dataclass(frozen=True, slots=True)
class Sizes:
    """All that the set-theoretic measures look at."""

    exact: int
    approximate: int
    common: int

    @property
    def different(self) -> int:
        return self.exact + self.approximate - 2 * self.common

    def recall(self) -> float:
        return self.common / self.exact if self.exact else 1.0

    def dice(self) -> float:
        total = self.exact + self.approximate
        return 2 * self.common / total if total else 1.0

    def jaccard(self) -> float:
        union = self.exact + self.approximate - self.common
        return self.common / union if union else 1.0

    def cosine_printed(self) -> float:
        total = self.exact + self.approximate
        return self.common / sqrt(total) if total else 0.0  # what sqrt(n / 2), its value for equal answers, tends to

    def cosine_usual(self) -> float:
        product = self.exact * self.approximate
        return self.common / sqrt(product) if product else float(self.exact == self.approximate)

    def overlap(self) -> float:
        least = min(self.exact, self.approximate)
        return self.common / least if least else 1.0


def comparison(sizes: Sizes, incomplete: tuple[int, int]) -> Comparison:
    """Every measure, from what is known of the two answers."""
    return Comparison(
        exact=sizes.exact,
        approximate=sizes.approximate,
        matching=sizes.common,
        missing=sizes.exact - sizes.common,
        extra=sizes.approximate - sizes.common,
        symmetric_difference=sizes.different,
        recall=sizes.recall(),
        dice=sizes.dice(),
        jaccard=sizes.jaccard(),
        cosine=sizes.cosine_printed(),
        cosine_usual=sizes.cosine_usual(),
        overlap=sizes.overlap(),
        incomplete_left=incomplete[0],
        incomplete_right=incomplete[1],
    )


@dataclass(frozen=True, slots=True)
class _Distinct:
    """Each distinct result once, and how often either multiset has it."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    exact: NDArray[np.int64]
    approximate: NDArray[np.int64]

    def sizes(self) -> Sizes:
        common = np.minimum(self.exact, self.approximate)
        return Sizes(int(self.exact.sum()), int(self.approximate.sum()), int(common.sum()))


def _sizes(exact: Pairs, approximate: Pairs) -> Sizes:
    return _distinct(exact, approximate).sizes()


def _distinct(exact: Pairs, approximate: Pairs) -> _Distinct:
    left_exact, right_exact = checked_pairs("exact", exact)
    left_other, right_other = checked_pairs("approximate", approximate)
    left = np.concatenate((left_exact, left_other))
    right = np.concatenate((right_exact, right_other))
    is_exact = np.arange(left.size) < left_exact.size
    order = np.lexsort((right, left))
    left, right, is_exact = left[order], right[order], is_exact[order]
    first = np.ones(left.size, dtype=np.bool_)
    first[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    group = np.cumsum(first) - 1
    groups = int(first.sum())
    return _Distinct(
        left[first],
        right[first],
        np.bincount(group[is_exact], minlength=groups),
        np.bincount(group[~is_exact], minlength=groups),
    )


def checked_pairs(name: str, pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two int64 arrays of one length, or a clear word."""
    if not isinstance(pairs, tuple | list) or len(pairs) != 2:
        raise InputError(f"{name} must be two arrays, left and right row numbers, not {type(pairs).__name__}")
    sides = [np.asarray(side) for side in pairs]
    for side in sides:
        if side.ndim != 1 or (side.size and side.dtype.kind not in "iu"):
            raise InputError(f"{name} must hold whole row numbers, not {side.dtype} of shape {side.shape}")
    if sides[0].size != sides[1].size:
        raise InputError(
            f"{name} has {sides[0].size} left and {sides[1].size} right row numbers: give one of each a pair"
        )
    return sides[0].astype(np.int64), sides[1].astype(np.int64)
