"""Job files: a join, its inputs and how to run it, in TOML.

```toml
[join]                                  # as JoinSpec.to_dict() gives it
window = {time = 600_000_000}           # in the unit of ts; timestamps count microseconds
budget = {tuples = 20_000, allocation = "variable"}
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
`importance`, as `shedjoin.lab.workloads.zipf` takes them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shedjoin.errors import InputError, SpecError
from shedjoin.lab.workloads import zipf
from shedjoin.spec import JoinSpec

TABLES = ("join", "left", "right", "workload", "run")
RUN = ("warmup", "seed", "late")
COLUMNS = ("key", "ts", "importance", "bytes")
WORKLOAD = ("rows", "seed", "domain", "skew", "ranks", "importance")


@dataclass(frozen=True, slots=True)
class Job:
    """All that `shedjoin.simulate` takes."""

    spec: JoinSpec
    left: Any
    right: Any
    options: dict[str, Any] = field(default_factory=dict)


def read_job(path: Path) -> Job:
    """The job in a file, its inputs read."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise InputError(f"the job file {path} cannot be read: {reason.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise SpecError(f"{path} is not a TOML file: {reason}") from None
    _only(str(path), data, TABLES)
    if "join" not in data:
        raise SpecError(f"{path} needs a table [join], with at least a window such as window = {{time = 400}}")
    spec = JoinSpec.from_dict(data["join"])
    options = dict(_table("run", data.get("run", {}), RUN))
    left, right = _workload(data) if "workload" in data else _files(path, data)
    return Job(spec, left, right, options)


def _workload(data: Mapping[str, Any]) -> tuple[Any, Any]:
    if "left" in data or "right" in data:
        raise SpecError("a job has either [left] and [right], or [workload], not both")
    settings = dict(_table("workload", data["workload"], WORKLOAD))
    if isinstance(settings.get("skew"), list):
        settings["skew"] = tuple(settings["skew"])
    try:
        made = zipf(**{"rows": 100_000, "seed": 0, **settings})
    except (TypeError, ValueError) as reason:
        raise SpecError(f"[workload] does not make sense: {reason}") from None
    return made.left, made.right


def _files(path: Path, data: Mapping[str, Any]) -> tuple[pa.Table, pa.Table]:
    tables = [_read(path.parent, name, data.get(name)) for name in ("left", "right")]
    if all(pa.types.is_integer(table.schema.field("key").type) for table in tables):
        return tables[0], tables[1]
    return _numbered(*tables)


def _read(folder: Path, name: str, settings: Any) -> pa.Table:
    if settings is None:
        raise SpecError(f"the job needs a table [{name}] with a path, or [workload]")
    _table(name, settings, ("path", *COLUMNS))
    if "path" not in settings or "key" not in settings:
        raise SpecError(
            f"[{name}] needs a path and the name of the key column, such as path = 'clicks.csv', key = 'ad_id'"
        )
    table = load_file(name, folder / settings["path"])
    wanted = {column: settings[column] for column in COLUMNS if column in settings}
    for column, source in wanted.items():
        if source not in table.schema.names:
            raise InputError(
                f"[{name}] {column} = {source!r}, but {settings['path']} has the columns {', '.join(table.schema.names)}"
            )
    return pa.table({column: table.column(source) for column, source in wanted.items()})


def load_file(name: str, path: Path) -> pa.Table:
    """A table from a .csv or .parquet file."""
    import pyarrow.csv
    import pyarrow.parquet

    readers = {".csv": pyarrow.csv.read_csv, ".parquet": pyarrow.parquet.read_table}
    if path.suffix not in readers:
        raise InputError(f"[{name}] path must end in {' or '.join(readers)}, not {path.name!r}")
    try:
        return readers[path.suffix](path)
    except (OSError, pa.ArrowInvalid) as reason:
        raise InputError(f"[{name}] {path} cannot be read: {reason}") from None


def _numbered(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Keys of any kind as whole numbers that are equal iff the keys are."""
    try:
        texts = [table.column("key").cast(pa.string()) for table in (left, right)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise InputError(f"the key columns cannot be compared: {reason}") from None
    known = pc.unique(pa.chunked_array([chunk for text in texts for chunk in text.chunks], pa.string()).drop_null())
    numbered = [
        table.set_column(table.schema.get_field_index("key"), "key", pc.index_in(text, known).cast(pa.int64()))
        for table, text in zip((left, right), texts, strict=True)
    ]
    return numbered[0], numbered[1]


def _table(name: str, data: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
    _only(f"[{name}]", data, known)
    return data  # type: ignore[no-any-return]


def _only(what: str, data: Any, known: tuple[str, ...]) -> None:
    if not isinstance(data, Mapping):
        raise SpecError(f"{what} must be a table of settings, not {data!r}")
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise SpecError(f"{what} has no setting {unknown[0]!r}; it has {', '.join(known)}")
