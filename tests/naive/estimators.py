"""The estimator of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from naive.learned import LearnedWeights
from naive.weights import (
    CountMinWeights,
    DecayedWeights,
    HistoryWeights,
    InMemoryWeights,
    InWindowWeights,
    TableWeights,
    Weights,
)
from shedjoin.estimators import CountMin, Decayed, Estimator, History, InMemory, InWindow, Table
from shedjoin.policies import Prospect

if TYPE_CHECKING:
    from naive.twin import Twin


def weights_of(twin: Twin, estimator: Estimator | None) -> Weights:
    if isinstance(twin.policy, Prospect):
        return LearnedWeights(twin)
    match estimator:
        case None:
            return Weights(twin)
        case Table():
            return TableWeights(twin, estimator)
        case InMemory():
            return InMemoryWeights(twin)
        case History():
            return HistoryWeights(twin)
        case InWindow():
            return InWindowWeights(twin)
        case Decayed():
            return DecayedWeights(twin, estimator.half_life)
        case CountMin():
            return CountMinWeights(twin, estimator.width, estimator.depth)
    raise TypeError(f"the twin does not know {estimator!r}")
