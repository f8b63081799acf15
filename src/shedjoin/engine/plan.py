"""Plan: what a spec boils down to, in numbers and arrays that kernels take."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.codes import (
    CUMULATIVE,
    IMPORTANCE,
    KEEP,
    KEY,
    LIFE,
    LOGSUM,
    PRODUCT,
    ROW,
    SCHEDULE,
    SETTINGS_RECORD,
    SUM,
    TABLE,
    TIME,
    Order,
    Weigher,
)
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.window import Window

STREAMS = 2
FAR = 2.0**63
Tables = tuple[NDArray[np.int64], NDArray[np.float64]]


class EstimatorLike(Protocol):
    """What the engine asks of an estimator."""

    def weigher(self) -> Weigher: ...
    def table(self, stream: int) -> Tables | None: ...


class PolicyLike(Protocol):
    """What the engine asks of a policy."""

    @property
    def estimator(self) -> EstimatorLike | None: ...
    def order(self) -> Order: ...
    def schedule(self) -> tuple[NDArray[np.int64], ...] | None: ...


def check_order(order: Order, schedule: object) -> None:
    """See that kernels know what to do with an order; they would not say."""
    what = f"the policy's order {order!r}"
    if order.organisation not in range(KEEP, SCHEDULE + 1) or order.combine not in (SUM, PRODUCT, LOGSUM):
        raise SpecError(f"{what} has an organisation or a way to combine that there is not: see shedjoin.engine.codes")
    if (order.organisation == SCHEDULE) != (schedule is not None):
        raise SpecError(f"{what} and its schedule() do not fit: SCHEDULE needs one, and nothing else takes one")
    if not all(math.isfinite(number) for number in order) or not (order.gain >= 0 and 0 < order.loss <= 1):
        raise SpecError(f"{what} must have finite numbers, a gain of at least 0 and a loss above 0 and at most 1")
    if (
        order.organisation == KEY
        and order.combine == PRODUCT
        and (order.importance not in (0, 1) or order.matches != 1 or order.life != 0)
    ):
        raise SpecError(
            f"{what}: KEY with PRODUCT is importance (0 or 1) x matches (1); for other exponents combine by LOGSUM"
        )
    if order.organisation == LIFE and order[1:5] != (PRODUCT, 0, 1, 1):
        raise SpecError(f"{what}: LIFE is matches x life, and has no other numbers")


@dataclass(frozen=True)
class Plan:
    """The engine's own view of a join."""

    windows: tuple[Window, Window]
    budget: Budget | None
    order: Order
    weigher: Weigher
    tables: tuple[Tables | None, Tables | None]
    schedule: tuple[NDArray[np.int64], ...] | None
    importance: str
    lateness: int
    max_skew: int | None

    @classmethod
    def of(
        cls,
        windows: tuple[Window, Window],
        budget: Budget | None,
        policy: PolicyLike,
        importance: str,
        lateness: int,
        max_skew: int | None,
    ) -> Plan:
        estimator = policy.estimator
        order, schedule = policy.order(), policy.schedule()
        check_order(order, schedule)
        return cls(
            windows=windows,
            budget=budget,
            order=order,
            # Policies that ask no estimator still need weights to read: an empty table.
            weigher=estimator.weigher() if estimator is not None else Weigher(TABLE),
            tables=(estimator.table(0), estimator.table(1)) if estimator is not None else (None, None),
            schedule=schedule,
            importance=importance,
            lateness=lateness,
            max_skew=max_skew,
        )

    def with_policy(self, policy: PolicyLike) -> Plan:
        """The same join by another policy."""
        return Plan.of(self.windows, self.budget, policy, self.importance, self.lateness, self.max_skew)

    def before(self, signature: dict[str, Any]) -> Plan:
        """The same join with the policy's numbers as a signature has them; itself where the signature makes no sense.

        Signatures come from outside: what is wrong with them is found when they are compared.
        """
        order, weigher = _numbers(signature.get("policy")), _numbers(signature.get("estimator"))
        if len(order) != len(Order._fields) or len(weigher) != len(Weigher._fields):
            return self
        made = replace(self, order=Order(*order), weigher=Weigher(*weigher))
        sound = made.order.gain >= 0 and 0 < made.order.loss <= 1 and made.weigher.half_life > 0
        return made if sound and self._refuses(made) is None else self

    def check_change(self, was: Plan) -> None:
        """See that a join that ran by one policy can go on by this one."""
        reason = self._refuses(was)
        if reason is not None:
            raise SnapshotError(
                f"the policy cannot change like this while the join runs: {reason}. The numbers of a policy and the half-life of "
                "Decayed may change; for all else build the join anew"
            )

    def _refuses(self, was: Plan) -> str | None:
        """Why what was learned and ordered under one policy is of no use to the other; None if it is."""
        mine, theirs = self.order, was.order
        free = mine.organisation == CUMULATIVE or mine.combine in (SUM, LOGSUM)
        if mine[:2] != theirs[:2] or (mine != theirs and not free):
            return "it is another policy, which orders what is stored in another way"
        if self.weigher.code != was.weigher.code:
            return "it has another estimator, which has not seen what came before"
        if self.weigher[2:] != was.weigher[2:]:
            return (
                "CountMin's sketch cannot be made wider or deeper: which rows its counts were of is not known any more"
            )
        if self.signature()["estimator table"] != was.signature()["estimator table"]:
            return "it has another Table of what will come"
        if self.signature()["schedule"] != was.signature()["schedule"]:
            return "it is another schedule"
        return None

    def caps(self, budget: Budget | None) -> tuple[int, ...]:
        """The caps of a budget, in its unit; empty without one."""
        if budget is None:
            return ()
        if self.order.organisation == KEEP:
            raise SpecError(
                "a join that keeps all (KeepAll) cannot be given a budget: build it with a policy such as Prob()"
            )
        return budget.caps(STREAMS, ROW_BYTES)

    def settings(self, budget: Budget | None, *, warmup: int, trace_every: int, emit: bool) -> NDArray[Any]:
        """What kernels are told, as one record."""
        kinds = [TIME if window.kind == "time" else ROW for window in self.windows]
        values = dict(
            organisation=self.order.organisation,
            combine=self.order.combine,
            importance=self.order.importance,
            matches=self.order.matches,
            life=self.order.life,
            gain=self.order.gain,
            log_loss=math.log(self.order.loss),
            fifo=int(self._oldest_is_lowest(kinds)),
            estimator=self.weigher.code,
            half_life=self.weigher.half_life,
            width=self.weigher.width,
            depth=self.weigher.depth,
            by_rows=int(TIME not in kinds),
            span=float(self._span()),
            kind0=kinds[0],
            kind1=kinds[1],
            size0=self.windows[0].size,
            size1=self.windows[1].size,
            lateness=self.lateness,
            max_skew=-1 if self.max_skew is None else self.max_skew,
            output_importance=IMPORTANCE[self.importance],
            groups=len(self.caps(budget)),
            by_bytes=int(budget is not None and budget.unit == "bytes"),
            warmup=warmup,
            trace_every=trace_every,
            emit=int(emit),
        )
        record = np.zeros(1, SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        return record

    def _span(self) -> int:
        """How long a window is by the clock of Prospect: time, or where windows are of rows, the rows of both streams."""
        lengths = [window.size for window in self.windows if window.kind == "time"]
        return max(lengths) if lengths else sum(window.size for window in self.windows)

    def _oldest_is_lowest(self, kinds: list[int]) -> bool:
        """Whether, inside a key, the order of arrival is the policy's order."""
        order = self.order
        if order.organisation == LIFE:
            return self.lateness == 0 or kinds == [ROW, ROW]
        return order.organisation == KEY and order.importance == 0.0 and order.life == 0.0

    def signature(self) -> dict[str, Any]:
        """What must be the same for a snapshot to be resumed."""
        return {
            "window": [[window.kind, window.size] for window in self.windows],
            "policy": list(self.order),
            "estimator": list(self.weigher),
            "estimator table": [fingerprint(table) for table in self.tables],
            "schedule": fingerprint(self.schedule),
            "importance": self.importance,
            "lateness": self.lateness,
            "max_skew": self.max_skew,
        }


def _numbers(values: Any) -> list[Any]:
    """What is a list of numbers within reason; else an empty one."""
    fits = isinstance(values, list) and all(type(one) in (int, float) and abs(one) < FAR for one in values)
    return values if fits else []


def fingerprint(arrays: tuple[NDArray[Any], ...] | None) -> str | None:
    """A short name for the contents of some arrays."""
    if arrays is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()
