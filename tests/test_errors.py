"""Bad input gets a clear word before anything runs, and nothing already done is lost."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shedjoin as sj
from shedjoin import quality
from shedjoin.estimators import ESTIMATORS
from shedjoin.policies import POLICIES
from strategies.policies import VARIANTS

pytestmark = pytest.mark.small

TIME = sj.TimeWindow(3)
HUGE = 10**400  # no float is as large
ROWS = {"key": [1, 2, 1], "ts": [0, 1, 2]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sj.TimeWindow(-1), ["TimeWindow.length", "at least 1", "-1"]),
        (lambda: sj.TimeWindow(2.5), ["TimeWindow.length", "whole number", "2.5", "float"]),  # type: ignore[arg-type]
        (lambda: sj.TimeWindow(True), ["TimeWindow.length", "True"]),
        (lambda: sj.RowWindow(0), ["RowWindow.rows", "at least 1", "0"]),
        (lambda: sj.Budget(), ["either tuples or bytes"]),
        (lambda: sj.Budget(tuples=3, bytes=3), ["either tuples or bytes"]),
        (lambda: sj.Budget(tuples=-4), ["Budget.tuples", "-4"]),
        (lambda: sj.Budget(tuples=4, allocation="shared"), ["allocation", "fixed, variable", "shared"]),
        (lambda: sj.Budget(tuples=4, shares=(1, 0)), ["shares", "above 0"]),
        (lambda: sj.Budget(tuples=4, shares=("a", "b")), ["shares", "numbers"]),  # type: ignore[arg-type]
        (lambda: sj.Budget(tuples=4, shares=(1, 1), allocation="variable"), ["shares", "fixed"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=1, allocation="fixed")), ["tuples=1", "room for one"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=1, allocation="variable")), ["tuples=1", "the least is 2"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=9, shares=(100, 1))), ["stream 1", "room for one"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(bytes=200)), ["bytes=200", "192 bytes"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=9, shares=(1, 1, 1))), ["3 numbers for 2 streams"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=9, shares=())), ["0 numbers for 2 streams"]),
        (lambda: sj.JoinSpec(3), ["JoinSpec.window", "3"]),  # type: ignore[arg-type]
        (lambda: sj.JoinSpec((TIME, TIME, TIME)), ["JoinSpec.window", "pair"]),  # type: ignore[arg-type]
        (lambda: sj.JoinSpec(TIME, 400), ["JoinSpec.budget", "400"]),  # type: ignore[arg-type]
        (lambda: sj.JoinSpec(TIME, policy="prob"), ["JoinSpec.policy", "Prob()", "'prob'"]),  # type: ignore[arg-type]
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=4), sj.KeepAll()), ["KeepAll", "budget"]),
        (lambda: sj.JoinSpec(TIME, importance="median"), ["importance", "min, max, sum, product, mean", "median"]),
        (lambda: sj.JoinSpec(TIME, lateness=-1), ["lateness", "-1"]),
        (lambda: sj.JoinSpec(TIME, max_skew=1.5), ["max_skew", "1.5"]),  # type: ignore[arg-type]
        (lambda: sj.Prob(estimator="history"), ["Prob.estimator", "'history'"]),  # type: ignore[arg-type]
        (lambda: sj.Dgl(loss=1.0), ["Dgl.loss", "below 1"]),
        (lambda: sj.Dgl(gain=0), ["Dgl.gain", "above 0"]),
        (lambda: sj.Additive(update="daily"), ["Additive.update", "arrival, always"]),
        (lambda: sj.Multiplicative(matches=math.nan), ["Multiplicative.matches", "nan"]),
        (lambda: sj.Decayed(0), ["Decayed.half_life", "1e-06"]),
        (lambda: sj.Decayed(HUGE), ["Decayed.half_life", "1000"]),
        (lambda: sj.Cumulative(importance=HUGE), ["Cumulative.importance", "finite number", "1000"]),
        (lambda: sj.Band("x", within=HUGE), ["Band.within", "finite number", "1000"]),
        (lambda: sj.VirtualCpu(HUGE), ["VirtualCpu.capacity", "1000"]),
        (lambda: sj.Budget(tuples=4, shares=(HUGE, 1)), ["Budget.shares", "1000"]),
        (lambda: quality.from_run(None), ["run", "what simulate returns", "None"]),  # type: ignore[arg-type]
        (lambda: quality.distances_from_run(None), ["run", "what simulate returns"]),  # type: ignore[arg-type]
        (lambda: sj.CountMin(width=0), ["CountMin.width", "0"]),
        (lambda: sj.CountMin(depth=99), ["CountMin.depth", "99"]),
        (lambda: sj.Table({1: -0.5}, {}), ["Table.left", "from 0", "-0.5"]),
        (lambda: sj.Table({}, {"a": -1}), ["Table.right", "from 0", "-1"]),
        (lambda: sj.Table({}, {"a": "b"}), ["Table.right", "must map keys to numbers"]),  # type: ignore[dict-item]
        (lambda: sj.Table({}, {"a": 1}).table(1), ["Table.right", "whole-number keys", "joins on Spark"]),
        (lambda: sj.JoinSpec(TIME, sj.Budget(tuples=4), sj.Prob(sj.Table("a.csv", {}))), ["Table.left", "'a.csv'"]),
        (lambda: sj.Replay([0.5], [1]), ["Replay.left", "whole numbers"]),
        (lambda: sj.JoinSpec(TIME).build(seed=-1), ["seed", "-1"]),
        (lambda: sj.JoinSpec(TIME).build(seed="x"), ["seed", "'x'"]),  # type: ignore[arg-type]
        (lambda: sj.JoinSpec(TIME).build().set_budget(sj.Budget(tuples=4)), ["KeepAll", "budget"]),
        (lambda: sj.simulate(None, ROWS, ROWS), ["spec must be a JoinSpec", "NoneType"]),  # type: ignore[arg-type]
        (lambda: sj.simulate(sj.JoinSpec(TIME), ROWS, ROWS, warmup=1.5), ["warmup", "1.5"]),  # type: ignore[arg-type]
        (lambda: sj.simulate(sj.JoinSpec(TIME), ROWS, ROWS, trace=-1), ["trace", "-1"]),
        (lambda: sj.simulate(sj.JoinSpec(TIME), ROWS, ROWS, late="drop"), ["late", "refuse, log", "drop"]),
    ],
)
def test_a_bad_spec_names_the_argument_and_what_came(make: Any, words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as raised:
        make()
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, ["needs a window"]),
        ({"window": {"time": 3}, "polizy": "prob"}, ["no setting 'polizy'", "policy"]),
        ({"window": {"times": 3}}, ["window must be {'time': length} or {'row': rows}", "'times'"]),
        ({"window": {"time": 3, "row": 4}}, ["{'time': length} or {'row': rows}"]),
        ({"window": {"time": "3"}}, ["window must be a duration", "'3'"]),
        ({"window": None}, ["window", "None"]),
        ({"window": {"time": 3}, "budget": "many"}, ["budget", "many"]),
        ({"window": {"time": 3}, "budget": -400}, ["-400"]),
        ({"window": {"time": 3}, "budget": {"tuple": 400}}, ["no setting 'tuple'", "tuples"]),
        ({"window": {"time": 3}, "budget": {"tuples": 4}, "policy": "lru"}, ["policy must be one of", "prob", "'lru'"]),
        ({"window": {"time": 3}, "budget": {"tuples": 4}, "policy": {"name": "prob", "speed": 1}}, ["Prob", "speed"]),
        (
            {"window": {"time": 3}, "budget": {"tuples": 4}, "policy": {"name": "prob", "estimator": "guess"}},
            ["estimator must be one of", "history", "'guess'"],
        ),
        (
            {
                "window": {"time": 3},
                "budget": {"tuples": 4},
                "policy": {"name": "prob", "estimator": {"name": "decayed"}},
            },
            ["Decayed", "half_life"],
        ),
        ({"window": {"time": 3}, "budget": {"tuples": 4}, "policy": 7}, ["policy", "7"]),
    ],
)
def test_a_bad_dict_names_the_setting(data: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as raised:
        sj.JoinSpec.from_dict(data)
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ({"ts": [0, 1, 2]}, ["left needs a column 'key'", "ts"]),
        ({}, ["left needs a column 'key'", "no columns"]),
        ([1, 2, 3], ["left must be", "list"]),
        ({"key": ["a", "b", "c"]}, ["left.key", "whole numbers", "string"]),
        ({"key": [1.5, 2.5]}, ["left.key", "whole numbers", "double"]),
        ({"key": np.ones((2, 2), np.int64)}, ["left.key", "one-dimensional"]),
        ({"key": [1, "a"]}, ["left.key"]),
        ({"key": np.array([2**63], np.uint64)}, ["left.key", "64 bits"]),
        ({"key": [1, 2], "ts": [0.5, 1.5]}, ["left.ts", "whole numbers", "double"]),
        ({"key": [1, 2], "ts": [0, None]}, ["left.ts", "row 1", "null"]),
        ({"key": [1, 2], "ts": [0]}, ["left.ts has 1 rows", "2"]),
        ({"key": [1, 2], "ts": [0, 2**60]}, ["left.ts", "2**53", "row 1"]),
        ({"key": [1, 2], "importance": [1.0, math.nan]}, ["left.importance", "row 1", "nan"]),
        ({"key": [1, 2], "importance": [math.inf, 1.0]}, ["left.importance", "row 0", "inf"]),
        ({"key": [1, 2], "importance": [0.0, 1.0]}, ["left.importance", "above 0", "row 0"]),
        ({"key": [1, 2], "importance": [1.0, -3.0]}, ["left.importance", "above 0", "row 1", "-3.0"]),
        ({"key": [1, 2], "importance": [1.0, None]}, ["left.importance", "row 1"]),
        ({"key": [1, 2], "importance": ["high", "low"]}, ["left.importance", "numbers", "string"]),
        ({"key": [1, 2], "importance": [1.0]}, ["left.importance has 1 rows"]),
        ({"key": [1, 2], "bytes": [10, 0]}, ["left.bytes", "above 0", "row 1"]),
        (pa.table({"k": [1]}), ["left needs a column 'key'", "k"]),
    ],
)
def test_bad_rows_name_stream_column_and_row(left: Any, words: list[str]) -> None:
    with pytest.raises(sj.InputError) as raised:
        sj.simulate(sj.JoinSpec(TIME), left, ROWS)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    with pytest.raises(sj.InputError):
        sj.JoinSpec(TIME).build().push(left=left)


def test_no_streams_at_all_are_no_input() -> None:
    with pytest.raises(sj.InputError, match="left and right are both None"):
        sj.simulate(sj.JoinSpec(TIME), None, None)
    with pytest.raises(sj.InputError, match="shed must be the ShedLog of a run, not NoneType"):
        quality.missing_results(None, ROWS, ROWS, sj.JoinSpec(TIME))  # type: ignore[arg-type]


def test_time_out_of_order_beyond_lateness_names_stream_and_row() -> None:
    right = {"key": [1, 1, 1, 1], "ts": [0, 5, 3, 2]}
    with pytest.raises(sj.InputError, match=r"right\.ts .* lateness of 2: row 3 has 2, 3 behind"):
        sj.simulate(sj.JoinSpec(TIME, lateness=2), ROWS, right)
    run = sj.simulate(sj.JoinSpec(TIME, lateness=2), ROWS, right, late="log")
    assert run.counters["late"] == 1
    assert [sj.WHY[code] for code in run.shed.why] == ["late"]
    assert run.shed.seq.tolist() == [3]
    assert sj.simulate(sj.JoinSpec(TIME, lateness=3), ROWS, right).counters["late"] == 0


def test_a_schedule_must_know_every_row() -> None:
    spec = sj.JoinSpec(TIME, sj.Budget(tuples=4), sj.Replay([3, 3], [3]))
    with pytest.raises(sj.InputError, match="Replay knows 2 rows of stream 0, but 3 have arrived"):
        sj.simulate(spec, ROWS, {"key": [1]})


GOOD = {"key": [1, 2, 1, 3], "ts": [0, 1, 2, 3], "importance": [1.0, 2.0, 1.0, 4.0]}
BAD = [
    {"key": [1, 1], "ts": [4, None]},
    {"key": ["x"], "ts": [4]},
    {"key": [1], "ts": [4], "importance": [-1.0]},
    {"ts": [4]},
]


def state(engine: sj.Engine) -> tuple[Any, ...]:
    return engine.snapshot(), engine.residents, engine.used, engine.counters


@pytest.mark.parametrize("policy", [sj.Prob(), sj.Rand(), sj.Dgl(), sj.Life()])
@pytest.mark.parametrize("bad", BAD)
def test_after_an_error_the_engine_goes_on_as_if_nothing_had_come(policy: sj.Policy, bad: dict[str, Any]) -> None:
    spec = sj.JoinSpec(TIME, sj.Budget(tuples=4), policy)
    troubled, calm = spec.build(seed=5), spec.build(seed=5)
    for engine in (troubled, calm):
        engine.push(left=GOOD, right=GOOD)
    before = state(troubled)
    with pytest.raises(sj.InputError):
        troubled.push(left=bad, right=GOOD)
    with pytest.raises(sj.InputError):
        troubled.push(sj.Batch.of(GOOD), left=GOOD)
    with pytest.raises(sj.SpecError):
        troubled.set_budget(sj.Budget(tuples=1))
    with pytest.raises(sj.SpecError):
        troubled.set_budget(7)  # type: ignore[arg-type]
    assert state(troubled) == before
    later = {"key": [1, 3, 1], "ts": [4, 4, 5]}
    one, two = (engine.push(left=later, right=later) for engine in (troubled, calm))
    assert one.left.tolist() == two.left.tolist()
    assert one.right.tolist() == two.right.tolist()
    assert np.array_equal(one.shed.records(), two.shed.records())
    assert one.stats == two.stats
    assert state(troubled) == state(calm)


def test_a_bad_snapshot_is_refused() -> None:
    spec = sj.JoinSpec(TIME, sj.Budget(tuples=4), sj.Prob())
    engine = spec.build()
    engine.push(left=GOOD, right=GOOD)
    saved = engine.snapshot()
    for broken in (b"", b"nonsense", saved[:-3], saved[:40] + b"\0" + saved[41:], saved + b"\0"):
        with pytest.raises(sj.SnapshotError):
            spec.resume(broken)
    other = sj.JoinSpec(sj.TimeWindow(4), sj.Budget(tuples=4), sj.Prob())
    with pytest.raises(sj.SnapshotError, match="window"):
        other.resume(saved)


# -------------------------------------------------------------------------------------------- specs as plain data

ESTIMATOR_EXAMPLES = {
    "table": sj.Table({7: 0.5, -3: 0.25}, [0.1, 0.9]),
    "in_memory": sj.InMemory(),
    "in_window": sj.InWindow(),
    "history": sj.History(),
    "decayed": sj.Decayed(12.5),
    "count_min": sj.CountMin(width=64, depth=3),
    "met": sj.Met(),
}
POLICY_EXAMPLES: dict[str, sj.Policy] = {
    name: sj.Replay([0, 3, 5], [2, 1]) if name == "replay" else variant.make(lambda number: 0.75, sj.History())
    for name, variant in VARIANTS.items()
}


def test_there_is_an_example_of_every_estimator() -> None:
    assert set(ESTIMATOR_EXAMPLES) == set(ESTIMATORS)


def examples() -> list[sj.JoinSpec]:
    policies = list(POLICY_EXAMPLES.values())
    weighed = [type(policy) for policy in policies if isinstance(policy.estimator, tuple(ESTIMATORS.values()))]
    policies += [kind(estimator=estimator) for kind in weighed for estimator in ESTIMATOR_EXAMPLES.values()]  # type: ignore[call-arg]
    budgets = (sj.Budget(tuples=40, shares=(3, 1)), sj.Budget(bytes=4000, allocation="variable"))
    return [
        sj.JoinSpec(
            window=(sj.TimeWindow(9), sj.RowWindow(4)) if place % 2 else sj.TimeWindow(9),
            budget=None if isinstance(policy, sj.KeepAll) else budgets[place % 2],
            policy=policy,
            importance="mean",
            lateness=place % 3,
            max_skew=None if place % 2 else 17,
        )
        for place, policy in enumerate(policies)
    ]


@pytest.mark.parametrize("spec", examples(), ids=str)
def test_specs_round_trip_through_dict_json_and_toml(spec: sj.JoinSpec) -> None:
    data = spec.to_dict()
    assert sj.JoinSpec.from_dict(data) == spec
    assert sj.JoinSpec.from_dict(json.loads(json.dumps(data))) == spec
    assert sj.JoinSpec.from_dict(tomllib.loads(as_toml(data))) == spec
    assert hash(sj.JoinSpec.from_dict(data)) == hash(spec)


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("keep_all", "replay")])
def test_a_name_is_enough(name: str) -> None:
    spec = sj.JoinSpec.from_dict({"window": {"time": 4}, "budget": {"tuples": 4}, "policy": name})
    assert spec.policy == POLICIES[name]()


def as_toml(data: dict[str, Any]) -> str:
    return "".join(f"{name} = {_value(value)}\n" for name, value in data.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {_value(part)}' for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
