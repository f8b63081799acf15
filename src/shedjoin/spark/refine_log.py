"""The finished batches of a growing table, stored with the result: a plan first, then the work, then "done".

Work that was planned and not finished is done again, for the same batches and into the same place: so nothing is there twice
however often a job dies. Everything is written by Spark, so that it works on every file system Spark has.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shedjoin.errors import InputError
from shedjoin.spark.inputs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Step:
    """Batches after `after` (None: from the first) up to `upto`, and their outcome."""

    after: int | None
    upto: int
    rows: int = 0
    incomplete: tuple[int, ...] = ()  # of each stream, rows that were complete before
    arrived: dict[int, tuple[int, ...]] = field(default_factory=dict)  # rows of each stream up to here, of each shard

    @property
    def name(self) -> str:
        first = 0 if self.after is None else self.after + 1
        return f"{first:012d}-{self.upto:012d}"


#: Settings by which a path without a scheme may not be on this machine.
ELSEWHERE = ("HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")


class RefineLog:
    """Steps in a directory. Nothing else writes to it in the meantime, so they are read once.

    Parameters
    ----------
    spark
        A session that can write there.
    path
        A directory of its own.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._known: dict[str, list[Step]] = {}

    def done(self) -> list[Step]:
        """The finished steps in order."""
        steps = sorted(self._read("done"), key=lambda step: step.upto)
        for one, two in pairwise(steps):
            if two.after != one.upto:
                raise InputError(
                    f"{self._path} has steps that overlap or leave a gap, at batch {one.upto}: two jobs have refined it at once. "
                    "Remove the directory and refine anew"
                )
        return steps

    def unfinished(self) -> Step | None:
        """The step that was begun last, if it is not done."""
        reached = max((step.upto for step in self.done()), default=-1)
        begun = [step for step in self._read("plan") if step.upto > reached]
        return max(begun, key=lambda step: step.upto) if begun else None

    def plan(self, step: Step) -> None:
        self._write("plan", step)

    def finish(self, step: Step) -> None:
        self._write("done", step)

    def _write(self, kind: str, step: Step) -> None:
        text = json.dumps(asdict(step))
        frame = self._spark.createDataFrame([(text,)], "value string").coalesce(1)
        frame.write.mode("overwrite").text(f"{self._path}/{kind}/{step.name}")
        self._known[kind] = [*(one for one in self._read(kind) if one.name != step.name), step]

    def _read(self, kind: str) -> list[Step]:
        if kind not in self._known:
            frame = read_if_there(self._spark, "text", f"{self._path}/{kind}")
            self._known[kind] = [] if frame is None else [_step(json.loads(row[0])) for row in frame.collect()]
        return self._known[kind]


def _step(data: dict[str, Any]) -> Step:
    arrived = {int(shard): tuple(map(int, counts)) for shard, counts in data.pop("arrived").items()}
    return Step(**{**data, "incomplete": tuple(data["incomplete"])}, arrived=arrived)


def read_if_there(spark: SparkSession, form: str, path: str, *, flat: bool = True) -> DataFrame | None:
    """What lies in a directory and below it; None if there is nothing yet. `flat`: names of directories make no columns."""
    from pyspark.errors import AnalysisException

    if surely_absent(spark, path):
        return None
    try:
        frame = spark.read.format(form).option("recursiveFileLookup", str(flat).lower()).load(path)
        frame.schema  # noqa: B018 - Spark Connect looks for the files only now
    except AnalysisException as problem:
        if problem.getCondition() not in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            raise
        return None
    return frame


def surely_absent(spark: SparkSession, path: str) -> bool:
    """Whether Python sees, and for sure, that there is nothing: Spark would log a stack trace of Java before it says so."""
    if any(sign in path for sign in "*?[{") or is_connect(spark):
        return False
    if not str(spark.conf.get("spark.master", "")).startswith("local"):
        return False
    if path.startswith("file:"):
        place = path.removeprefix("file:")
        place = place[2:] if place.startswith("//") else place
    else:
        given = spark.conf.get("spark.hadoop.fs.defaultFS", "file:") or ""
        if ":" in path or not given.startswith("file:") or any(name in os.environ for name in ELSEWHERE):
            return False
        place = path
    try:
        return not Path(place).exists()
    except OSError:
        return False
