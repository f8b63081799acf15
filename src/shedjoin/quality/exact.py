"""The exact join of any spec, piece by piece: one stream after the other, by value and by range of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Values
from shedjoin.engine import codes
from shedjoin.engine.graph import APART, AT_LEAST, AT_MOST, EQUAL, LESS, MORE, SET, UNEQUAL, UNSET, Graph
from shedjoin.engine.graph import Predicate as Between
from shedjoin.engine.plan import Plan
from shedjoin.engine.where import Every, Formula, Some, Test, opposite, streams_of
from shedjoin.predicates import Predicate
from shedjoin.quality.arrivals import Arrivals, Integers, numbered
from shedjoin.quality.ranges import Partners, Ranges, Region
from shedjoin.spec import JoinSpec

#: Results that are made at a time: fewer where sets are compared, which take more memory.
PIECE, SETS = 2**20, 2**16
Booleans = NDArray[np.bool_]
#: The rows of some results by their places in `Arrivals`, for each stream that is there.
Chosen = dict[int, Integers]

_COMPARE: dict[int, Callable[[Integers, Integers], Booleans]] = {
    EQUAL: np.equal,
    LESS: np.less,
    AT_MOST: np.less_equal,
    MORE: np.greater,
    AT_LEAST: np.greater_equal,
    UNEQUAL: np.not_equal,
}


@dataclass(frozen=True)
class ExactJoin:
    """The rows of a run, and what they are joined on."""

    arrivals: Arrivals
    spec: JoinSpec

    @cached_property
    def plan(self) -> Plan:
        return self.spec.plan()

    @property
    def graph(self) -> Graph:
        return self.plan.graph

    @cached_property
    def predicate(self) -> Predicate | None:
        """A predicate that is not a key."""
        on = self.spec.on
        return on if isinstance(on, Predicate) and on.code != codes.SAME else None

    def results(self) -> Iterator[tuple[Integers, ...]]:
        """All results, as the places of their rows in each stream."""
        for found in self._extended({0: np.flatnonzero(~self.arrivals.null[0])}):
            yield tuple(found[stream] for stream in self.arrivals.streams)

    def _extended(self, chosen: Chosen) -> Iterator[Chosen]:
        """Results that begin with these rows."""
        others = [stream for stream in self.arrivals.streams if stream not in chosen]
        if not others:
            yield chosen
            return
        stream = max(others, key=lambda other: len(self._between(chosen, other, self.graph.equalities)))
        for place, partner in self._candidates(chosen, stream):
            longer = {one: rows[place] for one, rows in chosen.items()} | {stream: partner}
            holds = self._holds(longer, stream)
            yield from self._extended({one: rows[holds] for one, rows in longer.items()})

    def _candidates(self, chosen: Chosen, stream: int) -> Iterator[tuple[Integers, Integers]]:
        """Rows of one more stream that are in the window of one that is there and, if they must, have the same value."""
        equal = self._between(chosen, stream, self.graph.equalities)
        anchor, mine, own = next(iter(chosen)), np.zeros(0, np.int64), np.zeros(0, np.int64)
        if equal:
            _, attribute, anchor, other = equal[0].seen_from(stream)
            mine, own = self._attribute(anchor, other), self._attribute(stream, attribute)
        else:
            mine, own = (np.zeros(self.arrivals.rows(one), np.int64) for one in (anchor, stream))
        key, partners_key = numbered((mine, own), (self.arrivals.null[anchor], self.arrivals.null[stream]))
        partners = Partners.of(self.arrivals, stream, partners_key, ~self.arrivals.null[stream])
        rows = chosen[anchor]
        region = Region.of(self.arrivals, self.spec.windows, anchor, stream, rows)
        yield from Ranges.of(key[rows], region, partners).meetings(SETS if self._compares_sets else PIECE)

    def _holds(self, chosen: Chosen, stream: int) -> Booleans:
        """Whether the rows of a stream go with all others."""
        rows = chosen[stream]
        holds = np.ones(rows.size, np.bool_)
        for other, there in chosen.items():
            if other != stream:
                region = Region.of(self.arrivals, self.spec.windows, other, stream, there)
                holds &= region.has(self.arrivals.ts[stream][rows], rows)
        for one in self._between(chosen, stream, (*self.graph.equalities, *self.graph.thetas)):
            left = self._attribute(one.left, one.left_attr)[chosen[one.left]]
            right = self._attribute(one.right, one.right_attr)[chosen[one.right]]
            holds &= _compared(one.op, left, right, one.band)
        for formula in self._decided(chosen, stream):
            holds &= self._fulfils(formula, chosen)
        if self.predicate is not None:
            holds[holds] = self._predicate_holds(chosen[0][holds], chosen[1][holds])
        return holds

    def _between(self, chosen: Chosen, stream: int, predicates: tuple[Between, ...]) -> list[Between]:
        """The predicates between a stream and those that are there."""
        return [
            one
            for one in predicates
            if stream in (one.left, one.right) and {one.left, one.right} - {stream} <= {*chosen}
        ]

    def _decided(self, chosen: Chosen, stream: int) -> list[Formula]:
        """The parts of the condition that speak of a stream and of those that are there; of one stream alone, with the second."""
        if self.plan.where is None:
            return []
        looked_at = [(formula, streams_of(formula)) for formula in self.plan.where.formulas]
        second = len(chosen) == 2
        return [
            formula
            for formula, streams in looked_at
            if streams <= {*chosen} and (stream in streams or (second and len(streams) < 2))
        ]

    def _fulfils(self, formula: Formula, chosen: Chosen) -> Booleans:
        rows = next(iter(chosen.values())).size
        match formula:
            case Every(parts):
                holds = np.ones(rows, np.bool_)
                for part in parts:
                    holds &= self._fulfils(part, chosen)
                return holds
            case Some(parts):
                return ~self._fulfils(Every(tuple(map(opposite, parts))), chosen)
            case Test(op, left, attr, right, other, number):
                return _compared(op, self._looked_at(left, attr, chosen), self._looked_at(right, other, chosen), number)

    def _looked_at(self, stream: int, attr: int, chosen: Chosen) -> Integers:
        assert self.plan.where is not None
        place = self.plan.attributes + self.plan.where.attribute(stream, attr)
        return self._attribute(stream, place)[chosen[stream]]

    def _attribute(self, stream: int, attribute: int) -> Integers:
        key = self.arrivals.key[stream]
        return key if key.ndim == 1 else key[:, attribute]

    @property
    def _compares_sets(self) -> bool:
        return self.predicate is not None and self.predicate.code >= codes.FIRST_OF_SETS

    def _predicate_holds(self, left: Integers, right: Integers) -> Booleans:
        assert self.predicate is not None
        assert self.arrivals.values is not None
        sides = self.arrivals.values[0].take(left), self.arrivals.values[1].take(right)
        if self._compares_sets:
            return _sets_hold(self.predicate, *sides)
        return _numbers_hold(self.predicate, sides[0].number, sides[1].number)


def _compared(op: int, left: Integers, right: Integers, number: int) -> Booleans:
    """Whether pairs of numbers pass a test."""
    if op in _COMPARE:
        return _COMPARE[op](left, right)
    if op in (SET, UNSET):
        return np.asarray(((left & number) != 0) == (op == SET))
    return np.asarray(_near(left, right, number) == (op != APART))


def _near(left: Integers, right: Integers, band: int) -> Booleans:
    """Whether numbers differ by at most `band`; their difference may need more than 64 bits."""
    apart = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(np.uint64)
    return np.asarray(apart <= np.uint64(band))


def _numbers_hold(predicate: Predicate, left: NDArray[np.float64], right: NDArray[np.float64]) -> Booleans:
    if predicate.code == codes.BAND:
        return np.asarray(np.abs(left - right) <= predicate.bound)
    compare = {
        codes.LESS: np.less,
        codes.LESS_EQUAL: np.less_equal,
        codes.GREATER: np.greater,
        codes.GREATER_EQUAL: np.greater_equal,
        codes.NOT_EQUAL: np.not_equal,
    }[predicate.code]
    return np.asarray(compare(left, right + predicate.bound))


def _sets_hold(predicate: Predicate, left: Values, right: Values) -> Booleans:
    """Sets pair by pair: items of both sides are numbered by (pair, item), and common ones looked up."""
    sizes = [np.diff(side.offsets) for side in (left, right)]
    pairs = sizes[0].size
    kinds, item = np.unique(np.concatenate((left.items, right.items)), return_inverse=True)
    pair = np.concatenate([np.repeat(np.arange(pairs), size) for size in sizes])
    mine, theirs = np.split(pair * max(kinds.size, 1) + item, [left.items.size])
    place = np.searchsorted(theirs, mine)
    common = np.zeros(mine.size, np.bool_)
    inside = place < theirs.size
    common[inside] = theirs[place[inside]] == mine[inside]
    of_pair = pair[: mine.size][common]
    if predicate.code == codes.INNER:
        products = left.weights[common] * right.weights[place[common]]
        return np.asarray(np.bincount(of_pair, products, minlength=pairs) >= predicate.bound)
    count = np.bincount(of_pair, minlength=pairs)
    if predicate.code == codes.OVERLAP:
        return np.asarray(count >= predicate.bound)
    return np.asarray(count == sizes[0 if predicate.code == codes.SUBSET else 1])
