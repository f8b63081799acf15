"""The parts of the memory of a query: what each shard takes before its first row, what rows take, what estimators remember;
and what runs beside the join: miniatures, and the pilot of an error target.

A budget in bytes is the memory of all shards together. From it comes the budget that shards run by: what is left beside the
fixed parts, with what each row and key counts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from shedjoin.auto.candidates import candidates_of, fits
from shedjoin.auto.foresight import MOST, RIVALS
from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.engine.footprint import REMEMBERED, Footprint, empty_bytes, within
from shedjoin.engine.plan import Plan
from shedjoin.error_target.control import PILOT
from shedjoin.error_target.sums import OPEN_BYTES
from shedjoin.errors import SpecError
from shedjoin.parse import format_bytes
from shedjoin.policies import Auto
from shedjoin.spark.payload import COPIES, DEAD, NUMBERED, SLACK, UNCLEARED
from shedjoin.spec import JoinSpec
from shedjoin.what_if import FACTORS

#: The samples of live recall: of two streams on a key, and of all other joins.
RECALL = {True: 1 << 20, False: 8 << 20}
#: Below room for so many rows of each stream a shard is no join.
LEAST = 16
#: Bytes of a value, by Spark's name of its type; of all others, whose length is not known, about this many.
WIDTHS = {
    "boolean": 1, "tinyint": 1, "byte": 1, "smallint": 2, "short": 2, "int": 4, "integer": 4, "date": 4, "float": 4, "real": 4,
    "bigint": 8, "long": 8, "double": 8, "timestamp": 8, "timestamp_ntz": 8, "timestamp_ltz": 8, "decimal": 16,
}  # fmt: skip
SOME = 32


def width(kind: str) -> int:
    """About how many bytes a value takes.

    Examples
    --------
    >>> width("bigint"), width("decimal(10,2)"), width("string")
    (8, 16, 32)
    """
    return WIDTHS.get(re.split(r"\W", kind, maxsplit=1)[0], SOME)


@dataclass(frozen=True)
class Room:
    """The parts of a join of so many shards.

    Attributes
    ----------
    recall
        Whether live recall is told.
    pilot
        Whether memory follows an error, for which a pilot runs beside the join.
    widths
        About how many bytes the columns of a row of each stream take.
    """

    spec: JoinSpec
    shards: int
    recall: bool
    pilot: bool = False
    widths: tuple[int, ...] = ()

    @cached_property
    def _plans(self) -> list[Plan]:
        """The join by its policy; by all that it may go over to, if it tries others."""
        plan = self.spec.plan()
        if not isinstance(self.spec.policy, Auto):
            return [plan]
        tried = [one for valued in (False, True) for one in candidates_of(plan, self.spec.first_policy, valued=valued)]
        return [plan, *(plan.with_policy(one, plan.budget) for one in tried)]

    @cached_property
    def footprint(self) -> Footprint:
        """What a row, a key and what is remembered take, at most."""
        found = [Footprint.of(plan, tight=self.in_bytes) for plan in self._plans]
        row, key, remembered = (max(getattr(one, name) for one in found) for name in ("row", "key", "remembered"))
        return Footprint(row + math.ceil(self.copies * NUMBERED), key, remembered)

    @property
    def in_bytes(self) -> bool:
        return self.spec.budget is not None and self.spec.budget.unit == "bytes"

    @property
    def copies(self) -> float:
        """How often the columns of a row may be there, rows that have left included."""
        return COPIES if self.in_bytes else DEAD

    @property
    def row(self) -> int:
        """The most that a row takes with a key of its own. Its columns come on top, `copies` times."""
        return self.footprint.row + self.footprint.key

    @cached_property
    def arrays(self) -> int:
        """What the arrays and filters of a shard take before the first row. It may have the whole budget for a while."""
        return max(empty_bytes(replace(plan, budget=self.spec.budget)) for plan in self._plans)

    @cached_property
    def beside(self) -> int:
        """What the arrays of joins that run beside that of a shard take before the first row: miniatures, and a pilot."""
        tried = len(self._plans) if isinstance(self.spec.policy, Auto) else 0
        foreseen = [replace(plan, budget=None) for plan in self._foreseen]
        return (tried + self.pilot) * self.arrays + sum(map(empty_bytes, foreseen))

    @cached_property
    def _foreseen(self) -> list[Plan]:
        """Of `what_if`: the miniatures with other memories, that without a budget, and those by other policies."""
        if self.spec.what_if is None or self.spec.budget is None:
            return []
        plan = self._plans[0]
        rivals = [plan.with_policy(one, plan.budget) for one in RIVALS if fits(plan, self.spec.first_policy, one)]
        return [*self._plans[:1] * (len(FACTORS) + 1), *rivals]

    @property
    def samples(self) -> int:
        """What live recall samples."""
        on_key = len(self.spec.windows) == 2 and self.spec.plan().keyed
        return RECALL[on_key] if self.recall and self.spec.budget is not None else 0

    @property
    def columns(self) -> int:
        """Columns of rows that have left and are not cleared away yet."""
        return len(self.spec.windows) * UNCLEARED if self.in_bytes else SLACK * sum(self.widths)

    @property
    def apart(self) -> int:
        """What each shard takes beside its rows."""
        return self.arrays + self.beside + self.samples + self.columns

    @cached_property
    def _left(self) -> int:
        """Of a budget in bytes, what is left beside the fixed parts."""
        assert self.spec.budget is not None
        return int(self.spec.budget.bytes or 0) - self.shards * self.apart

    @property
    def rows_beside(self) -> int:
        """What all shards have of that for rows of miniatures, and for what an error target remembers of its pilot's."""
        return self._rows_beside(self._left)

    def _rows_beside(self, left: int) -> int:
        taken = 0.0
        if isinstance(self.spec.policy, Auto):
            taken += left * (1.0 - 1.0 / (1.0 + self.spec.policy.memory))
        if (asked := self.spec.what_if) is not None:
            found = [Footprint.of(plan, tight=False) for plan in self._foreseen]
            each = max(one.row + one.key for one in found)
            part = asked.memory * each / (ROW_BYTES + self.footprint.row)
            taken += min(left * (1.0 - 1.0 / (1.0 + part)), self.shards * MOST * asked.tuples * each)
        if self.pilot:
            taken += left * PILOT * OPEN_BYTES / self.footprint.row
        return int(taken)

    def rows_budget(self) -> Budget:
        """A budget in bytes as shards run by it: what is left for rows and keys, with what each of them counts."""
        budget = self.spec.budget
        assert budget is not None
        least = self.shards * len(self.spec.windows) * LEAST * (self.row + ROW_BYTES)
        if (rows := self._left - self.rows_beside) < least:
            part = 1.0 - self._rows_beside(least) / least
            needed = format_bytes(self.shards * self.apart + 2 * least / part)
            raise SpecError(
                f"budget: {format_bytes(budget.total)} are too few for {self.shards} shard{'s' * (self.shards != 1)}, each of "
                f"which takes {format_bytes(self.apart)} before its first row: give {needed} or more, or a budget in tuples"
            )
        return within(replace(budget, bytes=rows), self.footprint)

    def bytes_for(self, tuples: int, columns: float = 0.0) -> int:
        """The budget in bytes within which so many rows are stored, each with a key of its own and columns of so many bytes."""
        rows = float(tuples * (self.row + math.ceil(self.copies * columns)))
        if self.footprint.remembered:
            rows = rows / (1.0 - REMEMBERED)
        if isinstance(self.spec.policy, Auto):
            rows *= 1.0 + self.spec.policy.memory
        return math.ceil(rows) + self.shards * self.apart


def as_shards_run(spec: JoinSpec, shards: int, *, recall: bool, pilot: bool) -> JoinSpec:
    """The join whose budget in bytes, if it has one, is what is left for rows."""
    if spec.budget is None or spec.budget.unit != "bytes":
        return spec
    return _as_shards_run(json.dumps(spec.to_dict()), shards, recall, pilot)


@lru_cache(maxsize=8)
def _as_shards_run(spec: str, shards: int, recall: bool, pilot: bool) -> JoinSpec:
    made = JoinSpec.from_dict(json.loads(spec))
    return made.with_budget(Room(made, shards, recall, pilot).rows_budget())
