"""Every measure of a simulation, from its counts and its shed log: the exact join is not made."""

from __future__ import annotations

from shedjoin.quality.archive_metric import marked
from shedjoin.quality.measures import Comparison, Sizes, comparison
from shedjoin.quality.missing import Arrivals, losses
from shedjoin.simulate import Run


def from_run(run: Run) -> Comparison:
    """How good the answer of a run is, its warm-up left out.

    Examples
    --------
    >>> import shedjoin as sj
    >>> left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    >>> spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=sj.Simp())
    >>> quality = from_run(sj.simulate(spec, left, right))
    >>> quality.exact, quality.approximate, quality.missing, quality.arm
    (7, 4, 3, 6)
    """
    arrivals = Arrivals.pushed([run.batch])
    found = losses(run.shed, arrivals, run.spec.windows, run.warmup)
    missing = sum(int(loss.counts().sum()) for loss in found)
    left, right = marked(found, arrivals)
    sizes = Sizes(exact=run.matches + missing, approximate=run.matches, common=run.matches)
    return comparison(sizes, (int(left.sum()), int(right.sum())))
