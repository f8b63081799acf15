"""Job files: a join, its inputs and how to run it, in TOML.

```toml
[join]                                  # in words, or as JoinSpec.to_dict() gives it
window = {time = 600_000_000}           # in the unit of ts; timestamps count microseconds, so "10 minutes" is the same
budget = {tuples = 20_000, allocation = "variable"}  # or "20k tuples", "512 MB"; a plain number is tuples
policy = {name = "prob", estimator = "history"}

[left]
path = "impressions.parquet"            # or .csv; relative to the job file
key = "ad_id"                           # whole numbers or text
ts = "shown_at"                         # optional: 0, 1, 2, ...
importance = "bid"                      # optional: 1

[right]
path = "clicks.csv"
key = "ad_id"
ts = "clicked_at"

[run]                                   # optional
warmup = 0
seed = 7
late = "log"
```

Instead of `[left]` and `[right]`, a table `[workload]` makes streams with Zipf keys: `rows`, `seed`, `domain`, `skew`, `ranks`,
`importance`, as `shedjoin.workloads.zipf` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shedjoin.cli.tables import Column, errors_in, located, read_table, read_toml, settings
from shedjoin.errors import InputError, SpecError
from shedjoin.parse import parse_budget
from shedjoin.spark.keys import by_stream
from shedjoin.spec import JoinSpec
from shedjoin.workloads import zipf

TABLES = ("join", "left", "right", "workload", "run")
RUN = ("warmup", "seed", "late")
#: Settings of [join]: those of `JoinSpec`, and the allocation of the budget beside it.
JOIN = (*(one.name for one in fields(JoinSpec)), "allocation")


@dataclass(frozen=True, slots=True)
class FileStream:
    """The tables [left] and [right]: a file, and which of its columns are what."""

    path: str
    key: Column
    ts: Column | None = None
    importance: Column | None = None
    bytes: Column | None = None


@dataclass(frozen=True, slots=True)
class FileJob:
    """The arguments of `shedjoin.simulate`."""

    spec: JoinSpec
    left: Any
    right: Any
    options: dict[str, Any] = field(default_factory=dict)


def read_file_job(path: Path) -> FileJob:
    """The job in a file, its inputs read."""
    data = read_toml(path)
    if "output" in data or "streams" in data:
        raise SpecError(
            f"{path} is a job for `shedjoin run`, of streams on Spark; this command takes files of rows: [join], [left] and "
            "[right] with a path each, or [workload] (see docs/guide.md)"
        )
    settings(data, "", TABLES)
    if "join" not in data:
        raise SpecError(
            f"{path} needs a table [join], with a window such as window = {{time = 400}}, or between = [0, 400]"
        )
    spec = _spec(settings(data["join"], "join", JOIN))
    options = dict(settings(data.get("run", {}), "run", RUN))
    left, right = _workload(data) if "workload" in data else read_streams(path.parent, data)
    return FileJob(spec, left, right, options)


def _spec(join: Mapping[str, Any]) -> JoinSpec:
    """The spec in a table [join], in words or as `JoinSpec.to_dict` gives it."""
    given = {name: value for name, value in join.items() if name != "allocation"}
    with errors_in("join", JOIN):
        if "window" in given:
            given["window"] = by_stream("window", given["window"])
        given["budget"] = parse_budget(given.get("budget"), allocation=join.get("allocation"))
        return JoinSpec.from_dict(given)


def _workload(data: Mapping[str, Any]) -> tuple[Any, Any]:
    if "left" in data or "right" in data:
        raise SpecError("a job has either [left] and [right], or [workload], not both")
    given = dict(settings(data["workload"], "workload", signature(zipf).parameters))
    if isinstance(given.get("skew"), list):
        given["skew"] = tuple(given["skew"])
    try:
        made = zipf(**{"rows": 100_000, "seed": 0, **given})
    except (TypeError, ValueError) as reason:
        raise SpecError(f"workload does not make sense: {reason}") from None
    return made.left, made.right


def read_streams(folder: Path, job: Mapping[str, Any]) -> tuple[pa.Table, pa.Table]:
    """The columns of the tables [left] and [right] of a job, from files."""
    tables = [_read(folder, name, job.get(name)) for name in ("left", "right")]
    if all(pa.types.is_integer(table.schema.field("key").type) for table in tables):
        return tables[0], tables[1]
    return _numbered(*tables)


def _read(folder: Path, name: str, data: Any) -> pa.Table:
    if data is None:
        raise SpecError(f"the job needs a table [{name}] with a path, or [workload]")
    stream = read_table(FileStream, located(data, folder), name)
    table = load_file(name, Path(stream.path), key=stream.key)
    wanted = {column: source for column, source in asdict(stream).items() if column != "path" and source is not None}
    for column, source in wanted.items():
        if source not in table.schema.names:
            raise InputError(
                f"{name}.{column} is {source!r}, but {data['path']} has the columns {', '.join(table.schema.names)}"
            )
    return pa.table({column: table.column(source) for column, source in wanted.items()})


def load_file(name: str, path: Path, *, key: str) -> pa.Table:
    """A table from a .csv or .parquet file, or from a directory of such files, as Spark writes them.

    Keys of a .csv are text: whether 01 is 1 must not depend on the other rows.
    """
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet

    as_text = pyarrow.csv.ConvertOptions(column_types={key: pa.string()}, strings_can_be_null=True, null_values=[""])
    readers = {
        ".csv": partial(pyarrow.csv.read_csv, convert_options=as_text),
        ".parquet": pyarrow.parquet.read_table,
    }
    if path.is_dir():
        files = sorted(one for one in path.rglob("[!._]*") if one.suffix in readers)
        formats = {".csv": pyarrow.dataset.CsvFileFormat(convert_options=as_text), ".parquet": "parquet"}
        kinds = {one.suffix for one in files}
        if len(kinds) != 1:
            found = "both" if kinds else "none"
            raise InputError(f"{name}.path: {path} must have {' or '.join(readers)} files, and has {found}")
        readers[path.suffix] = lambda _: pyarrow.dataset.dataset(files, format=formats[kinds.pop()]).to_table()
    if path.suffix not in readers:
        raise InputError(f"{name}.path must end in {' or '.join(readers)}, not {str(path)!r}")
    try:
        return readers[path.suffix](path)
    except (OSError, pa.ArrowInvalid) as reason:
        raise InputError(f"{name}.path: {path} cannot be read: {reason}") from None


def keys_as_text(tables: Sequence[pa.Table], key: str) -> list[pa.ChunkedArray]:
    """The key columns, so that keys are equal iff their texts are."""
    kinds = {table.schema.field(key).type for table in tables}
    if len(kinds) > 1 and not all(pa.types.is_integer(kind) or pa.types.is_string(kind) for kind in kinds):
        raise InputError(
            f"{key} is {' and '.join(sorted(map(str, kinds)))}: keys must be of one type, or whole numbers and text"
        )
    try:
        return [table.column(key).cast(pa.string()) for table in tables]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise InputError(f"the key columns cannot be compared: {reason}") from None


def _numbered(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Keys of any kind as whole numbers that are equal iff the keys are."""
    texts = keys_as_text((left, right), "key")
    known = pc.unique(pa.chunked_array([chunk for text in texts for chunk in text.chunks], pa.string()).drop_null())
    numbered = [
        table.set_column(table.schema.get_field_index("key"), "key", pc.index_in(text, known).cast(pa.int64()))
        for table, text in zip((left, right), texts, strict=True)
    ]
    return numbered[0], numbered[1]
