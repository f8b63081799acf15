"""The papers' figures: a few simulations of each, for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shedjoin.errors import SpecError
from shedjoin.plots.draw import OTHERS
from shedjoin_lab.catalogue import PAPERS, find
from shedjoin_lab.experiment import Figure, Params, Row, Scale, identity
from shedjoin_lab.papers.das2003.fixed_vs_variable import gains
from shedjoin_lab.papers.importance2006.dgl_constants import GAINS
from shedjoin_lab.report import draw
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import Store

FIGURES = [figure for figures in PAPERS.values() for figure in figures]
SMALL = [figure for figure in FIGURES if figure.data is None]
#: Figures over memory sizes; those of the papers on slow CPUs have none (lab/tests/test_cpu_figures.py).
#: The Archive-metric has tests of its own (lab/tests/test_open.py).
MEMORY = [
    figure
    for figure in SMALL
    if "memory" in figure.parameters(Scale(seeds=1, quick=True))[0] and figure.paper != "open"
]
#: They find the most importance and no schedule.
VALUE_ONLY = ("ESJA, printed", "ODJA, two instants")
#: Without a memory, or with one that is M on average.
UNBOUNDED = ("EXACT", "RAND, input")


#: Measured twice where more is asked of the rows (lab/tests/test_prospect.py); it takes longer than all others together.
ELSEWHERE = [find("prospect", "gap")]


def one_of_each(figure: Figure) -> dict[object, Params]:
    """The first parameters of every method: the smallest, as figures list them."""
    chosen: dict[object, Params] = {}
    for params in figure.parameters(Scale(seeds=1, quick=True)):
        chosen.setdefault(params.get("method"), params)
    return chosen


def by_name(figure: Figure) -> str:
    return f"{figure.paper} {figure.name}"


@pytest.fixture(scope="module")
def ships(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two years of made-up reports in the real files' columns."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "ship_weather_ww2").mkdir()
    rng = np.random.default_rng(3)
    for year in (1942, 1943):
        hours = np.datetime64(f"{year}-01-01", "ms") + np.arange(12_000) * np.timedelta64(1, "h")
        cells = np.minimum(rng.zipf(1.5, 12_000), 200).astype(np.int16)
        table = pa.table({"ts": hours, "cell10": cells, "wind_ms": rng.random(12_000)})
        pq.write_table(table, folder / "ship_weather_ww2" / f"ships_{year}.parquet")
    return folder


@pytest.mark.parametrize("figure", FIGURES, ids=by_name)
def test_parameters_are_all_different(figure: Figure) -> None:
    for quick in (False, True):
        names = [identity(params) for params in figure.parameters(Scale(seeds=5, quick=quick))]
        assert len(set(names)) == len(names)
    few, many = (set(map(identity, figure.parameters(Scale(seeds=seeds)))) for seeds in (2, 5))
    assert few <= many  # more seeds add to what is stored


def test_no_figure_has_more_series_than_there_are_styles() -> None:
    """DGL's constants have the most: one line a gain, and DIMPPROB."""
    assert len(GAINS) + 1 <= len(OTHERS) == len(set(OTHERS))


@pytest.mark.parametrize("figure", MEMORY, ids=by_name)
def test_a_simulation_of_each_method_is_within_exact(figure: Figure) -> None:
    for method, params in one_of_each(figure).items():
        (row,) = figure.measure(params, None)
        assert row.items() >= params.items()
        assert row["importance" if method in VALUE_ONLY else "matches"], method
        memory = params["memory"]
        assert method in UNBOUNDED or int(str(row["peak_tuples"])) <= int(str(memory))


@pytest.mark.parametrize("figure", [figure for figure in SMALL if figure not in ELSEWHERE], ids=by_name)
def test_the_same_parameters_give_the_same_row(figure: Figure) -> None:
    *_, params = one_of_each(figure).values()

    def without_clock() -> list[Row]:
        return [
            {name: row[name] for name in row if not name.startswith(("wall_", "cpu_", "top_"))}
            for row in figure.measure(params, None)
        ]

    assert without_clock() == without_clock()


@pytest.mark.parametrize("name", ["fig07", "fig08"])
def test_weather_figures_run_and_draw(name: str, ships: Path, tmp_path: Path) -> None:
    figure = find("das2003", name)
    store = Store(tmp_path, quick=True)
    assert run(figure, Scale(seeds=1, quick=True), store, in_process, data=ships) > 0
    assert all(path.stat().st_size for path in draw(figure, store))


def test_figure_8_follows_the_memory_over_time(ships: Path) -> None:
    figure = find("das2003", "fig08")
    rows = figure.measure(figure.parameters(Scale(seeds=1, quick=True))[0], ships)
    assert len(rows) > 10
    full = rows[-1]
    assert int(str(full["left_tuples"])) + int(str(full["right_tuples"])) == full["memory"]


def test_gains_compare_equal_workloads() -> None:
    place = {"window": 4, "domain": 5, "skew_left": 1.0, "skew_right": 0.0, "ranks": "anti", "seed": 0, "memory": 2}
    rows = [
        {"method": "PROB", **place, "matches": 100, "left_share": 0.5},
        {"method": "PROBV", **place, "matches": 110, "left_share": 0.7},
        {"method": "PROBV", **place, "seed": 1, "matches": 110, "left_share": 0.7},  # no PROB of this seed
    ]
    (row,) = gains(rows)
    assert row["gain"] == pytest.approx(10.0)
    assert row["left_percent"] == pytest.approx(70.0)


def test_unknown_names_are_told() -> None:
    with pytest.raises(SpecError, match="das2003 has no figure 'fig99'; it has fig03"):
        find("das2003", "fig99")
    with pytest.raises(SpecError, match="no paper 'das1903'; there are das2003"):
        find("das1903", "fig03")
