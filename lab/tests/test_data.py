"""Real streams: loaders on small files of the same columns, against counts by hand; and clear words without files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.errors import DataError, SpecError
from shedjoin_lab.data import (
    data_folder,
    flight_connections,
    flights_from_hubs,
    network_logs,
    network_names,
    news_keyed,
    news_sets,
    ships,
    tower_temperatures,
)


def write(folder: Path, path: str, columns: dict[str, Any], unit: str = "ms") -> None:
    ts = pa.array([datetime.fromisoformat(text) for text in columns["ts"]], pa.timestamp(unit))
    file = folder / path
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({**columns, "ts": ts}), file)


def exact(window: int, left: Any, right: Any) -> int:
    return sj.simulate(sj.JoinSpec(window=sj.TimeWindow(window)), left, right).matches


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for year, cells in ((1942, [5, 5, 7, 9]), (1943, [5, 7, 5])):
        hours = [f"{year}-01-01T0{hour}:00:00" for hour in range(len(cells))]
        wind = [None, 3.0, 0.0, 12.5][: len(cells)]
        write(tmp_path, f"ship_weather_ww2/ships_{year}.parquet", {"ts": hours, "cell10": cells, "wind_ms": wind})
    for year, tenths in ((1996, [-179, 20]), (1998, [20, 20])):
        stamps = [f"{year}-01-01T00:30:00", f"{year}-01-01T01:00:00"]
        write(
            tmp_path,
            f"flux_tower_tharandt/tharandt_{year}.parquet",
            {"ts": stamps, "tair_d10": tenths, "rg_wm2": [None, 100.0]},
        )
    write(
        tmp_path,
        "us_flights_2001q1/flights.parquet",
        {
            "ts": [f"2001-01-01T00:{minute:02}:00" for minute in (1, 5, 9, 12)],
            "origin": pa.array(["ORD", "LAX", "ORD", "LAX"]).dictionary_encode(),
            "destination": pa.array(["LAX", "ORD", "DFW", "DFW"]).dictionary_encode(),
            "distance_mi": [1745, 1745, 802, 1235],
        },
    )
    second = "2018-03-24T17:15:2{}"
    write(
        tmp_path,
        "network_wrccdc_2018/dns.parquet",
        {"ts": [second.format(i) for i in range(3)], "orig_h": ["a", "b", None], "query": ["X.com", None, "y.com"]},
        "us",
    )
    write(
        tmp_path,
        "network_wrccdc_2018/ssl.parquet",
        {"ts": [second.format(i) for i in range(2)], "orig_h": ["b", "b"], "server_name": [None, "x.COM"]},
        "us",
    )
    for file, topics in (("usa", [["gold", "oil"], []]), ("elsewhere", [["oil"], ["gold", "tin"]])):
        stamps = ["1987-02-26T15:01:01", "1987-02-26T15:01:02"]
        write(tmp_path, f"reuters_news_1987/news_{file}.parquet", {"ts": stamps, "topics": topics})
    return tmp_path


def test_ships_go_in_step_with_frequency_tables(folder: Path) -> None:
    workload = ships(folder)
    assert workload.left["key"].tolist() == [5, 5, 7]  # cut to the shorter year
    assert workload.left["ts"].tolist() == [0, 1, 2]
    assert workload.probabilities is not None
    assert workload.probabilities[0][[5, 7]].tolist() == [2 / 3, 1 / 3]
    assert workload.table().right == pytest.approx({key: {5: 2 / 3, 7: 1 / 3}.get(key, 0.0) for key in range(8)})


def test_ships_by_the_hour_with_wind_as_importance(folder: Path) -> None:
    workload = ships(folder, steps=False, wind=True)
    assert workload.left["ts"].tolist() == [0, 1, 2, 3]
    assert workload.left["importance"].tolist() == [1.0, 4.0, 1.0, 13.5]
    assert exact(2, workload.left, workload.right) == 4  # (0,0) (1,0) (1,2) (2,1)


def test_tower_keys_are_not_negative(folder: Path) -> None:
    workload = tower_temperatures(folder, radiation=True)
    assert workload.left["key"].tolist() == [321, 520]
    assert workload.left["importance"].tolist() == [1.0, 101.0]
    assert tower_temperatures(folder, steps=False).left["ts"].tolist() == [30, 60]


def test_flights_connect(folder: Path) -> None:
    workload = flight_connections(folder, distance=True)
    assert workload.left["ts"].tolist() == [1, 5, 9, 12]
    assert workload.left["importance"].tolist() == [1746.0, 1746.0, 803.0, 1236.0]
    assert exact(5, workload.left, workload.right) == 3  # to LAX, on from LAX; to ORD, on from ORD; to ORD, just left


def test_hubs_number_destinations_alike(folder: Path) -> None:
    ord_, lax = flights_from_hubs(folder, ("ORD", "LAX")).streams
    assert ord_["ts"].tolist() == [1, 9]
    assert ord_["key"][1] == lax["key"][1]  # both to DFW
    assert len({*ord_["key"].tolist(), *lax["key"].tolist()}) == 3
    with pytest.raises(DataError, match="no flight leaves from 'XXX'"):
        flights_from_hubs(folder, ("XXX",))


def test_network_keys_keep_their_nulls(folder: Path) -> None:
    names = network_names(folder)
    assert names.left["key"].null_count == 1
    assert names.right["key"].null_count == 1
    assert exact(1_000_001, names.left, names.right) == 1  # X.com and x.COM, one second apart
    clients = network_logs(folder)
    assert exact(1_000_001, clients.left, clients.right) == 2


def test_news_as_sets_and_as_keys(folder: Path) -> None:
    usa, elsewhere = news_sets(folder, "topics").streams
    assert usa["offsets"].tolist() == [0, 2, 2]
    assert elsewhere["ts"].tolist() == [0, 1000]
    assert np.intersect1d(usa["items"], elsewhere["items"]).size == 2
    keyed = news_keyed(folder)
    assert exact(1001, keyed.left, keyed.right) == 2
    assert exact(1000, keyed.left, keyed.right) == 1
    with pytest.raises(SpecError, match="attribute must be one of"):
        news_sets(folder, "smells")


def test_the_folder_is_given_or_in_the_environment_or_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHEDJOIN_DATA", raising=False)
    usual = tmp_path / "shared" / "data"
    usual.mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert data_folder().resolve() == usual
    named = tmp_path / "named"
    named.mkdir()
    monkeypatch.setenv("SHEDJOIN_DATA", str(named))
    assert data_folder() == named
    assert data_folder(usual) == usual


def test_without_a_folder_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHEDJOIN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="give --data FOLDER or set SHEDJOIN_DATA") as caught:
        data_folder()
    assert "shared/data" in str(caught.value)
    with pytest.raises(DataError, match=r"ship_weather_ww2/ships_1942.parquet"):
        ships(tmp_path)


def test_a_damaged_file_is_named(folder: Path) -> None:
    (folder / "ship_weather_ww2" / "ships_1942.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match=r"ships_1942.parquet cannot be read"):
        ships(folder)
