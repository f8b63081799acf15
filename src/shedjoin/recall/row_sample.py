"""A random sample of the windows: the join itself, within a small memory that keeps the rows with the highest draws.

Every row has a random draw, a hash of the seed and its number. The sample is an engine of the same join under `Simp`, with
draws in place of importances: when its memory is full, the lowest draws go. All rows probe it. So it finds the results whose
older rows are in the sample (bottom-k sampling).

A row that came some time ago is in the sample iff its draw is above its *bar*, the highest draw evicted since it came. What was
evicted does not depend on how far its own draw is above the bar. So given the other draws, it is there with probability 1 - bar,
and several rows are all there with the product of their probabilities ("substitutability"; Ting, Adaptive threshold sampling).
This also holds when the size of the memory follows the number of results that were found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.engine.codes import EVICTED
from shedjoin.engine.output import Output
from shedjoin.policies import Simp
from shedjoin.predicates.rows import GOLDEN, splitmix64
from shedjoin.recall.live import LiveRecall
from shedjoin.spec import JoinSpec

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
#: Rows between two looks at the work. They do not depend on how rows come in pushes.
BLOCK = 1024
#: Results that a row may find on average, and how many more in advance, for each row of the largest sample.
WORK, CREDIT = 32, 64
#: The sample does not get smaller than this part of its largest size.
LEAST_PART = 8
#: A row of one stream that is in the sample, or was since the last upkeep.
ROW = np.dtype(
    [
        ("seq", "i8"),
        ("place", "i8"),  # how many rows of all streams came before it
        ("importance", "f8"),
        ("bar", "f8"),  # the highest draw evicted since it came
        ("gone", "i8"),  # the block by whose end it had left; 0: it is in the sample
        ("p", "f8"),  # the lowest probability with which a result of it was found
        ("missing", "f8", (4,)),  # results, their importance, and both decayed
    ]
)
#: How the importance of a result follows from that of its rows.
RESULT_IMPORTANCE: dict[str, Callable[..., Any]] = {
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
    "product": np.prod,
    "mean": np.mean,
}


class Found(NamedTuple):
    """Results of the exact join that were found in the sample."""

    rows: Integers  # a line a result, a column a stream
    newest: Integers  # the stream of its newest row
    p: Numbers  # of each row, the probability that the sample had it; 1 for the newest
    importance: Numbers

    def where(self, chosen: NDArray[np.bool_]) -> Found:
        """Some of the results."""
        return Found(self.rows[chosen], self.newest[chosen], self.p[chosen], self.importance[chosen])

    @classmethod
    def none(cls, streams: int) -> Found:
        """No results."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros((0, streams), np.int64), nothing, np.zeros((0, streams)), np.zeros(0))


class RowSample:
    """A random sample of the rows of a join. `LiveRecall` has the parameters."""

    def __init__(self, spec: JoinSpec, seed: int, rows: int, part: tuple[int, int]) -> None:
        self._spec, self._most, self._part = spec, rows, part
        # Shards and engines have such seeds too: the salt makes the draws independent of all that they draw.
        digest = hashlib.blake2b(int(seed).to_bytes(8, "little"), digest_size=8, person=b"sample").digest()
        self._seed = int.from_bytes(digest, "little")
        self.engine = self._within(rows).build(part=part)
        self.rows: list[NDArray[Any]] = [np.zeros(0, ROW) for _ in spec.names]
        self.arrived = np.zeros(len(spec.names), np.int64)
        self._cap, self._credit = rows, CREDIT * rows
        self._place = self._block = self._block_rows = self._block_found = 0
        self._weights = 0.0  # summed over blocks

    def _within(self, tuples: int) -> JoinSpec:
        """The same join without a limit of the CPU, within a memory that keeps the highest draws."""
        none: dict[str, Any] = dict.fromkeys(("selective", "cpu", "queue", "dual", "expire_every"))
        return replace(self._spec, budget=Budget(tuples=tuples), policy=Simp(), evaluate_every=0, **none)

    # ----------------------------------------------------------------------------------------------------------- rows

    def push(self, batch: Batch) -> Iterator[Found]:
        """Run rows through the sample; gives what they find, block by block."""
        start = 0
        while start < len(batch):
            end = self._end_of_block(batch, start)
            yield self._push(batch.take(slice(start, end)))
            start = end

    def _end_of_block(self, batch: Batch, start: int) -> int:
        """The first border between instants with enough rows before it."""
        end = start + max(BLOCK - self._block_rows, 1)
        if end >= len(batch):
            return len(batch)
        borders = np.flatnonzero(np.diff(batch.ts[end - 1 :]))
        return end + int(borders[0]) if borders.size else len(batch)

    def tell(self, clocks: Sequence[int | None], arrived: Sequence[int] | None) -> None:
        """What the engine of the join was told after its rows."""
        if any(clock is not None for clock in clocks) or arrived is not None:
            self.engine.push(clocks=tuple(clocks) or None, arrived=arrived)

    def _push(self, batch: Batch) -> Found:
        seqs = self._numbered(batch)
        out = self.engine.push(replace(batch, importance=draws_of(self._seed, batch.stream, seqs)))
        runs = Runs.of(out, self._seed)
        before = [np.zeros(table.size, np.int64) for table in self.rows]  # evictions of this push before a row came
        for stream, table in enumerate(self.rows):
            mine = np.flatnonzero(batch.stream == stream)
            new: NDArray[Any] = np.zeros(mine.size, ROW)
            new["seq"], new["place"] = seqs[mine], self._place + mine
            new["importance"], new["p"] = batch.importance[mine], 1.0
            before[stream] = np.concatenate([before[stream], runs.before(stream, new["seq"])])
            self.rows[stream] = np.concatenate([table, new])
            self.arrived[stream] += mine.size
        self._place += len(batch)
        found = self._found(out, runs, before)
        for table, since in zip(self.rows, before, strict=True):
            table["bar"] = np.maximum(table["bar"], runs.highest(since, runs.count))
        self._block_rows += len(batch)
        self._block_found += len(out)
        if self._block_rows >= BLOCK:
            self._end_block()
        return found

    def _numbered(self, batch: Batch) -> Integers:
        """The number of each row in its stream."""
        if batch.numbers is not None:
            return batch.numbers.seq
        seqs = np.zeros(len(batch), np.int64)
        for stream, first in enumerate(self.arrived.tolist()):
            mine = batch.stream == stream
            seqs[mine] = first + np.arange(int(mine.sum()))
        return seqs

    def _found(self, out: Output, runs: Runs, before: Sequence[Integers]) -> Found:
        if not len(out):
            return Found.none(len(self.rows))
        places = self.places(out.rows)
        newest = np.argmax(self._column("place", places), axis=1)
        since = np.stack([one[places[:, stream]] for stream, one in enumerate(before)], axis=1)
        until = np.take_along_axis(since, newest[:, None], axis=1)
        bars = np.maximum(self._column("bar", places), runs.highest(since, np.broadcast_to(until, since.shape)))
        np.put_along_axis(bars, newest[:, None], 0.0, axis=1)
        importance = RESULT_IMPORTANCE[self._spec.importance](self._column("importance", places), axis=1)
        return Found(out.rows, newest, 1.0 - bars, importance)

    def places(self, rows: Integers) -> Integers:
        """Where the rows of results stand."""
        return np.stack(
            [np.searchsorted(table["seq"], rows[:, stream]) for stream, table in enumerate(self.rows)], axis=1
        )

    def _column(self, name: str, places: Integers) -> NDArray[Any]:
        return np.stack([table[name][places[:, stream]] for stream, table in enumerate(self.rows)], axis=1)

    # ---------------------------------------------------------------------------------------------------------- upkeep

    def _end_block(self) -> None:
        """Bound the work, and mark the rows that have left."""
        self._block += 1
        self._credit += WORK * self._block_rows - self._block_found
        if self._credit < 0:
            self._credit = 0
            self._change_cap(self._cap // 2)
        elif self._credit >= CREDIT * self._most:
            self._credit = CREDIT * self._most
            self._change_cap(2 * self._cap)
        self._block_rows = self._block_found = 0
        weights = []
        for stream, table in enumerate(self.rows):
            here = np.isin(table["seq"], self.engine.live(stream), assume_unique=True)
            table["gone"][~here & (table["gone"] == 0)] = self._block
            weights.append(1.0 / (1.0 - table["bar"][here]))
        held = np.concatenate(weights)
        self._weights += float(held.mean()) ** (len(weights) - 1) if held.size else 1.0

    @property
    def weight(self) -> float:
        """How many results a found result stands for, on average over the blocks."""
        return self._weights / self._block if self._block else 1.0

    def _change_cap(self, cap: int) -> None:
        cap = max(LiveRecall.LEAST_ROWS, self._most // LEAST_PART, min(cap, self._most))
        if cap == self._cap:
            return
        self._cap = cap
        runs = Runs.of(self.engine.set_budget(Budget(tuples=cap)), self._seed)
        for table in self.rows:
            table["bar"] = np.maximum(table["bar"], runs.highest(np.zeros(table.size, np.int64), runs.count))

    # -------------------------------------------------------------------------------------------------------- as bytes

    def numbers(self) -> dict[str, Any]:
        """What is saved beside rows and engine, as plain data."""
        block = [self._place, self._block, self._block_rows, self._block_found]
        return {
            "cap": self._cap,
            "credit": self._credit,
            "arrived": self.arrived.tolist(),
            "block": block,
            "weights": self._weights,
        }

    def restore(self, numbers: dict[str, Any], rows: list[NDArray[Any]], engine: bytes) -> None:
        """Go on from what was saved."""
        self._cap, self._credit, self._weights = numbers["cap"], numbers["credit"], numbers["weights"]
        self.arrived = np.array(numbers["arrived"], np.int64)
        self._place, self._block, self._block_rows, self._block_found = numbers["block"]
        self.rows = rows
        self.engine = self._within(self._cap).resume(engine, part=self._part)


class Runs:
    """The evictions of a push, an instant each: the highest draw that went, and how many rows had come by then.

    Maxima over ranges of them come from a table of maxima over ranges of 1, 2, 4, ... runs.
    """

    def __init__(self, bars: Numbers, seen: Integers) -> None:
        self.count = int(bars.size)
        self._seen = seen
        self._maxima = [np.concatenate([bars, [0.0]])]
        while 2 ** len(self._maxima) <= self.count:
            last, step = self._maxima[-1], 2 ** (len(self._maxima) - 1)
            self._maxima.append(np.maximum(last, np.concatenate([last[step:], np.zeros(step)])))

    @classmethod
    def of(cls, out: Output, seed: int) -> Runs:
        """The evictions of a sample."""
        log = out.shed.records()
        log = log[log["why"] == EVICTED]
        first = np.flatnonzero(np.diff(log["tick"], prepend=-1))
        drawn = draws_of(seed, log["stream"], log["seq"])
        return cls(np.maximum.reduceat(drawn, first) if first.size else np.zeros(0), log["seen"][first])

    def before(self, stream: int, seq: Integers) -> Integers:
        """How many runs there were before a row came."""
        return np.searchsorted(self._seen[:, stream], seq, side="right").astype(np.int64)

    def highest(self, since: Integers, until: Integers | int) -> Numbers:
        """The highest draw of the runs in a range; 0 if there are none."""
        size = np.asarray(until) - since
        level = np.frexp(np.maximum(size, 1))[1] - 1
        table = np.stack(self._maxima)
        both = np.maximum(table[level, since], table[level, np.maximum(until - 2**level, 0)])
        return np.where(size > 0, both, 0.0)


def draws_of(seed: int, stream: Integers, seq: Integers) -> Numbers:
    """Random numbers between 0 and 1, one for each row: a hash of the seed, the stream and the row's number."""
    x = splitmix64(np.uint64(seed) + (seq.astype(np.uint64) * np.uint64(16) + stream.astype(np.uint64)) * GOLDEN)
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
