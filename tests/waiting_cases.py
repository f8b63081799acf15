"""Drawn cases of joins whose rows wait, as specs, and how they are run on the engine and on the twin."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import shedjoin as sj
from matrix import BY_HAND, CHANGES, GRAPHS, PREDICATES, Case, Combination, draw, random_ones
from naive import Key, LeftOut, Output, Row, Twin
from shedjoin.engine.pace import Script
from strategies import records, share

NAMES = "abc"
CONDITIONS = ("key", "residual", "graph")
PREDICATE_CONDITIONS = tuple(name for name in PREDICATES if name not in ("equal", "same_set"))


class Step(NamedTuple):
    """What a push, a change or a flush gave, and what was stored after it."""

    results: list[tuple[float, ...]]
    shed: list[Any]
    left_out: list[LeftOut]
    residents: tuple[int, ...]
    used: tuple[int, ...]
    queued: tuple[int, ...]


def spec_of(case: Case) -> sj.JoinSpec:
    """The join of a case as users write it."""
    join, names = case.join, NAMES[: case.combination.streams]
    kind = (case.combination.condition, case.combination.streams)
    on: Any = "key" if isinstance(join.condition, Key) else PREDICATES.get(kind[0]) or GRAPHS[kind]
    dual = join.dual and sj.Dual(join.dual.rear, join.dual.front, join.dual.period, join.dual.distribution)
    window: Any = dict(zip(names, join.windows, strict=True))
    return sj.JoinSpec(
        tuple(join.windows) if isinstance(on, sj.Predicate) else window,
        join.budget,
        join.policy,
        importance=join.importance,
        lateness=join.lateness,
        max_skew=join.max_skew,
        expire_every=join.expire_every,
        on=on,
        index="scan" if join.index == "scan" else "auto",
        selective=join.selective,
        cpu=join.cpu,
        queue=join.queue,
        dual=dual,
        how=join.how.name,
        matches=join.matches,
    )


def some(cpu: str, count: int, conditions: tuple[str, ...] = CONDITIONS) -> list[Combination]:
    """A few combinations whose rows wait, always the same, with every policy among them if there are enough."""
    random = Random(cpu)
    among = {"condition": conditions, "cpu": (cpu,), "also": CHANGES, "where": (None,)}
    found = ([*islice(random_ones({**among, "policy": (one,)}, random), count)] for one in BY_HAND)
    by_policy = [ones for ones in found if ones]
    return [by_policy[number % len(by_policy)][number // len(by_policy)] for number in range(count)]


def sample(cpu: str, count: int, conditions: tuple[str, ...] = CONDITIONS) -> list[Combination]:
    """The first of them: `make matrix` tries them all."""
    return some(cpu, count, conditions)[: share(count)]


def columns(spec: sj.JoinSpec, rows: list[Row]) -> dict[str, list[Any]]:
    single = spec.on == "key" or isinstance(spec.on, sj.Predicate)
    names = ["key"] if spec.on == "key" else ["x"] if single else ["x", "y"]
    return {
        "stream": [row.stream for row in rows],
        "ts": [row.ts for row in rows],
        "importance": [row.importance for row in rows],
        "bytes": [row.bytes for row in rows],
        "kind": [row.kind for row in rows],
        **{name: [row.value if single else row.value[name] for row in rows] for name in names},
    }


def _step_of_engine(engine: sj.Engine, out: sj.Output) -> Step:
    results = sorted(zip(*(column.tolist() for column in out.columns), out.importance.tolist(), strict=True))
    left = [LeftOut(*one) for one in out.left_out.records().tolist()]
    return Step(results, records(out.shed), left, engine.residents, engine.used, engine.queued)


def _step_of_twin(twin: Twin, out: Output) -> Step:
    results = sorted((*result.rows, result.importance) for result in out.results)
    queued = tuple(len(rows) for rows in twin.admission.waiting)
    return Step(results, out.shed, out.left_out, twin.residents, twin.used, queued)


def clocks_of(case: Case, number: int) -> list[int | None] | None:
    """Clocks that are told after some pushes."""
    random = Random(f"{case.combination} {case.seed} {number}")
    if random.random() < 0.7 or not case.rows:
        return None
    newest = max(row.ts for push in case.pushes[: number + 1] for row in push or case.rows)
    return [random.choice((None, newest, newest - 2, newest + 1)) for _ in range(case.combination.streams)]


def run_engine(case: Case, *, resumes: bool = False, tells: bool = False) -> tuple[list[Step], sj.Engine]:
    """Push after push, with the changes between them; `resumes`: each from a snapshot of the one before."""
    spec = spec_of(case)
    engine = spec.build(seed=case.seed)
    steps: list[Step] = []
    closed: list[sj.Output] = []
    for number, rows in enumerate(case.pushes):
        if number in case.budgets:
            steps.append(_step_of_engine(engine, engine.set_budget(case.budgets[number])))
            spec = spec.with_budget(case.budgets[number])
        if number in case.policies:
            closed = [engine.set_policy(case.policies[number])]
            spec = replace(spec, policy=case.policies[number])
        if resumes:
            engine = spec.resume(engine.snapshot())
        clocks = clocks_of(case, number) if tells else None
        batch = engine.rows(columns(spec, rows)).in_canonical_order()
        pace = None if case.script is None else Script(case.script)
        pieces = engine.chunks(batch, limit=1 << 16, clocks=clocks, pace=pace)
        steps.append(_step_of_engine(engine, sj.Output.joined([*closed, *pieces])))
        closed = []
    if resumes:
        engine = spec.resume(engine.snapshot())
    steps.append(_step_of_engine(engine, engine.flush()))
    return steps, engine


def run_twin(case: Case, *, tells: bool = False) -> tuple[list[Step], Twin]:
    twin = Twin(case.join, case.seed)
    steps, closed = [], Output()
    for number, rows in enumerate(case.pushes):
        if number in case.budgets:
            steps.append(_step_of_twin(twin, twin.set_budget(case.budgets[number])))
        if number in case.policies:
            closed = twin.set_policy(case.policies[number])
        out = twin.push(rows, clocks_of(case, number) if tells else None, script=case.script)
        steps.append(_step_of_twin(twin, out.after(closed)))
        closed = Output()
    steps.append(_step_of_twin(twin, twin.flush()))
    return steps, twin


def check(case: Case, *, resumes: bool = False, tells: bool = False) -> None:
    """The engine gives what the twin gives, to the last record and counter."""
    mine, engine = run_engine(case, resumes=resumes, tells=tells)
    theirs, twin = run_twin(case, tells=tells)
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        for name in Step._fields:
            assert getattr(one, name) == getattr(other, name), (str(case.combination), case.seed, number, name)
    counters = engine.counters
    for name in ("rows", "null", "late", "results", "expired", "evicted", "scheduled"):
        assert counters[name] == twin.counters[name], (str(case.combination), case.seed, name)
    for name in ("dropped", "probed", "unprobed", "compared", "looked_up", "partial", "sampled"):
        assert counters[name] == twin.more_counters[name], (str(case.combination), case.seed, name)
    assert engine.worked == twin.worked


def drawn(combination: Combination, seed: int, size: int = 40) -> Case:
    return draw(combination, seed, size)
