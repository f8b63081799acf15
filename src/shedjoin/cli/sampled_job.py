"""The streams of a `shedjoin run` job as tables: the existing files are the sample for a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shedjoin.batch import Checked
from shedjoin.cli.file_job import FileJob, keys_as_text, read_file_job
from shedjoin.cli.stream_job import StreamJob, read_stream_job
from shedjoin.cli.tables import read_toml
from shedjoin.engine.where import parse_where
from shedjoin.errors import InputError, SpecError
from shedjoin.spark.sources import Source
from shedjoin.spec import JoinSpec

#: What columns of a sample are called.
RESERVED = ("key", "ts", "importance", "bytes")
#: Formats whose files say which columns they have, and that are read without Spark.
FORMATS = ("parquet", "orc")


def read_any_job(path: Path) -> FileJob:
    """The job in a file, be it one of `shedjoin simulate` or of `shedjoin run`."""
    return read_sampled_job(path) if "output" in read_toml(path) else read_file_job(path)


def read_sampled_job(path: Path) -> FileJob:
    """A job of `shedjoin run`, its files read."""
    job = read_stream_job(path)
    _check(job)
    tables = [_read(source) for source in job.sources]
    for name, table, time, importance in zip(job.names, tables, job.times, job.importances, strict=True):
        place = 0 if name == job.names[0] else 1
        for column in (*(pair[place] for pair in job.on.keys), time, importance):
            if column is not None and column not in table.schema.names:
                raise InputError(f"{name} has no column {column!r}; it has {', '.join(table.schema.names)}")
    spec = JoinSpec(
        None if job.spec.between is not None else job.spec.window,
        between=job.spec.between,
        importance=job.spec.importance,
        how=job.spec.how,
        where=_condition(job),
        matches=job.spec.matches,
    )
    keys = _keys(tables, job.on.keys)
    sides = []
    for stream, (table, key, time, importance) in enumerate(zip(tables, keys, job.times, job.importances, strict=True)):
        columns = {"key": key, "ts": _times(table, time)}
        if importance is not None:
            columns["importance"] = table.column(importance)
        columns |= _checked(job.names[stream], table, spec.plan().checked, stream)
        sides.append(pa.table(columns))
    return FileJob(spec, sides[0], sides[1])


def _check(job: StreamJob) -> None:
    """Refuse what a plan does not count, or cannot read."""
    if len(job.names) != 2 or not job.on.keys:
        raise SpecError("plan needs a join of two streams on keys, and this job has another join")
    for name, source in zip(job.names, job.sources, strict=True):
        if source.format not in FORMATS:
            raise SpecError(
                f"{name}.format is {source.format!r}, and plan reads {' and '.join(FORMATS)}: give it two files of a sample, "
                "shedjoin plan LEFT RIGHT --key ... --window ..."
            )
        if source.select:
            raise SpecError(f"{name}.select: plan reads columns as they are: write a sample and plan its two files")


def _condition(job: StreamJob) -> str | None:
    """The condition, if it is one that is evaluated without Spark."""
    where: str | None = job.join["where"]
    if where is not None:
        try:
            parse_where(where, job.names)
        except SpecError as reason:
            raise SpecError(
                f"join.where: plan evaluates it without Spark, and supports less of SQL: {reason}"
            ) from None
    return where


def _checked(name: str, table: pa.Table, checked: Sequence[Checked] | None, stream: int) -> dict[str, pa.ChunkedArray]:
    """The columns of a stream that the condition looks at."""
    wanted = () if checked is None else checked[stream].names
    for column in wanted:
        if column not in table.schema.names:
            raise InputError(f"{name} has no column {column!r}; it has {', '.join(table.schema.names)}")
        if column in RESERVED:
            raise InputError(f"join.where: the column name {column!r} is reserved in a plan: rename the column")
    return {column: table.column(column) for column in wanted}


def _read(source: Source) -> pa.Table:
    import pyarrow.dataset

    source.check_directory()
    assert source.path is not None  # of formats that are files
    files = sorted(str(one) for one in Path(source.path).rglob("[!._]*") if one.is_file())
    if not files:
        raise InputError(f"{source.name}.path: there are no files in {source.path}, and plan needs some as a sample")
    try:
        return pyarrow.dataset.dataset(files, format=source.format).to_table()
    except (OSError, pa.ArrowInvalid) as reason:
        raise InputError(f"{source.name}.path: {source.path} cannot be read: {reason}") from None


def _times(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Times as whole numbers: of timestamps, microseconds."""
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    elif not pa.types.is_integer(column.type):
        raise InputError(f"time: {name} is {column.type}, and must be a timestamp or a whole number")
    if column.null_count:
        raise InputError(f"time: {name} has nulls")
    return column.cast(pa.int64())


def _keys(tables: Sequence[pa.Table], names: Sequence[Sequence[str]]) -> list[pa.Array]:
    """Keys of any columns as whole numbers that are equal iff all columns are; null where one of them is."""
    rows = [table.num_rows for table in tables]
    numbers, null = np.zeros(sum(rows), np.int64), np.zeros(sum(rows), np.bool_)
    for pair in names:
        columns = [pa.table({"key": table.column(name)}) for table, name in zip(tables, pair, strict=True)]
        texts = keys_as_text(columns, "key")
        both = pa.chunked_array([chunk for text in texts for chunk in text.chunks], pa.string())
        index = pc.index_in(both, pc.unique(both.drop_null()))
        null |= index.is_null().to_numpy()
        found = index.fill_null(0).to_numpy().astype(np.int64)
        numbers = np.unique(numbers * (int(found.max(initial=0)) + 1) + found, return_inverse=True)[1].reshape(-1)
    whole = pa.array(numbers, pa.int64(), mask=null)
    return [whole.slice(0, rows[0]), whole.slice(rows[0])]
