"""What a push gives back: pairs, the shed log, counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.codes import WHY
from shedjoin.engine.pieces import Pieces
from shedjoin.engine.state import SHED_RECORD


class ShedLog:
    """Every row that left memory early or came too late, in the order in which it happened.

    Made of arrays of records, which it keeps and does not copy.

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

    __slots__ = ("_pieces",)

    def __init__(self, chunks: Iterable[NDArray[np.void]] = ()) -> None:
        self._pieces = Pieces(SHED_RECORD, chunks)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def stream(self) -> NDArray[np.int64]:
        return self._column("stream")

    @property
    def seq(self) -> NDArray[np.int64]:
        return self._column("seq")

    @property
    def ts(self) -> NDArray[np.int64]:
        return self._column("ts")

    @property
    def key(self) -> NDArray[np.int64]:
        return self._column("key")

    @property
    def when(self) -> NDArray[np.int64]:
        return self._column("when")

    @property
    def tick(self) -> NDArray[np.int64]:
        return self._column("tick")

    @property
    def why(self) -> NDArray[np.int64]:
        return self._column("why")

    @property
    def seen(self) -> NDArray[np.int64]:
        return np.stack([self._column("seen0"), self._column("seen1")], axis=1)

    def _column(self, name: str) -> NDArray[np.int64]:
        """Made when asked for: a run may shed millions of rows whose log nobody reads."""
        return self._pieces.whole()[name].copy()

    def records(self) -> NDArray[np.void]:
        """The log as one structured array."""
        return self._pieces.whole().copy()

    def to_arrow(self) -> pa.Table:
        """The log as a table, with words for reasons."""
        columns = {name: self._column(name) for name in ("stream", "seq", "ts", "key", "when", "tick")}
        why = np.array(WHY, dtype=object)[self.why]
        return pa.table({**columns, "why": why, "seen_left": self.seen[:, 0], "seen_right": self.seen[:, 1]})

    def __repr__(self) -> str:
        return f"ShedLog({len(self)} rows)"


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

    @classmethod
    def joined(cls, parts: Sequence[Output]) -> Output:
        """The pieces of one push as a whole."""
        if len(parts) == 1:
            return parts[0]
        stats = {name: sum(part.stats[name] for part in parts) for name in parts[0].stats}
        shed = ShedLog(piece for part in parts for piece in part.shed._pieces.parts)
        left, right = (np.concatenate([getattr(part, side) for part in parts]) for side in ("left", "right"))
        return cls(left, right, np.concatenate([part.importance for part in parts]), shed, stats)
