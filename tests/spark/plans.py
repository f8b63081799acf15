"""A Spark session set for large plans over little data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

#: For queries that run once over a few hundred rows: compiling them takes longer than interpreting them. The Sparks in
#: processes of their own (a cluster, a driver that is killed, the command line) compile theirs, as Spark does by default.
INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: For plans of dozens of joins: Spark plans them longer than it runs them.
SMALL = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
}


#: Spark's defaults, for rows by the hundred thousand.
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@contextmanager
def set_for(spark: Any, settings: dict[str, str]) -> Iterator[None]:
    """The session with other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def large_plans(spark: Any) -> AbstractContextManager[None]:
    """The session, set for large plans over little data."""
    return set_for(spark, SMALL)
