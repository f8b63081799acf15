"""The parts of the memory of a query: what each shard takes before its first row, and the rows with their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shedjoin.engine.footprint import empty_bytes, tuple_bytes
from shedjoin.spark.payload import SLACK
from shedjoin.spec import JoinSpec

#: The samples of live recall: of two streams on a key, and of all other joins.
RECALL = {True: 1 << 20, False: 8 << 20}
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


@dataclass(frozen=True, slots=True)
class Room:
    """The parts, at most. What an estimator remembers of keys that no stored row has comes on top.

    Attributes
    ----------
    row
        The most that a row takes in the arrays of the join. Its columns come on top, `COPIES` times.
    arrays, recall, columns
        What each shard takes beside its rows: arrays and filters of shed rows; samples; columns of rows that have left.
    """

    row: int
    arrays: int
    recall: int
    columns: int

    @classmethod
    def of(cls, spec: JoinSpec, widths: Sequence[int], *, recall: bool) -> Room:
        """`widths`: about how many bytes the columns of a row of each stream take."""
        plan = spec.plan()
        on_key = len(spec.windows) == 2 and plan.keyed
        samples = RECALL[on_key] if recall and spec.budget is not None else 0
        return cls(tuple_bytes(plan), empty_bytes(plan), samples, SLACK * sum(widths))

    @property
    def apart(self) -> int:
        """What each shard takes beside its rows."""
        return self.arrays + self.recall + self.columns
