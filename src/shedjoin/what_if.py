"""Recall as a function of memory for a running join, estimated from miniatures of it, with limits.

`shedjoin.auto.foresight` runs the miniatures. This module has the settings, and computes the curve from their results.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SpecError

#: The memories that are tried, as multiples of the budget.
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: The place of the budget itself.
NOW = FACTORS.index(1.0)
#: Parts of the keys, and parts of the time, by which errors are estimated.
GROUPS = 10
#: How far a miniature may be off, in log odds, times the root of the tuples that it holds: it learns less than the join.
SMALLNESS = 8.0
#: How far the correction that fits one memory may be wrong for twice of it, as a part of it.
ELSEWHERE = 0.5

#: Measured recall is that of other rows: how much it may differ, in log odds.
OTHER_ROWS = 0.1
#: A memory that is this much of what the exact join needs may lose nothing.
NEARLY = 0.75

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Run miniatures of the join with other memory sizes.

    A miniature gets the rows of some keys, and an equally small part of the memory. Frequent keys are in every miniature, and
    each of their tuples counts as a fraction of a tuple.

    Parameters
    ----------
    tuples
        The number of tuples in the miniature for the current memory. More is more accurate, and slower.
    memory
        The memory of all miniatures together, as a part of the budget and in addition to it. If it is too small, they hold
        fewer tuples.
    every
        The miniatures run after this many rows. 0: half as many rows as the budget has room for, but at least 512, and 512
        of the sample.

    Examples
    --------
    >>> WhatIf()
    WhatIf(tuples=512, memory=1.0, every=0)
    """

    tuples: int = 512
    memory: float = 1.0
    every: int = 0

    def __post_init__(self) -> None:
        if type(self.tuples) is not int or not 16 <= self.tuples <= 2**24:
            raise SpecError(f"WhatIf.tuples must be a whole number from 16 to 2**24, not {self.tuples!r}")
        if type(self.every) is not int or not 0 <= self.every <= 2**40:
            raise SpecError(f"WhatIf.every must be a whole number of at least 0, not {self.every!r}")
        number = isinstance(self.memory, int | float) and not isinstance(self.memory, bool)
        if not number or not 0.0 < self.memory <= 1e6:
            raise SpecError(f"WhatIf.memory must be a number above 0 and at most 1e6, not {self.memory!r}")


def what_if_of(value: Any) -> WhatIf | None:
    """From True or False, or a table of settings."""
    if value is None or isinstance(value, bool):
        return WhatIf() if value else None
    if isinstance(value, Mapping) and {*value} <= {"tuples", "memory", "every"}:
        return WhatIf(**value)
    if isinstance(value, WhatIf):
        return value
    raise SpecError(f"what_if must be True, False, a WhatIf or a table of tuples, memory and every, not {value!r}")


class Measured(Protocol):
    """Measured recall with its limits."""

    @property
    def recall(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Point:
    """The share of results, or of their importance, with its limits."""

    recall: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.recall:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, slots=True)
class Curve:
    """Recall by memory.

    Attributes
    ----------
    policy
        The policy in use.
    rows
        The number of rows that the curve covers: the last ones.
    recall
        Recall by multiples of the budget.
    importance
        The same for the summed importance of results; None if all results have the same importance.
    others
        Recall with the current memory, by other policies.
    level
        The level of the limits.
    """

    policy: str
    rows: int
    recall: dict[float, Point]
    importance: dict[float, Point] | None
    others: dict[str, Point]
    level: float

    @property
    def policies(self) -> dict[str, Point]:
        """Recall with the current memory, by policy: first the one in use."""
        return {self.policy: self.recall[1.0], **self.others}

    @property
    def best(self) -> str:
        """The policy with the highest estimate for the current memory."""
        found = self.policies
        return max(found, key=lambda policy: found[policy].recall)

    def __str__(self) -> str:
        """A line for each memory."""
        return "\n".join(f"{factor:g} x: {point}" for factor, point in self.recall.items())


def curve_of(parts: Iterable[Mapping[str, Any]], *, live: Measured | None = None, level: float = 0.95) -> Curve | None:
    """The curve of a join from the results of its shards' miniatures; None if they have none yet.

    Parameters
    ----------
    parts
        The return value of `Engine.what_if_sums` of each shard.
    live
        Measured recall with its limits: the curve is corrected by it.
    level
        The level of the limits.
    """
    known = [part for part in parts if part.get("rows")]
    if not known:
        return None
    policy, rivals = known[0]["policy"], known[0]["rivals"]
    known = [part for part in known if part["rivals"] == rivals]
    weights = {len(part["sums"]) for part in known}
    sums = np.array([part["sums"][: min(weights)] for part in known], np.float64).sum(axis=0)
    delivered = [sum(part["delivered"][place] for part in known) for place in range(min(weights))]
    parts_of_all = np.array([part["sampled"] for part in known], np.float64).mean(axis=0)
    sample = _Sample(
        held=float(np.mean([part["held"] for part in known])),
        need=float(np.mean([part["need"] for part in known])),
        seen=sum(part["seen"] for part in known),
        left_out=(1.0 - float(parts_of_all.prod()), 1.0 - float(parts_of_all[1])),
        level=level,
    )
    found = [
        sample.points(one, float(delivered[place]), live if place == 0 else None)
        for place, one in enumerate(list(sums))
    ]
    recalls = [dict(zip(FACTORS, points, strict=False)) for points in found]
    return Curve(
        policy=policy if len({part["policy"] for part in known}) == 1 else "several policies",
        rows=sum(part["rows"] for part in known),
        recall=recalls[0],
        importance=recalls[1] if len(recalls) > 1 else None,
        others=dict(zip(rivals, found[0][len(FACTORS) :], strict=True)),
        level=level,
    )


class _Sample(NamedTuple):
    """What is known of the miniatures of a join.

    Attributes
    ----------
    held
        The tuples that the miniature with the current memory has room for.
    need
        What the exact join needs, as a multiple of the budget.
    seen
        Results of the exact miniature.
    left_out
        The shares of rows that are not in the sample: of most keys, and of frequent ones.
    level
        The level of the limits.
    """

    held: float
    need: float
    seen: float
    left_out: tuple[float, float]
    level: float

    @property
    def least(self) -> float:
        """The least share that can be told from none."""
        return 0.5 / (self.seen + 1.0)

    @property
    def off(self) -> float:
        """How far a miniature may be off, in log odds; one that has all rows is the join itself."""
        return SMALLNESS * math.sqrt(self.left_out[0] / max(self.held, 1.0))

    @property
    def errors(self) -> float:
        """By how many standard errors the limits are away: by Student's t, as variances come from few groups."""
        z = NormalDist().inv_cdf(0.5 + self.level / 2.0)
        return z * (1.0 + (z**2 + 1.0) / (4.0 * (GROUPS - 1)))

    def points(self, sums: Numbers, delivered: float, live: Measured | None) -> list[Point]:
        """Of each miniature (row; the last is exact) and group of keys or time (column): the share of what is exact.

        The groups are left out in turn (a jackknife). By what was delivered in truth all shares are moved, in log odds.
        """
        if sums[-1].sum() <= 0.0:
            return [Point(1.0, 0.0, 1.0)] * (len(sums) - 1)
        shares = self._shares(sums)
        without = [_without(sums, group) for group in range(2 * GROUPS)]
        others = np.array([self._shares(some) for some in without])
        if live is None:
            noise = float(self._variance(np.log([[max(float(some[-1].sum()), 1e-300)] for some in without]))[0])
            anchor, at_least = self._anchor(delivered / sums[-1].sum(), noise)
            anchors = np.array([self._anchor(delivered / max(some[-1].sum(), 1e-300), noise)[0] for some in without])
        else:
            anchor, low, high = _logit(np.array([live.recall, live.low, live.high]), self.least).tolist()
            at_least = ((high - low) / (2.0 * self.errors)) ** 2 + OTHER_ROWS**2
            anchors = np.full(len(without), anchor)
        off = self.off
        weight = off**2 / (off**2 + at_least) if off > 0.0 else 0.0
        moved = weight * (anchor - shares[NOW])
        variance = self._variance(others + weight * (anchors - others[:, NOW])[:, None])
        variance = variance + (weight**2 * at_least if live is not None else 0.0)
        rivals = len(shares) - len(FACTORS)
        apart = np.concatenate([np.abs(np.log2(FACTORS)), np.ones(rivals)])
        smaller = np.concatenate([np.sqrt(FACTORS), np.ones(rivals)])
        variance = variance + np.where(apart > 0, (off / smaller / 2.0) ** 2, ((1.0 - weight) * off) ** 2)
        width = self.errors * np.sqrt(variance + (ELSEWHERE * moved * apart) ** 2)
        return self._limited(shares, shares + moved, width)

    def _limited(self, shares: Numbers, middle: Numbers, width: Numbers) -> list[Point]:
        """Points between 0 and 1, the more memory the higher."""
        high = np.where(_expit(shares) >= 1.0 - 2.0 * self.least, 1.0, _expit(middle + width))
        high[: len(FACTORS)][np.array(FACTORS) >= NEARLY * self.need] = 1.0  # the exact join needs hardly more
        middle[: len(FACTORS)] = np.maximum.accumulate(middle[: len(FACTORS)])
        points = []
        for recall, low, most in zip(_expit(middle), _expit(middle - width), high, strict=True):
            one, least = self._rounded(float(recall)), self._rounded(float(low))
            points.append(Point(one, least, max(one, self._rounded(float(most)))))
        return points

    def _rounded(self, share: float) -> float:
        """What cannot be told from none or all is none or all."""
        return 0.0 if share <= self.least else 1.0 if share >= 1.0 - self.least else share

    def _shares(self, sums: Numbers) -> Numbers:
        """The share of each miniature but the last, in log odds."""
        return _logit(sums[:-1].sum(axis=1) / max(float(sums[-1].sum()), 1e-300), self.least)

    def _anchor(self, delivered: float, noise: float) -> tuple[float, float]:
        """The log odds of the share delivered, and their variance, from that of the logarithm of the whole."""
        lost = max(1.0 - delivered, min(math.sqrt(noise), 0.5), self.least)
        lost = min(lost, 1.0 - self.least)
        return math.log((1.0 - lost) / lost), noise / lost**2

    def _variance(self, found: Numbers) -> Numbers:
        """Of estimates, each without one group: first the groups of keys, then those of time."""
        kinds = zip((found[:GROUPS], found[GROUPS:]), self.left_out, strict=True)
        each = [part * ((one - one.mean(axis=0)) ** 2).sum(axis=0) for one, part in kinds]
        return np.asarray(each[0] + each[1]) * (GROUPS - 1) / GROUPS


def _without(sums: Numbers, group: int) -> Numbers:
    """All but a group of the same kind, as much as with it."""
    kind = slice(0, GROUPS) if group < GROUPS else slice(GROUPS, 2 * GROUPS)
    others = sums.copy()
    others[:, group] = 0.0
    others[:, kind] *= GROUPS / (GROUPS - 1)
    return others


def _logit(share: Numbers, least: float) -> Numbers:
    inside = np.clip(share, least, 1.0 - least)
    return np.asarray(np.log(inside / (1.0 - inside)))


def _expit(odds: Numbers) -> Numbers:
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def written(parts: Mapping[str, Any]) -> str:
    """What one shard found, as text."""
    if not parts.get("rows"):
        return json.dumps(dict(parts))
    short = [[[float(f"{one:.6g}") for one in row] for row in matrix] for matrix in parts["sums"]]
    return json.dumps({**parts, "sums": short})


def read(texts: Sequence[str | None]) -> list[dict[str, Any]]:
    """What shards found, from text."""
    return [json.loads(text) for text in texts if text]
