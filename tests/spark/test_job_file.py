"""job.json says what was run, and goes on saying it when another join is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.errors import InputError
from shedjoin.spark.output import check_archive
from shedjoin.spark.start import read_job, write_job


def plan(window: int, tuples: int = 9, **more: Any) -> Any:
    made: dict[str, Any] = {
        "spec": sj.JoinSpec(sj.TimeWindow(window), sj.Budget(tuples=tuples), sj.Prob()),
        "labels": (0, 1),
        "seed": 0,
        "keys": SimpleNamespace(pairs=[("k", "k")]),
        "times": ("at", "at"),
        "importances": (None, None),
        "names": ("left", "right"),
        "out": [],
    }
    return SimpleNamespace(**(made | more))


def test_another_join_does_not_change_what_is_said_of_the_first(tmp_path: Path) -> None:
    folder = str(tmp_path)
    write_job(folder, plan(10), True, None)
    (tmp_path / "metrics" / "batch=0").mkdir(parents=True)
    first = read_job(folder)
    assert first is not None
    write_job(folder, plan(20), True, None, first)  # its shards will refuse to go on
    assert read_job(folder) == first
    write_job(folder, plan(10, tuples=5), True, None, first)  # a budget may change
    now = read_job(folder)
    assert now is not None
    assert now["spec"]["budget"]["tuples"] == 5


def test_before_the_first_batch_anything_may_change(tmp_path: Path) -> None:
    folder = str(tmp_path)
    write_job(folder, plan(10), True, None)
    write_job(folder, plan(20), True, None, read_job(folder))
    now = read_job(folder)
    assert now is not None
    assert now["spec"]["window"] == {"time": 20}


def test_what_cannot_be_refined_says_why(tmp_path: Path) -> None:
    join = sj.PredicateJoin(sj.TimeWindow(9), sj.Overlap("tags", at_least=2))
    write_job(str(tmp_path), plan(10, spec=join, deadline=2.0), False, None)
    with pytest.raises(InputError, match="on a predicate or with a deadline"):
        check_archive(str(tmp_path))
    job = read_job(str(tmp_path))
    assert job is not None
    assert job["deadline"] == 2.0
