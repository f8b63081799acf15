"""PROSPECT: our own. Keep the tuples whose keys have the best prospects, as learned from the streams themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import KEY, LEARNED, PRODUCT, Order, Weigher
from shedjoin.estimators import Estimator
from shedjoin.policies.base import Policy

#: Raised when the same rows would be weighed otherwise: what was begun by another one cannot be gone on with.
REVISION = 4


class Learned(Estimator):
    """Prospect's model. It weighs keys for Prospect alone: its weights are chances of a row, not counts."""

    name: ClassVar[str] = "learned"

    def weigher(self) -> Weigher:
        return Weigher(LEARNED, width=REVISION)  # a number of sketches, which mean nothing here; part of every snapshot


@dataclass(frozen=True, slots=True)
class Prospect(Policy):
    """Priority: the learned chance that the next row of the other stream is of the tuple's key, in steps. Ties keep the later.

    With three and more streams the chances of the others are multiplied. What is learned of a stream is learned from its own
    counts and from those of the stream before it.

    PROB asks how often a key came, by a count of which somebody has to choose the memory. Prospect counts each key at four
    speeds and on both streams, and learns as rows come what each of these counts is worth: that of all time where
    nothing changes, the last few rows where keys come in bursts, the own stream's where one stream foretells the other. Where
    popularity moves through the order of keys, it sees how fast, and which keys are next (hashed keys, as on Spark, have no
    order).

    All tuples of one stream and key share one priority, as in PROB, so that a row moves a few keys of a heap and nothing
    is scanned. There is nothing to set. docs/prospect.md has the formulas, and where it wins and loses.
    """

    name: ClassVar[str] = "prospect"
    revision: ClassVar[int] = REVISION

    @property
    def estimator(self) -> Estimator:  # type: ignore[override]
        return Learned()

    def order(self) -> Order:
        return Order(KEY, PRODUCT, matches=1.0)
