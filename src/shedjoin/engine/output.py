"""The output of a push: results by row numbers, the shed log, counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.codes import WHY
from shedjoin.engine.pieces import Pieces
from shedjoin.engine.records import LEFT_OUT_FIELDS, LEFT_OUT_RECORD, NEVER, shed_record
from shedjoin.engine.weights import Weights
from shedjoin.errors import InputError

#: What two streams are called.
SIDES = ("left", "right")


class ShedLog:
    """Every row that left memory early or came too late, in order.

    It keeps the given arrays of records and does not copy them.

    Attributes
    ----------
    stream, seq, ts, key
        The row (the key of a late row with a null key is 0; in a join graph the first attribute that the join looks at).
    when, tick
        The time and the number of the instant in which it left.
    why
        A code; `WHY[code]` is the word: evicted, late, schedule.
    seen
        For each stream (column), how many rows had arrived by then: a partner with this number or a larger one was missed. For
        a late row: how many had arrived before it (for its own stream: its number).
    expired
        For a late row and each stream: rows of `seen` with a time up to this had expired, and were missed. `NEVER`: none.
    """

    __slots__ = ("_names", "_pieces")

    def __init__(self, chunks: Iterable[NDArray[np.void]] = (), names: Sequence[str] = SIDES) -> None:
        self._names = tuple(names)
        self._pieces = Pieces(shed_record(len(self._names)), chunks)

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
        return self._column("seen")

    @property
    def expired(self) -> NDArray[np.int64]:
        return self._column("expired")

    def _column(self, name: str) -> NDArray[np.int64]:
        """Made when asked for: a run may shed millions of rows whose log is never read."""
        return self._pieces.whole()[name].copy()

    def records(self) -> NDArray[np.void]:
        """The log as one structured array."""
        return self._pieces.whole().copy()

    def to_arrow(self) -> pa.Table:
        """The log as a table, with words for reasons and, of three and more streams, for streams."""
        stream = self.stream if self._names == SIDES else np.array(self._names, dtype=object)[self.stream]
        columns = {name: self._column(name) for name in ("seq", "ts", "key", "when", "tick")}
        more = {f"seen_{name}": self.seen[:, number] for number, name in enumerate(self._names)}
        for number, name in enumerate(self._names):
            expired = self.expired[:, number]
            more[f"expired_{name}"] = pa.array(expired, mask=expired == NEVER)
        return pa.table({"stream": stream, **columns, "why": np.array(WHY, dtype=object)[self.why], **more})

    def __repr__(self) -> str:
        return f"ShedLog({len(self)} rows)"


class LeftOutLog:
    """The skipped comparisons: ranges of other windows that rows were not compared with, in order.

    A range holds the tuples of stream `other` from position (`lo_ts`, `lo_seq`) up to, but not including, (`hi_ts`, `hi_seq`).
    A position is a tuple's time and row number; in row windows the time is 0.

    Attributes
    ----------
    stream, seq
        The row.
    other
        The stream of the window.
    lo_ts, lo_seq, hi_ts, hi_seq
        The range: it begins with the first skipped tuple, and ends right after the last one.
    """

    __slots__ = ("_names", "_pieces")

    def __init__(self, chunks: Iterable[NDArray[np.void]] = (), names: Sequence[str] = SIDES) -> None:
        self._names = tuple(names)
        self._pieces = Pieces(LEFT_OUT_RECORD, chunks)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def stream(self) -> NDArray[np.int64]:
        return self._column("stream")

    @property
    def seq(self) -> NDArray[np.int64]:
        return self._column("seq")

    @property
    def other(self) -> NDArray[np.int64]:
        return self._column("other")

    @property
    def lo_ts(self) -> NDArray[np.int64]:
        return self._column("lo_ts")

    @property
    def lo_seq(self) -> NDArray[np.int64]:
        return self._column("lo_seq")

    @property
    def hi_ts(self) -> NDArray[np.int64]:
        return self._column("hi_ts")

    @property
    def hi_seq(self) -> NDArray[np.int64]:
        return self._column("hi_seq")

    def _column(self, name: str) -> NDArray[np.int64]:
        return self._pieces.whole()[name].copy()

    def records(self) -> NDArray[np.void]:
        """The log as one structured array."""
        return self._pieces.whole().copy()

    def to_arrow(self) -> pa.Table:
        """The log as a table, with words for streams where the shed log has them."""
        columns: dict[str, NDArray[Any]] = {name: self._column(name) for name in LEFT_OUT_FIELDS}
        if self._names != SIDES:
            for name in ("stream", "other"):
                columns[name] = np.array(self._names, dtype=object)[columns[name]]
        return pa.table(columns)

    def __repr__(self) -> str:
        return f"LeftOutLog({len(self)} stretches)"


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one push.

    Attributes
    ----------
    columns
        Results by the row numbers of their tuples: one array a stream.
    importance
        One number a result.
    shed
        The shed rows.
    stats
        Counters of this push.
    names
        Of the streams.
    left_out
        The skipped comparisons of a join with selective processing.
    weights
        With the policy `Sample`: see `weight`.
    """

    columns: tuple[NDArray[np.int64], ...]
    importance: NDArray[np.float64]
    shed: ShedLog
    stats: dict[str, int]
    names: tuple[str, ...] = SIDES
    left_out: LeftOutLog = field(default_factory=LeftOutLog)
    weights: Weights | None = None

    def __len__(self) -> int:
        return int(self.importance.size)

    @property
    def left(self) -> NDArray[np.int64]:
        """The row numbers of the first stream."""
        return self.columns[0]

    @property
    def right(self) -> NDArray[np.int64]:
        """The row numbers of the second stream."""
        return self.columns[1]

    @property
    def weight(self) -> NDArray[np.float64]:
        """The number of exact results that each result represents: weighted sums are unbiased. Only with `Sample`."""
        return self._weights().weight

    @property
    def stored(self) -> NDArray[np.int64]:
        """A number for the older row of each result of two streams, which was in memory: 2 x its row number + its stream."""
        if len(self.columns) != 2:
            raise InputError(
                f"stored is for joins of two streams: a result of {len(self.columns)} has several older rows. Give `inverse` and "
                "`rows` to estimates instead"
            )
        newest = self._weights().newest
        return np.where(newest == 1, 2 * self.columns[0], 2 * self.columns[1] + 1)

    @property
    def inverse(self) -> NDArray[np.float64]:
        """Of three and more streams: the factors of each weight, one line a result, one column a stream.

        Each is one divided by the probability that the row was still in memory; 1 of the row that came last.
        """
        if len(self.columns) == 2:
            raise InputError(
                "inverse is for joins of three and more streams: a result of two has one older row, `stored`"
            )
        return self._weights().inverse

    def _weights(self) -> Weights:
        if self.weights is None:
            raise InputError(
                "results have weights with policy=Sample() only: other policies do not know what they missed. After a change "
                "to it, weights begin with the first push after all rows of before have expired"
            )
        return self.weights

    @property
    def rows(self) -> NDArray[np.int64]:
        """One line a result, one column a stream."""
        return np.stack(self.columns, axis=1)

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """The row numbers of one stream, a result each."""
        if name not in self.names:
            raise InputError(f"there is no stream {name!r}; the streams are {', '.join(self.names)}")
        return self.columns[self.names.index(name)]

    @classmethod
    def joined(cls, parts: Sequence[Output]) -> Output:
        """The pieces of one push as a whole."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        stats = {name: sum(part.stats[name] for part in parts) for name in first.stats}
        shed = ShedLog((piece for part in parts for piece in part.shed._pieces.parts), first.names)
        columns = tuple(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True))
        left_out = LeftOutLog((piece for part in parts for piece in part.left_out._pieces.parts), first.names)
        importance = np.concatenate([part.importance for part in parts])
        weights = [part.weights for part in parts if part.weights is not None]
        weighted = Weights.joined(weights) if weights else None
        return cls(columns, importance, shed, stats, first.names, left_out, weighted)
