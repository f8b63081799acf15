"""The policies that a plan tries, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shedjoin.errors import SpecError
from shedjoin.estimators import History, InMemory, InWindow
from shedjoin.parse import parse_policy
from shedjoin.plain_dict import plain
from shedjoin.policies import (
    POLICIES,
    Age,
    Dgl,
    DimpProb,
    KeepAll,
    Life,
    Policy,
    Prob,
    Prospect,
    Rand,
    Replay,
    Simp,
    SimpProb,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy; `weighs`: only worth trying where results differ in importance."""

    policy: Policy
    weighs: bool = False

    @property
    def name(self) -> str:
        """Its name in tables: as job files have it, with the estimator where that is not the policy's own."""
        if type(self.policy) is POLICIES.get(self.policy.name) and self.policy == type(self.policy)():
            return self.policy.name
        said = plain(self.policy)
        alone = set(said) == {"name", "estimator"} and set(said["estimator"]) == {"name"}
        return f"{said['name']} {said['estimator']['name']}" if alone else repr(self.policy)


#: One line each. Estimators are those that a running join can have: the true table is not known.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate(Rand()),
    Candidate(Prob()),
    Candidate(Prob(InWindow())),
    Candidate(Life()),
    Candidate(Life(InWindow())),
    Candidate(Age()),
    Candidate(Prospect()),
    Candidate(Simp(), weighs=True),
    Candidate(SimpProb(History()), weighs=True),
    Candidate(DimpProb(InMemory()), weighs=True),
    Candidate(DimpProb(InWindow()), weighs=True),
    Candidate(Dgl(), weighs=True),
)


def candidates(policies: Iterable[object] | None, objective: str) -> tuple[Candidate, ...]:
    """The policies to try: those given (policies, their names, or tables of settings), else all that make sense."""
    if policies is None:
        return tuple(one for one in CANDIDATES if objective == "importance" or not one.weighs)
    if isinstance(policies, str | Policy) or not isinstance(policies, Iterable):
        raise SpecError(f"policies must be a list, such as ['prob', 'life'], not {policies!r}")

    made: dict[str, Candidate] = {}
    for place, one in enumerate(policies):
        policy = parse_policy(one, argument=f"policies[{place}]")
        if policy is None or isinstance(policy, KeepAll | Replay):
            raise SpecError(f"policies[{place}] must be a policy that sheds as it goes, not {one!r}")
        candidate = Candidate(policy)
        made[candidate.name] = candidate
    if not made:
        raise SpecError("policies must name at least one policy, not none")
    return tuple(made.values())
