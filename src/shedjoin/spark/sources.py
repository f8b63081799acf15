"""Sources and sinks as data: their settings in a job file, and their DataFrames and writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shedjoin.errors import EnvironmentProblem, InputError, SpecError
from shedjoin.spark.formats import check_jar, check_known, how_to_add, is_missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Formats that are directories of files.
FILES = ("parquet", "orc", "csv", "json", "text")
#: The formats with a schema in their files.
TYPED = ("parquet", "orc", "text")
MODES = ("append", "overwrite", "error", "ignore")
#: What to call the format of a sink in an error.
PLACE = "sink.format"


@dataclass(frozen=True, slots=True)
class Source:
    """A streaming source.

    Parameters
    ----------
    name
        What to call it in an error.
    format, path, schema, options
        As Spark's `readStream` takes them. Without a schema, that of the files that are there.
    select
        SQL expressions that make the columns of the stream; default: the columns as they are.
    """

    name: str
    format: str = "parquet"
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format in FILES and self.path is None:
            raise SpecError(f"path is missing: a source of {self.format} files needs a directory")
        if self.format in FILES and self.format not in TYPED and self.schema is None:
            raise SpecError(
                f"schema is missing: {self.format} files do not store types, so give them, such as "
                'schema = "id bigint, at timestamp"'
            )

    def check_directory(self) -> None:
        """See that a directory of files on this machine is there."""
        if self.format not in FILES or self.path is None or "://" in self.path:
            return
        if not any(sign in self.path for sign in "*?[{") and not Path(self.path).exists():
            raise SpecError(f"{self.name}.path: there is no {self.path}")
        if Path(self.path).is_file():
            raise SpecError(f"{self.name}.path must be a directory of files, but {self.path} is a file")
        if self.schema is None and self.format in TYPED[:2] and Path(self.path).is_dir() and not _has_files(self.path):
            raise SpecError(
                f"{self.name}.path: {self.path} has no {self.format} files yet, so its columns are not known: give schema, such "
                'as schema = "id bigint, at timestamp", or start when files are there'
            )

    def frame(self, spark: SparkSession) -> DataFrame:
        """The stream."""
        from pyspark.errors import PySparkException

        check_known(f"{self.name}.format", self.format, self.options, spark)
        try:
            reader = spark.readStream.format(self.format).options(**self.options)
            if self.schema is not None:
                reader = reader.schema(self.schema)
            elif self.format in FILES:
                reader = reader.schema(spark.read.format(self.format).options(**self.options).load(self.path).schema)
            made = reader.load(self.path) if self.path is not None else reader.load()
            return made.selectExpr(*self.select) if self.select else made
        except PySparkException as reason:
            if is_missing(reason):
                raise EnvironmentProblem(how_to_add(f"{self.name}.format", self.format, self.options)) from None
            raise InputError(f"{self.name} cannot be read: {first_line(reason)}") from None


@dataclass(frozen=True, slots=True)
class Sink:
    """Where results go, micro-batch by micro-batch; what `start` takes as `sink`.

    A directory of files gets one directory a micro-batch, overwritten when a batch is repeated after a failure: each row is
    there once. Other formats are appended to, and have a repeated batch twice; `batch_column` lets their readers tell.

    Parameters
    ----------
    format, path, options, mode
        As Spark's `DataFrame.write` takes them. The default mode is append; files have none.
    batch_column
        The name of a column with the number of the micro-batch, if there shall be one.
    """

    format: str = "parquet"
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str | None = None
    batch_column: str | None = None

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise SpecError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if self.format in FILES and self.path is None:
            raise SpecError(f"path is missing: a sink of {self.format} files needs a directory")
        if self.format in FILES and self.mode is not None:
            raise SpecError(f"mode: {self.format} files are written one directory a micro-batch, so there is no mode")

    def check(self, spark: SparkSession) -> None:
        """See that Spark has the format, before a query starts."""
        check_known(PLACE, self.format, self.options, spark)
        if hasattr(spark, "_jvm"):
            check_jar(PLACE, self.format, self.options, dict(spark.sparkContext.getConf().getAll()))

    def __call__(self, results: DataFrame, number: int) -> None:
        """Write the results of a micro-batch."""
        try:
            self._write(results, number)
        except Exception as problem:
            if not is_missing(problem):
                raise
            raise EnvironmentProblem(how_to_add(PLACE, self.format, self.options)) from problem

    def _write(self, results: DataFrame, number: int) -> None:
        if self.format in FILES:
            folder = f"{self.path}/{self.batch_column or 'sj_batch'}={number}"
            results.write.format(self.format).options(**self.options).mode("overwrite").save(folder)
            return
        if self.batch_column is not None:
            from pyspark.sql import functions as F

            results = results.withColumn(self.batch_column, F.lit(number).cast("long"))
        results.write.format(self.format).options(**self.options).mode(self.mode or "append").save(self.path)


def _has_files(path: str) -> bool:
    """Whether there is a file that Spark reads: names that begin with _ or . are not for readers."""
    return any(file.is_file() and not file.name.startswith(("_", ".")) for file in Path(path).rglob("*"))


def first_line(reason: BaseException) -> str:
    """Spark's message, without the stack trace."""
    return str(reason).strip().split("\n", 1)[0].strip()
