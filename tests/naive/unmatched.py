"""Partners: rows that leave when they have found enough, and rows without one, which certainly have none or may have one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import shedjoin as sj
from naive.arithmetic import GOLDEN, WORD, mix
from naive.conditions import Graph, Key, OnBand, OnItems, OnValue
from naive.formula import Conditional
from naive.rows import DROPPED, FIRST, PARTIAL, UNKNOWN, UNPROBED, Result, Stored
from shedjoin.budget import Budget
from shedjoin.engine.plan import filter_cells
from shedjoin.engine.stages.shed_values import EMPTY_SET, EVERY_SET
from shedjoin.window import RowWindow

if TYPE_CHECKING:
    from naive.twin import Twin


class Filter:
    """The largest stamp of a shed row whose value hashes to a cell; each value has two. Values that are no numbers are told
    apart: what the engine hashes of them is its own affair."""

    def __init__(self, cells: int) -> None:
        self.cells = [FIRST] * cells
        self.others: dict[Hashable, int] = {}

    def places(self, value: int) -> tuple[int, int]:
        hashed = mix(value + GOLDEN & WORD)
        return hashed % len(self.cells), (hashed >> 32) % len(self.cells)

    def insert(self, value: Hashable, stamp: int) -> None:
        if not isinstance(value, int):
            self.others[value] = max(stamp, self.others.get(value, FIRST))
            return
        for place in self.places(value):
            self.cells[place] = max(self.cells[place], stamp)

    def newest(self, value: Hashable) -> int:
        if not isinstance(value, int):
            return self.others.get(value, FIRST)
        return min(self.cells[place] for place in self.places(value))


class Unmatched:
    """What is known of partners."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.how = twin, twin.join.how
        condition = twin.join.condition
        self.condition = condition.inner if isinstance(condition, Conditional) else condition
        given = twin.join.matches or (None,) * len(twin.streams)
        #: After how many partners rows of each stream leave. Semi and anti joins ask for the first.
        self.most = [1 if stream == 0 and self.how.gives else most for stream, most in enumerate(given)]
        self.leaving: list[Stored] = []
        self.filters = {
            stream: Filter(self.cells(twin.budget))
            for stream in twin.streams
            if any(other != stream for other in self.how.judged)
        }

    # -------------------------------------------------------------------------------------------------------- partners

    def meet(self, x: Stored, found: list[tuple[Stored, ...]]) -> list[Result]:
        """A probe has found results; returns those that the join gives."""
        first = []
        for result in found:
            for y in result:
                y.partners += 1
                if y.stream == 0 and y.partners == 1:
                    first.append(y)
                if y.partners == self.most[y.stream]:
                    self.leaving.append(y)
        match self.how.name:
            case "left_semi":
                return [self.alone(y) for y in first]
            case "left_anti":
                return []
        return [self.twin.result_of(result, x) for result in found]

    def let_satisfied_go(self) -> None:
        for x in sorted(self.leaving, key=lambda x: x.arrival):
            if x in self.twin.stored[x.stream]:
                self.twin.take_out(x)
                self.twin.counters["satisfied"] += 1
        self.leaving = []

    def alone(self, x: Stored) -> Result:
        """A result of one row."""
        return Result(tuple(x.seq if stream == x.stream else -1 for stream in self.twin.streams), x.importance, x.ts)

    # ----------------------------------------------------------------------------------------------------- certainty

    def enter(self, x: Stored) -> None:
        """Windows of rows: the first row number of each other stream that it may meet."""
        x.floor = [
            min(self.twin.arrived[stream] - window.rows, x.before[stream]) if isinstance(window, RowWindow) else 0
            for stream, window in enumerate(self.twin.windows)
        ]

    def expire(self, x: Stored) -> None:
        if x.stream not in self.how.judged or x.partners:
            return
        if x.doubt or any(self.may_have_missed(x, stream) for stream in self.filters if stream != x.stream):
            self.twin.log(x, UNKNOWN)
        else:
            self.give(x)

    def give(self, x: Stored) -> None:
        """A row certainly has no partner."""
        if x.stream in self.how.judged:
            self.twin.counters["certain"] += 1
            if self.how.preserved:
                self.twin.out.results.append(self.alone(x))
                self.twin.counters["results"] += 1

    def may_have_missed(self, x: Stored, stream: int) -> bool:
        window = self.twin.windows[stream]
        stamp = x.floor[stream] - 1 if isinstance(window, RowWindow) else x.ts - window.length
        asked, needed = self.asked(x, stream)
        return sum(self.filters[stream].newest(value) > stamp for value in asked) >= needed

    def asked(self, x: Stored, stream: int) -> tuple[list[Hashable], int]:
        """Values that partners of another stream may have noted, and how many of them each partner has."""
        match self.condition:
            case OnBand() as condition:
                own = condition.bucket(x.row.value)
                return [own - 1, own, own + 1], 1
            case OnItems() as condition:
                own = sorted(x.row.value)
                if isinstance(condition.predicate, sj.Overlap):
                    return own, condition.predicate.at_least
                if condition.is_inside(x.row):
                    return [*own, int(EVERY_SET)], len(own) + 1
                return [*own, *([] if isinstance(condition.predicate, sj.InnerProduct) else [int(EMPTY_SET)])], 1
        return [self.value(x, stream, x.stream)], 1

    def noted(self, x: Stored) -> list[Hashable]:
        """The values by which a shed row is found again."""
        match self.condition:
            case OnBand() as condition:
                return [condition.bucket(x.row.value)]
            case OnItems() as condition:
                inside = isinstance(condition.predicate, sj.Subset | sj.Superset)
                return [
                    *x.row.value,
                    *([int(EVERY_SET)] if inside else []),
                    *([int(EMPTY_SET)] if inside and not x.row.value else []),
                ]
        judged = next(other for other in self.how.judged if other != x.stream)
        return [self.value(x, x.stream, judged)]

    def note(self, x: Stored, why: str) -> None:
        """What a row that goes, or was not compared with all, means for itself and for others."""
        if why in (PARTIAL, UNPROBED):
            x.doubt = True
        elif x.stream in self.how.judged and not x.partners:
            self.twin.counters["unknown"] += 1
        null = self.twin.join.condition.is_null(x.row)
        if why != UNKNOWN and x.stream in self.filters and not (null and why == DROPPED):
            stamp = x.seq if isinstance(self.twin.windows[x.stream], RowWindow) else x.ts
            for value in self.noted(x):
                self.filters[x.stream].insert(value, stamp)

    def value(self, x: Stored, shed: int, judged: int) -> Hashable:
        """What shed rows of one stream and judged rows of another must share; 0 where there is nothing."""
        match self.condition:
            case Key():
                return x.row.value  # type: ignore[no-any-return]
            case OnValue() as condition:
                return None if condition.is_null(x.row) else ("value", *condition.values(x.row))
            case Graph() as graph:
                part = next((part for part in graph.parts if shed in part and judged in part), None)
                return 0 if part is None else x.value[part[x.stream]]
        return 0

    # ---------------------------------------------------------------------------------------------------------- budgets

    def cells(self, budget: Budget | None) -> int:
        """How many cells a filter has for a budget; one where shed rows have nothing to be found by."""
        match self.condition:
            case Key() | OnBand() | OnItems():
                return filter_cells(budget)
            case Graph() as graph:
                shared = any(0 in part and stream in part for part in graph.parts for stream in range(1, graph.streams))
                return filter_cells(budget) if shared else 1
        return 1

    def change(self, budget: Budget | None) -> None:
        """A larger budget has larger filters, which begin with what the old ones knew."""
        for one in self.filters.values():
            one.cells *= max(1, self.cells(budget) // len(one.cells))
