"""What a push of an n-way join gives back: results by row numbers, the shed log, counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.codes import WHY
from shedjoin.engine.nway.state import NSHED_RECORD
from shedjoin.engine.pieces import Pieces
from shedjoin.errors import InputError


class MultiShedLog:
    """Every row that left memory early or came too late, in the order in which it happened.

    Made of arrays of records, which it keeps and does not copy.

    Attributes
    ----------
    stream, seq, ts, key
        The row; `key` is the first of its attributes that the join looks at.
    when, tick
        The time and the number of the instant in which it left.
    why
        A code; `WHY[code]` is the word: evicted, late, schedule.
    seen
        For each stream (column), how many rows had arrived by then: what came later was missed.
    """

    __slots__ = ("_names", "_pieces")

    def __init__(self, names: Sequence[str], chunks: Iterable[NDArray[np.void]] = ()) -> None:
        self._names = tuple(names)
        self._pieces = Pieces(NSHED_RECORD, chunks)

    def __len__(self) -> int:
        return len(self._pieces)

    def __getattr__(self, name: str) -> NDArray[np.int64]:
        if name not in ("stream", "seq", "ts", "key", "when", "tick", "why"):
            raise AttributeError(name)
        return self._pieces.whole()[name].copy()

    @property
    def seen(self) -> NDArray[np.int64]:
        return self._pieces.whole()["seen"][:, : len(self._names)].copy()

    def records(self) -> NDArray[np.void]:
        """The log as one structured array."""
        return self._pieces.whole().copy()

    def to_arrow(self) -> pa.Table:
        """The log as a table, with words for streams and reasons."""
        columns = {name: getattr(self, name) for name in ("seq", "ts", "key", "when", "tick")}
        stream = np.array(self._names, dtype=object)[self.stream]
        seen = {f"seen_{name}": self.seen[:, number] for number, name in enumerate(self._names)}
        return pa.table({"stream": stream, **columns, "why": np.array(WHY, dtype=object)[self.why], **seen})

    def __repr__(self) -> str:
        return f"MultiShedLog({len(self)} rows)"


@dataclass(frozen=True, slots=True)
class MultiOutput:
    """What one push produced.

    Attributes
    ----------
    rows
        One line a result, one column a stream: the row numbers of its tuples.
    importance
        One number a result.
    shed
        What was shed.
    stats
        Counters of this push.
    """

    names: tuple[str, ...]
    rows: NDArray[np.int64]
    importance: NDArray[np.float64]
    shed: MultiShedLog
    stats: dict[str, int]

    def __len__(self) -> int:
        return int(self.importance.size)

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """The row numbers of one stream, a result each."""
        if name not in self.names:
            raise InputError(f"there is no stream {name!r}; the streams are {', '.join(self.names)}")
        return self.rows[:, self.names.index(name)]

    @classmethod
    def joined(cls, parts: Sequence[MultiOutput]) -> MultiOutput:
        """The pieces of one push as a whole."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].names,
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.importance for part in parts]),
            MultiShedLog(parts[0].names, [piece for part in parts for piece in part.shed._pieces.parts]),
            {name: sum(part.stats[name] for part in parts) for name in parts[0].stats},
        )
