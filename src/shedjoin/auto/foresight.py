"""Foresight: miniatures of a join with other memory sizes, with other policies, and without a budget.

Each miniature gets the rows of some keys (`Strata`) and as small a part of the memory. Frequent keys are in all of them, and
their tuples count as a part of one. After each stretch of rows the miniatures run, and their results are counted by groups of
keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.auto.candidates import fits
from shedjoin.auto.frequent import SHARE, Frequent
from shedjoin.auto.miniature import in_miniature, miniature_of, stretch_of, tuples_of
from shedjoin.auto.rows import joined, read_rows, written_rows
from shedjoin.auto.strata import Strata, common_places
from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.engine import snapshot
from shedjoin.engine.engine import Engine
from shedjoin.engine.output import Output
from shedjoin.engine.plan import Plan, PolicyLike
from shedjoin.engine.push_buffers import CHUNK
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.estimators import InWindow
from shedjoin.join_type import TYPES
from shedjoin.policies import Age, KeepAll, Policy, Prob, Prospect, Rand
from shedjoin.what_if import FACTORS, GROUPS, WhatIf

#: What else is tried with the current memory.
RIVALS: tuple[Policy, ...] = (Rand(), Prospect(), Prob(InWindow()), Age())
#: A miniature that would hold fewer tuples than this says nothing.
LEAST = 48
#: The shortest stretch: rows, and rows of the sample.
SHORTEST, SAMPLED = 512, 512
#: How many stretches are remembered.
STRETCHES = 64
#: At first the exact join is taken to need this many times the budget.
EXACT = 4.0
#: A key that is this many times as frequent as it takes to be frequent cannot stay out.
CERTAINLY = 2.0
#: Where a budget counts what rows take, miniatures together hold at most so many times `WhatIf.tuples`.
MOST = 32
#: A budget that is this many times another one is tried anew; one that is not this many times another counts as the same.
OTHER, STEADY = 4.0, 1.2


class Foresight:
    """What is known of other memories. `Engine` shows it every row and asks it after each stretch."""

    def __init__(self, settings: WhatIf, policy: Policy, plan: Plan, seed: int) -> None:
        # A join may change to or from `Met`, which has another layout; miniatures by other policies keep theirs.
        self._settings, self._plan, self._seed = settings, plan.as_asked(), seed
        self.policy: PolicyLike = policy
        self._places = common_places(plan)
        self._frequent = Frequent()
        self.rows = 0
        self._share = 0.0
        self._found = (0.0, 0.0)
        self._least_share = 1.0
        self._begin(plan.budget, known=False)

    # -------------------------------------------------------------------------------------------------- the miniatures

    def _begin(self, budget: Budget | None, *, known: bool) -> None:
        """New miniatures, which have seen nothing. `known`: rows have been seen, so frequent keys are known."""
        self._budget = self._tried = budget
        self.share = self._share_of(budget)
        self.strata = Strata.of(self._places, self.share, self._frequent if known else None, self._seed)
        self.every = self._settings.every or stretch_of(budget, self.share, shortest=SHORTEST, sampled=SAMPLED)
        self.due = self.rows + self.every
        self._waiting: list[Batch] = []
        self._known = known
        self._rivals = [] if budget is None else self._rivals_of(self.policy)
        self._engines = self._built() if self.share > 0.0 and known else []
        self._ready = 0
        self._clear()

    def _share_of(self, budget: Budget | None) -> float:
        """Which part of the rows miniatures get; 0: there would be too few."""
        if budget is None or self._plan.counted_elsewhere:
            return 0.0
        tuples = tuples_of(budget)
        whole = sum(FACTORS) + len(RIVALS) + EXACT
        share = min(1.0, self._settings.tuples / tuples, self._settings.memory / whole, self._least_share)
        return share if share == 1.0 or share * tuples >= LEAST else 0.0

    def _rivals_of(self, policy: PolicyLike) -> list[Policy]:
        return [one for one in RIVALS if one != policy and fits(self._plan, self._plan_policy, one)]

    @property
    def _plan_policy(self) -> Policy:
        policy = self.policy
        assert isinstance(policy, Policy)
        return policy

    def _built(self) -> list[Engine]:
        exact = Engine(self._mini(None).with_policy(KeepAll(), None), self._seed)
        return [*(self._miniature(self.policy, factor) for factor in FACTORS), *self._by_rivals(), exact]

    def _by_rivals(self) -> list[Engine]:
        return [self._miniature(one, 1.0) for one in self._rivals]

    def _mini(self, budget: Budget | None) -> Plan:
        dials = replace(self._plan.dials, how="inner")
        small = replace(self._plan, budget=budget, how=TYPES["inner"], dials=dials)
        return miniature_of(small, self.strata.share)

    def _miniature(self, policy: Any, factor: float) -> Engine:
        small = self._scaled(factor)
        return Engine(self._mini(small).with_policy(in_miniature(policy, self.strata.share), small), self._seed)

    def _scaled(self, factor: float) -> Budget:
        assert self._budget is not None
        return self.strata.budget(self._budget, factor, self._plan.streams)

    @property
    def runs(self) -> bool:
        """Whether anything is tried."""
        return self.share > 0.0

    @property
    def tuples(self) -> int:
        """Tuples that all miniatures hold."""
        return sum(sum(engine.residents) for engine in self._engines)

    @property
    def why(self) -> str:
        """Why there is no curve, in a sentence; empty: there is one."""
        if self._plan.counted_elsewhere:
            return "a shard does not see how many rows its windows of rows span"
        if not self.runs:
            return "the budget is too small for miniatures, or there is none"
        if not self._stretches:
            return "no window has passed since the miniatures began"
        return ""

    def fit(self, budget: Budget | None) -> None:
        """The join has another budget."""
        tried, counted = self._tried, self._counted
        if budget is None or tried is None or counted is None or not _near(budget, tried, OTHER):
            self._begin(budget, known=self._known)
            return
        self._budget = budget
        if not _near(budget, counted, STEADY):
            self._clear()
        for engine, factor in zip(self._engines[:-1], (*FACTORS, *[1.0] * len(self._rivals)), strict=False):
            engine.set_budget(self._scaled(factor))

    def adopt(self, policy: PolicyLike) -> None:
        """The join has gone over to another policy."""
        self.policy = policy
        exact = self._engines[-1:]
        for engine in self._engines[: len(FACTORS)]:
            engine.set_policy(in_miniature(self._plan_policy, self.strata.share))
        self._rivals = [] if self._budget is None else self._rivals_of(policy)
        if self._engines:  # rivals begin anew: the one that was left may be among them now
            self._engines = [*self._engines[: len(FACTORS)], *self._by_rivals(), *exact]
        self._clear()

    def _clear(self) -> None:
        """What was counted was of something else."""
        self._counted = self._budget
        self._stretches: list[NDArray[np.float64]] = []
        self._delivered: list[tuple[float, float]] = []
        self._lengths: list[int] = []
        self._raw: list[float] = []

    # -------------------------------------------------------------------------------------------------------- rows

    def see(self, batch: Batch) -> None:
        """Rows that the join is about to take in, up to the end of the stretch."""
        before, self.rows = self.rows, self.rows + len(batch)
        if not self.runs or not len(batch):
            return
        if self._places is not None:
            self._frequent.see(self.strata.keys_of(batch), before)
        if self._known:
            some = batch.take(self.strata.chosen(batch, before))
            if len(some):
                self._waiting.append(some)

    def look(self, clocks: Sequence[int | None], found: tuple[float, float]) -> None:
        """At the end of a stretch. `found`: the results of the join so far, and their summed importance."""
        if not self.runs or self.rows < self.due:
            return
        before, self._found = self._found, found
        self._frequent.forget()
        if not self._known or self._misses_frequent():
            self._begin(self._budget, known=True)
            return
        batch, self._waiting = joined(self._waiting, self._plan), []
        stretch = self.due // self.every
        assert self._budget is not None  # something runs
        weighed = self.strata.weighed(batch, self._budget)
        counted = self._run(weighed, self.strata.groups(batch, stretch), clocks)
        length = self.rows - self.due + self.every  # it ends at the border of an instant
        self.due = self.rows + self.every
        held = sum(self._engines[-1].residents)
        most = self._settings.memory * tuples_of(self._tried) if self._tried is not None else 0.0
        too_many = held * (1 + (sum(FACTORS) + len(self._rivals)) / EXACT) > most
        if self._budget.row_bytes:  # their memory is part of the budget
            most, too_many = min(most, MOST * self._settings.tuples), True
        if too_many and self.tuples > most:
            self._least_share = self.share / 2.0  # the window holds more than was thought
            self._begin(self._budget, known=True)
            return
        if self._engines[-1].counters["expired"]:
            self._ready += 1
        if self._ready > 1:
            self._stretches = [*self._stretches[1 - STRETCHES :], counted]
            self._delivered = [*self._delivered[1 - STRETCHES :], (found[0] - before[0], found[1] - before[1])]
            self._lengths = [*self._lengths[1 - STRETCHES :], length]
            self._raw = [*self._raw[1 - STRETCHES :], float(counted[0, -1].sum())]

    def _misses_frequent(self) -> bool:
        """Whether keys have become frequent that are not in all miniatures."""
        return self._places is not None and self.strata.misses(self._frequent.above(CERTAINLY * SHARE)[0])

    def _run(self, batch: Batch, groups: NDArray[np.int64], clocks: Sequence[int | None]) -> NDArray[np.float64]:
        """Results and their summed importance, of each miniature and group."""
        counted = np.zeros((2, len(self._engines), 2 * GROUPS))
        by_stream = [groups[batch.stream == stream] for stream in range(self._plan.streams)]
        for place, engine in enumerate(self._engines):
            before = engine.arrived
            for out in engine.chunks(batch, limit=CHUNK, clocks=clocks):
                if len(out):
                    group = _groups_of(out, by_stream, before)
                    counted[0, place] += np.bincount(group, minlength=2 * GROUPS)
                    counted[1, place] += np.bincount(group, out.importance, minlength=2 * GROUPS)
        return counted

    # ------------------------------------------------------------------------------------------------------ what is known

    def sums(self) -> dict[str, Any]:
        """What the miniatures found in the last stretches, as plain data; the sums of shards can be added."""
        if not self._stretches:
            return {"rows": 0}
        sums = np.sum(self._stretches, axis=0) * self.strata.stands_for(self._plan.streams)
        differs = not np.array_equal(sums[0] * _ratio(sums), sums[1])
        delivered = np.sum(self._delivered, axis=0)
        return {
            "rows": int(np.sum(self._lengths)),
            "policy": repr(self.policy),
            "rivals": [repr(one) for one in self._rivals],
            "held": self.strata.share * tuples_of(self._budget) if self._budget is not None else 0.0,
            "need": self._need,
            "sampled": [self.strata.part, self.strata.thin],
            "seen": float(np.sum(self._raw)),
            "delivered": delivered[: 2 if differs else 1].tolist(),
            "sums": sums[: 2 if differs else 1].tolist(),
        }

    @property
    def _need(self) -> float:
        """What the exact join has stored at most, as a multiple of the budget."""
        assert self._budget is not None
        peaks = self._engines[-1].counters
        return self.strata.whole(peaks["peak_tuples"], peaks["peak_bytes"], self._budget) / self._budget.total

    # --------------------------------------------------------------------------------------------------------- saved

    def to_bytes(self) -> bytes:
        """All that is known, with a version and a checksum."""
        columns: dict[str, NDArray[Any]] = {
            f"miniature {place}": np.frombuffer(engine.snapshot(), np.int8)
            for place, engine in enumerate(self._engines)
        }
        columns |= written_rows(joined(self._waiting, self._plan))
        columns |= {
            "frequent keys": self._frequent.keys,
            "frequent counts": self._frequent.counts,
            "strata keys": self.strata.frequent,
            "stretches": np.array(self._stretches).reshape(-1),
            "delivered": np.array(self._delivered).reshape(-1),
            "raw": np.array(self._raw, np.float64),
            "lengths": np.array(self._lengths, np.int64),
        }
        extra = {
            "seed": self._seed,
            "policy": repr(self.policy),
            "rivals": [repr(one) for one in self._rivals],
            "rows": self.rows,
            "due": self.due,
            "every": self.every,
            "share": self.share,
            "least share": self._least_share,
            "thin": self.strata.thin,
            "part": self.strata.part,
            "known": self._known,
            "ready": self._ready,
            "found": list(self._found),
            "total": self._frequent.total,
            "budget": None if self._budget is None else asdict(self._budget),
            "counted": None if self._counted is None else asdict(self._counted),
            "tried": None if self._tried is None else asdict(self._tried),
        }
        return snapshot.pack(columns, {"what if": repr(self._settings)}, extra)

    def load(self, saved: bytes) -> None:
        """Go on from `to_bytes`, by the policy of now and within the budget of now. Other settings begin anew."""
        signature, extra, columns = snapshot.unpack(saved)
        try:
            self._load(signature, extra, columns)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, SpecError) as reason:
            raise SnapshotError(f"what the snapshot says of other memories makes no sense: {reason!r}") from None

    def _load(self, signature: dict[str, Any], extra: dict[str, Any], columns: dict[str, NDArray[Any]]) -> None:
        policy, wanted = self.policy, self._plan.budget
        self._seed, self.rows = int(extra["seed"]), int(extra["rows"])
        self._found = (float(extra["found"][0]), float(extra["found"][1]))
        frequent = Frequent()
        frequent.keys, frequent.counts = columns["frequent keys"], columns["frequent counts"]
        frequent.total = float(extra["total"])
        if frequent.keys.shape != frequent.counts.shape or frequent.keys.ndim != 1:
            raise ValueError("its frequent keys have other counts")
        self._frequent = frequent
        same = signature == {"what if": repr(self._settings)} and extra["policy"] == repr(policy)
        rivals = [] if extra["tried"] is None else self._rivals_of(policy)
        if not same or [repr(one) for one in rivals] != extra["rivals"]:
            self._begin(wanted, known=bool(extra["known"]))
            return
        self._least_share = float(extra["least share"])
        self._begin(Budget.of_fields(extra["tried"]), known=False)
        self._budget, self._counted = Budget.of_fields(extra["budget"]), Budget.of_fields(extra["counted"])
        self._known, self._ready = bool(extra["known"]), int(extra["ready"])
        self.share, self.every, self.due = float(extra["share"]), int(extra["every"]), int(extra["due"])
        self.strata = Strata(
            self._places, float(extra["thin"]), float(extra["part"]), columns["strata keys"], self._seed
        )
        if self._known and self.runs:
            self._engines = [
                Engine.resume(engine.plan, columns[f"miniature {place}"].tobytes())
                for place, engine in enumerate(self._built())
            ]
        shape = (-1, 2, len(self._engines), 2 * GROUPS)
        self._stretches = list(columns["stretches"].reshape(shape)) if columns["stretches"].size else []
        self._delivered = [(float(one), float(two)) for one, two in columns["delivered"].reshape(-1, 2)]
        self._raw, self._lengths = columns["raw"].tolist(), columns["lengths"].tolist()
        numbers = {len(self._stretches), len(self._delivered), len(self._raw), len(self._lengths)}
        if len(numbers) != 1:
            raise ValueError("its stretches differ in number")
        self._waiting = [read_rows(columns, self._plan)]
        if wanted != self._budget:
            self.fit(wanted)


def _groups_of(out: Output, by_stream: Sequence[NDArray[np.int64]], before: Sequence[int]) -> NDArray[np.int64]:
    """The group of each result: that of a row that came now. (Each has one; its other rows have the same key.)"""
    group = np.zeros(len(out), np.int64)
    for column, groups, first in zip(out.columns, by_stream, before, strict=True):
        now = column >= first
        group[now] = groups[column[now] - first]
    return group


def _ratio(sums: NDArray[np.float64]) -> float:
    """The importance of a result, if all have the same."""
    found = sums[0, -1].sum()
    return float(sums[1, -1].sum() / found) if found else 1.0


def _near(one: Budget, other: Budget, times: float) -> bool:
    return one.unit == other.unit and 1 / times <= one.total / other.total <= times
