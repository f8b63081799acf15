"""Stored rows: resumable, whole or not at all, in the same order and bytes however they came."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from figures import FIGURE, parameters
from shedjoin.errors import DataError, ShedjoinError
from shedjoin_lab.experiment import Params, Row, Scale, grid, identity
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import ID, Store


def rows_of(some: list[Params]) -> list[Row]:
    return [{ID: identity(params), **row} for params in some for row in FIGURE.measure(params, None)]


def test_a_run_stores_every_row(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert run(FIGURE, Scale(seeds=3), store, in_process) == 12
    rows = store.read(FIGURE)
    assert len(rows) == 12
    assert {row["matches"] for row in rows} == {1000, 1001, 1002, 2000, 2001, 2002}
    with store.path(FIGURE, ".csv").open() as file:
        assert [int(row["matches"]) for row in csv.DictReader(file)] == [row["matches"] for row in rows]


def test_what_is_stored_is_not_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(FIGURE, Scale(seeds=1), store, in_process)
    assert run(FIGURE, Scale(seeds=1), store, in_process) == 0
    assert run(FIGURE, Scale(seeds=3), store, in_process) == 8
    assert store.missing(FIGURE, Scale(seeds=2)) == []
    assert run(FIGURE, Scale(seeds=1), store, in_process, fresh=True) == 4
    assert len(store.read(FIGURE)) == 4


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(FIGURE, rows_of(parameters(Scale(seeds=2))[:3]))
    assert run(FIGURE, Scale(seeds=2), store, in_process) == 5
    assert len(store.read(FIGURE)) == 8


def test_the_order_in_which_rows_come_leaves_no_trace(tmp_path: Path) -> None:
    some = parameters(Scale(seeds=2))
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.add(FIGURE, rows_of(some))
    for params in reversed(some):
        other.add(FIGURE, rows_of([params]))
    for suffix in (".parquet", ".csv"):
        assert one.path(FIGURE, suffix).read_bytes() == other.path(FIGURE, suffix).read_bytes()


def test_rows_of_parameters_that_are_gone_are_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(FIGURE, Scale(seeds=1), store, in_process)
    changed = replace(FIGURE, parameters=lambda scale: grid(method=["RAND"], memory=[10, 30], seed=range(scale.seeds)))
    assert [(row["method"], row["memory"]) for row in store.read(changed)] == [("RAND", 10)]
    assert len(store.missing(changed, Scale(seeds=1))) == 1


def test_quick_rows_are_stored_apart(tmp_path: Path) -> None:
    run(FIGURE, Scale(seeds=1, quick=True), Store(tmp_path, quick=True), in_process)
    assert Store(tmp_path).read(FIGURE) == []
    assert len(Store(tmp_path, quick=True).read(FIGURE)) == 4


def test_what_was_done_before_a_failure_is_kept(tmp_path: Path) -> None:
    failing = replace(FIGURE, parameters=lambda scale: grid(method=["RAND"], memory=[10, 20], seed=[99]))
    store = Store(tmp_path)
    with pytest.raises(ShedjoinError, match=r"made_up fig01 failed with .*'memory': 20(.|\n)*this one always fails"):
        run(failing, Scale(), store, in_process)
    assert [row["memory"] for row in store.read(failing)] == [10]


@pytest.mark.parametrize("content", [b"", b"not parquet"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    store.path(FIGURE).parent.mkdir(parents=True)
    store.path(FIGURE).write_bytes(content)
    with pytest.raises(DataError, match=r"fig01.parquet cannot be read .*--fresh"):
        store.read(FIGURE)


def test_a_figure_without_its_data_is_not_begun(tmp_path: Path) -> None:
    needy = replace(FIGURE, data="ship_weather_ww2")
    with pytest.raises(DataError, match="holds no data set ship_weather_ww2"):
        run(needy, Scale(), Store(tmp_path / "out"), in_process, data=tmp_path)
    assert not (tmp_path / "out").exists()


def test_equal_parameters_have_one_name() -> None:
    assert identity({"a": 1, "b": None}) == identity({"b": None, "a": 1})
    assert identity({"a": 1}) != identity({"a": 2})
