"""The files of a micro-batch: tasks write what their shards give, the driver commits it.

Each attempt of a task writes files of its own into a directory that readers pass over, and tells the driver their names. The
driver puts those of the attempts that Spark took into one new directory for each table, and renames these into place. A batch
that is repeated after a failure takes the place of the earlier attempt: its directories have the same names. Metrics come last:
they are there when the rest is.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shedjoin.errors import EnvironmentProblem

#: Below the output directory: files that do not count yet, and the batch that is being committed.
WRITING, COMMIT, OLD = "_writing", "commit", "old"
#: Spark writes this when a directory is complete. So are ours when they come into place, but other readers may look for it.
COMPLETE = "_SUCCESS"
#: Rows are written when there are this many, or bytes.
GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 25
#: Why a file cannot be written: a disk, and no fault of ours.
DISK = "cannot be written to"


@dataclass(frozen=True, slots=True)
class Table:
    """What is written of the blobs of one kind.

    Parameters
    ----------
    kind
        Of the blobs.
    place
        Its directory below the output directory.
    column
        What readers call the number of the micro-batch.
    schema
        Of its files, as Arrow writes it, with the notes by which Spark knows its own types.
    chosen
        For each column those of the blob of which the first that is not null counts.
    equal
        Pairs of columns that must be equal: two keys of one hash make no result.
    alone
        Whether a row may lack one side: then it has no key to compare.
    codec
        How files are compressed.
    """

    kind: str
    place: str
    column: str
    schema: bytes
    chosen: tuple[tuple[str, ...], ...]
    equal: tuple[tuple[str, str], ...] = ()
    alone: bool = False
    codec: str = "snappy"

    @property
    def arrow(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    def rows(self, blob: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a blob as they are written."""
        if self.equal:
            same = reduce(np.logical_and, (self._same(blob.column(one), blob.column(two)) for one, two in self.equal))
            blob = blob if same.all() else blob.filter(pa.array(same))
        columns = [
            _as_type(_first([blob.column(name) for name in names]), one.type)
            for names, one in zip(self.chosen, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _same(self, one: pa.Array, other: pa.Array) -> Any:
        import pyarrow.compute as pc

        return pc.equal(one, other).fill_null(self.alone).to_numpy(zero_copy_only=False)

    def folder(self, output: str | Path, batch: int) -> Path:
        """Where the files of a batch are."""
        return Path(output, self.place, f"{self.column}={batch}")


def _first(columns: Sequence[pa.Array]) -> pa.Array:
    if len(columns) == 1:
        return columns[0]
    import pyarrow.compute as pc

    return pc.coalesce(*columns)


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of this type. A key that is a number has the value of its type: dates are days."""
    if column.type == kind:
        return column
    return (column.cast(pa.int32()) if pa.types.is_date32(kind) else column).cast(kind)


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """Where shards write, and what. Travels to them."""

    output: str
    tables: tuple[Table, ...]

    def table(self, kind: str) -> Table | None:
        return next((one for one in self.tables if one.kind == kind), None)


# --------------------------------------------------------------------------------------------------------- in the tasks


@dataclass
class _File:
    """A file that is being written: rows that are held, and a writer."""

    table: Table
    path: Path
    writer: Any
    schema: pa.Schema
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, blob: pa.RecordBatch) -> None:
        made = self.table.rows(blob, self.schema)
        self.held.append(made)
        self.rows += made.num_rows
        self.size += made.nbytes
        if self.rows >= GROUP_ROWS or self.size >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            self.writer.write_table(pa.Table.from_batches(self.held, self.schema))
        self.held, self.rows, self.size = [], 0, 0


class TaskFiles:
    """The files of one attempt at a task: of all shards that it has in a micro-batch."""

    def __init__(self, files: OutputFiles, shard: int) -> None:
        self._files = files
        self._first = shard  # names the files, with a random part
        self._attempt = uuid.uuid4().hex
        self._open: dict[str, _File] = {}

    def takes(self, kind: str) -> bool:
        """Whether blobs of this kind are written here."""
        return self._files.table(kind) is not None

    def write(self, kind: str, blobs: Iterable[pa.RecordBatch]) -> None:
        table = self._files.table(kind)
        assert table is not None
        try:
            file = self._open.get(kind) or self._begin(table)
            for blob in blobs:
                file.add(blob)
        except OSError as reason:
            raise self._trouble(table, reason) from reason

    def _begin(self, table: Table) -> _File:
        folder = Path(self._files.output, WRITING)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._first:05}-{table.kind}-{self._attempt}.parquet"
        schema = table.arrow
        file = _File(table, path, parquet_writer(path, schema, table.codec), schema)
        self._open[table.kind] = file
        return file

    def names(self) -> bytes:
        """Their names by kind, for the driver. They are whole once they are closed."""
        return json.dumps({kind: file.path.name for kind, file in self._open.items()}).encode()

    def close(self) -> None:
        for file in self._open.values():
            try:
                file.flush()
                file.writer.close()
            except OSError as reason:
                self.discard()
                raise self._trouble(file.table, reason) from reason

    def discard(self) -> None:
        """Files of an attempt that failed are gone with it, as far as they can."""
        for file in self._open.values():
            with suppress(OSError):
                file.writer.close()
            file.path.unlink(missing_ok=True)

    def _trouble(self, table: Table, reason: OSError) -> EnvironmentProblem:
        return EnvironmentProblem(f"files {DISK} {self._files.output}/{table.place}: {said_by(reason)}.")


def parquet_writer(path: Path, schema: pa.Schema, codec: str = "snappy") -> Any:
    import pyarrow.parquet as pq

    writer = pq.ParquetWriter(path, schema, compression=codec, store_schema=False)
    writer.add_key_value_metadata(schema.metadata or {})  # Spark's notes; Arrow's own are of no use to it
    return writer


def said_by(reason: OSError) -> str:
    """The system's message, without the text that Arrow adds."""
    return os.strerror(reason.errno or errno.EIO)


# --------------------------------------------------------------------------------------------------------- in the driver


def names_in(told: Iterable[bytes]) -> dict[str, list[str]]:
    """Files by their kinds, in order, from the reports of all tasks' shards."""
    found: dict[str, set[str]] = {}
    for names in map(json.loads, told):
        for kind, name in names.items():
            found.setdefault(kind, set()).add(name)
    return {kind: sorted(names) for kind, names in found.items()}


class BatchFiles:
    """One micro-batch in the driver, until it is committed."""

    def __init__(self, output: str, batch: int) -> None:
        self.output = Path(output)
        self.batch = batch
        self.made = self.output / WRITING / COMMIT
        self.old = self.output / WRITING / OLD

    def begin(self) -> None:
        """Nothing of an attempt that was cut off may stay."""
        for folder in (self.made, self.old):
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)

    def folder(self, table: Table) -> Path:
        """Where files of a table are put together."""
        return self.made / table.place

    def take(self, table: Table, names: Sequence[str]) -> None:
        """The files that tasks have written."""
        folder = self.folder(table)
        for place, name in enumerate(names):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                os.rename(self.output / WRITING / name, folder / f"part-{place:05}.parquet")
            except FileNotFoundError:
                raise EnvironmentProblem(
                    f"{self.output / WRITING} has no {name}, which a worker has written: output must be a directory that the "
                    "driver and all workers see"
                ) from None

    def write(self, table: Table, rows: pa.Table) -> None:
        """Rows that the driver has."""
        folder = self.folder(table)
        folder.mkdir(parents=True, exist_ok=True)
        with parquet_writer(folder / "part-00000.parquet", table.arrow, table.codec) as writer:
            writer.write_table(rows)

    def withdraw(self, tables: Sequence[Table]) -> None:
        """Remove the files of an earlier attempt, before another writer replaces them."""
        self.begin()
        for table in tables:
            self._set_aside(table)
        shutil.rmtree(self.old, ignore_errors=True)

    def _set_aside(self, table: Table) -> Path:
        """The place of a table, free of what an earlier attempt has left: a rename takes that away whole."""
        place = table.folder(self.output, self.batch)
        if place.exists():
            self.old.mkdir(parents=True, exist_ok=True)
            os.rename(place, self.old / table.place.replace("/", "-"))
        return place

    def commit(self, tables: Sequence[Table]) -> None:
        """Put all that was made in place, in the order of the tables, and remove what an earlier attempt has left."""
        for table in tables:
            place, made = self._set_aside(table), self.folder(table)
            if made.exists():
                (made / COMPLETE).touch()
                place.parent.mkdir(parents=True, exist_ok=True)
                os.rename(made, place)
        shutil.rmtree(self.output / WRITING, ignore_errors=True)  # with files of attempts that did not count
