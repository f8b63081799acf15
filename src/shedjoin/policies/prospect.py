"""PROSPECT: our own policy. Keep the tuples with the most promising keys, as learned from the streams."""

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

    With three and more streams the probabilities of the others are multiplied. A stream's probabilities are learned from its own
    counts and from those of the stream before it.

    PROB uses one count of a key, and you must choose its half-life. Prospect counts each key at four decay rates on both
    streams, and learns how well each count predicts partners: counts over all time if nothing changes, recent rows for bursts,
    the tuple's own stream if it predicts the other. If popularity moves through the order of keys, it learns the speed and the
    next popular keys (hashed keys have no order).

    All tuples of one stream and key share one priority, as in PROB, so a row moves a few keys of a heap and nothing
    is scanned. It has no settings. docs/prospect.md has the formulas, and where it wins and loses.
    """

    name: ClassVar[str] = "prospect"
    revision: ClassVar[int] = REVISION

    @property
    def estimator(self) -> Estimator:  # type: ignore[override]
        return Learned()

    def order(self) -> Order:
        return Order(KEY, PRODUCT, matches=1.0)
