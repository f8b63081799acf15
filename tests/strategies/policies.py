"""Every policy of the registry, with numbers of its own. A new one is put under all laws without being named here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from shedjoin.estimators import Estimator
from shedjoin.policies import POLICIES, Age, Policy
from shedjoin.policies.forms import UPDATES

#: Some of these numbers leave the range of floats.
FACTORS = (1.0, 0.0, 0.5, 2.0, -1.0, 0.1)
VALUES = {
    "gain": (1.0, 0.25, 3.0, 1e-6, 1e-300),
    "loss": (0.99, 0.5, 0.9, 1e-3, 1e-6, 1e-300),
    "power": (1.0, 0.5, 0.0, 2.0),
    "keep": (0.0, 0.5, 0.3, 0.99),
}


class Variant(NamedTuple):
    """A policy, with settings that are words."""

    kind: type[Policy]
    words: dict[str, str]
    weighed: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(one.name for one in fields(self.kind)) if is_dataclass(self.kind) else ()

    @property
    def is_weighed(self) -> bool:
        return self.weighed and "estimator" in self.fields

    @property
    def numbers(self) -> tuple[str, ...]:
        """The settings that are numbers."""
        return tuple(name for name in self.fields if name != "estimator" and name not in self.words)

    def make(self, number: Callable[[str], float], estimator: Estimator) -> Policy:
        """The policy with these numbers, and with the estimator if it has one."""
        settings: dict[str, Any] = {name: number(name) for name in self.numbers} | self.words
        return self.kind(**settings, **({"estimator": estimator} if self.is_weighed else {}))


def _variants(name: str, kind: type[Policy]) -> dict[str, Variant]:
    if kind is Age:  # with an estimator or without
        return {name: Variant(kind, {}, weighed=False), f"{name}_weighed": Variant(kind, {})}
    if "update" not in Variant(kind, {}).fields:
        return {name: Variant(kind, {})}
    return {f"{name}_{update}": Variant(kind, {"update": update}) for update in UPDATES}


#: Auto is no order of its own: the matrix and tests/auto have it.
VARIANTS: dict[str, Variant] = {
    variant: made
    for name, kind in POLICIES.items()
    if name != "auto"
    for variant, made in _variants(name, kind).items()
}
#: Policies that follow the results of each instant.
FOLLOWING = ("cumulative", "dgl", "age", "age_weighed")
#: Policies that ask an estimator, and those that do not.
WEIGHED = tuple(name for name, variant in VARIANTS.items() if variant.is_weighed)
UNWEIGHED = tuple(name for name in VARIANTS if name not in WEIGHED)


def values(setting: str) -> tuple[float, ...]:
    """What a number of a policy may be."""
    return VALUES.get(setting, FACTORS)
