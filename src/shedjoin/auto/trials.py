"""Trials: miniatures of a join with all candidates. They get the rows of a sample, and are compared after each stretch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.auto.candidates import FEWEST, candidates_of
from shedjoin.auto.judge import better
from shedjoin.auto.miniature import Sampler, budget_of, in_miniature, miniature_of, rate_of, scaled, stretch_of
from shedjoin.auto.rows import joined, read_rows, written_rows
from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.engine import snapshot
from shedjoin.engine.engine import Engine
from shedjoin.engine.plan import Plan
from shedjoin.errors import SnapshotError
from shedjoin.policies import Auto, Policy, Rand

#: The shortest stretch where none is given: rows, and rows of the sample.
SHORTEST, SAMPLED = 512, 128
#: How many rows miniatures must have seen before they are compared, where no stretch is given: some policies learn slowly.
LEARNED = 2048
#: A budget that is this many times another one is tried anew.
OTHER = 4.0


@dataclass(frozen=True, slots=True)
class Change:
    """The join went over to another policy.

    Attributes
    ----------
    rows
        How many rows had come by then.
    policy
        The policy from here on.
    gain
        How much more it found in the miniatures: 0.1 is a tenth.
    """

    rows: int
    policy: Policy
    gain: float


class Trials:
    """What `Auto` knows. `Engine` shows it every row and asks it after each stretch."""

    def __init__(self, auto: Auto, first: Policy, plan: Plan, seed: int) -> None:
        self._auto, self.first, self._plan, self._seed = auto, first, plan, seed
        self.now = first
        self.changes: list[Change] = []
        self.rows = 0
        self._begin(plan.budget, valued=False)

    # -------------------------------------------------------------------------------------------------- the miniatures

    def _begin(self, budget: Budget | None, *, valued: bool) -> None:
        """New miniatures, which have seen nothing, of as many candidates as there is memory for."""
        known = self._known(valued)
        known = [self.first, *([self.now] if self.now != self.first else []), *known]
        known = list(dict.fromkeys(known))
        if self._plan.counted_elsewhere:  # its own rows do not tell how long the windows are
            known = []
        for count in range(len(known), FEWEST - 1, -1):
            rate = None if budget is None else rate_of(self._auto.memory, budget, count)
            if rate is not None:
                self._make(budget, known[:count], rate, valued)
                return
        self._make(budget, [], 0.0, valued)

    def _make(self, budget: Budget | None, candidates: list[Policy], rate: float, valued: bool) -> None:
        self._budget = self._tried = budget
        self._valued, self.rate = valued, rate
        small = scaled(budget, rate, self._plan.streams) if budget is not None and candidates else None
        self.candidates = candidates if small is not None else []
        mini = miniature_of(replace(self._plan, budget=small), rate)
        small_ones = [in_miniature(one, rate) for one in self.candidates]
        self._engines = [Engine(mini.with_policy(one, small), self._seed, emit=False) for one in small_ones]
        self._sampler = Sampler(self._plan, rate, self._seed)
        self.every = self._auto.every or stretch_of(budget, rate, shortest=SHORTEST, sampled=SAMPLED)
        self.due = self.rows + self.every
        self._waiting: list[Batch] = []
        self._seen = 0
        self._totals = [0.0] * len(self._engines)
        self.scores: list[list[float]] = []
        self._worth: float | None = None
        self._differs = valued

    def _known(self, valued: bool) -> list[Policy]:
        return candidates_of(self._plan, self.first, valued=valued)

    @property
    def runs(self) -> bool:
        """Whether anything is tried."""
        return bool(self._engines)

    @property
    def tuples(self) -> int:
        """Tuples that all miniatures hold."""
        return sum(sum(engine.residents) for engine in self._engines)

    def fit(self, budget: Budget | None) -> None:
        """The join has another budget."""
        tried, small = self._tried, None
        if budget is not None and tried is not None and tried.unit == budget.unit and self._engines:
            small = scaled(budget, self.rate, self._plan.streams)
            small = small if 1 / OTHER <= budget.total / tried.total <= OTHER else None
        if small is None:
            self._begin(budget, valued=self._valued)
            return
        self._budget = budget
        for engine in self._engines:
            engine.set_budget(small)

    @property
    def why(self) -> str:
        """Why the policy in use is in use, in a sentence."""
        if self._plan.counted_elsewhere:
            return "nothing is tried: a shard does not see how many rows its windows of rows span"
        if not self._engines:
            return "nothing is tried: the budget is too small for miniatures, or there is none"
        if not self.scores:
            needed = "" if self._auto.every else f" of {LEARNED:,}"
            return f"nothing is compared yet: miniatures have seen {self._seen:,}{needed} rows of the sample"
        sums = np.array(self.scores).sum(axis=0)
        place = self.candidates.index(self.now)
        mine, others = sums[place], np.delete(sums, place)
        rival = [one for one in self.candidates if one != self.now][int(np.argmax(others))]
        stretches = f"{len(self.scores)} stretches" if len(self.scores) > 1 else "stretch"
        found = f"in the last {stretches} it found {_than(mine, others.max())} {rival}"
        drawn = sums[self.candidates.index(Rand())] if Rand() in self.candidates else -1.0
        if self.now != Rand() and drawn > 0 and mine <= drawn:
            found += ", and no more than a random choice: more memory or a shorter window would help"
        return found

    # -------------------------------------------------------------------------------------------------------- rows

    def see(self, batch: Batch) -> None:
        """Rows that the join is about to take in, up to the end of the stretch."""
        before, self.rows = self.rows, self.rows + len(batch)
        if not self._engines or not len(batch):
            return
        some = batch.take(self._sampler.chosen(batch, before))
        if not len(some):
            return
        if self._worth is None:
            self._worth = float(some.importance[0])
        self._differs = self._differs or bool((some.importance != self._worth).any())
        self._waiting.append(some)

    def look(self, clocks: Sequence[int | None]) -> Policy | None:
        """At the end of a stretch: the policy to go over to; None: go on."""
        if not self._engines or self.rows < self.due:
            return None
        self._run(clocks)
        self.due = self.rows + self.every
        if self._differs and not self._valued:
            self._begin(self._budget, valued=True)
            return None
        place = self.candidates.index(self.now)
        least = (self._auto.stretches + 1) // 2
        found = better(self.scores, place, gain=self._auto.gain, least=least)
        if found is None:
            return None
        sums = np.array(self.scores).sum(axis=0)
        self.now = self.candidates[found]
        gain = float(sums[found] / sums[place] - 1.0) if sums[place] > 0 else 0.0
        self.changes.append(Change(self.rows, self.now, gain))
        return self.now

    def _run(self, clocks: Sequence[int | None]) -> None:
        batch = joined(self._waiting, self._plan)
        self._waiting = []
        for engine in self._engines:
            for _ in engine.chunks(batch, limit=1, clocks=clocks, emit=False):
                pass
        totals = [
            engine.matched_importance if self._valued else float(engine.counters["results"]) for engine in self._engines
        ]
        self._seen += len(batch)
        if self._seen >= LEARNED or self._auto.every:
            self.scores.append([after - before for after, before in zip(totals, self._totals, strict=True)])
            self.scores = self.scores[-self._auto.stretches :]
        self._totals = totals

    # --------------------------------------------------------------------------------------------------------- saved

    def to_bytes(self) -> bytes:
        """All that is known, with a version and a checksum."""
        columns = {
            f"miniature {place}": np.frombuffer(engine.snapshot(), np.int8)
            for place, engine in enumerate(self._engines)
        }
        columns |= written_rows(joined(self._waiting, self._plan))
        extra = {
            "seed": self._seed,
            "now": repr(self.now),
            "rows": self.rows,
            "due": self.due,
            "rate": self.rate,
            "budget": None if self._budget is None else asdict(self._budget),
            "tried": None if self._tried is None else asdict(self._tried),
            "candidates": [repr(one) for one in self.candidates],
            "valued": self._valued,
            "differs": self._differs,
            "worth": self._worth,
            "seen": self._seen,
            "scores": self.scores,
            "totals": self._totals,
            "changes": [[one.rows, repr(one.policy), one.gain] for one in self.changes],
        }
        return snapshot.pack(columns, self._signature(), extra)

    def load(self, saved: bytes) -> None:
        """Go on from `to_bytes`. With other settings of `Auto`, only the policy in use and the log of changes are taken over."""
        signature, extra, columns = snapshot.unpack(saved)
        try:
            self._load(signature, extra, columns)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as reason:
            raise SnapshotError(f"what the snapshot says of trials makes no sense: {reason!r}") from None

    def _load(self, signature: dict[str, Any], extra: dict[str, Any], columns: dict[str, NDArray[Any]]) -> None:
        known = {repr(one): one for valued in (False, True) for one in self._known(valued)}
        self.now = known[extra["now"]]
        self.changes = [Change(int(rows), known[policy], float(gain)) for rows, policy, gain in extra["changes"]]
        self._seed = int(extra["seed"])
        self.rows, valued, wanted = int(extra["rows"]), bool(extra["valued"]), self._plan.budget
        if signature != self._signature() or not all(one in known for one in extra["candidates"]):
            self._begin(wanted, valued=valued)
            return
        candidates = [known[one] for one in extra["candidates"]]
        self._make(budget_of(extra["tried"]), candidates, float(extra["rate"]), valued)
        self._budget = budget_of(extra["budget"])
        small = None if self._budget is None else scaled(self._budget, self.rate, self._plan.streams)
        self._engines = [
            Engine.resume(replace(engine.plan, budget=small), columns[f"miniature {place}"].tobytes())
            for place, engine in enumerate(self._engines)
        ]
        self._waiting = [read_rows(columns, self._plan)]
        self.due, self._differs = int(extra["due"]), bool(extra["differs"])
        self._seen = int(extra["seen"])
        self._worth = None if extra["worth"] is None else float(extra["worth"])
        self.scores = [[float(one) for one in row] for row in extra["scores"]]
        self._totals = [float(one) for one in extra["totals"]]
        if any(len(row) != len(self._engines) for row in (*self.scores, self._totals)):
            raise ValueError("its scores are of other candidates")
        if wanted != self._budget:
            self.fit(wanted)

    def _signature(self) -> dict[str, Any]:
        return {"auto": repr(self._auto), "first": repr(self.first)}


def _than(mine: float, other: float) -> str:
    """How much more one found than another."""
    if other <= 0.0:
        return "as much as" if mine <= 0.0 else "results, unlike"
    share = mine / other - 1.0
    return "about as much as" if abs(share) < 0.005 else f"{abs(share):.0%} {'more' if share > 0 else 'less'} than"
