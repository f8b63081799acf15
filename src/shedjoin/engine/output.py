"""What a push gives back: pairs, the shed log, counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.codes import WHY
from shedjoin.engine.state import SHED_RECORD


@dataclass(frozen=True, slots=True)
class ShedLog:
    """Every row that left memory early or came too late, in the order in which it happened.

    Attributes
    ----------
    stream, seq, ts, key
        The row (the key of a late row with a null key is 0).
    when, tick
        The time and the number of the instant in which it left.
    why
        A code; `WHY[code]` is the word: evicted, late, schedule.
    seen
        For each stream (column), how many rows had arrived by then: a partner with a number of at least that was missed.
    """

    stream: NDArray[np.int64]
    seq: NDArray[np.int64]
    ts: NDArray[np.int64]
    key: NDArray[np.int64]
    when: NDArray[np.int64]
    tick: NDArray[np.int64]
    why: NDArray[np.int64]
    seen: NDArray[np.int64]

    @classmethod
    def of(cls, chunks: Iterable[NDArray[np.void]]) -> ShedLog:
        records = np.concatenate([np.empty(0, SHED_RECORD), *chunks])
        columns = {name: np.ascontiguousarray(records[name]) for name in cls.__slots__[:-1]}
        return cls(**columns, seen=np.stack([records["seen0"], records["seen1"]], axis=1))

    def __len__(self) -> int:
        return int(self.stream.size)

    def records(self) -> NDArray[np.void]:
        """The log as one structured array."""
        records = np.empty(len(self), SHED_RECORD)
        for name in self.__slots__[:-1]:
            records[name] = getattr(self, name)
        records["seen0"], records["seen1"] = self.seen[:, 0], self.seen[:, 1]
        return records

    def to_arrow(self) -> pa.Table:
        """The log as a table, with words for reasons."""
        columns = {name: getattr(self, name) for name in self.__slots__[:-2]}
        columns["why"] = np.array(WHY, dtype=object)[self.why]
        return pa.table({**columns, "seen_left": self.seen[:, 0], "seen_right": self.seen[:, 1]})


@dataclass(frozen=True, slots=True)
class Output:
    """What one push produced: results by row numbers, what was shed, and counters."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    importance: NDArray[np.float64]
    shed: ShedLog
    stats: dict[str, int]

    def __len__(self) -> int:
        return int(self.left.size)
