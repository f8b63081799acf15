"""Where Spark runs: a master is checked before Java starts, and one that does not answer gives a clear error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shedjoin.errors import EnvironmentProblem, SpecError
from shedjoin.spark.sources import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = r"local(\[\s*(\*|0*[1-9]\d*)\s*(,\s*\d+\s*)?\])?"
MASTER = re.compile(rf"{LOCAL}|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|spark://.+|yarn|k8s://.+")
REMOTE = re.compile(rf"{LOCAL}|sc://.+")
#: Exceptions that mean that there is no session.
SPARKS = ("grpc", "py4j", "pyspark")


def check_master(master: object, *, argument: str = "master") -> None:
    """A clear word where Spark would start Java and end with a stack trace.

    Examples
    --------
    >>> check_master("local[2]"), check_master("spark://host:7077")
    (None, None)
    """
    if not isinstance(master, str) or not MASTER.fullmatch(master):
        raise SpecError(
            f"{argument} must be a master of Spark: local, local[N], local[*], spark://HOST:PORT, yarn or k8s://..., "
            f"not {master!r}"
        )


def check_remote(remote: object, *, argument: str = "remote") -> None:
    """The same for a server of Spark Connect."""
    if not isinstance(remote, str) or not REMOTE.fullmatch(remote):
        raise SpecError(f"{argument} must be a server of Spark Connect: sc://HOST:PORT, not {remote!r}")


def check_places(settings: Mapping[str, str]) -> str | None:
    """Check that the settings (by their full names) have a valid Spark master or Connect address; returns it."""
    if "spark.remote" in settings:
        check_remote(settings["spark.remote"], argument="spark.remote")
    if "spark.master" in settings:
        check_master(settings["spark.master"], argument="spark.master")
    return settings.get("spark.remote", settings.get("spark.master"))


def get_session(builder: Any, master: str | None) -> SparkSession:
    """The session of a builder; if it fails, an error that names the master."""
    try:
        made: SparkSession = builder.getOrCreate()
    except Exception as problem:  # of Java, of py4j or of Connect, as it happens
        if type(problem).__module__.partition(".")[0] not in SPARKS:
            raise
        where = "" if master is None else f" with the master {master!r}"
        raise EnvironmentProblem(f"Spark does not start{where}: {_reason(problem)}") from problem
    return made


def _reason(problem: Exception) -> str:
    """The line that says why: of py4j the second one, Java's, after what was called."""
    first, _, more = str(problem).strip().partition("\n")
    return first_line(Exception(more.lstrip(": "))) if first.startswith("An error occurred while") and more else first
