"""Running a job: ours, and Spark's own join of the same rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from streams import run

from compare.inputs import SIDES, at_rest, key_columns, streamed, write_sides
from compare.jobs import BOUNDS, INTERVALS, LAG, MILLISECOND, WHERE, Job
from shedjoin.spark import refine, shed_join, start

Rows = Counter[tuple[Any, ...]]
#: Of a join without a budget: about a quarter of what most windows hold.
BUDGET = 60


class Different(AssertionError):
    """Rows that one of the two has, and the other has not."""


def compare(spark: Any, job: Job, folder: Path) -> int:
    """Run a job; says how many rows both have. `folder` is empty."""
    write_sides(job, folder)
    theirs = expected(spark, job, folder)
    check("ours and Spark's", ours(spark, job, folder), theirs)
    if job.form == "both streams":
        run(spark_join(job, streamed(spark, job, folder)), folder / "own checkpoint", folder / "own")
        check("Spark's stream and Spark's batch", counted(read_rows(spark, folder / "own", job)), theirs)
    return theirs.total()


def check(what: str, mine: Rows, theirs: Rows) -> None:
    """Raise what differs, with an example."""
    missing, more = theirs - mine, mine - theirs
    if missing or more:
        examples = [*(f"- {row}" for row in list(missing)[:3]), *(f"+ {row}" for row in list(more)[:3])]
        raise Different(
            f"{what} differ: {missing.total()} rows missing, {more.total()} too many: {'; '.join(examples)}"
        )


def columns(job: Job) -> list[str]:
    """The columns of the result."""
    return [*key_columns(job), *(name for side in SIDES.values() for name in side)]


def ours(spark: Any, job: Job, folder: Path) -> Rows:
    given: dict[str, Any] = {
        **INTERVALS[job.interval],
        "on": key_columns(job),
        "time": ("ts", "at"),
        "select": columns(job),
    }
    if job.where != "none":
        given["where"] = WHERE[job.where][0]
    if job.form == "batch":
        return counted(shed_join(*at_rest(spark, folder), **given))
    given |= {"shards": job.shards, "cache": str(folder / "copies")}
    if job.watermarks in ("none", "one"):
        given["lateness"] = 0 if job.order in ("sorted", "ahead") else f"{LAG // MILLISECOND} ms"
    sides = streamed(spark, job, folder)
    if job.form in ("stream", "both streams"):
        run(shed_join(*sides, **given), folder / "checkpoint", folder / "out")
        return counted(read_rows(spark, folder / "out", job))
    if job.form == "budget":
        given |= {"budget": BUDGET, "policy": ("prob", "rand", "prospect")[job.seed % 3]}
    start(*sides, output=folder / "out", archive=True, trigger={"availableNow": True}, **given).awaitTermination()
    found = counted(read_rows(spark, folder / "out" / "results", job))
    return found + counted(refine(folder / "out", spark=spark).rows.select(*columns(job)))


def expected(spark: Any, job: Job, folder: Path) -> Rows:
    return counted(spark_join(job, at_rest(spark, folder)))


def spark_join(job: Job, sides: list[Any]) -> Any:
    """Spark's own join."""
    from pyspark.sql import functions as fn

    left, right = (side.alias(name) for side, name in zip(sides, SIDES, strict=True))
    low, high = BOUNDS[job.interval]
    keys = [fn.col(f"left.{key}") == fn.col(f"right.{key}") for key in key_columns(job)]
    near = fn.expr(f"at BETWEEN ts + INTERVAL {low} MICROSECONDS AND ts + INTERVAL {high} MICROSECONDS")
    condition = near
    for key in keys:
        condition = condition & key
    if job.where != "none":
        condition = condition & fn.expr(WHERE[job.where][1])
    chosen = [fn.col(f"left.{key}") for key in key_columns(job)]
    return left.join(right, condition).select(*chosen, *columns(job)[len(chosen) :])


def read_rows(spark: Any, folder: Path, job: Job) -> Any:
    """What a query wrote; nothing, if that is what it wrote."""
    if not any(folder.rglob("*.parquet")):
        return None
    return spark.read.parquet(str(folder)).select(*columns(job))


def counted(frame: Any) -> Rows:
    return Counter() if frame is None else Counter(tuple(row) for row in frame.collect())
