"""The stretch of two streams that a plan is made from: in time order, cut, checked, and divided into blocks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shedjoin.batch import STREAMS, Batch, Table
from shedjoin.errors import InputError, SpecError
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow, TimeWindow, Window
from shedjoin.words import parse_window

#: The spread of a plan is taken over so many blocks of time, where the stretch has so many windows.
BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows in order of time.

    Attributes
    ----------
    warmup
        Results count from this time on: by then a window has passed and memory is full.
    cuts
        Where blocks begin, as places in the batch; the first is the warm-up, which is no block.
    windows
        How many windows long it is.
    """

    batch: Batch
    warmup: int
    cuts: tuple[int, ...]
    windows: float

    @property
    def pieces(self) -> list[slice]:
        """The warm-up, and every block."""
        return [slice(begin, end) for begin, end in pairwise((0, *self.cuts, len(self.batch)))]

    @property
    def length(self) -> int:
        return int(self.batch.ts[-1] - self.batch.ts[0]) + 1


def stretch_of(spec: JoinSpec, left: Table, right: Table, sample: object, warmup: int | None) -> Stretch:
    """A stretch of both streams, in the order of their times.

    Raises
    ------
    InputError
        If a stream is empty, or a window is as long as the whole stretch.
    """
    batch = _in_order(Batch.of(left, right))
    for stream, name in enumerate(STREAMS):
        if not (batch.stream == stream).any():
            raise InputError(f"{name} has no rows: a plan needs a stretch of both streams")
    if sample is not None:
        batch = _latest(batch, sample)
    since = max(_passed(batch, stream, window) for stream, window in enumerate(spec.windows))
    if warmup is not None:
        if isinstance(warmup, bool) or not isinstance(warmup, int | np.integer):
            raise SpecError(f"warmup must be a time, a whole number in the unit of ts, not {warmup!r}")
        since = int(warmup)
    first, last = int(batch.ts[0]), int(batch.ts[-1])
    if since > last:
        raise SpecError(f"warmup is {since}, but the stretch ends at {last}: no result would count")
    windows = min(_windows(batch, stream, window) for stream, window in enumerate(spec.windows))
    blocks = max(1, min(BLOCKS, int(windows * (last + 1 - since) / (last + 1 - first))))
    times = since + np.arange(blocks) * (last + 1 - since) / blocks
    return Stretch(batch, since, tuple(np.searchsorted(batch.ts, times).tolist()), windows)


def _in_order(batch: Batch) -> Batch:
    if (np.diff(batch.ts) >= 0).all():
        return batch
    return batch.take(np.lexsort((batch.stream, batch.ts)))


def _latest(batch: Batch, sample: object) -> Batch:
    """The last so many rows of both streams together, or all of the last stretch of time; whole instants."""

    window = (
        sample if isinstance(sample, int) and not isinstance(sample, bool) else parse_window(sample, argument="sample")
    )
    if isinstance(window, tuple):
        raise SpecError(f"sample must be one stretch for both streams, such as '1 hour' or '200k rows', not {sample!r}")
    if isinstance(window, TimeWindow):
        begin = int(np.searchsorted(batch.ts, batch.ts[-1] - window.length, side="right"))
    else:
        rows = window.rows if isinstance(window, RowWindow) else window
        if rows < 1:
            raise SpecError(f"sample must have at least one row, not {sample!r}")
        begin = max(len(batch) - rows, 0)
        begin = int(np.searchsorted(batch.ts, batch.ts[begin]))
    cut = batch.take(slice(begin, None))
    for stream, name in enumerate(STREAMS):
        if not (cut.stream == stream).any():
            raise InputError(f"{name} has no rows in the last {sample!r} of the streams: take a longer sample")
    return cut


def _windows(batch: Batch, stream: int, window: Window) -> float:
    """How many windows of a stream the stretch is long."""
    if isinstance(window, RowWindow):
        return float((batch.stream == stream).sum() / window.rows)
    return float((batch.ts[-1] - batch.ts[0] + 1) / window.length)


def _passed(batch: Batch, stream: int, window: Window) -> int:
    """When the first window of a stream has passed."""
    if _windows(batch, stream, window) <= 1:
        rows = int((batch.stream == stream).sum())
        if isinstance(window, RowWindow):
            long, have = f"{window.rows:,} rows", f"has {rows:,} of {STREAMS[stream]}"
        else:
            length = int(batch.ts[-1] - batch.ts[0]) + 1
            long = f"{window.length:,} long in the unit of ts"
            have = f"is {length:,} long"
        raise InputError(
            f"the window is {long}, but the stretch {have}: a plan needs a stretch of several windows, so take a longer sample"
        )
    if isinstance(window, RowWindow):
        return int(batch.ts[batch.stream == stream][window.rows])
    return int(batch.ts[0]) + window.length
