"""Advice on settings, from the results of miniatures and from unused memory."""

from __future__ import annotations

from collections.abc import Mapping

from shedjoin.budget import Budget
from shedjoin.spark.metrics import Summary
from shedjoin.what_if import Curve

#: A share with its limits.
Share = tuple[float, float, float]
#: What is compared with every policy, and how policies are written in job files.
RANDOM = "Rand()"
WORDS = {
    "Rand()": '"rand"',
    "Prospect()": '"prospect"',
    "Age(estimator=None)": '"age"',
    "Prob(estimator=InWindow())": '{ name = "prob", estimator = "in_window" }',
}
#: A recall that needs no more memory.
ENOUGH = 0.99
#: A budget of which less than this is used while rows are evicted is badly shared.
USED = 0.8
#: A policy must be better by this much to be advised.
WORTH = 0.02


def better_policies(policy: str, now: Share, others: Mapping[str, Share]) -> list[str]:
    """Advice if recall is no better than with a random choice, or another policy would be clearly better.

    Examples
    --------
    >>> for line in better_policies("Prob()", (0.35, 0.33, 0.37), {"Rand()": (0.46, 0.44, 0.48)}):
    ...     print(line)
    Prob() delivers 35% of the results, no more than a random choice of rows (46%).
    With the current memory Rand() would deliver about 46% in place of 35%: set policy = "rand", or "auto".
    """
    lines = []
    drawn = others.get(RANDOM)
    if drawn is not None and now[0] < 1.0 and now[0] <= drawn[0]:
        lines.append(
            f"{policy} delivers {now[0]:.0%} of the results, no more than a random choice of rows ({drawn[0]:.0%})."
        )
    if not others:
        return lines
    best = max(others, key=lambda one: others[one][0])
    if others[best][1] > now[0] + WORTH:
        lines.append(
            f"With the current memory {best} would deliver about {others[best][0]:.0%} in place of {now[0]:.0%}: set policy = "
            f'{WORDS.get(best, best)}, or "auto".'
        )
    return lines


def what_if_lines(curve: Curve | None) -> list[str]:
    """The recall of other memory sizes, and which settings to change."""
    if curve is None:
        return []
    more = curve.recall[2.0]
    lines = []
    if curve.recall[1.0].recall < 1.0:
        lines.append(
            f"With twice the memory recall would be about {more.recall:.0%} ({more.low:.0%} to {more.high:.0%})."
        )
    if (half := curve.recall[0.5]).low > ENOUGH:
        lines.append(f"Half of the memory would deliver {half.recall:.1%} ({half.low:.1%} to {half.high:.1%}) as well.")
    now, *others = ((name, (one.recall, one.low, one.high)) for name, one in curve.policies.items())
    return lines + better_policies(*now, dict(others))


def idle_memory(done: Summary, budget: Budget | None) -> str | None:
    """Advice if one stream evicts rows while a part of another's share is unused."""
    if budget is None or budget.allocation != "fixed" or not done.evicted:
        return None
    used = (done.resident if budget.unit == "tuples" else done.stored_bytes) / budget.total
    if used >= USED:
        return None
    return (
        f"Rows are evicted while {1 - used:.0%} of the budget is unused: the streams need unequal memory. Set allocation = "
        '"variable", or other shares.'
    )
