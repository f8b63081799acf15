"""The sample of two streams that a plan is made from, divided into blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shedjoin.batch import STREAMS, Batch, TableLike
from shedjoin.errors import InputError, SpecError
from shedjoin.parse import parse_window
from shedjoin.spec import JoinSpec, check_warmup
from shedjoin.window import RowWindow, TimeWindow, Window

#: The largest number of blocks over which the spread is measured. A block is at least a window long.
BLOCKS = 8


@dataclass(frozen=True, slots=True)
class StreamSample:
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


def sample_of(spec: JoinSpec, left: TableLike, right: TableLike, cut: object, warmup: int | None) -> StreamSample:
    """Both streams in time order, or their last part (`cut`)."""
    tables, checked = {"left": left, "right": right}, spec.plan().checked
    whole = _in_order(Batch.of_streams(tables, dict.fromkeys(STREAMS, ("key",)), checked=checked))
    batch = whole if cut is None or not len(whole) else _latest(whole, cut)
    for stream, name in enumerate(STREAMS):
        if not (whole.stream == stream).any():
            raise InputError(f"{name} has no rows: a plan needs rows of both streams")
        if not (batch.stream == stream).any():
            raise InputError(f"{name} has no rows in the last {cut!r} of the streams: take a longer sample")
    since = max(_passed(batch, stream, window) for stream, window in enumerate(spec.windows))
    if warmup is not None:
        check_warmup(warmup)
        since = int(warmup)
    first, last = int(batch.ts[0]), int(batch.ts[-1])
    if since > last:
        raise SpecError(f"warmup is {since}, but the sample ends at {last}: no result would count")
    windows = min(_windows(batch, stream, window) for stream, window in enumerate(spec.windows))
    blocks = max(1, min(BLOCKS, int(windows * (last + 1 - since) / (last + 1 - first))))
    times = since + np.arange(blocks) * (last + 1 - since) / blocks
    return StreamSample(batch, since, tuple(np.searchsorted(batch.ts, times).tolist()), windows)


def _in_order(batch: Batch) -> Batch:
    return batch if (np.diff(batch.ts) >= 0).all() else batch.take(np.lexsort((batch.stream, batch.ts)))


def _latest(batch: Batch, cut: object) -> Batch:
    """The last rows of both streams together, or all rows of the last part of time; whole instants."""
    window = cut if isinstance(cut, int) and not isinstance(cut, bool) else parse_window(cut, argument="sample")
    if isinstance(window, tuple):
        raise SpecError(f"sample must be one length for both streams, such as '1 hour' or '200k rows', not {cut!r}")
    if isinstance(window, TimeWindow):
        begin = int(np.searchsorted(batch.ts, batch.ts[-1] - window.length, side="right"))
    else:
        rows = window.rows if isinstance(window, RowWindow) else window
        if rows < 1:
            raise SpecError(f"sample must have at least one row, not {cut!r}")
        begin = int(np.searchsorted(batch.ts, batch.ts[max(len(batch) - rows, 0)]))
    return batch.take(slice(begin, None))


def _windows(batch: Batch, stream: int, window: Window) -> float:
    """The length of the sample, in windows of a stream."""
    if isinstance(window, RowWindow):
        return float((batch.stream == stream).sum() / window.rows)
    return float((batch.ts[-1] - batch.ts[0] + 1) / window.range)


def _passed(batch: Batch, stream: int, window: Window) -> int:
    """When the first window of a stream has passed."""
    mine = batch.ts[batch.stream == stream]
    if _windows(batch, stream, window) <= 1:
        if isinstance(window, RowWindow):
            long, have = f"{window.rows:,} rows", f"has {mine.size:,} of {STREAMS[stream]}"
        else:
            length = int(batch.ts[-1] - batch.ts[0]) + 1
            long, have = f"{window.range:,} long in the unit of ts", f"is {length:,} long"
        raise InputError(
            f"the window is {long}, but the sample {have}: a plan needs several windows of rows, so take a longer sample"
        )
    return int(mine[window.rows]) if isinstance(window, RowWindow) else int(batch.ts[0]) + window.length
