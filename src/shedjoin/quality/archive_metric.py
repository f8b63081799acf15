"""The Archive-metric ArM: the number of rows that missed a partner, and must be read again from an archive.

das2003 section 2.2. The sum printed there adds up products that are 1 for *complete* rows; by the words around it ArM is
the number of incomplete ones, which is what is counted here. A row is incomplete iff some result of the exact join that it
belongs to is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import TableLike
from shedjoin.engine.output import LeftOutLog, ShedLog
from shedjoin.quality.arrivals import Arrivals
from shedjoin.quality.measures import Pairs, compare
from shedjoin.quality.missing import INNER, arrivals_of, is_by_ranges, missing_rows
from shedjoin.quality.ranges import losses
from shedjoin.spec import JoinSpec

Booleans = NDArray[np.bool_]


def arm(exact: Pairs, approximate: Pairs) -> int:
    """The number of incomplete rows of both streams, from the results.

    Examples
    --------
    >>> arm(([0, 0, 1], [0, 1, 1]), ([0, 1], [0, 1]))  # (0, 1) is missing: left row 0 and right row 1
    2
    """
    return compare(exact, approximate).arm


def incomplete_rows(
    shed: ShedLog,
    left: TableLike,
    right: TableLike,
    spec: JoinSpec,
    *,
    more: Sequence[TableLike] = (),
    left_out: LeftOutLog | None = None,
    warmup: int | None = None,
) -> tuple[Booleans, ...]:
    """Which rows of each stream are incomplete, from the logs and the inputs; arguments as in `missing_results`."""
    arrivals = arrivals_of(spec, (left, right, *more))
    return marked(shed, arrivals, spec, left_out, warmup)


def marked(
    shed: ShedLog, arrivals: Arrivals, spec: JoinSpec, left_out: LeftOutLog | None, warmup: int | None
) -> tuple[Booleans, ...]:
    """Masks of the rows that some missing result has.

    Of two streams on a key no result is made: a shed row is incomplete if the range of its lost partners is not empty, and so is
    every row inside such a range.
    """
    masks = tuple(np.zeros(arrivals.rows(stream), dtype=np.bool_) for stream in arrivals.streams)
    if is_by_ranges(spec) and spec.how == INNER:
        for loss in losses(shed, arrivals, spec.windows, warmup):
            masks[loss.stream][loss.seq[loss.ranges.counts() > 0]] = True
            masks[1 - loss.stream][loss.ranges.touched()] = True
        return masks
    for mask, rows in zip(masks, missing_rows(shed, arrivals, spec, left_out=left_out, warmup=warmup), strict=True):
        mask[rows[rows >= 0]] = True
    return masks
