"""A copy of an engine goes on as if nothing had happened, in the same arrays."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import host_copy
from shedjoin.engine.engine import Engine
from shedjoin.engine.host_copy import read_copy, write_copy
from shedjoin.engine.plan import Plan
from strategies import REPRESENTATIVES, Case, Chooser, cases_of, for_all, go_on, long_case, run_engine


def taken_up(plan: Plan, folder: Path) -> Engine:
    engine = Engine(plan)
    read_copy(engine, folder)
    return engine


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_a_copy_between_pushes_changes_nothing(chooser: Chooser, tmp_path: Path) -> None:
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
    write_copy(engine, tmp_path, b"more", token="one")
    before = (tmp_path / host_copy.ARRAYS).stat()
    plan = sj.JoinSpec(sj.TimeWindow(10**6)).plan()
    again = Engine(plan)
    assert read_copy(again, tmp_path) == ({"token": "one"}, b"more")
    again.push(left={"key": [1, 2, 3]})
    write_copy(again, tmp_path, token="two")
    after = (tmp_path / host_copy.ARRAYS).stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    for rows in (10_000, 30_000, 60_000):  # outgrows the pool
        again.push(left={"key": np.arange(rows)})
        write_copy(again, tmp_path)
        there = taken_up(plan, tmp_path)
        assert there.snapshot() == again.snapshot()
        needed = sum(array.nbytes for array in again._state.arrays.values())
        assert (tmp_path / host_copy.ARRAYS).stat().st_size < 1.2 * needed + host_copy.LEAST_WASTE


def test_what_cannot_be_trusted_is_refused(tmp_path: Path) -> None:
    plan = sj.JoinSpec(sj.TimeWindow(10**6)).plan()
    with pytest.raises(sj.SnapshotError, match="no copy is in"):
        taken_up(plan, tmp_path)
    write_copy(grown_engine(5000), tmp_path)
    with pytest.raises(sj.SnapshotError, match="another join"):
        taken_up(sj.JoinSpec(sj.TimeWindow(7)).plan(), tmp_path)
    meta, _, rest = (tmp_path / host_copy.META).read_bytes().partition(b"\n")
    other = json.dumps({**json.loads(meta), "boot": "another"}).encode()
    (tmp_path / host_copy.META).write_bytes(other + b"\n" + rest)
    with pytest.raises(sj.SnapshotError, match="another machine or before a restart"):
        taken_up(plan, tmp_path)
    (tmp_path / host_copy.META).write_bytes(meta + b"\n" + rest)
    os.truncate(tmp_path / host_copy.ARRAYS, 1000)
    with pytest.raises(sj.SnapshotError, match="cannot be read"):
        taken_up(plan, tmp_path)
