"""The candidates of `Auto`: one line each, the most useful first."""

from __future__ import annotations

from dataclasses import replace

from shedjoin.engine.codes import FOLLOWING
from shedjoin.engine.plan import Plan
from shedjoin.estimators import InWindow, Met
from shedjoin.meaning import why_not
from shedjoin.policies import Age, Dgl, DimpProb, Life, Policy, Prob, Prospect, Rand, Simp, SimpProb

CANDIDATES: tuple[Policy, ...] = (
    Prospect(),
    Prob(InWindow()),
    Age(),
    Rand(),
    Dgl(),
    Prob(),
    Life(InWindow()),
    Life(),
    SimpProb(Met()),
)
#: Where results differ in importance.
BY_IMPORTANCE: tuple[Policy, ...] = (
    Prospect(),
    DimpProb(),
    SimpProb(InWindow()),
    Simp(),
    Prob(InWindow()),
    Dgl(),
    Rand(),
    SimpProb(Met()),
)
#: Below this many there is nothing to compare.
FEWEST = 3


def candidates_of(plan: Plan, first: Policy, *, valued: bool) -> list[Policy]:
    """What a join can be run by: first the policy that it begins with. `valued`: its results differ in importance."""
    known = [first, *(one for one in (BY_IMPORTANCE if valued else CANDIDATES) if one != first)]
    return [one for one in known if fits(plan, first, one)]


def fits(plan: Plan, first: Policy, policy: Policy) -> bool:
    """Whether the join may go over to a policy, and back."""
    if policy == first:
        return True
    if plan.admission is not None and policy.estimator != first.estimator:
        return False  # which has not seen the rows that wait for the CPU
    if plan.counted_elsewhere and isinstance(policy, Prospect):
        return False
    if isinstance(policy.estimator, Met):
        return False  # for joins that begin with it: others would have to be stored in another way
    name = getattr(policy.estimator, "name", None)
    follows = policy.order().organisation in FOLLOWING or name == "met"
    return why_not(replace(plan.dials, policy=policy.name, estimator=name, follows_results=follows)) is None
