"""flux_tower_tharandt: half-hourly air temperature of several years on a tower, keyed by 0.1 degree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shedjoin.workloads.workload import Columns, Workload, columns
from shedjoin_lab.data.columns import in_step, times, whole, worth
from shedjoin_lab.data.folder import read

DATA_SET = "flux_tower_tharandt"
#: Keys must not be negative where they index a frequency table: 0 stands for this many tenths of a degree below zero.
COLDEST = 500


def tower_temperatures(
    folder: Path, years: tuple[int, ...] = (1996, 1998), *, steps: bool = True, radiation: bool = False
) -> Workload:
    """One stream a year, key: air temperature in tenths of a degree above -50. Stands in for dual2006, Fig 9.

    Parameters
    ----------
    steps
        True: row beside row, one each per time unit, with frequency tables. False: `ts` is the minute of the year.
    radiation
        True: importance is 1 + global radiation in W/m2. False: 1.
    """
    streams = [_year(folder, year, radiation) for year in years]
    return in_step(streams) if steps else Workload(tuple(streams))


def _year(folder: Path, year: int, radiation: bool) -> Columns:
    table = read(folder, DATA_SET, f"tharandt_{year}.parquet", ["ts", "tair_d10", "rg_wm2"])
    first = np.datetime64(f"{year}-01-01", "m").astype(np.int64)
    importance = worth(table["rg_wm2"]) if radiation else None
    return columns(whole(table["tair_d10"]) + COLDEST, times(table["ts"], "m") - first, importance)
