"""Rows that wait for a slow CPU, against the slow twin: to the last result, shed record and counter."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shedjoin as sj
from matrix import Combination
from shedjoin.engine import waiting_rows
from waiting_cases import PREDICATE_CONDITIONS, check, columns, drawn, run_engine, sample, some, spec_of

pytestmark = pytest.mark.small

QUEUES = ("queue", "selective queue", "semantic queue", "integrated queue")
CPU = sj.VirtualCpu(1.0, probe=0.5, comparison=0.25, update=0.25)


@pytest.mark.parametrize("cpu", QUEUES)
def test_the_engine_does_as_its_twin(cpu: str) -> None:
    for seed, combination in enumerate(sample(cpu, 16)):
        check(drawn(combination, seed))


@pytest.mark.parametrize("cpu", QUEUES)
def test_a_join_goes_on_from_snapshots(cpu: str) -> None:
    """Rows wait between pushes, instants are open, and clocks were told."""
    for seed, combination in enumerate(sample(cpu, 12)):
        check(drawn(combination, 100 + seed), resumes=True, tells=True)


@pytest.mark.parametrize("cpu", QUEUES)
def test_rows_with_items_wait(cpu: str) -> None:
    """Numbers and sets, by lists and by scans, from snapshots, with clocks that were told."""
    for seed, combination in enumerate(sample(cpu, 12, PREDICATE_CONDITIONS)):
        case = drawn(combination, 400 + seed)
        case = replace(case, join=replace(case.join, index="scan" if seed % 5 == 0 else "lists"))
        check(case, resumes=seed % 2 == 0, tells=seed % 3 == 0)


@pytest.mark.parametrize("cpu", QUEUES)
def test_a_line_without_a_bound(cpu: str) -> None:
    for seed, combination in enumerate(sample(cpu, 8)):
        case = drawn(combination, 200 + seed)
        check(replace(case, join=replace(case.join, queue=None)), resumes=seed % 2 == 0)


@pytest.mark.parametrize("cpu", QUEUES)
def test_arrays_grow(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "LEAST", 2)
    for seed, combination in enumerate(sample(cpu, 8)):
        case = drawn(combination, 300 + seed, size=80)
        check(replace(case, join=replace(case.join, cpu=replace(CPU, capacity=0.3))), resumes=seed % 2 == 0)


def test_results_come_in_pieces() -> None:
    case = drawn(Combination(3, cpu="queue"), 1, size=80)
    case = replace(case, join=replace(case.join, cpu=sj.VirtualCpu(2.0), queue=None))
    whole, _ = run_engine(case)
    spec = spec_of(case)
    engine = spec.build(seed=case.seed)
    found = [
        tuple(row)
        for rows in case.pushes
        for piece in engine.chunks(engine.rows(columns(spec, rows)).in_canonical_order(), limit=1)
        for row in piece.rows.tolist()
    ]
    found += [tuple(row) for row in engine.flush().rows.tolist()]
    assert len(found) > 10
    assert sorted(found) == sorted(tuple(map(int, result[:-1])) for step in whole for result in step.results)


def test_rows_that_wait_are_told() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(9), cpu=sj.VirtualCpu(0.1, update=1.0))
    engine = spec.build()
    engine.push(left={"key": [1, 1, 1], "ts": [0, 1, 2]}, right={"key": [1], "ts": [2]})
    assert engine.queued == (2, 1)
    assert engine.arrived == (3, 1)
    assert engine.worked == 1.0
    assert engine.residents == (1, 0)
    out = engine.flush()
    assert sorted(map(tuple, out.rows.tolist())) == [(0, 0), (1, 0), (2, 0)]
    assert engine.queued == (0, 0)
    assert engine.worked == 4.0 + 1.0 * engine.counters["compared"]


def test_an_open_instant_is_closed_by_a_changed_budget() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(9), sj.Budget(tuples=3), sj.Prob(sj.History()), cpu=CPU)
    engine = spec.build()
    engine.push(left={"key": [1, 2, 3, 4], "ts": [0, 0, 0, 0]})
    engine.flush()
    assert engine.counters["instants"] == 1
    assert engine.residents == (3, 0)
    engine.push(left={"key": [1], "ts": [5]}, right={"key": [1, 2], "ts": [5, 5]})
    assert engine.residents == (4, 0)
    assert engine.counters["instants"] == 1
    shed = engine.set_budget(sj.Budget(tuples=2)).shed
    assert engine.counters["instants"] == 2
    assert engine.residents == (2, 0)
    assert shed.tick.tolist() == [1, 1]


REFUSED = {
    "JoinSpec.queue: A queue holds the rows that a slow CPU has not reached": {"queue": sj.Queue(tuples=3)},
    "JoinSpec.queue must be a Queue or None": {"queue": 3, "cpu": CPU},
    "JoinSpec.dual must be a Dual or None": {"dual": True},
    "JoinSpec.cpu must be a VirtualCpu": {"cpu": 1.0},
    "give selective=Selective": {"cpu": sj.Deadline(1.0)},
    "costs of a probe and of an update above 0": {"cpu": sj.VirtualCpu(1.0), "dual": sj.Dual()},
    "JoinSpec.dual: The best speed is computed from the key frequencies": {
        "dual": sj.Dual(),
        "on": ("left.x = right.x", "left.y < right.y"),
    },
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_errors_name_the_argument(sentence: str) -> None:
    with pytest.raises(sj.SpecError, match=sentence):
        sj.JoinSpec(sj.TimeWindow(3), **REFUSED[sentence])


def test_specs_are_plain_data() -> None:
    for cpu in (*QUEUES, "dual"):
        for seed, combination in enumerate(some(cpu, 10)):
            if combination.window != "interval":  # here with names of streams, which `between` does not give
                spec = spec_of(drawn(combination, seed))
                assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    spec = sj.JoinSpec(between=(-3, 8), cpu=CPU)
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    spec = sj.JoinSpec(sj.RowWindow(3), dual=sj.Dual(distribution=([0.5, 0.5], [1, 0])), cpu=CPU)
    assert sj.JoinSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(sj.SpecError, match="queue has no setting 'rows'"):
        sj.JoinSpec.from_dict({"window": {"time": 3}, "cpu": {"name": "virtual", "capacity": 1}, "queue": {"rows": 3}})


def test_snapshots_belong_to_their_cpu() -> None:
    spec = sj.JoinSpec(sj.TimeWindow(3), cpu=CPU, queue=sj.Queue(tuples=3))
    saved = spec.build().snapshot()
    for other in (
        replace(spec, cpu=replace(CPU, capacity=2.0)),
        replace(spec, queue=None),
        replace(spec, queue=None, cpu=None),
    ):
        with pytest.raises(sj.SnapshotError, match="another cpu, queue and dual windows"):
            other.resume(saved)
