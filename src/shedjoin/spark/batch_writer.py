"""What `start` does with a micro-batch: one job in which shards write their files, then a commit by the driver."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.archive import LEFT_OUT_DDL, shed_ddl
from shedjoin.spark.exchange import FILES, LATE, LEFT_OUT, METRIC, RESULT, SHED, from_blob, inputs_of
from shedjoin.spark.late import Limit, warn
from shedjoin.spark.output_files import DISK, BatchFiles, OutputFiles, Table, names_in, said_by
from shedjoin.spark.output_tables import archived_types, tables_of
from shedjoin.spark.plan import JoinPlan, ResultLayout, results_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Sink = Callable[["DataFrame", int], None]
#: What the driver reads itself. Blobs of other kinds have rows, and stay where they are.
TOLD = (FILES, METRIC, LATE)


@dataclass(frozen=True)
class Outputs:
    """What is written where. Knows no DataFrame, so that it can travel.

    Attributes
    ----------
    tables
        In the order in which they come into place.
    schemas
        Of blobs that Spark reads, by their kinds.
    elsewhere
        Tables whose rows a sink takes.
    """

    folder: str
    tables: tuple[Table, ...]
    layout: ResultLayout
    schemas: dict[str, StructType | str]
    late_limit: Limit
    elsewhere: tuple[Table, ...] = ()

    @classmethod
    def of(cls, plan: JoinPlan, folder: str, *, archive: bool, results: bool) -> Outputs:
        schemas: dict[str, StructType | str] = {
            SHED: shed_ddl(plan.names, plan.condition.key_columns),
            LEFT_OUT: LEFT_OUT_DDL,
            **{
                kind: archived_types(plan, side.schema)
                for kind, side in zip(inputs_of(plan.names), plan.sides, strict=True)
            },
        }
        tables = tables_of(plan, archive=archive)
        elsewhere = tuple(one for one in tables if one.kind == RESULT and not results)
        tables = tuple(one for one in tables if one not in elsewhere)
        return cls(os.path.abspath(folder), tables, plan.layout(), schemas, plan.late_limit, elsewhere)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What shards are asked for."""
        return tuple(dict.fromkeys([RESULT, *(table.kind for table in self.tables)]))

    @property
    def files(self) -> OutputFiles:
        """What shards write themselves. Metrics are few rows, and go to one file."""
        return OutputFiles(self.folder, tuple(one for one in self.tables if one.schema and one.kind != METRIC))

    def rows(self, blobs: DataFrame, kind: str) -> DataFrame:
        """The rows of a kind that shards do not write."""
        if kind == RESULT:
            return results_of(blobs, self.layout)
        rows = rows_of(blobs, kind, self.schemas[kind])
        return rows.drop("batch") if kind in (SHED, LEFT_OUT) else rows


class BatchWriter:
    """Takes the blobs of each micro-batch."""

    def __init__(self, outputs: Outputs, sink: Sink | None) -> None:
        self.outputs = outputs
        self.sink = sink
        self.by_spark = [one for one in outputs.tables if outputs.files.table(one.kind) is None and one.kind != METRIC]
        self.first = True  # an earlier run may have given this batch to a sink, or written it without one

    def __call__(self, blobs: DataFrame, number: int) -> None:
        if self.sink is None and not self.by_spark:
            self._take(blobs, number, _all)
            return
        blobs = blobs.persist()
        try:
            self._take(blobs, number, _told)
        finally:
            blobs.unpersist()

    def _take(self, blobs: DataFrame, number: int, told_by: Callable[[DataFrame], list[Any]]) -> None:
        """One micro-batch. `told_by` gives what shards say; what else is in the blobs Spark writes, or a sink."""
        outputs = self.outputs
        with _saying_where(outputs.folder, number):
            told = told_by(blobs)
        warn(sum(int(row["blob"]) for row in told if row["kind"] == LATE), number, outputs.late_limit)
        if self.sink is not None and self.first:
            with _saying_where(outputs.folder, number):
                BatchFiles(outputs.folder, number).withdraw(outputs.elsewhere)
        if self.sink is not None and (self.first or any(row["kind"] == RESULT for row in told)):
            self.sink(results_of(blobs, outputs.layout), number)
        self.first = False
        with _saying_where(outputs.folder, number):
            self._commit(told, blobs, number)

    def _commit(self, told: Sequence[Any], blobs: DataFrame, number: int) -> None:
        """Put the files of a batch in place."""
        outputs = self.outputs
        kinds = {row["kind"] for row in told}
        names = names_in(row["blob"] for row in told if row["kind"] == FILES)
        metrics = [rows for row in told if row["kind"] == METRIC for rows in from_blob(bytes(row["blob"]))]
        batch = BatchFiles(outputs.folder, number)
        batch.begin()
        for table in outputs.tables:
            if table.kind == METRIC:
                if metrics:
                    batch.write(table, _rows(table, metrics))
            elif table not in self.by_spark:
                batch.take(table, names.get(table.kind, ()))
            elif table.kind in kinds or self._must_be_there(batch, table):
                outputs.rows(blobs, table.kind).write.mode("overwrite").parquet(f"file://{batch.folder(table)}")
            if table not in self.by_spark and self._must_be_there(batch, table):
                batch.write(table, _rows(table, []))
        batch.commit(outputs.tables)

    def _must_be_there(self, batch: BatchFiles, table: Table) -> bool:
        """Whether nothing was made for a table that readers know, or look for: then it gets a file without rows."""
        if batch.folder(table).exists():
            return False
        known = table.folder(batch.output, batch.batch).exists()  # an earlier attempt has written more
        return known or (table.kind == RESULT and not (batch.output / table.place).exists())


def _rows(table: Table, blobs: Sequence[pa.RecordBatch]) -> pa.Table:
    schema = table.arrow
    return pa.Table.from_batches([table.rows(one, schema) for one in blobs], schema)


def _all(blobs: DataFrame) -> list[Any]:
    return list(blobs.collect())


def _told(blobs: DataFrame) -> list[Any]:
    """What the driver reads, and the kinds of all other blobs."""
    from pyspark.sql import functions as fn

    small = fn.when(fn.col("kind").isin(*TOLD), fn.col("blob")).alias("blob")
    return list(blobs.select("kind", "shard", small).collect())


@contextmanager
def _saying_where(folder: str, number: int) -> Iterator[None]:
    """A clear word when a disk is what stops a micro-batch."""
    try:
        yield
    except EnvironmentProblem:
        raise
    except Exception as problem:
        if (said := _disk_trouble(problem)) is None:
            raise
        where, reason = said
        raise EnvironmentProblem(
            f"batch {number} {DISK} {where or folder}: {reason}. Nothing is lost: when that is mended, start the same query "
            "again, and it goes on with this batch"
        ) from problem


#: What file systems say when they cannot write, without the names of the exceptions that say it.
_TROUBLE = re.compile(
    r"(?:Exception|Error): (?![\w.]+(?:Exception|Error): )([^\n]*"
    r"(?:No space left on device|File too large|[Qq]uota exceeded|Read-only file system|Input/output error|"
    r"Permission denied|Mkdirs failed|[Nn]ot a directory)[^\n]*)"
)
#: What shards say then.
_OURS = re.compile(rf"files {DISK} ([^\n]*): ([^\n:]*)\.$", re.MULTILINE)


def _disk_trouble(problem: BaseException) -> tuple[str | None, str] | None:
    """Where something could not be written, if that is known, and what the file system said; None: something else went wrong."""
    if isinstance(problem, OSError) and not isinstance(problem, ConnectionError) and problem.errno is not None:
        return problem.filename, said_by(problem)
    if (ours := _OURS.search(str(problem))) is not None:
        return ours[1], ours[2]
    found = _TROUBLE.search(str(problem))
    return None if found is None else (None, found[1].strip())
