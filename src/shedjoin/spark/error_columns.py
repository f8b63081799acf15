"""An error target on a shard: its pilot's results get the columns that make groups and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.engine.output import Output
from shedjoin.error_target import ErrorControl, ErrorTarget
from shedjoin.spark.payload import Payload
from shedjoin.spec import JoinSpec

if TYPE_CHECKING:
    from shedjoin.spark.job import Job
    from shedjoin.spark.micro_batch import MicroBatch

Place = tuple[int, int]
#: Mixes the numbers of several columns.
MIX = np.int64(-7046029254386353131)


@dataclass(frozen=True, slots=True)
class ErrorColumns:
    """An error target, and its columns: (stream, place among the columns that results are made of)."""

    target: ErrorTarget
    by: tuple[Place, ...]
    sum: Place | None


@dataclass
class ErrorFollower:
    """Memory of a shard that follows an error."""

    control: ErrorControl
    columns: ErrorColumns

    @classmethod
    def of(cls, job: Job, spec: JoinSpec, number: int) -> ErrorFollower:
        assert job.error is not None
        return cls(ErrorControl(job.error.target, spec, job.seed_of(number), job.part_of(number)), job.error)

    def see(self, batch: MicroBatch, payloads: Sequence[Payload]) -> None:
        """A micro-batch, the columns of whose rows are among the payloads."""

        def column(out: Output, place: Place) -> pa.Array:
            return payloads[place[0]].rows_at(out.columns[place[0]]).column(place[1])

        def group(out: Output) -> NDArray[np.int64]:
            return numbers_of([column(out, place) for place in self.columns.by], len(out))

        def value(out: Output) -> NDArray[np.float64]:
            if self.columns.sum is None or not len(out):
                return np.ones(len(out))
            numbers = column(out, self.columns.sum).cast(pa.float64(), safe=False).fill_null(0.0)
            made: NDArray[np.float64] = np.nan_to_num(
                numbers.to_numpy(zero_copy_only=False), nan=0.0, posinf=0.0, neginf=0.0
            )
            return made

        self.control.see(batch.joined, group, value, clocks=batch.clocks, arrived=batch.arrived)
        self.control.look()

    def known(self, allowed: int) -> dict[str, Any]:
        """What metrics say. `allowed`: what the join may store."""
        control = self.control
        return {
            "allowed": allowed,
            "limited": control.limited,
            "error": control.error if control.error is not None and np.isfinite(control.error) else None,
            "error_groups": control.groups,
            "error_small_groups": control.small,
        }


def numbers_of(columns: Sequence[pa.Array], rows: int) -> NDArray[np.int64]:
    """A number for the values of each row, the same in every micro-batch.

    Examples
    --------
    >>> first, again = (numbers_of([pa.array(["a", None, "b", "a"])], 4) for _ in range(2))
    >>> len(set(first)), bool(first[0] == first[3]), bool((first == again).all())
    (3, True, True)
    """
    made = np.zeros(rows, np.int64)
    if not rows:
        return made
    with np.errstate(over="ignore"):
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            known = np.array([_number(one) for one in encoded.dictionary], np.int64)
            made = made * MIX + known[encoded.indices.to_numpy(zero_copy_only=False)]
    return made


def _number(value: pa.Scalar) -> int:
    text = repr(None if not value.is_valid else str(value))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
