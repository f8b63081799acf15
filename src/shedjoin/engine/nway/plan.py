"""NPlan: what the spec of an n-way join boils down to, in numbers and arrays that kernels take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.codes import IMPORTANCE, KEEP, KEY, LIFE, ROW, TABLE, TIME, Order, Weigher
from shedjoin.engine.nway.graph import Graph
from shedjoin.engine.nway.state import CHECK_RECORD, SETTINGS_RECORD, STEP_RECORD
from shedjoin.engine.plan import PolicyLike, Tables, fingerprint
from shedjoin.errors import SpecError
from shedjoin.window import Window

Orders = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a window: on one attribute (-1: none), with so many buckets (None: it grows)."""

    stream: int
    attr: int
    buckets: int | None


@dataclass(frozen=True)
class NPlan:
    """The engine's own view of an n-way join."""

    names: tuple[str, ...]
    windows: tuple[Window, ...]
    graph: Graph
    indexes: tuple[Index, ...]
    orders: Orders
    budget: Budget | None
    order: Order
    weigher: Weigher
    tables: tuple[Tables | None, ...]
    schedule: tuple[NDArray[np.int64], ...] | None
    importance: str
    lateness: int
    max_skew: int | None
    evaluate_every: int
    expire_every: int

    @classmethod
    def of(
        cls,
        *,
        policy: PolicyLike,
        windows: tuple[Window, ...],
        **settings: Any,
    ) -> NPlan:
        estimator = policy.estimator
        streams = range(len(windows))
        return cls(
            windows=windows,
            order=policy.order(),
            weigher=estimator.weigher() if estimator is not None else Weigher(TABLE),
            tables=tuple(estimator.table(stream) if estimator is not None else None for stream in streams),
            schedule=policy.schedule(),
            **settings,
        )

    @property
    def streams(self) -> int:
        return len(self.windows)

    @property
    def kinds(self) -> list[int]:
        return [TIME if window.kind == "time" else ROW for window in self.windows]

    @property
    def width(self) -> int:
        """How many attributes a row has room for."""
        return max(1, *(len(columns) for columns in self.graph.columns))

    def caps(self, budget: Budget | None) -> tuple[int, ...]:
        """The caps of a budget, in its unit; empty without one."""
        if budget is None:
            return ()
        if self.order.organisation == KEEP:
            raise SpecError(
                "a join that keeps all (KeepAll) cannot be given a budget: build it with a policy such as Prob()"
            )
        return budget.caps(self.streams, ROW_BYTES)

    def settings(self, budget: Budget | None, *, warmup: int, emit: bool) -> NDArray[Any]:
        """What kernels are told, as one record."""
        order, weigher = self.order, self.weigher
        factors = max(1, *(self.graph.factors(stream) for stream in range(self.streams)))
        by_rows = ROW in self.kinds
        values = dict(
            streams=self.streams,
            width=self.width,
            spots=max(sum(index.stream == stream for index in self.indexes) for stream in range(self.streams)),
            parts=len(self.graph.parts),
            organisation=order.organisation,
            combine=order.combine,
            importance=order.importance,
            matches=order.matches,
            life=order.life,
            gain=order.gain,
            log_loss=math.log(order.loss),
            fifo=int(self._oldest_is_lowest()),
            estimator=weigher.code,
            half_life=weigher.half_life,
            # Products of weights must stay within the range of floats.
            fold_at=float(512 // factors),
            sketch_width=weigher.width,
            depth=weigher.depth,
            lateness=self.lateness,
            max_skew=-1 if self.max_skew is None else self.max_skew,
            output_importance=IMPORTANCE[self.importance],
            groups=len(self.caps(budget)),
            by_bytes=int(budget is not None and budget.unit == "bytes"),
            warmup=warmup,
            emit=int(emit),
            evaluate_every=self.evaluate_every,
            expire_every=self.expire_every,
            limited=int(self.evaluate_every > 0 or (self.expire_every > 0 and by_rows)),
            weighed=int(order.organisation in (KEY, LIFE) or self._asks_estimator()),
        )
        record = np.zeros(1, SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        return record

    def _asks_estimator(self) -> bool:
        return self.weigher != Weigher(TABLE) or any(table is not None for table in self.tables)

    def _oldest_is_lowest(self) -> bool:
        """Whether, inside a cell, the order of arrival is the policy's order."""
        order = self.order
        if order.organisation == LIFE:
            return self.lateness == 0 or TIME not in self.kinds
        return order.organisation == KEY and order.importance == 0.0 and order.life == 0.0

    def steps(self, orders: Orders) -> tuple[NDArray[Any], NDArray[Any]]:
        """The loops of each origin's order, and the predicates that are looked at in them."""
        steps = np.zeros(self.streams**2, STEP_RECORD)
        checks: list[tuple[int, ...]] = []
        for origin, order in enumerate(orders):
            fresh_at = order.index(origin)
            for level, stream in enumerate(order):
                attr, source = self._way_in(order, level)
                step = steps[origin * self.streams + level]
                step["stream"] = stream
                step["index"] = self._index_on(stream, attr)
                step["by_bucket"] = int(source is not None)
                step["fresh"] = int(stream == origin)
                step["limited"] = int(level > fresh_at)
                if source is not None:
                    step["source_level"], step["source_attr"] = source
                step["first_check"] = len(checks)
                checks += self._residual(order, level, attr if source is not None else None)
                step["checks"] = len(checks) - step["first_check"]
        return steps, np.array(checks or [(0, 0, 0, 0, 0)], CHECK_RECORD)

    def _equal_to_bound(self, order: tuple[int, ...], level: int) -> dict[int, tuple[int, int]]:
        """For each attribute of a level's stream that a bound one must equal: (level, attribute) of that one."""
        stream = order[level]
        found: dict[int, tuple[int, int]] = {}
        for above, other in enumerate(order[:level]):
            for one in self.graph.equalities:
                if {one.left, one.right} == {stream, other}:
                    _, mine, _, theirs = one.seen_from(stream)
                    found.setdefault(mine, (above, theirs))
        return found

    def _way_in(self, order: tuple[int, ...], level: int) -> tuple[int, tuple[int, int] | None]:
        """The attribute by whose index a window is looked into, and whose value is looked for; None: the whole window."""
        bound = self._equal_to_bound(order, level)
        for index in self.indexes:
            if index.stream == order[level] and index.attr in bound:
                return index.attr, bound[index.attr]
        return -1, None

    def _index_on(self, stream: int, attr: int) -> int:
        mine = [number for number, index in enumerate(self.indexes) if index.stream == stream]
        return next((number for number in mine if self.indexes[number].attr == attr), mine[0])

    def _residual(self, order: tuple[int, ...], level: int, by: int | None) -> list[tuple[int, ...]]:
        """What the index does not see to: (op, attribute, level of the other, its attribute, band)."""
        stream = order[level]
        checks: list[tuple[int, ...]] = []
        for mine, (above, theirs) in self._equal_to_bound(order, level).items():
            if mine != by:
                checks.append((0, mine, above, theirs, 0))
        # One attribute may have to equal several of another stream.
        for above, other in enumerate(order[:level]):
            for one in self.graph.equalities:
                if {one.left, one.right} == {stream, other}:
                    _, mine, _, theirs = one.seen_from(stream)
                    if self._equal_to_bound(order, level)[mine] != (above, theirs) and self._doubled(other):
                        checks.append((0, mine, above, theirs, 0))
            for one in self.graph.thetas:
                if {one.left, one.right} == {stream, other}:
                    op, mine, _, theirs = one.seen_from(stream)
                    checks.append((op, mine, above, theirs, one.band))
        return checks

    def _doubled(self, stream: int) -> bool:
        """Whether two attributes of a stream must be equal because both must equal a third."""
        ends = [one.seen_from(stream) for one in self.graph.equalities if stream in (one.left, one.right)]
        pairs = [(other, theirs) for _, _, other, theirs in ends]
        return len(set(pairs)) < len(pairs)

    def signature(self) -> dict[str, Any]:
        """What must be the same for a snapshot to be resumed."""
        return {
            "streams": list(self.names),
            "window": [[window.kind, window.size] for window in self.windows],
            "on": [
                list(map(list, self.graph.columns)),
                [
                    [one.left, one.left_attr, one.op, one.right, one.right_attr, one.band]
                    for one in (*self.graph.equalities, *self.graph.thetas)
                ],
            ],
            "index": [[index.stream, index.attr, index.buckets] for index in self.indexes],
            "policy": list(self.order),
            "estimator": list(self.weigher),
            "estimator table": [fingerprint(table) for table in self.tables],
            "schedule": fingerprint(self.schedule),
            "importance": self.importance,
            "lateness": self.lateness,
            "max_skew": self.max_skew,
            "evaluate_every": self.evaluate_every,
            "expire_every": self.expire_every,
        }
