"""Late rows are never lost silently: shards count them, Spark adds them up, the driver warns."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from shedjoin.parse import format_lateness
from shedjoin.spark.exchange import LATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Observations of Spark that count late rows begin with this.
OBSERVED = "shedjoin_late_"
_LOG = logging.getLogger("shedjoin")


class Limit(NamedTuple):
    """What a join promises of late rows.

    Attributes
    ----------
    lateness
        None where times are numbers without a unit.
    gives_alone
        Whether it delivers rows without a partner: they stay delivered when a late partner comes.
    """

    lateness: int | None
    gives_alone: bool


def late_rows() -> Column:
    """The late rows that shards report, added up over their blobs."""
    from pyspark.sql import functions as fn

    reported = fn.when(fn.col("kind") == LATE, fn.col("blob").cast("string").cast("long"))
    return fn.coalesce(fn.sum(reported), fn.lit(0)).alias("late")


def observe_late(blobs: DataFrame, query: str) -> DataFrame:
    """The same blobs; Spark's progress reports then have the number of late rows."""
    return blobs.observe(f"{OBSERVED}{query}", late_rows())


def late_in(observed: Mapping[str, Any]) -> int:
    """The late rows of a micro-batch, from the observations in its progress report."""
    return sum(int(metrics["late"]) for name, metrics in observed.items() if name.startswith(OBSERVED))


def warn(late: int, batch: int, limit: Limit) -> None:
    """Log a warning if a micro-batch has late rows."""
    if late:
        _LOG.warning("%s", warning(late, f"batch {batch}: ", limit))


def warning(late: int, where: str, limit: Limit) -> str:
    """What is said of late rows.

    Examples
    --------
    >>> print(warning(2, "batch 7: ", Limit(5_000_000, False)))
    batch 7: 2 rows were later than lateness='5 seconds': they joined only rows that were still stored. Raise lateness; with
    start(archive=True), refine adds the pairs that they missed.
    >>> warning(1, "", Limit(None, True)).split("refine ")[1]
    'adds the pairs that it missed, except with rows that were delivered without a partner before.'
    """
    lateness = "" if limit.lateness is None else f"='{format_lateness(limit.lateness)}'"
    but = ", except with rows that were delivered without a partner before" if limit.gives_alone else ""
    rows, they = ("1 row was", "it") if late == 1 else (f"{late:,} rows were", "they")
    return (
        f"{where}{rows} later than lateness{lateness}: {they} joined only rows that were still stored. "
        f"Raise lateness; with start(archive=True), refine adds the pairs that {they} missed{but}."
    )
