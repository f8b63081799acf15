"""HyperCube: which shards a row of a join graph goes to (Afrati and Ullman 2010, "Optimizing Joins in a Map-Reduce Environment").

Shards are the cells of a cube. It has a dimension for each set of equated attributes, and one for each stream that no equality
leads to. A row knows its coordinate in some dimensions: by the hash of its attribute, or by the hash of the row itself in the
dimension of its own stream. It goes to all cells that agree with it there. The rows of a result agree in every dimension that
two of them know, and together they know all. So they meet in exactly one shard.

Without equalities this is the 1-Bucket scheme (Okcan and Riedewald 2011): a matrix of two streams, a cube of more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import SAME
from shedjoin.engine.graph import Graph
from shedjoin.predicates import Predicate
from shedjoin.spark.hashing import spread
from shedjoin.window import TimeWindow, Window

#: In the place of an attribute: the coordinate is a hash of the whole row.
ROW = -1
#: The search examines this many partial choices, then takes the best so far. Joins of up to 7 streams need fewer.
MOST_CHOICES = 50_000

#: Of each stream that knows its coordinate, the attribute that has it.
Dimension = dict[int, int]
Integers = NDArray[np.int64]


def dimensions(graph: Graph) -> tuple[Dimension, ...]:
    """The dimensions of a join graph: sets of equated attributes, then streams outside of all of these.

    Examples
    --------
    >>> from shedjoin.engine.graph import parse
    >>> dimensions(parse(["a.x = b.x", "b.y < c.y"], ["a", "b", "c"]))
    ({0: 0, 1: 0}, {2: -1})
    """
    linked = {stream for part in graph.parts for stream in part}
    alone = [{stream: ROW} for stream in range(len(graph.columns)) if stream not in linked]
    return (*(dict(part) for part in graph.parts), *alone)


@dataclass(frozen=True)
class HyperCube:
    """The dimensions of a cube of shards, and the share of each: the number of its coordinates."""

    dims: tuple[Dimension, ...]
    shares: tuple[int, ...]

    @classmethod
    def of_key(cls, streams: int, shards: int) -> HyperCube:
        """Of a key that all streams have: each row goes to the shard of its hash."""
        return cls((dict.fromkeys(range(streams), 0),), (shards,))

    @classmethod
    def of_copies(cls, shards: int) -> HyperCube:
        """A dimension in which no row has a coordinate: each row goes to all shards (SplitJoin)."""
        return cls(({},), (shards,))

    @classmethod
    def of_rows(cls, stream: int, shards: int) -> HyperCube:
        """Each row of one stream goes to the shard of its hash, and those of the other to all."""
        return cls(({stream: ROW},), (shards,))

    @classmethod
    def of_predicate(cls, predicate: Predicate, shards: int, whole: Sequence[int] = ()) -> HyperCube:
        """Of a predicate: `whole` streams are those of which a shard must see all partners of its rows."""
        if predicate.code == SAME:
            return cls.of_key(2, shards)
        if len(whole) == 1 and shards > 1:
            return cls.of_rows(whole[0], shards)
        return cls.of_copies(1 if whole else shards)

    @property
    def shards(self) -> int:
        return math.prod(self.shares)

    @property
    def is_everywhere(self) -> bool:
        """Whether each row goes to all shards. One of them stores it, by its number."""
        return not any(self.dims)

    @property
    def looks_at_values(self) -> bool:
        """Whether the shard of some row follows from a value of its, not from the row as a whole or not at all."""
        return any(at != ROW for dim in self.dims for at in dim.values())

    def copies(self, stream: int) -> int:
        """How many shards each row of a stream goes to."""
        return math.prod(share for dim, share in zip(self.dims, self.shares, strict=True) if stream not in dim)

    @cached_property
    def _steps(self) -> tuple[int, ...]:
        """What one step along each dimension adds to the number of a shard."""
        return tuple(math.prod(self.shares[place + 1 :]) for place in range(len(self.shares)))

    def firsts(self, stream: int) -> Integers:
        """The shards at coordinate 0 of all dimensions that rows of a stream do not know: each row goes to one of these."""
        return self._numbers(known=stream)

    def offsets(self, stream: int) -> Integers:
        """From the first shard of a row to all shards that it goes to."""
        return self._numbers(unknown=stream)

    def _numbers(self, known: int | None = None, unknown: int | None = None) -> Integers:
        """All shards that differ in the chosen dimensions only."""
        ranges = [
            range(share) if (known in dim if known is not None else unknown not in dim) else range(1)
            for dim, share in zip(self.dims, self.shares, strict=True)
        ]
        return np.array([sum(map(int.__mul__, cell, self._steps)) for cell in product(*ranges)], np.int64)

    def first_of(self, shard: int, stream: int) -> int:
        """The first shard of the rows of a stream that go to a shard: it counts them."""
        first = 0
        for dim, share, step in zip(self.dims, self.shares, self._steps, strict=True):
            first += shard // step % share * step if stream in dim else 0
        return first

    def first(self, stream: int, attributes: Integers, rows: Integers | None = None) -> Integers:
        """The first shard of each row.

        Parameters
        ----------
        stream
            Whose rows these are.
        attributes
            A line for each row, a column for each attribute.
        rows
            A hash of each row, for streams that no equality leads to.
        """
        shard = np.zeros(len(attributes), np.int64)
        for place, (dim, share) in enumerate(zip(self.dims, self.shares, strict=True)):
            if stream in dim and share > 1:
                value = rows if dim[stream] == ROW else attributes[:, dim[stream]]
                assert value is not None  # who has a dimension of its own gives the hashes
                shard += self._steps[place] * _coordinate(value, place, share)
        return shard

    def words(self, names: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
        """What is chosen.

        Examples
        --------
        >>> cube = HyperCube(({0: 0, 1: 0}, {1: 1, 2: 0}), (4, 2))
        >>> cube.words("abc", [["x"], ["x", "y"], ["y"]])
        'shares: a.x=b.x 4, b.y=c.y 2: 8 shards, each row of a goes to 2, of b to 1, of c to 4'
        """
        dims = []
        for dim, share in zip(self.dims, self.shares, strict=True):
            ends = [
                f"rows of {names[stream]}" if at == ROW else f"{names[stream]}.{columns[stream][at]}"
                for stream, at in dim.items()
            ]
            dims.append(f"{'='.join(ends)} {share}")
        sent = [f"of {name} {'goes ' * (not stream)}to {self.copies(stream)}" for stream, name in enumerate(names)]
        many = "1 shard" if self.shards == 1 else f"{self.shards} shards"
        return f"shares: {', '.join(dims)}: {many}, each row {', '.join(sent)}"


def _coordinate(values: Integers, dimension: int, share: int) -> Integers:
    """Hashes of another function for each dimension: attributes that depend on each other still spread over all cells."""
    salted = values + np.int64(dimension * 0x1E3779B97F4A7C15 % 2**63)
    return ((spread(salted) >> np.uint64(32)) % np.uint64(share)).astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ the choice


def weights_of(windows: Sequence[Window], rates: Sequence[float]) -> tuple[float, ...]:
    """The cost of each stream in the time of the longest window, in rows: sent rows and stored rows."""
    lengths = [float(max(window.length, 0)) if isinstance(window, TimeWindow) else 0.0 for window in windows]
    longest = max(lengths) or 1.0
    stored = [
        length / longest if isinstance(window, TimeWindow) else 1.0
        for length, window in zip(lengths, windows, strict=True)
    ]
    return tuple(rate * (1.0 + part) for rate, part in zip(rates, stored, strict=True))


def choose(dims: tuple[Dimension, ...], shards: int, weights: Sequence[float]) -> HyperCube:
    """The cube of at most this many shards with the least expected load of a shard: rows sent to it and stored in it.

    For a given number of shards that is the least communication. Of equal loads the one with the fewest copies is taken.

    Parameters
    ----------
    dims
        As `dimensions` gives them.
    shards
        The most there may be.
    weights
        The cost of each stream, see `weights_of`.
    """
    search = _Search(dims, shards, tuple(weights))
    return HyperCube(dims, search.best())


class _Search:
    """A search through all shares, depth first, that leaves out what cannot be better than the best so far."""

    def __init__(self, dims: tuple[Dimension, ...], shards: int, weights: tuple[float, ...]) -> None:
        self.dims, self.shards, self.weights = dims, shards, weights
        many = len(weights)
        self.inside = [[place for place, dim in enumerate(dims) if stream in dim] for stream in range(many)]
        self.order, self.after = self._in_order()
        self.choices = 0
        self.found = self._greedy()

    def best(self) -> tuple[int, ...]:
        """The best shares."""
        self._try([1] * len(self.dims), 0, self.shards)
        return self.found

    def _in_order(self) -> tuple[list[int], list[int | None]]:
        """The order in which shares are chosen, and for each dimension the earlier one whose share is no smaller.

        Two dimensions that differ only in streams which know no other dimension: the one with more of these has the larger share.
        """
        own = [sum(self.weights[s] for s in dim if len(self.inside[s]) == 1) for dim in self.dims]
        shared = [tuple(sorted(s for s in dim if len(self.inside[s]) > 1)) for dim in self.dims]
        order = sorted(range(len(own)), key=lambda place: (shared[place], -own[place], place))
        after: list[int | None] = [None] * len(self.dims)
        for before, place in pairwise(order):
            if shared[before] == shared[place]:
                after[place] = before
        return order, after

    def key(self, shares: Sequence[int]) -> tuple[float, float, tuple[int, ...]]:
        """What is to be least: load, copies, and an order among equals. Rounded, so that sums in another order are equal."""
        whole = math.prod(shares)
        loads = [
            weight / math.prod(shares[place] for place in inside)
            for weight, inside in zip(self.weights, self.inside, strict=True)
        ]
        load = math.fsum(loads)
        return _rounded(load), _rounded(load * whole), tuple(-share for share in shares)

    def _greedy(self) -> tuple[int, ...]:
        """A good choice: the step that helps most, again and again."""
        shares = [1] * len(self.dims)
        while True:
            steps = [[*shares[:place], shares[place] + 1, *shares[place + 1 :]] for place in range(len(shares))]
            fitting = [step for step in steps if math.prod(step) <= self.shards]
            better = min(fitting, key=self.key, default=shares)
            if self.key(better) >= self.key(shares):
                return tuple(shares)
            shares = better

    def _try(self, shares: list[int], depth: int, room: int) -> None:
        if depth == len(self.order):
            if self.key(shares) < self.key(self.found):
                self.found = tuple(shares)
            return
        place = self.order[depth]
        before = self.after[place]
        most = room if before is None else min(room, shares[before])
        for share in range(most, 0, -1):
            self.choices += 1
            if self.choices > MOST_CHOICES:
                break
            shares[place] = share
            if _rounded(self._least(shares, depth + 1, room // share)) <= self.key(self.found)[0]:
                self._try(shares, depth + 1, room // share)
        shares[place] = 1

    def _least(self, shares: list[int], depth: int, room: int) -> float:
        """No choice of the shares that are left has less load.

        With all of `room` each stream would have its load divided by that. And the product of all loads falls by at most
        room ** d, where d is the largest number of streams in one dimension; the sum is least where all are equal.
        """
        rest = self.order[depth:]
        fixed, loads = 0.0, []
        for weight, inside in zip(self.weights, self.inside, strict=True):
            load = weight / math.prod(shares[place] for place in inside if place not in rest)
            if any(place in rest for place in inside):
                loads.append(load)
            else:
                fixed += load
        if not loads:
            return fixed
        degree = max(len(self.dims[place]) for place in rest)
        mean = math.exp((math.fsum(map(math.log, loads)) - degree * math.log(room)) / len(loads))
        return fixed + max(math.fsum(loads) / room, len(loads) * mean)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")
