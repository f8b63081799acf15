"""The policies that a plan tries, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shedjoin.errors import SpecError
from shedjoin.estimators import History, InMemory, InWindow
from shedjoin.parse import parse_policy
from shedjoin.policies import Age, Dgl, DimpProb, KeepAll, Life, Policy, Prob, Prospect, Rand, Replay, Simp, SimpProb


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy and its name in tables; `weighs`: only worth trying where results differ in importance."""

    name: str
    policy: Policy
    weighs: bool = False


#: One line each. Estimators are those that a running join can have: the true table is not known.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate("RAND", Rand()),
    Candidate("PROB", Prob(History())),
    Candidate("PROB, window", Prob(InWindow())),
    Candidate("LIFE", Life(History())),
    Candidate("LIFE, window", Life(InWindow())),
    Candidate("AGE", Age()),
    Candidate("PROSPECT", Prospect()),
    Candidate("SIMP", Simp(), weighs=True),
    Candidate("SIMPPROB", SimpProb(History()), weighs=True),
    Candidate("DIMPPROB", DimpProb(InMemory()), weighs=True),
    Candidate("DIMPPROB, window", DimpProb(InWindow()), weighs=True),
    Candidate("DGL", Dgl(), weighs=True),
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
        name = _name(policy)
        made[name] = Candidate(name, policy)
    if not made:
        raise SpecError("policies must name at least one policy, not none")
    return tuple(made.values())


def _name(policy: Policy) -> str:
    """As in the list above, or as it is written."""
    known = [one.name for one in CANDIDATES if one.policy == policy]
    return known[0] if known else repr(policy)
