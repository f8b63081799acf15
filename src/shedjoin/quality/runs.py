"""Every measure of a simulation, from its counts and its shed log."""

from __future__ import annotations

import numpy as np

from shedjoin.errors import InputError, SpecError
from shedjoin.quality.archive_metric import marked
from shedjoin.quality.arrivals import Arrivals
from shedjoin.quality.distances import MATCHABLE, Distance, emd, mac
from shedjoin.quality.measures import Comparison
from shedjoin.quality.missing import INNER, exact_rows, missing_rows, record_counts
from shedjoin.simulation import Run


def from_run(run: Run) -> Comparison:
    """How good the answer of a run is, its warm-up left out. The exact join is not made.

    Examples
    --------
    >>> import shedjoin as sj
    >>> left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    >>> spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=sj.Simp())
    >>> quality = from_run(sj.simulate(spec, left, right))
    >>> quality.exact, quality.approximate, quality.missing, quality.arm
    (7, 4, 3, 6)
    """
    _check_run(run)
    arrivals = Arrivals.pushed([run.batch])
    missing = int(record_counts(run.shed, arrivals, run.spec, left_out=run.left_out, warmup=run.warmup).sum())
    left, right = marked(run.shed, arrivals, run.spec, run.left_out, run.warmup)
    return Comparison(run.matches + missing, run.matches, run.matches, int(left.sum()), int(right.sum()))


def distances_from_run(run: Run, *, distance: Distance = "euclidean", penalty: float = 1.0) -> dict[str, float]:
    """How far the answer of a run lies from the exact one, by `emd` and `mac`: a result is the point of its two times.

    The results themselves need not have been kept: they are the exact join less what the shed log says is missing.

    Examples
    --------
    >>> import shedjoin as sj
    >>> left, right = {"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}
    >>> spec = sj.JoinSpec(window=sj.TimeWindow(3), budget=sj.Budget(tuples=2), policy=sj.Simp())
    >>> distances_from_run(sj.simulate(spec, left, right))
    {'emd': 0.0, 'mac': 6.414...}
    """
    _check_run(run)
    if run.spec.how != INNER:
        raise SpecError(
            f"distances_from_run compares pairs of rows, so run must be of an inner join, not {run.spec.how}"
        )
    arrivals = Arrivals.pushed([run.batch])
    exact = exact_rows(arrivals, run.spec, warmup=run.warmup)
    missing = missing_rows(run.shed, arrivals, run.spec, left_out=run.left_out, warmup=run.warmup)
    rows = max(arrivals.rows(1), 1)
    numbers, lost = (pairs[0] * rows + pairs[1] for pairs in (exact, missing))
    times = np.column_stack([arrivals.ts[side][exact[side]] for side in (0, 1)])
    kept = ~np.isin(numbers, lost)
    if kept.size * int(kept.sum()) > MATCHABLE:
        raise InputError(
            f"run has {kept.size:,} exact results and {int(kept.sum()):,} delivered ones: mac compares each with each, so their "
            f"product must be at most {MATCHABLE:,}; take a shorter stretch or a later warmup"
        )
    return {
        "emd": emd(times[kept], times, distance=distance),
        "mac": mac(times[kept], times, distance=distance, penalty=penalty),
    }


def _check_run(run: object) -> None:
    if not isinstance(run, Run):
        raise SpecError(f"run must be what simulate returns, not {run!r}")
