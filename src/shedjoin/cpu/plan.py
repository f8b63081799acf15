"""Plan: what a join on any predicate boils down to, in numbers that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.cpu import codes
from shedjoin.cpu.settings import Queue, Selective, VirtualCpu
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.predicates.base import Predicate
from shedjoin.predicates.codes import INDEXES

STREAMS = 2


@dataclass(frozen=True)
class Plan:
    """The engine's own view of a join."""

    predicate: Predicate
    index: str
    sizes: tuple[int, int]
    selective: Selective | None
    cpu: VirtualCpu | None
    queue: Queue | None
    budget: Budget | None
    victim: int
    priority: int
    importance: str
    lateness: int
    max_skew: int | None
    deadline: float | None
    part: tuple[int, int] = (0, 1)

    def caps(self, budget: Budget | None) -> tuple[int, ...]:
        """The caps of a budget in tuples; empty without one."""
        return () if budget is None else budget.caps(STREAMS, ROW_BYTES)

    def ages(self) -> tuple[int, int]:
        """How many ages a basic window may have, and how many of them lie ahead of the probing row."""
        if self.selective is None:
            return 1, 0
        ahead = -(-max(self.sizes) // self.selective.basic)
        return 2 * ahead + 1, ahead

    def settings(self, budget: Budget | None, *, warmup: int, emit: bool) -> NDArray[Any]:
        """What kernels are told, as one record."""
        ages, ahead = self.ages()
        values: dict[str, Any] = dict(
            code=self.predicate.code,
            bound=self.predicate.bound,
            index=INDEXES[self.index],
            size0=self.sizes[0],
            size1=self.sizes[1],
            lateness=self.lateness,
            max_skew=-1 if self.max_skew is None else self.max_skew,
            part=self.part[0],
            parts=self.part[1],
            output_importance=IMPORTANCE[self.importance],
            warmup=warmup,
            emit=int(emit),
            ages=ages,
            ahead=ahead,
            kinds=1,
            groups=len(self.caps(budget)),
            victim=self.victim if budget is not None else codes.NO_ONE,
            priority=self.priority,
            rate_every=1,
            rank_every=1,
        )
        if self.selective is not None:
            one = self.selective
            values |= dict(
                basic=one.basic,
                rate=int(one.rate),
                correlation=int(one.correlation),
                direction=int(one.direction and not one.types),
                utility=int(one.types > 0),
                kinds=max(one.types, 1),
                rate_every=one.period,
                rank_every=one.rank_period,
                boost=one.boost,
                sample=one.sample,
            )
        if self.cpu is not None:
            values |= dict(
                capacity=self.cpu.capacity,
                probe_cost=self.cpu.probe,
                compare_cost=self.cpu.comparison,
                lookup_cost=self.cpu.lookup,
                update_cost=self.cpu.update,
            )
        if self.queue is not None:
            values |= dict(
                queue_cap=self.queue.tuples or 0,
                queue_span=self.queue.span or 0,
                queue_victim=codes.LOWEST if self.queue.drop == "semantic" else codes.RANDOM,
                integrated=int(self.queue.integrated),
            )
        record = np.zeros(1, codes.SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        return record

    def signature(self) -> dict[str, Any]:
        """What must be the same for a snapshot to be resumed."""
        return {
            "predicate": repr(self.predicate),
            "index": self.index,
            "window": list(self.sizes),
            "selective processing": repr(self.selective),
            "CPU": repr(self.cpu),
            "queue": repr(self.queue),
            "policy": [self.victim, self.priority],
            "importance": self.importance,
            "lateness": self.lateness,
            "max_skew": self.max_skew,
            "part": list(self.part),
        }
