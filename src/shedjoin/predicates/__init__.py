"""Join conditions beyond equality of keys: numbers, sets and weighted sets, and the index that serves them."""

from __future__ import annotations

from shedjoin.predicates.base import Predicate
from shedjoin.predicates.numbers import Band, Theta
from shedjoin.predicates.sets import Equal, InnerProduct, Overlap, SameSet, Subset, Superset
from shedjoin.predicates.values import Sets

#: By their names in job files.
PREDICATES: dict[str, type[Predicate]] = {
    kind.name: kind for kind in (Equal, Band, Theta, SameSet, Subset, Superset, Overlap, InnerProduct)
}

__all__ = [
    "PREDICATES",
    "Band",
    "Equal",
    "InnerProduct",
    "Overlap",
    "Predicate",
    "SameSet",
    "Sets",
    "Subset",
    "Superset",
    "Theta",
]
