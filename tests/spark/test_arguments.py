"""The arguments of a join are checked without Spark, and job files by the same checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.cli.stream_job import StreamJob, read_stream_job
from shedjoin.spark import shed_join
from shedjoin.spark.arguments import spec_of
from shedjoin.spark.join_args import complete
from shedjoin.spark.keys import SIDES, column_names, key_pairs

pytestmark = pytest.mark.small

JOIN: dict[str, Any] = {"on": "k", "time": "at", "window": "10 minutes", "lateness": 0}


def in_python(**given: Any) -> Any:
    args = complete({**JOIN, **given}, shed_join)  # type: ignore[typeddict-item]
    return spec_of(args, SIDES, lateness=0, shards=args["shards"])


def in_a_file(folder: Path, **given: Any) -> StreamJob:
    told = {name: value for name, value in {**JOIN, **given}.items() if value is not None}
    settings = "".join(f"{name} = {_toml(value)}\n" for name, value in told.items())
    sides = "".join(f"[{side}]\nformat = 'rate'\n" for side in SIDES)
    (folder / "job.toml").write_text(f"{sides}[output]\npath = 'out'\n[join]\n{settings}")
    return read_stream_job(folder / "job.toml")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@pytest.mark.parametrize(
    "given",
    [
        {"window": ["1 minute", "2 minutes"]},
        {"window": {"left": "1 minute", "right": "2 minutes"}},
        {"window": {"time": 400}, "max_skew": "1 hour"},
        {"matches": {"left": 1, "right": 0}},
        {"window": "50 rows", "shards": 1, "budget": 90},
        {"window": "50 rows", "shards": 2, "budget": 90},
        {"window": ["50 rows", "1 minute"]},
        {"budget": "20k tuples", "allocation": "fixed", "policy": "life", "combine": "sum"},
        {"budget": 900, "policy": {"name": "prob", "estimator": {"name": "decayed", "half_life": "1 hour"}}},
        {"deadline": "2 seconds", "budget": 90},
        {"deadline": "2 seconds", "window": "50 rows", "shards": 2},
        {"evaluate_every": "2 seconds", "expire_every": "4 seconds", "index": "scan"},
        {"index": {"left": 64}, "order": ["right", "left"], "reordering": {"every": 500, "drift": 0.5}},
        {"deadline": 2, "selective": {"basic": "2 seconds", "sample": 0.5, "types": 3}, "kind": {"right": "x"}},
    ],
)
def test_a_file_describes_the_join_that_a_call_does(tmp_path: Path, given: dict[str, Any]) -> None:
    assert in_a_file(tmp_path, **given).spec == in_python(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"on": 3},
        {"on": ["k", {"left": "a"}]},
        {"time": {"left": "at"}},
        {"window": {"left": "1 s", "up": "2 s"}},
        {"budget": "much"},
        {"budget": 5, "shards": 3},
        {"window": "50 rows", "budget": 50, "shards": 3, "policy": "prospect"},
        {"policy": "life"},
        {"how": "sideways"},
        {"between": ["10 minutes", "0 seconds"], "window": None},
        {"between": ["0 seconds", "10 minutes"]},
        {"where": "left.a <"},
        {"where": "up.a < right.b AND"},
        {"importance": [1, 2]},
        {"lateness": 0, "max_skew": -1},
        {"select": "k"},
        {"suffixes": ["_l"]},
        {"seed": "x"},
        {"cache": 3},
        {"shares": "most"},
        {"deadline": 0},
        {"selective": 3},
        {"selective": {"basic": 0}},
        {"selective": {"types": 2}},
        {"evaluate_every": "often"},
        {"reordering": {"always": True}},
        {"index": "btree"},
        {"predicate": {"name": "band", "column": "x", "within": 1}},
    ],
)
def test_a_file_is_rejected_in_the_words_of_a_call(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(sj.SpecError) as call:
        in_python(**given)
    with pytest.raises(sj.SpecError) as file:
        in_a_file(tmp_path, **given)
    assert str(file.value) == f"join.{call.value}"


def test_columns_may_be_given_by_the_names_of_the_streams() -> None:
    by_name = {"right": "b", "left": "a"}
    assert column_names("time", by_name) == column_names("time", ("a", "b")) == ("a", "b")
    assert column_names("importance", {"right": "b"}, optional=True) == (None, "b")
    assert key_pairs(["k", by_name, ["v", "w"]]) == (("k", "k"), ("a", "b"), ("v", "w"))
    assert key_pairs({"x": "a", "z": "c", "y": "b"}, ("x", "y", "z")) == (("a", "b", "c"),)
