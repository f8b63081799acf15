"""job.json says what was run, and another join is refused by it, rows or none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.errors import InputError
from shedjoin.spark.lasting import kept_policy
from shedjoin.spark.output import check_archive
from shedjoin.spark.start import _check_checkpoint, check_lasting, is_default, job_of, read_job, write_job


def plan(window: int, tuples: int = 9, **more: Any) -> Any:
    made: dict[str, Any] = {
        "spec": sj.JoinSpec(sj.TimeWindow(window), sj.Budget(tuples=tuples), sj.Prob()),
        "labels": (0, 1),
        "seed": 0,
        "keys": SimpleNamespace(pairs=[("k", "k")]),
        "times": ("at", "at"),
        "importances": (None, None),
        "kinds": (None, None),
        "deadline": None,
        "front": (0.0, 0.0),
        "names": ("left", "right"),
        "out": [],
        "timestamps": True,
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
        check_lasting(first, job_of(plan(**{"window": 10, **change}), True, None), "out")


W, B = sj.TimeWindow(10), sj.Budget(tuples=9)
THREE = {"a": W, "b": W, "c": W}
TAGS = sj.Overlap("tags", at_least=2)


def by(policy: sj.Policy | None, budget: sj.Budget | None = B, kind: str = "two") -> dict[str, Any]:
    """A job that differs in its policy, and in its budget."""
    if kind == "many":
        many = sj.MultiJoinSpec(THREE, on="key", budget=budget, policy=policy)
        return job_of(plan(10, spec=many, names=tuple(THREE)), False, None)
    if kind == "predicate":
        return job_of(plan(10, spec=sj.JoinSpec(W, budget, policy, on=TAGS)), False, None)
    return job_of(plan(10, spec=sj.JoinSpec(W, budget, policy)), False, None)


@pytest.mark.parametrize(
    ("kind", "was", "now", "why"),
    [
        (
            "two",
            sj.Dgl(),
            sj.Prob(),
            "it has another estimator.*the policy, as long as it asks the same estimator or none",
        ),
        ("two", sj.Prob(sj.History()), sj.Prob(sj.InWindow()), "it has another estimator"),
        ("two", sj.Prob(sj.CountMin(8, 2)), sj.Prob(sj.CountMin(8, 3)), "cannot be made wider"),
        ("many", sj.Dgl(), sj.Prob(), "it has another estimator"),
        ("many", sj.Prob(sj.History()), sj.Prob(sj.InWindow()), "it has another estimator"),
    ],
)
def test_another_policy_is_refused_rows_or_none(kind: str, was: sj.Policy, now: sj.Policy, why: str) -> None:
    with pytest.raises(sj.SnapshotError, match=rf"a join with another policy: it has (?i:{type(was).__name__}).*{why}"):
        check_lasting(by(was, kind=kind), by(now, kind=kind), "out")
    check_lasting(by(was, kind=kind), by(was, sj.Budget(tuples=5), kind=kind), "out")


@pytest.mark.parametrize("kind", ["two", "many"])
@pytest.mark.parametrize(
    ("was", "now"), [(sj.Dgl(gain=1.0), sj.Dgl(gain=2.0)), (sj.Prob(), sj.Life()), (sj.Prob(), sj.Rand())]
)
def test_a_policy_that_asks_the_same_estimator_or_none_goes_on(kind: str, was: sj.Policy, now: sj.Policy) -> None:
    check_lasting(by(was, kind=kind), by(now, kind=kind), "out")


@pytest.mark.parametrize(("kind", "policy"), [("two", sj.Prob()), ("many", sj.Prob()), ("predicate", sj.Rand())])
def test_a_budget_is_not_added_to_a_query_that_began_without(kind: str, policy: sj.Policy) -> None:
    words = "^the query in out began without a budget, and a budget cannot be added to it: start with a new output directory"
    with pytest.raises(sj.SnapshotError, match=words):
        check_lasting(by(None, None, kind), by(policy, B, kind), "out")
    check_lasting(by(None, None, kind), by(None, None, kind), "out")


@pytest.mark.parametrize(("timestamps", "words"), [(True, "10 minutes 1 microsecond"), (False, "600000001")])
def test_a_window_is_told_in_words(timestamps: bool, words: str) -> None:
    first, second = (job_of(plan(window, timestamps=timestamps), True, None) for window in (600_000_000, 600_000_001))
    with pytest.raises(sj.SnapshotError, match=f"another window: it has [^,]*, this query {words}\\. With the same"):
        check_lasting(first, second, "out")


def test_the_numbers_of_a_policy_may_change() -> None:
    check_lasting(by(sj.Dgl(gain=1.0)), by(sj.Dgl(gain=2.0)), "out")
    check_lasting(by(sj.Prob(sj.Decayed(3.0))), by(sj.Prob(sj.Decayed(9.0))), "out")


@pytest.mark.parametrize("kind", ["two", "many"])
def test_while_there_is_no_budget_the_policy_is_kept(kind: str) -> None:
    """It may come back then, as the shards have it; another may not."""
    first, without = by(sj.Dgl(), kind=kind), by(None, None, kind=kind)
    check_lasting(first, without, "out")
    assert kept_policy(first["spec"], by(sj.Prob(), kind=kind)["spec"]) is None
    without["spec"]["policy"] = kept_policy(first["spec"], without["spec"])
    check_lasting(without, by(sj.Dgl(), kind=kind), "out")
    with pytest.raises(sj.SnapshotError, match="another policy"):
        check_lasting(without, by(sj.Prob(), kind=kind), "out")


def test_what_may_change_is_written(tmp_path: Path) -> None:
    write_job(str(tmp_path), job_of(plan(10), True, None))
    first = read_job(tmp_path)
    assert first is not None
    second = job_of(plan(10, tuples=5), True, None)
    check_lasting(first, second, "out")
    write_job(str(tmp_path), second)
    now = read_job(tmp_path)
    assert now is not None
    assert now["spec"]["budget"]["tuples"] == 5


@pytest.mark.parametrize("given", [None, "checkpoint", "elsewhere"])
def test_a_checkpoint_is_the_same_from_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    first = None if given is None or is_default("out", f"out/{given}") else f"out/{given}"
    assert (first is None) == (given != "elsewhere")
    job = job_of(plan(10), True, first)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    _check_checkpoint("../out", job, None if given is None else f"../out/{given}")
    with pytest.raises(sj.SpecError, match=r"checkpoint was .* and is other now"):
        _check_checkpoint("../out", job, "other")


def test_what_cannot_be_refined_says_why(tmp_path: Path) -> None:
    join = sj.JoinSpec(sj.TimeWindow(9), on=sj.Overlap("tags", at_least=2))
    write_job(str(tmp_path), job_of(plan(10, spec=join, deadline=2.0), False, None))
    with pytest.raises(InputError, match="has no archive to refine from"):
        check_archive(str(tmp_path))
    job = read_job(str(tmp_path))
    assert job is not None
    assert job["deadline"] == 2.0
