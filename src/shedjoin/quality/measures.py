"""Set-theoretic measures of das2003 section 2.2 between two multisets of results.

A multiset of results is a pair of int64 arrays: the left and the right row numbers, as `run.pairs()` and
`out.left, out.right` give them. Order is of no account; a pair that occurs twice counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.errors import InputError, SpecError

Pairs = tuple[ArrayLike, ArrayLike]
COSINES = ("printed", "usual")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A result compared with the exact one, by every measure that needs no distance between results.

    Attributes
    ----------
    exact, approximate, matching
        The sizes |X| and |Y| of both multisets, and |X n Y|.
    incomplete_left, incomplete_right
        Rows that did not meet all their partners. They add up to the Archive-metric `arm`.
    """

    exact: int
    approximate: int
    matching: int
    incomplete_left: int
    incomplete_right: int

    @property
    def missing(self) -> int:
        return self.exact - self.matching

    @property
    def extra(self) -> int:
        return self.approximate - self.matching

    @property
    def symmetric_difference(self) -> int:
        return self.missing + self.extra

    @property
    def recall(self) -> float:
        return self.matching / self.exact if self.exact else 1.0

    @property
    def dice(self) -> float:
        total = self.exact + self.approximate
        return 2 * self.matching / total if total else 1.0

    @property
    def jaccard(self) -> float:
        union = self.exact + self.extra
        return self.matching / union if union else 1.0

    @property
    def cosine(self) -> float:
        """As das2003 prints it."""
        total = self.exact + self.approximate
        return self.matching / sqrt(total) if total else 0.0  # the limit of sqrt(n / 2), its value for equal answers

    @property
    def cosine_usual(self) -> float:
        """As the literature has it."""
        product = self.exact * self.approximate
        return self.matching / sqrt(product) if product else float(self.exact == self.approximate)

    @property
    def overlap(self) -> float:
        least = min(self.exact, self.approximate)
        return self.matching / least if least else 1.0

    @property
    def arm(self) -> int:
        return self.incomplete_left + self.incomplete_right

    def to_dict(self) -> dict[str, Any]:
        """One flat row."""
        return {name: getattr(self, name) for name in MEASURES}


#: The columns of `Comparison.to_dict`.
MEASURES = (
    *("exact", "approximate", "matching", "missing", "extra", "symmetric_difference", "recall", "dice", "jaccard"),
    *("cosine", "cosine_usual", "overlap", "incomplete_left", "incomplete_right", "arm"),
)


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
    answers = [np.stack(checked_pairs(name, one)) for name, one in (("exact", exact), ("approximate", approximate))]
    distinct, which = np.unique(np.concatenate(answers, axis=1), axis=1, return_inverse=True)
    which = which.reshape(-1)
    mine, theirs = (np.bincount(one, minlength=distinct.shape[1]) for one in np.split(which, [answers[0].shape[1]]))
    left, right = (int(np.unique(rows).size) for rows in distinct[:, mine > theirs])
    common = int(np.minimum(mine, theirs).sum())
    return Comparison(answers[0].shape[1], answers[1].shape[1], common, left, right)


def symmetric_difference(exact: Pairs, approximate: Pairs) -> int:
    """Results in one multiset and not in the other, |(X - Y) u (Y - X)|.

    Examples
    --------
    >>> symmetric_difference(([1, 1, 2], [5, 5, 6]), ([1, 3], [5, 7]))
    3
    """
    return compare(exact, approximate).symmetric_difference


def max_subset(exact: Pairs, approximate: Pairs) -> int:
    """How many results are missing: the symmetric difference when the answer is part of the exact one.

    Examples
    --------
    >>> max_subset(([1, 2, 3], [1, 2, 3]), ([2], [2]))
    2
    """
    found = compare(exact, approximate)
    if found.extra:
        raise InputError(
            f"approximate must be part of exact, but has {found.extra} results that exact has not: "
            "for such answers use symmetric_difference"
        )
    return found.missing


def matching(exact: Pairs, approximate: Pairs) -> int:
    """The matching coefficient |X n Y|."""
    return compare(exact, approximate).matching


def dice(exact: Pairs, approximate: Pairs) -> float:
    """The Dice coefficient 2 |X n Y| / (|X| + |Y|); 1 for two empty answers.

    Examples
    --------
    >>> dice(([1, 2, 3], [1, 2, 3]), ([2], [2]))
    0.5
    """
    return compare(exact, approximate).dice


def jaccard(exact: Pairs, approximate: Pairs) -> float:
    """The Jaccard coefficient |X n Y| / |X u Y|; 1 for two empty answers."""
    return compare(exact, approximate).jaccard


def cosine(exact: Pairs, approximate: Pairs, which: str = "printed") -> float:
    """The cosine coefficient.

    Parameters
    ----------
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
    found = compare(exact, approximate)
    return found.cosine if which == "printed" else found.cosine_usual


def overlap(exact: Pairs, approximate: Pairs) -> float:
    """The overlap coefficient |X n Y| / min(|X|, |Y|): 1 for every subset, the empty one included."""
    return compare(exact, approximate).overlap


def checked_pairs(name: str, pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two int64 arrays of one length."""
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
