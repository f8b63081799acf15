"""Stored rows: one Parquet and one CSV file a figure, written whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shedjoin.atomic_file import write_atomic
from shedjoin.errors import DataError
from shedjoin_lab.experiment import Figure, Params, Row, Scale, identity
from shedjoin_lab.summary import number

#: The column that says which row of parameters a stored row came from.
ID = "id"


class Store:
    """The stored rows of figures, under one folder.

    Parameters
    ----------
    out
        Rows of ``das2003 fig03`` are in ``out/das2003/fig03.parquet`` (and .csv); a quick run's in ``out/quick/...``.
    """

    def __init__(self, out: str | Path = "lab-results", *, quick: bool = False) -> None:
        self._out = Path(out)
        self.quick = quick

    def path(self, figure: Figure, suffix: str = ".parquet") -> Path:
        """Where a file of this figure is."""
        folder = self._out / "quick" if self.quick else self._out
        return folder / figure.paper / f"{figure.name}{suffix}"

    def read(self, figure: Figure) -> list[Row]:
        """The figure's stored rows, without leftovers of parameters it no longer has."""
        rows = self._read_all(figure)
        known = self._places(figure, rows)
        return [row for row in rows if row[ID] in known]

    def add(self, figure: Figure, rows: Iterable[Row]) -> None:
        """Store more rows, in the order of the figure's parameters whatever the order they came in."""
        old = self.read(figure)
        new = list(rows)
        replaced = {row[ID] for row in new}
        merged = [row for row in old if row[ID] not in replaced] + new
        places = self._places(figure, merged)
        merged.sort(key=lambda row: places[str(row[ID])])
        table = pa.Table.from_pylist(merged, schema=_schema(merged))
        write_atomic(self.path(figure), lambda file: pq.write_table(table, file))
        write_atomic(self.path(figure, ".csv"), lambda file: file.write(_csv(merged, table.schema.names)))

    def missing(self, figure: Figure, scale: Scale | None = None) -> list[Params]:
        """The rows of parameters of which nothing is stored yet; without a scale, of as many seeds as there are."""
        rows = self.read(figure)
        stored = {row[ID] for row in rows}
        parameters = figure.parameters(scale or self._scale(rows))
        return [params for params in parameters if identity(params) not in stored]

    def scale(self, figure: Figure) -> Scale:
        """The scale of the stored rows."""
        return self._scale(self.read(figure))

    def clear(self, figure: Figure) -> None:
        """Forget the figure's rows."""
        for suffix in (".parquet", ".csv"):
            self.path(figure, suffix).unlink(missing_ok=True)

    def _read_all(self, figure: Figure) -> list[Row]:
        path = self.path(figure)
        if not path.exists():
            return []
        try:
            rows: list[Row] = pq.read_table(path).to_pylist()
        except (pa.ArrowInvalid, OSError) as reason:
            raise DataError(f"{path} cannot be read ({reason}): run the figure again with --fresh") from None
        if rows and ID not in rows[0]:
            raise DataError(f"{path} was not written by the lab (no column {ID!r}): run the figure again with --fresh")
        return rows

    def _places(self, figure: Figure, rows: list[Row]) -> dict[str, int]:
        return {identity(params): place for place, params in enumerate(figure.parameters(self._scale(rows)))}

    def _scale(self, rows: list[Row]) -> Scale:
        return Scale(seeds=1 + max((int(number(row, "seed")) for row in rows), default=0), quick=self.quick)


def _schema(rows: list[Row]) -> pa.Schema:
    """Columns in the order in which rows first have them; whole numbers beside fractions become fractions."""
    kinds: dict[str, pa.DataType] = {}
    for row in rows:
        for name, value in row.items():
            kind = pa.null() if value is None else pa.scalar(value).type
            old = kinds.get(name, pa.null())
            kinds[name] = kind if old == pa.null() else old if kind in (old, pa.null()) else pa.float64()
    return pa.schema(kinds.items())


def _csv(rows: list[Row], names: list[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
