"""What `start` writes beside results adds up, also when a sink failed on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from plans import large_plans

from shedjoin.spark import refine
from shedjoin.spark.metrics import summarise
from shedjoin.spark.refine import Refinement


class Stop(Exception):
    """A sink fails."""


def fail_in_the_second_batch(spark: Any, query: Callable[..., Any], output: Path) -> None:
    """Start a query whose sink fails in batch 1, after it has written the results; only batch 0 can be refined then."""

    def sink(rows: Any, number: int) -> None:
        rows.write.mode("overwrite").parquet(str(output / "results" / f"sj_batch={number}"))
        if number == 1:
            raise Stop

    with pytest.raises(Exception, match="Stop"):
        query(sink=sink).awaitTermination()
    with large_plans(spark):
        assert refine(output).batches == 0


def metrics_that_add_up(
    spark: Any, output: Path, found: Sequence[Any], late: Refinement, rows: dict[str, int], budget: int
) -> list[dict[str, Any]]:
    """The metrics of a query: of its rows, results, memory, shed log and recall they say what is there."""
    told = [row.asDict() for row in spark.read.parquet(str(output / "metrics")).collect()]
    whole = summarise(told)
    assert whole is not None
    assert whole.rows_of == rows
    assert whole.results == len(found)
    assert 0 < whole.peak_tuples <= budget
    assert whole.recall is not None
    assert (whole.recall.missing, whole.recall.low) == (late.count, whole.recall.high)
    assert whole.shed + whole.late == spark.read.parquet(str(output / "shed")).count()
    return told
