"""Running a job: ours, and Spark's own join of the same rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from streams import run

from compare.inputs import ENDS, SIDES, at_rest, key_columns, streamed, write_sides
from compare.jobs import BOUNDS, INTERVALS, LAG, MATCHES, MILLISECOND, WHERE, Job
from shedjoin.spark import refine, shed_join, start

Rows = Counter[tuple[Any, ...]]
#: Of a join without a budget: about a quarter of what most windows hold.
BUDGET = 60
POLICIES = ("prob", "rand", "prospect", "life")


#: The numbers of rows.
NAMES = [name for _, name, _ in SIDES.values()]


class Different(AssertionError):
    """Rows that one of the two has, and the other has not."""


def compare(spark: Any, job: Job, folder: Path) -> int:
    """Run a job; says how many rows both have. `folder` is empty."""
    write_sides(job, folder)
    theirs = expected(spark, job, folder)
    check("ours and Spark's", ours(spark, job, folder, theirs), theirs)
    # Spark's own stream joins null with null where rows of both sides are kept for want of a partner; its batch does not.
    if job.form == "both streams" and not (job.nulls and job.how == "full_outer"):
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
    sides = ("left",) if job.how in ("left_semi", "left_anti") else tuple(SIDES)
    return [*key_columns(job), *(name for side in sides for name in SIDES[side])]


def ours(spark: Any, job: Job, folder: Path, theirs: Rows) -> Rows:
    given: dict[str, Any] = {
        **INTERVALS[job.interval],
        **MATCHES[job.unique],
        "how": job.how,
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
        given |= {"budget": BUDGET, "policy": POLICIES[job.seed % len(POLICIES)]}
    start(*sides, output=folder / "out", archive=True, trigger={"availableNow": True}, **given).awaitTermination()
    found = counted(read_rows(spark, folder / "out" / "results", job))
    check("What is given and what is true", found & theirs, found)
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
    alone = job.how in ("left_semi", "left_anti")
    shared = [
        (fn.col(f"left.{key}") if alone else fn.coalesce(f"left.{key}", f"right.{key}")).alias(key)
        for key in key_columns(job)
    ]
    return left.join(right, condition, job.how).select(*shared, *columns(job)[len(shared) :])


def read_rows(spark: Any, folder: Path, job: Job) -> Any:
    """What a query wrote; nothing, if that is what it wrote."""
    if not any(folder.rglob("*.parquet")):
        return None
    return spark.read.parquet(str(folder)).select(*columns(job))


def counted(frame: Any) -> Rows:
    """The rows but those that come at the end: a stream that stops has them still."""
    rows = [] if frame is None else frame.collect()
    return Counter(tuple(row) for row in rows if not any(row[name] in ENDS.values() for name in NAMES if name in row))
