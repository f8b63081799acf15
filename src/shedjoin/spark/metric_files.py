"""The metric rows of a running query, read from its output directory as they come. Needs no Spark."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from shedjoin.errors import InputError

#: Spark writes this when a directory is complete.
COMPLETE = "_SUCCESS"
_PREFIX = "batch="


class MetricFiles:
    """Follows ``metrics`` below the output directory of `start`.

    Parameters
    ----------
    folder
        The output directory.
    after
        `new` returns only batches after this one; default: all.
    """

    def __init__(self, folder: str | Path, *, after: int = -1) -> None:
        self._folder = Path(folder, "metrics")
        self._last = after

    def batches(self) -> list[int]:
        """The numbers of the complete batches that are there."""
        try:
            names = [one.name for one in self._folder.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        numbers = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
        return sorted(int(number) for number in numbers if number.isdecimal())

    def skip(self) -> None:
        """Skip the existing batches."""
        self._last = max([self._last, *self.batches()])

    def new(self) -> list[list[dict[str, Any]]]:
        """The rows of each batch that was completed since the last call, in order."""
        found = []
        for number in self.batches():
            if number <= self._last:
                continue
            rows = self.read(number)
            if rows is None:  # still being written
                break
            found.append(rows)
            self._last = number
        return found

    def last(self, count: int) -> list[dict[str, Any]]:
        """The rows of the last complete batches, at most this many."""
        found: list[dict[str, Any]] = []
        for number in self.batches()[-count:]:
            found += self.read(number) or []
        return found

    def read(self, number: int) -> list[dict[str, Any]] | None:
        """The rows of a batch; None while it is not complete."""
        folder = self._folder / f"{_PREFIX}{number}"
        if not (folder / COMPLETE).exists():
            return None
        rows: list[dict[str, Any]] = []
        if not (paths := sorted(folder.glob("*.parquet"))):  # a repeated batch is just taking its place
            return None
        for path in paths:
            try:
                # A file of its own, not a dataset: no column is to be made of the directory's name.
                rows += pq.ParquetFile(path).read().to_pylist()
            except FileNotFoundError:  # a repeated batch is just being written
                return None
            except (OSError, ValueError) as reason:
                raise InputError(f"the metrics in {path} cannot be read: {reason}") from None
        for row in rows:
            row["batch"] = number
            row["at"] = row["at"].replace(tzinfo=UTC) if row["at"].tzinfo is None else row["at"]
        return rows
