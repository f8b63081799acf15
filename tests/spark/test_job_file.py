"""job.json says what was run, and another join is refused by it, rows or none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.errors import InputError
from shedjoin.spark.output import check_archive
from shedjoin.spark.start import _check_checkpoint, _is_default, check_lasting, job_of, read_job, write_job


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


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("window", {"window": 20}),
        ("shards", {"labels": (0,)}),
        ("time", {"times": ("at", "when")}),
        ("seed", {"seed": 1}),
    ],
)
def test_another_join_is_refused(what: str, change: dict[str, Any]) -> None:
    first = job_of(plan(10), True, None)
    with pytest.raises(sj.SnapshotError, match=rf"a join with another {what}: it has .*the budget may change"):
        check_lasting(first, job_of(plan(**{"window": 10, **change}), True, None))


def test_what_may_change_is_written(tmp_path: Path) -> None:
    write_job(str(tmp_path), job_of(plan(10), True, None))
    first = read_job(tmp_path)
    assert first is not None
    second = job_of(plan(10, tuples=5), True, None)
    check_lasting(first, second)
    write_job(str(tmp_path), second)
    now = read_job(tmp_path)
    assert now is not None
    assert now["spec"]["budget"]["tuples"] == 5


@pytest.mark.parametrize("given", [None, "checkpoint", "elsewhere"])
def test_a_checkpoint_is_the_same_from_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    first = None if given is None or _is_default("out", f"out/{given}") else f"out/{given}"
    assert (first is None) == (given != "elsewhere")
    job = job_of(plan(10), True, first)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    _check_checkpoint("../out", job, None if given is None else f"../out/{given}")
    with pytest.raises(sj.SpecError, match=r"checkpoint was .* and is other now"):
        _check_checkpoint("../out", job, "other")


def test_what_cannot_be_refined_says_why(tmp_path: Path) -> None:
    join = sj.PredicateJoin(sj.TimeWindow(9), sj.Overlap("tags", at_least=2))
    write_job(str(tmp_path), job_of(plan(10, spec=join, deadline=2.0), False, None))
    with pytest.raises(InputError, match="on a predicate or with a deadline"):
        check_archive(str(tmp_path))
    job = read_job(str(tmp_path))
    assert job is not None
    assert job["deadline"] == 2.0
