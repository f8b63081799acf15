"""From a flow to a schedule: until when each row is kept."""

from __future__ import annotations

import numpy as np

from shedjoin.offline.paths import Paths
from shedjoin.offline.timeline import Ints, Timeline
from shedjoin.policies import Replay


def last_instants(paths: Paths, held: Ints) -> tuple[Ints, Ints]:
    """The instant after which each row of the two sides leaves; `held` is how many are held up to each stop.

    Of a path's rows the newest are the ones that are held: so a row is held up to its stops from the first on, and
    leaves for good when
    as many newer rows as are held have come.
    """
    until = paths.free_until[0].copy(), paths.free_until[1].copy()
    if not paths.row.size:
        return until
    come = np.searchsorted(
        paths.row_first, np.arange(paths.stop_path.size), side="right"
    )  # rows are sorted by first stop
    left = come - held  # rows before this place are gone; never falls along the stops
    place = np.arange(1, paths.row.size + 1)
    gone = np.searchsorted(left, place, side="left")  # the first stop that the row is not held up to
    # A row's path ends where the next begins: there all its rows are gone, for they come before any row of the next.
    end = np.append(np.flatnonzero(np.diff(paths.stop_path)) + 1, paths.stop_path.size)
    gone = np.minimum(gone, end[np.searchsorted(end, paths.row_first, side="right")])
    kept = gone > paths.row_first
    for stream in (0, 1):
        mine = kept & (paths.row_stream == stream)
        until[stream][paths.row[mine]] = paths.stop_when[gone[mine] - 1]
    return until


def replay(timeline: Timeline, until: tuple[Ints, Ints]) -> Replay:
    """The schedule as a policy. Rows without a key are never stored: any time will do for them."""
    times = []
    for side, instants in zip(timeline.sides, until, strict=True):
        column = np.zeros(side.rows, np.int64)
        column[side.seq] = timeline.times[instants]
        times.append(column)
    return Replay(times[0], times[1])
