"""ship_weather_ww2: ship weather reports of two years on the same grid of 10-degree cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shedjoin.workloads.workload import Columns, Workload, columns
from shedjoin_lab.data.columns import in_step, times, whole, worth
from shedjoin_lab.data.folder import read

DATA_SET = "ship_weather_ww2"


def ships(folder: Path, years: tuple[int, ...] = (1942, 1943), *, steps: bool = True, wind: bool = False) -> Workload:
    """One stream a year, key: cell of 10 x 10 degrees. Stands in for das2003's cloud reports (section 4.5).

    Parameters
    ----------
    steps
        True: the i-th report of one year beside the i-th of the other, one each per time unit, with frequency tables.
        False: `ts` is the hour of the year.
    wind
        True: importance is 1 + wind speed in m/s. False: 1.
    """
    streams = [_year(folder, year, wind) for year in years]
    return in_step(streams) if steps else Workload(tuple(streams))


def _year(folder: Path, year: int, wind: bool) -> Columns:
    table = read(folder, DATA_SET, f"ships_{year}.parquet", ["ts", "cell10", "wind_ms"])
    first = np.datetime64(f"{year}-01-01", "h").astype(np.int64)
    importance = worth(table["wind_ms"]) if wind else None
    return columns(whole(table["cell10"]), times(table["ts"], "h") - first, importance)
