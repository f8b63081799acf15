"""From a flow to a schedule: until when each row is kept."""

from __future__ import annotations

import numpy as np

from shedjoin.offline.ground import Ground, Ints
from shedjoin.offline.lanes import Lanes
from shedjoin.policies import Replay


def last_instants(lanes: Lanes, held: Ints) -> tuple[Ints, Ints]:
    """The instant after which each row of the two sides leaves; `held` is how many are held up to each stop.

    Of a lane's rows the newest are the ones that are held: so a row is held up to its stops from the first on, and
    leaves for good when
    as many newer rows as are held have come.
    """
    until = lanes.free_until[0].copy(), lanes.free_until[1].copy()
    if not lanes.row.size:
        return until
    come = np.searchsorted(
        lanes.row_first, np.arange(lanes.stop_lane.size), side="right"
    )  # rows are sorted by first stop
    left = come - held  # rows before this place are gone; never falls along the stops
    place = np.arange(1, lanes.row.size + 1)
    gone = np.searchsorted(left, place, side="left")  # the first stop that the row is not held up to
    # A row's lane ends where the next begins: there all its rows are gone, for they come before any row of the next.
    end = np.append(np.flatnonzero(np.diff(lanes.stop_lane)) + 1, lanes.stop_lane.size)
    gone = np.minimum(gone, end[np.searchsorted(end, lanes.row_first, side="right")])
    kept = gone > lanes.row_first
    for stream in (0, 1):
        mine = kept & (lanes.row_stream == stream)
        until[stream][lanes.row[mine]] = lanes.stop_when[gone[mine] - 1]
    return until


def replay(ground: Ground, until: tuple[Ints, Ints]) -> Replay:
    """The schedule as a policy. Rows without a key are never stored: any time will do for them."""
    times = []
    for side, instants in zip(ground.sides, until, strict=True):
        column = np.zeros(side.rows, np.int64)
        column[side.seq] = ground.times[instants]
        times.append(column)
    return Replay(times[0], times[1])
