"""Where the real streams are, and a clear word when they are not there."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shedjoin.errors import DataError

VARIABLE = "SHEDJOIN_DATA"
USUAL = Path("..", "shared", "data")


def data_folder(given: str | Path | None = None) -> Path:
    """The folder of real data sets: what was given, else $SHEDJOIN_DATA, else ../shared/data.

    Raises
    ------
    DataError
        If there is no such folder.
    """
    variable = os.environ.get(VARIABLE)
    source = "--data" if given is not None else VARIABLE if variable else "the usual place"
    folder = Path(given) if given is not None else Path(variable) if variable else USUAL
    if not folder.is_dir():
        raise DataError(
            f"no folder {folder.absolute()} ({source}) to read real streams from: give --data FOLDER or set "
            f"{VARIABLE} to the folder that holds ship_weather_ww2, us_flights_2001q1, ..."
        )
    return folder


def data_set_folder(data_set: str, given: str | Path | None = None) -> Path:
    """`data_folder`, after making sure that it holds this data set."""
    folder = data_folder(given)
    if not (folder / data_set).is_dir():
        raise DataError(
            f"{folder.absolute()} holds no data set {data_set}: "
            f"give --data FOLDER or set {VARIABLE} to the folder that does"
        )
    return folder


def read(folder: Path, data_set: str, file: str, columns: list[str]) -> pa.Table:
    """Some columns of one Parquet file of a data set, its times as they are."""
    path = folder / data_set / file
    if not path.is_file():
        raise DataError(
            f"{path.absolute()} is not there: the folder given by --data or {VARIABLE} must hold {data_set}/{file} "
            f"(README.md of the data sets says where it comes from)"
        )
    try:
        return pq.read_table(path, columns=columns)
    except (pa.ArrowInvalid, KeyError) as reason:
        raise DataError(f"{path.absolute()} cannot be read: {reason}") from None
