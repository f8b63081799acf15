"""The Archive-metric ArM: how many rows did not meet all their partners, and so must be read again from an archive.

das2003 section 2.2. The sum printed there adds up products that are 1 for *complete* rows; by the words around it ArM is
the number of incomplete ones, which is what is counted here. A row is incomplete iff some result of the exact join that it
belongs to is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Table
from shedjoin.engine.output import ShedLog
from shedjoin.quality.measures import Pairs, compare
from shedjoin.quality.missing import Arrivals, Loss, losses
from shedjoin.spec import JoinSpec


def arm(exact: Pairs, approximate: Pairs) -> int:
    """The number of incomplete rows of both streams, from the results.

    Examples
    --------
    >>> arm(([0, 0, 1], [0, 1, 1]), ([0, 1], [0, 1]))  # (0, 1) is missing: left row 0 and right row 1
    2
    """
    return compare(exact, approximate).arm


def incomplete_rows(
    shed: ShedLog, left: Table, right: Table, spec: JoinSpec, *, warmup: int | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows of either stream are incomplete, from the shed log and the inputs. No result is made: a shed row is
    incomplete if the range of its lost partners is not empty, and so is every row inside such a range.
    """
    arrivals = Arrivals.of(left, right)
    return marked(losses(shed, arrivals, spec.windows, warmup), arrivals)


def marked(found: Sequence[Loss], arrivals: Arrivals) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the rows that some loss touches."""
    masks = (np.zeros(arrivals.rows(0), dtype=np.bool_), np.zeros(arrivals.rows(1), dtype=np.bool_))
    for loss in found:
        masks[loss.stream][loss.seq[loss.counts() > 0]] = True
        masks[1 - loss.stream][loss.touched()] = True
    return masks
