"""Real weather reports (section 4.5): ship reports of 1942 and 1943 stand in for cloud reports of two Septembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.errors import DataError
from shedjoin.workloads import Workload
from shedjoin_lab.data import ships
from shedjoin_lab.data.columns import in_step
from shedjoin_lab.experiment import Params

DATA = "ship_weather_ww2"
YEARS = (1942, 1943)
WINDOW = 5000
WARMUP = 10000
#: A quick run takes the first reports only, with window and warm-up to match.
QUICK = 5
STAND_IN = (
    "Ship reports of 1942 and 1943 (159,458 each, whole years) stand in for a million cloud reports of two Septembers; "
    "same key, a 10-degree cell. PROB and LIFE know the frequency table of the data, as in the paper."
)


#: The two years as streams; and, as a control, the even and odd reports of the left year: streams of one distribution.
YEARS_APART, HALVES = "years", "halves"


def workload_of(params: Params, data: Path | None) -> Workload:
    """Report beside report, one of each stream per time unit, with the frequency tables of both."""
    if data is None:
        raise DataError(f"the weather figures need the data set {DATA}: give --data FOLDER")
    p: dict[str, Any] = dict(params)
    whole = ships(data, (p["left_year"], p["right_year"]))
    if p["streams"] == HALVES:
        whole = in_step([{name: column[start::2] for name, column in whole.left.items()} for start in (0, 1)])
    rows = p["rows"]
    if rows is None:
        return whole
    cut = tuple({name: column[:rows] for name, column in side.items()} for side in whole.streams)
    return Workload(cut, whole.probabilities)


def fixed_parameters(quick: bool) -> dict[str, Any]:
    """What does not vary within the weather figures."""
    cut = QUICK if quick else 1
    return {
        "left_year": [YEARS[0]],
        "right_year": [YEARS[1]],
        "rows": [30000] if quick else [None],
        "window": [WINDOW // cut],
        "warmup": [WARMUP // cut],
    }
