"""job.json says what was run, and another join is refused by it, rows or none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.errors import InputError
from shedjoin.spark.change_shards import change_shards
from shedjoin.spark.compatibility import kept_policy
from shedjoin.spark.lock import Owner
from shedjoin.spark.output import check_archive
from shedjoin.spark.start import _check_checkpoint, check_compatible, going_on, is_default, job_of, read_job, write_job


def plan(window: int, tuples: int = 9, **more: Any) -> Any:
    made: dict[str, Any] = {
        "spec": sj.JoinSpec(sj.TimeWindow(window), sj.Budget(tuples=tuples), sj.Prob()),
        "labels": (0, 1),
        "seed": 0,
        "condition": SimpleNamespace(keys=SimpleNamespace(pairs=[("k", "k")]), copied=False),
        "times": ("at", "at"),
        "importances": (None, None),
        "kinds": (None, None),
        "deadline": None,
        "front": (0.0, 0.0),
        "names": ("left", "right"),
        "out": [],
        "where": None,
        "needed": lambda side: ["k"],
        "timestamps": True,
        "signature": {},
        "target": None,
        "error": None,
    }
    return SimpleNamespace(**(made | more))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("window", {"window": 20}),
        ("time", {"times": ("at", "when")}),
        ("seed", {"seed": 1}),
    ],
)
def test_another_join_is_refused(what: str, change: dict[str, Any]) -> None:
    first = job_of(plan(10), True, None)
    with pytest.raises(sj.SnapshotError, match=rf"a join with another {what}: it has .*the budget may change"):
        check_compatible(first, job_of(plan(**{"window": 10, **change}), True, None), "out")


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


@pytest.mark.parametrize("kind", ["two", "many"])
@pytest.mark.parametrize(
    ("was", "now"),
    [
        (sj.Dgl(gain=1.0), sj.Dgl(gain=2.0)),
        (sj.Prob(), sj.Rand()),
        (sj.Dgl(), sj.Prob()),
        (None, sj.Prob(sj.InWindow())),
    ],
)
def test_another_policy_goes_on(kind: str, was: sj.Policy | None, now: sj.Policy) -> None:
    before, after = by(was, None if was is None else B, kind), by(now, kind=kind)
    check_compatible(before, after, "out")
    (noted,) = going_on(before, after)["changes"]
    assert noted["what"].startswith("budget: none -> 9 tuples; policy: KeepAll() -> " if was is None else "policy: ")


@pytest.mark.parametrize(("timestamps", "words"), [(True, "10 minutes 1 microsecond"), (False, "600000001")])
def test_a_window_is_told_in_words(timestamps: bool, words: str) -> None:
    first, second = (job_of(plan(window, timestamps=timestamps), True, None) for window in (600_000_000, 600_000_001))
    with pytest.raises(sj.SnapshotError, match=f"another window: it has [^,]*, this query {words}\\. With the same"):
        check_compatible(first, second, "out")


def test_the_numbers_of_a_policy_may_change() -> None:
    check_compatible(by(sj.Dgl(gain=1.0)), by(sj.Dgl(gain=2.0)), "out")
    check_compatible(by(sj.Prob(sj.Decayed(3.0))), by(sj.Prob(sj.Decayed(9.0))), "out")


@pytest.mark.parametrize("kind", ["two", "many"])
def test_while_there_is_no_budget_the_policy_is_kept(kind: str) -> None:
    first, without = by(sj.Dgl(), kind=kind), by(None, None, kind=kind)
    assert kept_policy(first["spec"], by(sj.Prob(), kind=kind)["spec"]) is None
    job = going_on(first, without)
    assert job["spec"]["policy"] == first["spec"]["policy"]
    assert [one["what"] for one in job["changes"]] == ["budget: 9 tuples -> none"]
    assert len(going_on(job, by(sj.Prob(), kind=kind))["changes"]) == 2


def test_what_may_change_is_written(tmp_path: Path) -> None:
    write_job(str(tmp_path), job_of(plan(10), True, None))
    first = read_job(tmp_path)
    assert first is not None
    second = job_of(plan(10, tuples=5), True, None)
    check_compatible(first, second, "out")
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


def test_shards_change_only_where_no_query_ran_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics" / "batch=0").mkdir(parents=True)
    write_job(str(tmp_path), job_of(plan(10), True, None))
    own = Owner.of

    def after_another_query(folder: str) -> Owner:
        write_job(folder, job_of(plan(10, tuples=5), True, None))
        return own(folder)

    monkeypatch.setattr(Owner, "of", after_another_query)
    monkeypatch.setattr("shedjoin.spark.change_shards.check_shards", lambda *_: None)  # Spark has committed its batch
    session: Any = None
    with pytest.raises(InputError, match="was started in between: run the command again"):
        change_shards(session, str(tmp_path), 3)
    monkeypatch.undo()
    own(str(tmp_path)).release()
