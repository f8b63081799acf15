"""Shards of joins on predicates, without Spark: tables go in through the packer, blobs come out, state lies in a dict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dict_store import DictStore

import shedjoin as sj
from predicate_strategies import exact_pairs
from shedjoin.join_type import TYPES as JOIN_TYPES
from shedjoin.spark import deadline as deadlines
from shedjoin.spark.deadline import Pacing
from shedjoin.spark.exchange import METRIC, RESULT, SHED, Message, from_blob, shard_labels
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.job import Job
from shedjoin.spark.metrics import latest, recall_of
from shedjoin.spark.packing import Packing, pack
from shedjoin.spark.shard import Shard
from shedjoin.spark.values import TYPES, from_column, in_order, to_column

Rows = Sequence[tuple[int, Any]]
CASES = {
    "number": (sj.Band("x", within=1.0), sj.Theta("x", "<", offset=-8.0)),
    "set": (sj.Overlap("x", at_least=2), sj.Subset("x"), sj.SameSet("x")),
    "weighted": (sj.InnerProduct("x", at_least=1.5),),
}


def made(join: sj.JoinSpec, shards: int = 2, **more: Any) -> Job:
    given: dict[str, Any] = {
        "seed": 0,
        "kept": ((0,), (0,)),
        "signature": {},
        "kinds": (RESULT, SHED, METRIC),
        "cache": False,
        "shares": "equal",
    }
    assert isinstance(join.on, sj.Predicate)
    cube = HyperCube.of_predicate(join.on, shards, JOIN_TYPES[join.how].judged)
    return Job(spec=join.to_dict(), labels=shard_labels(shards, shards), cube=cube, **{**given, **more})


def messages(job: Job, kind: str, sides: Sequence[Rows], firsts: Sequence[int]) -> dict[int, list[Message]]:
    """What the packing tasks send each shard: one task a stream."""
    sent: dict[int, list[Message]] = {label: [] for label in job.labels}
    for stream, (rows, first) in enumerate(zip(sides, firsts, strict=True)):
        travels = pa.schema([("name", pa.int64())]).serialize().to_pybytes()
        how = Packing(
            stream, job.names[stream], job.labels, job.cube, travels, "ts", values=kind, compared="x",
            front=0.3 * job.front, marked=True,
        )  # fmt: skip
        values = [list(x.items()) if isinstance(x, dict) else None if x is None else x for _, x in rows]
        values = [sorted(x) if isinstance(x, set) else x for x in values]
        columns = [
            pa.array(values, TYPES[kind]),
            pa.array([ts for ts, _ in rows], pa.int64()),
            pa.array(np.arange(first, first + len(rows))),
        ]
        table = pa.RecordBatch.from_arrays(columns, names=["x", "ts", "name"])
        for batch in pack(iter([table]), how, 0, first):
            for row in batch.to_pylist():
                label = row.pop("label")
                blob = row.pop("blob") if row["rows"] else row.pop("blob") and None  # no clock on the wall in tests
                sent[label].append(Message(**row, blob=blob))
    return sent


def kind_of(job: Job) -> str:
    on = sj.JoinSpec.from_dict(job.spec).on
    assert isinstance(on, sj.Predicate)
    return on.kind


class Run:
    """A join in micro-batches, each shard with a store of its own."""

    def __init__(self, job: Job, clock: Callable[[Shard], Callable[[], float]] | None = None) -> None:
        self.job, self.kind = job, kind_of(job)
        self.stores = [DictStore() for _ in job.labels]
        self.clock = clock
        self.arrived = [0, 0]
        self.pairs: list[tuple[int, int]] = []
        self.rows: dict[str, list[dict[str, Any]]] = {SHED: [], METRIC: []}

    def push(self, left: Rows, right: Rows) -> None:
        sent = messages(self.job, self.kind, (left, right), self.arrived)
        self.arrived = [self.arrived[0] + len(left), self.arrived[1] + len(right)]
        for number, label in enumerate(self.job.labels):
            shard = Shard(self.job, number, self.stores[number])
            if self.clock is not None:
                shard.clock = shard.state.clock = shard.state.pacing.clock = self.clock(shard)
            for kind, blob in shard.run(sent[label]):
                for batch in from_blob(blob):
                    if kind == RESULT:
                        self.pairs += zip(*(column.to_pylist() for column in batch.columns), strict=True)
                    else:
                        self.rows[kind] += batch.to_pylist()


def rows(kind: str, count: int, seed: int, start: int = 0, span: int = 30) -> list[tuple[int, Any]]:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(start, start + span, count)).tolist()
    values: list[Any] = []
    for _ in range(count):
        if rng.random() < 0.1:
            values.append(None)
        elif kind == "number":
            values.append(float(rng.integers(0, 10)))
        else:
            items = {int(item) for item in rng.integers(0, 8, rng.integers(0, 5))}
            values.append({item: float(rng.integers(1, 4)) / 2 for item in items} if kind == "weighted" else items)
    return list(zip(ts, values, strict=True))


OWN = pa.schema([("name", pa.int64())]).serialize().to_pybytes()


@pytest.mark.parametrize("how", ["left_semi", "left_anti", "left_outer", "right_outer"])
@pytest.mark.parametrize("kind", CASES)
def test_several_shards_judge_rows_as_one_does(kind: str, how: str) -> None:
    """Each row that is judged goes to one shard, and those that it may meet go to all."""
    sides = [[rows(kind, 25, seed + 10 * batch, 30 * batch) for batch in range(3)] for seed in (1, 2)]
    alone = 0
    for predicate in CASES[kind]:
        found = []
        for shards in (1, 3):
            join = sj.JoinSpec(sj.TimeWindow(20), on=predicate, how=how)
            run = Run(made(join, shards, schemas=(OWN, OWN)))
            for left, right in zip(*sides, strict=True):
                run.push(left, right)
            # A row that is alone is given when a row of its shard is so much newer: all but the last windows are over.
            over = {(stream, n) for stream, side in enumerate(sides) for n, (ts, _) in enumerate(flat(side)) if ts < 40}
            found.append(
                sorted((pair for pair in run.pairs if None not in pair or over & set(enumerate(pair))), key=str)
            )
            assert sum(row["rows_left"] + row["rows_right"] for row in run.rows[METRIC]) == 150
            assert run.job.cube.shards == shards
        assert found[0] == found[1]
        alone += sum(None in pair for pair in found[0])
    assert alone


def flat(parts: list[list[tuple[int, Any]]]) -> list[tuple[int, Any]]:
    return [row for part in parts for row in part]


@pytest.mark.parametrize("kind", CASES)
def test_shards_together_give_the_exact_join(kind: str) -> None:
    sides = [[rows(kind, 25, seed + 10 * batch, 30 * batch) for batch in range(3)] for seed in (1, 2)]
    for predicate in CASES[kind]:
        for shards in (1, 3):
            run = Run(made(sj.JoinSpec(sj.TimeWindow(20), on=predicate), shards))
            for left, right in zip(*sides, strict=True):
                run.push(left, right)
            assert sorted(run.pairs) == exact_pairs(predicate, (20, 20), flat(sides[0]), flat(sides[1]))
            told = run.rows[METRIC]
            assert sum(row["rows_left"] + row["rows_right"] for row in told) == 150
            assert sum(row["nulls"] for row in told) == sum(
                x is None for side in sides for part in side for _, x in part
            )
            assert sum(row["results"] for row in told) == len(run.pairs)


def test_the_share_of_rear_shedding_may_change_between_micro_batches() -> None:
    """Rows that leave the aux-window from then on are shed by the new one, whether or not a shard has to read its state."""
    sides = [[rows("number", 25, seed + 10 * batch, 30 * batch) for batch in range(4)] for seed in (1, 2)]
    shares = (0.2, 0.2, 0.9, 0.9)

    def join(share: float) -> sj.JoinSpec:
        dual = sj.Dual(rear=share, front=False)
        return sj.JoinSpec(sj.TimeWindow(20), sj.Budget(tuples=30), sj.Rand(), on=sj.Band("x", within=1.0), dual=dual)

    def ran(shares: Sequence[float]) -> Run:
        run = Run(made(join(shares[0]), 1))
        for share, left, right in zip(shares, *sides, strict=True):
            run.job = made(join(share), 1)
            run.push(left, right)
        return run

    changed = ran(shares)
    engine, pairs = join(0.2).build(), set()
    for number, share in enumerate(shares):
        if number and share != shares[number - 1]:
            engine = join(share).resume(engine.snapshot())
        batch = {name: {"x": [x for _, x in side[number]], "ts": [ts for ts, _ in side[number]]}
                 for name, side in zip(("left", "right"), sides, strict=True)}  # fmt: skip
        ends = [max(batch[name]["ts"]) for name in ("left", "right")]
        pairs |= set(map(tuple, engine.push(batch, clocks=ends).rows.tolist()))
    assert set(changed.pairs) == pairs
    told = [row for row in changed.rows[METRIC] if row["changed"]]
    assert [(row["batch"], row["changed"]) for row in told] == [(2, "rear: 0.2 -> 0.9")]
    unprobed = [row["unprobed"] for row in changed.rows[METRIC]]
    assert unprobed[1] < unprobed[2] < unprobed[3] + 20
    assert changed.pairs != ran((0.2,) * 4).pairs


@pytest.mark.parametrize("kind", CASES)
def test_rows_that_are_dropped_in_front_are_logged_once_and_missing(kind: str) -> None:
    sides = [[rows(kind, 40, seed + 10 * batch, 30 * batch) for batch in range(3)] for seed in (1, 2)]
    for predicate in CASES[kind]:
        join = sj.JoinSpec(sj.TimeWindow(20), on=predicate, budget=sj.Budget(tuples=60), policy=sj.Rand())
        run = Run(made(join, 3, front=True))
        for left, right in zip(*sides, strict=True):
            run.push(left, right)
        whole = exact_pairs(predicate, (20, 20), flat(sides[0]), flat(sides[1]))
        told, log = run.rows[METRIC], run.rows[SHED]
        dropped = [row for row in log if row["why"] == "dropped"]
        assert 30 < len(dropped) < 90
        assert sum(row["dropped_left"] + row["dropped_right"] for row in told) == len(dropped)
        nulls = sum(x is None for side in sides for part in side for _, x in part)
        assert (sum(row["nulls"] for row in told), sum(row["rows_left"] for row in told)) == (nulls, 120)
        if predicate.name != "same_set":  # whose rows are numbered by shard
            assert len({(row["stream"], row["seq"]) for row in dropped}) == len(dropped)
            names = [{row["seq"] for row in dropped if row["stream"] == stream} for stream in (0, 1)]
            assert not any(one in names[0] or other in names[1] for one, other in run.pairs)
        now = recall_of(latest(told))
        assert now is not None
        assert (now.results, now.results + now.missing) == (len(run.pairs), len(whole))
        assert set(run.pairs) < set(whole)


def laps(shard: Shard) -> Callable[[], float]:
    """A clock by which a row takes a while, and every comparison; it stands still while the state is read and saved."""
    before: list[int] = []

    def read() -> float:
        if not hasattr(shard, "engine"):
            return 0.0
        done = shard.engine.counters["rows"] + shard.engine.counters["compared"]
        if not before:
            before.append(done)
        return 1e-3 * (done - before[0])

    return read


def with_deadline() -> sj.JoinSpec:
    return sj.JoinSpec(
        sj.TimeWindow(40),
        on=sj.Band("x", within=1.0),
        index="scan",
        selective=sj.Selective(basic=4, rate=False, rank_period=20),
    )


def burst(run: Run, batches: int = 14) -> None:
    """Ten times as many rows for four batches."""
    for batch in range(batches):
        run.push(*(rows("number", *given(batch, side)) for side in (0, 1)))


def given(batch: int, side: int) -> tuple[int, int, int, int]:
    return 100 if 4 <= batch < 8 else 10, 2 * batch + side, 20 * batch, 20


def test_a_burst_is_over_in_time_and_all_is_compared_again() -> None:
    deadline = 0.5
    run = Run(made(with_deadline(), deadline=deadline), laps)
    burst(run)
    told = run.rows[METRIC]
    for shard in (0, 1):
        mine = [row for row in told if row["shard"] == shard]
        assert [row["fraction"] for row in mine[:4]] == [1.0] * 4
        assert all(row["fraction"] < 0.5 for row in mine[5:8])
        assert max(row["seconds"] for row in mine[6:]) < 1.3 * deadline
        assert max(row["seconds"] for row in mine[4:8]) > 0.5 * deadline
        assert [row["fraction"] for row in mine[-2:]] == [1.0, 1.0]
        assert all(row["partial"] > 0 for row in mine[5:8])
        ages = len(mine[0]["ranking_left"])
        assert sorted(mine[-1]["ranking_right"]) == list(range(-(ages // 2), ages // 2 + 1))
        for row in mine:  # r (w1 + w2) = r1 w1 + r2 w2, with equal windows
            assert row["fraction_left"] + row["fraction_right"] == pytest.approx(2 * row["fraction"])
    assert {row["why"] for row in run.rows[SHED]} == {"partial"}
    first, last = recall_of([row for row in told if row["batch"] == 3]), recall_of(latest(told))
    assert first is not None
    assert last is not None
    assert first.recall == 1.0 > last.recall
    sides = [flat([rows("number", *given(batch, side)) for batch in range(14)]) for side in (0, 1)]
    assert last.results == len(run.pairs)
    assert last.results + last.missing == len(exact_pairs(sj.Band("x", within=1.0), (40, 40), *sides))


def test_the_start_of_a_process_is_not_paid_for_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A micro-batch that began long ago leaves rows little time; not so the first one of a process."""
    monkeypatch.setattr(deadlines, "_LOADED", set())
    run = Run(made(with_deadline(), deadline=0.5), laps)
    monkeypatch.setattr(Pacing, "arrive", lambda pacing, began, ended: setattr(pacing, "_spent", 60.0))
    left: list[float] = []
    watch = Pacing.watch

    def noted(pacing: Pacing, *given: Any) -> Any:
        made = watch(pacing, *given)
        assert made is not None
        left.append(made._seconds)
        return made

    monkeypatch.setattr(Pacing, "watch", noted)
    burst(run, 2)
    assert left[0] > 0.4
    assert left[1:] == [0.05] * 3  # of two shards in one process, twice


def test_what_the_clock_decided_is_remembered(tmp_path: Path) -> None:
    """A shard that is rebuilt from the state store after every batch gives what one gives that lives on in a copy."""
    runs = []
    for cache in (False, str(tmp_path / "copies")):
        run = Run(made(with_deadline(), cache=cache, deadline=0.3), laps)
        burst(run, 7)
        runs.append(run)
    assert not any(row["restored"] for row in runs[1].rows[METRIC])
    assert sum(row["restored"] for row in runs[0].rows[METRIC]) == 12
    assert runs[0].pairs == runs[1].pairs
    assert runs[0].rows[SHED] == runs[1].rows[SHED]
    for name in ("fraction", "recall", "recall_low", "live_missing"):
        assert [row[name] for row in runs[0].rows[METRIC]] == [row[name] for row in runs[1].rows[METRIC]]


def test_a_budget_holds_in_every_shard_and_may_change() -> None:
    join = sj.JoinSpec(sj.TimeWindow(60), on=sj.Overlap("x", at_least=1), budget=sj.Budget(tuples=24))
    run = Run(made(join))
    sides: list[list[tuple[int, Any]]] = [[], []]
    for batch in range(4):
        parts = [rows("set", 30, 2 * batch + side, 30 * batch) for side in (0, 1)]
        for side in (0, 1):
            sides[side] += parts[side]
        if batch == 3:
            run.job = replace(run.job, spec=join.with_budget(sj.Budget(tuples=12)).to_dict())
        run.push(*parts)
    told = run.rows[METRIC]
    for batch in range(4):
        cap = 12 if batch == 3 else 24
        assert sum(row["resident_left"] + row["resident_right"] for row in told if row["batch"] == batch) <= cap
    everything = exact_pairs(sj.Overlap("x", at_least=1), (60, 60), *sides)
    assert set(run.pairs) < set(everything)
    assert len(run.pairs) == len(set(run.pairs))
    assert {row["why"] for row in run.rows[SHED]} == {"evicted"}
    assert sum(row["evicted"] for row in told) == len(run.rows[SHED])
    now = recall_of(latest(told))
    assert now is not None
    assert (now.results, now.results + now.missing) == (len(run.pairs), len(everything))
    assert now.low == now.high


def test_a_checkpoint_goes_on_with_its_own_join_only() -> None:
    run = Run(made(with_deadline(), deadline=1.0))
    run.push(rows("number", 5, 1), rows("number", 5, 2))
    for change, what in (
        ({"spec": replace(with_deadline(), on=sj.Band("x", within=2.0)).to_dict()}, "another on"),
        ({"spec": replace(with_deadline(), selective=None).to_dict()}, "another selective"),
        ({"seed": 3}, "another seed"),
    ):
        with pytest.raises(sj.SnapshotError, match=what):
            list(Shard(replace(run.job, **change), 0, run.stores[0].copy()).run([]))
    capped = replace(with_deadline(), budget=sj.Budget(tuples=4), policy=sj.SimpProb(sj.Met())).to_dict()
    for change in ({"deadline": 3.0}, {"spec": capped}):
        list(Shard(replace(run.job, **change), 0, run.stores[0].copy()).run([]))


def test_what_is_in_the_store_is_checked() -> None:
    run = Run(made(with_deadline(), deadline=1.0))
    run.push(rows("number", 5, 1), rows("number", 5, 2))
    store = run.stores[0].copy()
    store.values["redo-0", 0] = b"x" + store.values["redo-0", 0][1:]
    with pytest.raises(sj.SnapshotError, match="damaged"):
        list(Shard(run.job, 0, store).run([]))
    del store.values["redo-0", 0]
    with pytest.raises(sj.SnapshotError, match="has lost batch 0"):
        list(Shard(run.job, 0, store).run([]))


def test_a_long_log_becomes_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shedjoin.spark.state.MOST_REDO", 2)
    run = Run(made(sj.JoinSpec(sj.TimeWindow(20), on=sj.Overlap("x", at_least=2)), 1))
    sides = [[rows("set", 12, seed + 10 * batch, 10 * batch, 10) for batch in range(7)] for seed in (1, 2)]
    for left, right in zip(*sides, strict=True):
        run.push(left, right)
    assert sorted(run.pairs) == exact_pairs(sj.Overlap("x", at_least=2), (20, 20), flat(sides[0]), flat(sides[1]))
    assert len([name for name, _ in run.stores[0].values if name.startswith(("base", "redo"))]) <= 2


def test_of_a_batch_that_is_mostly_gone_again_the_engine_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shedjoin.spark.state.LEAST_ROWS", 16)
    join = sj.JoinSpec(sj.TimeWindow(10), on=sj.Overlap("x", at_least=2), budget=sj.Budget(tuples=4))
    run, whole = Run(made(join, 1)), join.build(Run(made(join, 1)).job.seed_of(0))
    sides = [[rows("set", 60, seed + 10 * batch, 60 * batch, 60) for batch in range(3)] for seed in (1, 2)]
    found = []
    for left, right in zip(*sides, strict=True):
        run.push(left, right)
        tables = [{"ts": [ts for ts, _ in side], "x": [x for _, x in side]} for side in (left, right)]
        out = whole.push(left=tables[0], right=tables[1])
        found += zip(out.left.tolist(), out.right.tolist(), strict=True)
        names = [name for name, _ in run.stores[0].values]
        assert any(name.startswith("base") for name in names)
    assert len(run.pairs) == len(found) > 0
    assert not any(name == "redo-0" for name, _ in run.stores[0].values)


def test_what_spark_needs_around_the_join_is_not_the_joins() -> None:
    """Of 10 s: nine tenths, less what has passed, what saving took and the shortest of the last gaps between two batches."""
    pacing = Pacing(10.0, lambda: 0.0)

    def seconds(spent: float) -> float:
        watch = pacing.watch(with_deadline(), spent)
        assert watch is not None
        return watch._seconds

    assert seconds(0.0) == 9.0
    pacing.saving, pacing.gaps = 0.5, [1.0, 3.0, 2.0]
    assert seconds(1.5) == 6.0
    pacing.gaps = [3600.0]  # a quiet stream, or one that was stopped
    assert seconds(1.5) == 2.0
    assert seconds(100.0) == 1.0
    for began in (105.0, 108.0, 109.0, 111.0):
        pacing.arrive(began, 100.0)
    assert pacing.gaps == [8.0, 9.0, 11.0]


def test_values_are_checked_by_the_packing_task() -> None:
    with pytest.raises(sj.InputError, match=r"left\.words must have no null among the items"):
        in_order("left.words", pa.array([[1, None]]), "set")
    with pytest.raises(sj.InputError, match=r"right\.size must hold finite numbers"):
        in_order("right.size", pa.array([1.0, float("inf")]), "number")
    assert in_order("x", pa.array([[3, 1, 3], None, []]), "set").to_pylist() == [[1, 3], None, []]
    pairs = pa.array([[(5, 0.5), (2, 1.0)], None], TYPES["weighted"])
    for kind, column in (("set", pa.array([[1, 3], None, []])), ("weighted", pairs)):
        ordered = in_order("x", column, kind)
        values = from_column(ordered)
        assert to_column(values).to_pylist() == ordered.to_pylist()
        assert from_column(to_column(values)).items.tolist() == values.items.tolist()
