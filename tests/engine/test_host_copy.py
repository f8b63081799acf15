"""A copy of an engine goes on as if nothing had happened, in the same arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import host_copy
from shedjoin.engine.engine import Engine
from shedjoin.engine.host_copy import notes_of, read_copy, write_copy
from shedjoin.engine.plan import Plan
from strategies import REPRESENTATIVES, Case, Chooser, cases_of, for_all, go_on, long_case, run_engine


def taken_up(plan: Plan, folder: Path) -> Engine:
    engine = Engine(plan)
    read_copy(engine, folder)
    return engine


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_a_copy_between_pushes_changes_nothing(
    chooser: Chooser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_copy, "SMALL", 64)  # small joins have small arrays

    def check(case: Case) -> None:
        folder = Path(str(tmp_path), str(len(list(tmp_path.iterdir()))))
        folder.mkdir()
        engine = case.spec.build(seed=case.seed)
        told = []
        for number in range(len(case.pushes)):
            told += go_on(engine, case, number, number + 1)
            write_copy(engine, folder)
            if number % 3:  # now and then the same engine goes on
                engine = taken_up(case.spec.plan(), folder)
        assert told == run_engine(case)

    for_all(cases_of(chooser), check, label=f"copy {chooser}", examples=3)
    check(long_case(chooser, 3))


def grown_engine(rows: int) -> sj.Engine:
    engine = sj.JoinSpec(sj.TimeWindow(10**6)).build()
    engine.push(left={"key": np.arange(rows)})
    return engine


def test_arrays_are_mapped_and_not_copied(tmp_path: Path) -> None:
    engine = grown_engine(5000)
    write_copy(engine, tmp_path, token="one")
    files = {path.name: path.stat().st_ino for path in tmp_path.glob("*.array")}
    assert any(name.startswith("pool") for name in files)
    plan = sj.JoinSpec(sj.TimeWindow(10**6)).plan()
    again = taken_up(plan, tmp_path)
    again.push(left={"key": [1, 2, 3]})
    write_copy(again, tmp_path, token="two")
    assert {path.name: path.stat().st_ino for path in tmp_path.glob("*.array")} == files
    assert notes_of(tmp_path) == {"token": "two"}
    again.push(left={"key": np.arange(30_000)})  # outgrows the pool
    write_copy(again, tmp_path)
    assert not any((tmp_path / name).exists() for name in files if name.startswith("pool"))
    assert taken_up(plan, tmp_path).snapshot() == again.snapshot()


def test_what_cannot_be_trusted_is_refused(tmp_path: Path) -> None:
    plan = sj.JoinSpec(sj.TimeWindow(10**6)).plan()
    with pytest.raises(sj.SnapshotError, match="no copy is in"):
        taken_up(plan, tmp_path)
    write_copy(grown_engine(5000), tmp_path)
    with pytest.raises(sj.SnapshotError, match="another join"):
        taken_up(sj.JoinSpec(sj.TimeWindow(7)).plan(), tmp_path)
    meta = json.loads((tmp_path / host_copy.META).read_text())
    (tmp_path / host_copy.META).write_text(json.dumps({**meta, "boot": "another"}))
    with pytest.raises(sj.SnapshotError, match="another machine or before a restart"):
        taken_up(plan, tmp_path)
    (tmp_path / host_copy.META).write_text(json.dumps(meta))
    next(tmp_path.glob("pool*")).unlink()
    with pytest.raises(sj.SnapshotError, match="cannot be read"):
        taken_up(plan, tmp_path)
