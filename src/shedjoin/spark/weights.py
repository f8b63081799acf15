"""The columns that results have with `weights=True`: how many results of the exact join each stands for, and its stored row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from shedjoin.engine.output import Output
from shedjoin.errors import SpecError
from shedjoin.policies import Policy, Sample

WEIGHT, ROW = "sj_weight", "sj_row"
#: A stored row is numbered by its shard: up to 1,024 of them, and two streams.
SHARD_BITS = 10


def check_weights(value: Any, policy: Policy | None, front: Sequence[float]) -> None:
    """Whether results can have weights."""
    if not isinstance(value, bool):
        raise SpecError(f"weights must be True or False, not {value!r}")
    if not value:
        return
    if not isinstance(policy, Sample):
        what = "no policy" if policy is None else repr(policy)
        raise SpecError(
            f"weights need a budget and policy='sample', not {what}: other policies cannot weigh results, and without a budget "
            "each result counts 1"
        )
    if any(front):
        raise SpecError("weights: rows that front drops have no part in the weights: leave front or weights out")


def check_weights_before(budget: object, policy: Policy | None) -> None:
    """Whether results of a query that goes on can have weights. `budget`, `policy`: what it had before."""
    if budget is not None and not isinstance(policy, Sample):
        raise SpecError(
            f"weights: {policy!r} has shed rows of this query, and no weight stands for those. Leave weights out, or start the "
            "query anew: another output directory, or another checkpoint"
        )


def weight_columns(streams: int) -> tuple[tuple[str, str], ...]:
    """Names and types. A result of three and more streams has several stored rows."""
    return ((WEIGHT, "double"), *([(ROW, "bigint")] if streams == 2 else []))


def weights_of(out: Output, shard: int) -> dict[str, pa.Array]:
    """The columns of some results. A row's number is that of its shard, and stays what it is when the query starts again."""
    columns = {WEIGHT: pa.array(out.weight)}
    if len(out.columns) == 2:
        stored = out.stored
        columns[ROW] = pa.array(((stored >> 1) << SHARD_BITS | shard) << 1 | (stored & 1))
    return columns
