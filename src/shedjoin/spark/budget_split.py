"""How the memory is split over shards: each gets what the whole join would keep there.

Every packing task counts its rows and tells every shard (see `task_report`); so all shards know the same of the streams, work out
the same shares of all, and each takes its own. Nothing goes through the driver, and what one shard gains another loses in the
same micro-batch.

Rows are counted by cells, each a part of the keys of one shard: what a task tells follows from which rows it had, not from
their order. Whatever is added up is a whole number, so that no two machines come to different shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import LATEST, ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.records import NEVER
from shedjoin.errors import SpecError
from shedjoin.spark.hashing import spread
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow

STREAMS = 2
#: How memory may be shared.
ADAPTIVE, EQUAL = SHARES = ("adaptive", "equal")
#: About how many cells a task counts in, and the fewest for a shard.
CELLS, FEWEST_CELLS = 1 << 16, 256
#: How many of its fullest cells a task names, and how many of each stream are kept in mind.
NAMED, KEPT = 512, 512
#: Counts cover this many windows, and at least this many rows.
WINDOWS, ROWS = 8, 1 << 16
#: Counts are kept in parts of a row, so that forgetting a little does not forget the rare.
PARTS = 16
#: Memory that is wanted is worked out in such parts of a tuple or byte.
FINE = 256
#: Memory moves when more than this share of it would.
MOVED = 0.01
#: No shard has less than this part of an equal share.
LEAST = 64
Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]


def cells_of(shards: int) -> int:
    """How many cells a shard has; a power of two.

    Examples
    --------
    >>> cells_of(8), cells_of(1000)
    (8192, 256)
    """
    return max(FEWEST_CELLS, 1 << ((CELLS // shards).bit_length() - 1))


def named_of(shards: int) -> int:
    """How many cells a task reports: fewer if there are very many shards."""
    return max(32, min(NAMED, NAMED * 64 // shards))


# --------------------------------------------------------------------------------------------------- what tasks tell


class Counts(NamedTuple):
    """What one task had of one stream."""

    oldest: int  # time
    rows: Integers  # by shard
    sizes: Integers  # bytes by shard; zeros where memory is not counted in bytes
    cells: Integers  # the fullest
    inside: Integers  # rows in each of these


class Counter:
    """Counts the rows of one task, piece by piece."""

    def __init__(self, shards: int) -> None:
        self._shards, self._each = shards, cells_of(shards)
        self._inside = np.zeros(shards * self._each, np.int64)
        self._rows, self._sizes = np.zeros(shards, np.int64), np.zeros(shards, np.int64)
        self._oldest = LATEST

    def add(
        self,
        first: Integers,
        offsets: Sequence[int],
        ts: Integers,
        keys: Integers | None = None,
        sizes: Integers | None = None,
    ) -> None:
        """Rows that may be stored: the first shard of each and where its copies go, its time, its key where the join has one, and
        its bytes if those count."""
        if not first.size:
            return
        self._oldest = min(self._oldest, int(ts.min()))
        for offset in offsets:
            self._rows += np.bincount(first + offset, minlength=self._shards)
            if sizes is not None:  # their sums are whole numbers far below 2**53
                self._sizes += np.bincount(first + offset, sizes, minlength=self._shards).astype(np.int64)
        if keys is not None:
            cell = first * self._each + (spread(keys) & np.uint64(self._each - 1)).astype(np.int64)
            self._inside += np.bincount(cell, minlength=self._inside.size)

    def counts(self) -> Counts:
        """Of all rows so far."""
        full = np.flatnonzero(self._inside)
        cells, inside = _fullest(full, self._inside[full], named_of(self._shards))
        return Counts(self._oldest, self._rows, self._sizes, cells, inside)


def _fullest(cells: Integers, inside: Integers, most: int) -> tuple[Integers, Integers]:
    """The fullest cells (of equal ones the first), in order of their numbers."""
    if cells.size > most:
        chosen = np.sort(np.lexsort((cells, -inside))[:most])
        cells, inside = cells[chosen], inside[chosen]
    return cells, inside


def _sums(places: Integers, amounts: Integers, size: int) -> Integers:
    """Whole numbers added up by place."""
    total = np.zeros(size, np.int64)
    np.add.at(total, places, amounts)
    return total


# -------------------------------------------------------------------------------------------------- what shards know


@dataclass(frozen=True)
class StreamCounts:
    """What is remembered of one stream, in `PARTS` of a row: the more the newer."""

    cells: Integers
    inside: Integers
    rest: Integers  # by shard: what is in no cell above
    sizes: Integers  # bytes by shard
    span: int = 0  # the time in which these rows came
    arrived: int = 0  # rows ever
    clock: int = NEVER

    @classmethod
    def new(cls, shards: int) -> StreamCounts:
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, np.zeros(shards, np.int64), np.zeros(shards, np.int64))

    @property
    def rows(self) -> Integers:
        """By shard."""
        shards = self.rest.size
        return self.rest + _sums(self.cells // cells_of(shards), self.inside, shards)

    def absorb(self, told: Sequence[Counts], newest: int, length: int, *, by_rows: bool = False) -> StreamCounts:
        """With what the tasks of a micro-batch had, the newest of which is this; rows stay for that length, or are so many."""
        shards, clock = self.rest.size, max(self.clock, newest)
        new = sum((one.rows for one in told), np.zeros(shards, np.int64))
        if not new.any():
            return replace(self, clock=clock)
        each = cells_of(shards)
        named = np.concatenate([one.cells for one in told])
        inside = np.concatenate([one.inside for one in told])
        rest = self.rest + PARTS * (new - _sums(named // each, inside, shards))
        cells, place = np.unique(np.concatenate([self.cells, named]), return_inverse=True)
        inside = _sums(place, np.concatenate([self.inside, PARTS * inside]), cells.size)
        kept, kept_inside = _fullest(cells, inside, KEPT)
        gone = ~np.isin(cells, kept, assume_unique=True)
        # A pause between two micro-batches is not time in which rows came.
        span = newest - max(self.clock, min(one.oldest for one in told) - 1)
        return StreamCounts(
            cells=kept,
            inside=kept_inside,
            rest=rest + _sums(cells[gone] // each, inside[gone], shards),
            sizes=self.sizes + PARTS * sum((one.sizes for one in told), np.zeros(shards, np.int64)),
            span=self.span + max(span, 0),
            arrived=self.arrived + int(new.sum()),
            clock=clock,
        )._fade(length, by_rows)

    def _fade(self, length: int, by_rows: bool) -> StreamCounts:
        """Decay all counts and the time by the same factor, so that rates do not change."""
        total = int(self.rows.sum())
        window = PARTS * length if by_rows else total * length // max(self.span, 1)
        most = max(PARTS * ROWS, WINDOWS * window)
        if total <= most:
            return self
        left = most / total
        inside, rest, size = (np.rint(part * left).astype(np.int64) for part in (self.inside, self.rest, self.sizes))
        return replace(self, inside=inside, rest=rest, sizes=size, span=int(self.span * left))

    def in_window(self, length: int, *, by_rows: bool = False) -> float:
        """What a count here comes to, in tuples that are there at once when each stays for that length, or when so many stay."""
        total = max(int(self.rows.sum()), 1)
        if by_rows:
            return min(self.arrived, length) / total
        return min(self.arrived / total, length / (PARTS * max(self.span, 1)))

    def to_dict(self) -> dict[str, Any]:
        return {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in vars(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StreamCounts:
        read: dict[str, Any] = {
            name: np.array(one, np.int64) if isinstance(one, list) else one for name, one in data.items()
        }
        return cls(**read)


@dataclass(frozen=True)
class BudgetSplit:
    """What every shard knows of the whole join, and the shares computed from it."""

    streams: tuple[StreamCounts, ...]
    budget: Budget | None = None  # which is shared
    parts: tuple[tuple[int, ...], ...] = ()  # for each memory (one a stream, or one for all) those of the shards

    @classmethod
    def new(cls, shards: int, streams: int = STREAMS) -> BudgetSplit:
        return cls(tuple(StreamCounts.new(shards) for _ in range(streams)))

    def part(self, shard: int) -> Budget:
        """The budget of one shard."""
        assert self.budget is not None
        return _part(self.budget, [parts[shard] for parts in self.parts])

    def follow(self, told: Sequence[Sequence[Counts]], newest: Sequence[int | None], spec: JoinSpec) -> BudgetSplit:
        """After a micro-batch has arrived: what each stream's tasks counted, and its newest time."""
        lengths = [
            window.size if isinstance(window, RowWindow) else max(1, window.size + spec.lateness)
            for window in spec.windows
        ]
        streams = tuple(
            stream.absorb(counts, NEVER if time is None else time, length, by_rows=isinstance(window, RowWindow))
            for stream, counts, time, length, window in zip(
                self.streams, told, newest, lengths, spec.windows, strict=True
            )
        )
        return replace(self, streams=streams)._share(spec, lengths)

    def _share(self, spec: JoinSpec, lengths: list[int]) -> BudgetSplit:
        budget = spec.budget
        assert budget is not None
        caps = budget.caps(len(self.streams), ROW_BYTES)
        wants = [self._wants(stream, spec, length) for stream, length in enumerate(lengths)]
        if len(caps) == 1:
            wants = [Wants(*(np.concatenate(each) for each in zip(*wants, strict=True)))]
        shards = self.streams[0].rest.size
        least = least_of(budget, shards, len(self.streams))
        parts = tuple(_split(cap, want, shards, least) for cap, want in zip(caps, wants, strict=True))
        if budget == self.budget and moved(self.parts, parts) <= MOVED * sum(caps):
            return self
        return replace(self, budget=budget, parts=parts)

    def _wants(self, number: int, spec: JoinSpec, length: int) -> Wants:
        """What of a stream might be stored, by cells, and the rest by shards."""
        mine = self.streams[number]
        others = [stream for place, stream in enumerate(self.streams) if place != number]
        shards = mine.rest.size
        each = cells_of(shards)
        if isinstance(spec.windows[number], RowWindow):  # which waits for no clock
            factor = mine.in_window(length, by_rows=True)
        else:
            factor = mine.in_window(length + self._ahead(number, spec))
        shard = np.concatenate([mine.cells // each, np.arange(shards)])
        size = np.concatenate([mine.inside, mine.rest]) * factor
        if spec.budget is not None and spec.budget.unit == "bytes":
            size *= (mine.sizes / np.maximum(mine.rows, 1))[shard]
        return Wants(np.rint(size * FINE).astype(np.int64), _worth(mine, others, spec), shard)

    def _ahead(self, number: int, spec: JoinSpec) -> int:
        """How far a stream has run ahead of the last of the others: so much longer its tuples stay."""
        clocks = [stream.clock for stream in self.streams]
        if NEVER in clocks:
            return LATEST if spec.max_skew is None else spec.max_skew
        ahead = max(clocks[number] - min(clocks), 0)
        return ahead if spec.max_skew is None else min(ahead, spec.max_skew)

    # ------------------------------------------------------------------------------------------------- as plain data

    def to_dict(self) -> dict[str, Any]:
        """As it is kept with the state of a shard."""
        return {
            "streams": [stream.to_dict() for stream in self.streams],
            "budget": None if self.budget is None else asdict(self.budget),
            "parts": [list(part) for part in self.parts],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BudgetSplit:
        """What `to_dict` wrote."""
        streams = tuple(StreamCounts.from_dict(one) for one in data["streams"])
        budget = data["budget"] and Budget(**{**data["budget"], "shares": _tuple(data["budget"]["shares"])})
        return cls(streams, budget, tuple(tuple(part) for part in data["parts"]))


def _tuple(numbers: list[float] | None) -> tuple[float, ...] | None:
    return None if numbers is None else tuple(numbers)


# ------------------------------------------------------------------------------------------------------- the shares


class Wants(NamedTuple):
    """Tuples that might be stored: how much memory they take (`FINE`), what each is worth, where they belong."""

    size: Integers
    worth: Numbers
    shard: Integers


def _worth(mine: StreamCounts, others: Sequence[StreamCounts], spec: JoinSpec) -> Numbers:
    """What tuples of each cell, and of the rest, are worth to the policy: how often partners come, one of each stream."""
    order = spec.policy.order() if spec.policy is not None else None
    if order is None or order.matches <= 0.0 or not all(other.cells.size for other in others):
        return np.zeros(mine.cells.size + mine.rest.size)  # such a policy sheds of all keys alike
    worth = np.ones(mine.cells.size)
    for other in others:
        found = np.searchsorted(other.cells, mine.cells).clip(max=other.cells.size - 1)
        worth *= np.where(other.cells[found] == mine.cells, other.inside[found], 0) / max(other.span, 1)
    return np.concatenate([worth, np.zeros(mine.rest.size)])


def _split(cap: int, wants: Wants, shards: int, least: int) -> tuple[int, ...]:
    """A memory in parts: for the most worthy tuples first, alike for those that are worth the same."""
    _, level = np.unique(-wants.worth, return_inverse=True)
    needed = _sums(level, wants.size, int(level.max(initial=-1)) + 1)
    total = int(needed.sum())
    stored = wants.size
    if cap * FINE < total:
        room = np.clip(cap * FINE - (np.cumsum(needed) - needed), 0, needed)
        stored = np.rint(stored * (room / np.maximum(needed, 1))[level]).astype(np.int64)
    return apportion(cap, _sums(wants.shard, stored, shards).tolist(), least)


def share_of(budget: Budget, shard: int, shards: int, streams: int = STREAMS) -> Budget:
    """One shard's part of a budget when all are alike; all parts add up to the whole.

    Examples
    --------
    >>> [share_of(Budget(tuples=22, allocation="fixed"), shard, 3).caps(2) for shard in range(3)]
    [(4, 4), (4, 4), (3, 3)]
    """
    if shards == 1:
        return budget
    least = least_of(budget, shards, streams)
    caps = budget.caps(streams, ROW_BYTES)
    return _part(budget, [apportion(cap, [0] * shards, least)[shard] for cap in caps])


def _part(budget: Budget, mine: list[int]) -> Budget:
    """A shard's budget from its part of each memory."""
    amount = {budget.unit: sum(mine)}
    return replace(budget, **amount, shares=tuple(map(float, mine)) if len(mine) > 1 else None)  # type: ignore[arg-type]


def apportion(total: int, wanted: Sequence[int], least: int) -> tuple[int, ...]:
    """Whole parts of a total: the least for each, and beyond that as they are wanted.

    Examples
    --------
    >>> apportion(10, [0, 1, 3], 1)
    (1, 3, 6)
    >>> apportion(10, [0, 0, 0], 1)
    (4, 3, 3)
    """
    wanted = wanted if any(wanted) else [1] * len(wanted)
    room, whole = total - least * len(wanted), sum(wanted)
    floors = [divmod(room * one, whole) for one in wanted]
    spare = room - sum(floor for floor, _ in floors)
    first = sorted(range(len(wanted)), key=lambda place: (-floors[place][1], place))[:spare]
    return tuple(least + floor + (place in first) for place, (floor, _) in enumerate(floors))


def moved(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> int:
    """How much memory changes hands."""
    pairs = ((a, b) for old, new in zip(before, after, strict=True) for a, b in zip(old, new, strict=True))
    return sum(max(new - old, 0) for old, new in pairs)


def least_of(budget: Budget, shards: int, streams: int = STREAMS) -> int:
    """The least that a shard has of each memory: room for a tuple of each stream that is stored there."""
    caps = budget.caps(streams, ROW_BYTES)
    one = (1 if budget.unit == "tuples" else ROW_BYTES) * (streams // len(caps))
    if min(caps) < one * shards:
        raise SpecError(
            f"budget: {budget.total} {budget.unit} are too few for {shards} shards, each of which needs some for each stream"
        )
    return max(one, min(caps) // (LEAST * shards))
