"""Live recall of predicates, join graphs, partial probes and rows that wait: exact with room, unbiased without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from recall_runs import cut_at_instants

import shedjoin as sj
from shedjoin.quality.arrivals import Arrivals
from shedjoin.quality.missing import exact_rows
from shedjoin.recall import LiveRecall, MultiRecall, PairRecall, SampledRecall, combine, row_sample
from shedjoin.recall.row_sample import RowSample, Runs, draws_of

small = pytest.mark.small
Column = Callable[[np.random.Generator, int], Any]
SLOW = sj.VirtualCpu(capacity=2.0, probe=1.5)


def key(keys: int) -> Column:
    return lambda random, size: random.integers(0, keys, size)


def number(random: np.random.Generator, size: int) -> Any:
    return random.normal(0, 40, size)


def items(random: np.random.Generator, size: int) -> Any:
    return [sorted(set((random.zipf(1.2, 6) % 300).tolist())) for _ in range(size)]


def both(columns: dict[str, Column]) -> dict[str, dict[str, Column]]:
    return {"left": columns, "right": columns}


def joins(window: int) -> dict[str, tuple[sj.JoinSpec, dict[str, dict[str, Column]]]]:
    """Joins by name, with the columns of each stream."""
    time, budget = sj.TimeWindow(window), sj.Budget(tuples=window // 2)
    keyed = both({"key": key(30)})
    chain = ("a.x = b.x", "b.y = c.y")
    three = {"a": {"x": key(6)}, "b": {"x": key(6), "y": key(6)}, "c": {"y": key(6)}}
    part = sj.Selective(basic=max(window // 8, 1), rate=False, fraction=0.3)
    windows = dict.fromkeys("abc", sj.TimeWindow(window // 2))
    return {
        "overlap": (
            sj.JoinSpec(time, budget, on=sj.Overlap("y", at_least=2), importance="sum"),
            both({"y": items}),
        ),
        "band": (
            sj.JoinSpec(time, budget, on=sj.Band("x", within=3.0), lateness=2),
            both({"x": number}),
        ),
        "theta": (
            sj.JoinSpec(sj.RowWindow(window), budget, on=sj.Theta("x", "<", offset=-40.0)),
            both({"x": number}),
        ),
        "deadline": (sj.JoinSpec(time, selective=part), keyed),
        "deadline and budget": (sj.JoinSpec(time, budget, sj.Prob(), selective=part, importance="max"), keyed),
        "queue": (sj.JoinSpec(time, cpu=SLOW, queue=sj.Queue(tuples=8), max_skew=9), keyed),
        "integrated": (
            sj.JoinSpec(time, budget, sj.Prob(), cpu=SLOW, queue=sj.Queue(drop="semantic", integrated=True)),
            keyed,
        ),
        "dual": (sj.JoinSpec(time, dual=sj.Dual(rear=0.3, front=0.2)), keyed),
        "scan": (sj.JoinSpec(time, budget, sj.Rand(), index="scan"), keyed),
        "graph": (sj.JoinSpec(windows, sj.Budget(tuples=window), sj.Rand(), on=chain), three),
        "lazy": (
            sj.JoinSpec(windows, sj.Budget(tuples=window), sj.Rand(), on=chain, evaluate_every=5, order=tuple("abc")),
            three,
        ),
        "rows of three": (
            sj.JoinSpec(dict.fromkeys("abc", sj.RowWindow(window // 2)), budget, sj.Rand()),
            {name: {"key": key(8)} for name in "abc"},
        ),
    }


NAMES = tuple(joins(8))
Pushes = list[tuple[sj.Batch, sj.Output]]


def rows_of(name: str, window: int, size: int, seed: int = 1, lag: int = 4) -> tuple[sj.JoinSpec, sj.Batch]:
    """A join, and rows of all its streams: two of a time, some of them late."""
    spec, streams = joins(window)[name]
    random = np.random.default_rng(seed)
    tables = {}
    for stream, columns in streams.items():
        late = random.choice([0, 0, 0, 0, lag], size) if spec.lateness else 0
        tables[stream] = {column: draw(random, size) for column, draw in columns.items()} | {
            "ts": np.arange(size) // 2 - late,
            "importance": random.choice([1.0, 2.0, 4.0], size),
        }
    return spec, spec.build().batch(tables)


def run(spec: sj.JoinSpec, batches: list[sj.Batch]) -> Pushes:
    engine = spec.build(seed=3)
    pushes = [(batch, engine.push(batch)) for batch in batches]
    return [*pushes, (sj.Batch.of(), engine.flush())]


def exact(spec: sj.JoinSpec, batch: sj.Batch) -> sj.Output:
    none: dict[str, Any] = dict.fromkeys(("budget", "policy", "selective", "cpu", "queue", "dual"))
    return replace(spec, **none, evaluate_every=0).build().push(batch)


def followed(spec: sj.JoinSpec, pushes: Pushes, **settings: Any) -> LiveRecall:
    live = LiveRecall(spec, **settings)
    for batch, out in pushes:
        live.follow(batch, out)
    return live


@small
@pytest.mark.parametrize("name", NAMES)
def test_while_there_is_room_recall_is_exact_at_any_time(name: str) -> None:
    spec, batch = rows_of(name, 12, 40)
    pushes = run(spec, cut_at_instants(batch, [3, 9, 14]))
    live = LiveRecall(spec)
    assert isinstance(live, SampledRecall)
    come = 0
    for some, out in pushes:
        live.follow(some, out)
        live = LiveRecall.from_bytes(spec, live.to_bytes())
        come += len(some)
        now, whole = live.estimate(), exact(spec, batch.take(slice(0, come)))
        assert now.results + now.missing == len(whole)
        assert now.low == now.recall == now.high
        assert now.importance_low == now.importance == now.importance_high
    assert now.results == sum(len(out) for _, out in pushes) > 0
    assert now.missing > 0
    given = sum(float(out.importance.sum()) for _, out in pushes)
    assert now.importance == pytest.approx(given / float(whole.importance.sum()))
    assert now.late == whole.stats["late"]
    assert (now.late > 0) == bool(spec.lateness)


@small
@pytest.mark.parametrize("name", NAMES)
def test_cuts_and_restarts_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sample, "BLOCK", 20)
    monkeypatch.setattr(row_sample, "WORK", 1)  # so that the size of the sample changes too
    monkeypatch.setattr(row_sample, "CREDIT", 1)
    spec, batch = rows_of(name, 40, 60)
    whole = followed(spec, run(spec, [batch]), seed=4, rows=32)
    pieces = run(spec, cut_at_instants(batch, [2, 5, 11, 17, 23, 26]))
    live = LiveRecall(spec, seed=4, rows=32)
    for some, out in pieces:
        live.follow(some, out)
        live = LiveRecall.from_bytes(spec, live.to_bytes(), seed=4, rows=32)
    one, many = whole.sums(), live.sums()
    lasting = [name for name in one if "recent" not in name]
    assert {name: many[name] for name in lasting} == pytest.approx({name: one[name] for name in lasting}, rel=1e-12)
    now = live.estimate()
    assert now.low < now.recall < now.high
    assert whole.remembered == live.remembered <= 32


@small
@pytest.mark.parametrize("on", ["key", sj.Band("key", within=1.0)], ids=["key", "band"])
def test_dual_windows_of_rows_are_measured_by_the_rows_that_were_let_in(on: Any) -> None:
    """Rows wait in the queue, and are dropped, from push to push; each push resumes from bytes."""
    dual, line = sj.Dual(rear=0.3, front=0.2), sj.Queue(tuples=3)
    spec = sj.JoinSpec(sj.RowWindow(8), on=on, cpu=SLOW, queue=line, dual=dual)
    random, engine = np.random.default_rng(2), spec.build(seed=3)
    tables = {name: {"key": random.integers(0, 4, 60), "ts": np.arange(60) // 2} for name in spec.names}
    batch = engine.batch(tables)
    pushes = run(spec, cut_at_instants(batch, [3, 4, 11, 19]))
    live = LiveRecall(spec)
    for some, out in pushes:
        live.follow(some, out)
        live = LiveRecall.from_bytes(spec, live.to_bytes())
    now, shed = live.estimate(), sj.ShedLog([out.shed.records() for _, out in pushes], spec.names)
    arrivals = Arrivals.pushed([some for some, _ in pushes if len(some)], 2)
    whole = exact_rows(arrivals, spec, shed=shed)
    assert "dropped" in shed.to_arrow()["why"].to_pylist()
    assert now.results == sum(len(out) for _, out in pushes) > 0
    assert now.results + now.missing == whole[0].size > now.results
    assert now.low == now.recall == now.high
    one = followed(spec, run(spec, [batch])).sums()
    assert {name: live.sums()[name] for name in one if "recent" not in name} == pytest.approx(
        {name: one[name] for name in one if "recent" not in name}
    )


@small
def test_recent_pushes_weigh_more_than_those_before() -> None:
    """The queue loses rows in the first half only; decayed counts are rescaled on the way."""
    spec, _ = joins(12)["queue"]
    engine, live = spec.build(), LiveRecall(spec, recent=0.1)
    for number in range(60):
        ts = 1000 * (number >= 30) + (50 if number >= 30 else 1) * np.arange(4 * number, 4 * number + 4) // 2
        some = sj.Batch.of(*({"key": np.zeros(4, np.int64), "ts": ts} for _ in (0, 1)))
        live.follow(some, engine.push(some))
    live.follow(sj.Batch.of(), engine.flush())
    assert live.estimate().recall < 0.8
    assert live.estimate(recent=True).recall > 0.95


@small
def test_the_bar_of_a_row_is_the_highest_lot_evicted_since_it_came() -> None:
    random = np.random.default_rng(5)
    for count in (0, 1, 2, 7, 40):
        bars = random.random(count)
        runs = Runs(bars, np.zeros((count, 2), np.int64))
        for since in range(count + 1):
            until = np.arange(since, count + 1)
            expected = [bars[since:end].max(initial=0.0) for end in until]
            assert runs.highest(np.full(until.size, since), until).tolist() == expected


@small
def test_a_result_has_the_probability_of_its_older_rows() -> None:
    """Row by row: what was evicted since a row came, and before the newest row of the result came."""
    spec, batch = rows_of("graph", 30, 50)
    sample = RowSample(spec, seed=9, rows=16, part=(0, 1))
    engine = sample._within(16).build()
    seqs = np.concatenate([np.arange(50)] * 3)
    order = np.argsort(batch.stream, kind="stable")
    drawn = np.empty(len(batch))
    drawn[order] = draws_of(sample._seed, batch.stream[order], seqs)
    out = engine.push(replace(batch, importance=drawn))
    log = [(int(x["stream"]), int(x["seq"]), x["seen"]) for x in out.shed.records()]
    place = {
        (int(stream), int(seq)): at
        for at, (stream, seq) in enumerate(zip(batch.stream, np.argsort(order) - 50 * batch.stream, strict=True))
    }
    (found,) = sample.push(batch)
    assert len(found.rows) == len(out) > 20
    for rows, newest, p in zip(found.rows.tolist(), found.newest, found.p, strict=True):
        assert newest == max(range(3), key=lambda stream: place[stream, rows[stream]])
        for stream, seq in enumerate(rows):
            bar = max(
                (
                    float(draws_of(sample._seed, np.array([of]), np.array([gone]))[0])
                    for of, gone, seen in log
                    if seen[stream] > seq and seen[newest] <= rows[newest]
                ),
                default=0.0,
            )
            assert p[stream] == (1.0 if stream == newest else 1.0 - bar)
    assert found.p.min() < 0.5


#: How many samples are drawn of a run.
SAMPLES = 60
CASES = {"overlap": 300, "band": 500, "deadline": 500, "queue": 500, "dual": 500, "graph": 120}


@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_unbiased_and_its_interval_covers_the_truth(name: str) -> None:
    """Some samples of one run, each with about a quarter of the rows inside the windows, or less."""
    window = CASES[name]
    spec, batch = rows_of(name, window, 3 * window)
    pushes = run(spec, [batch])
    delivered, everything = sum(len(out) for _, out in pushes), exact(spec, batch)
    given = sum(float(out.importance.sum()) for _, out in pushes)
    share, importance = delivered / len(everything), given / float(everything.importance.sum())
    missing, covered, importance_covered = [], 0, 0
    for seed in range(SAMPLES):
        live = followed(spec, pushes, seed=seed, rows=96)
        now = live.estimate()
        assert live.remembered <= 96
        assert now.low < now.recall < now.high
        missing.append(now.missing)
        covered += now.low <= share <= now.high
        importance_covered += now.importance_low <= importance <= now.importance_high
    error = float(np.std(missing)) / SAMPLES**0.5
    assert abs(np.mean(missing) - (len(everything) - delivered)) < 3 * error
    assert error > 0
    assert covered >= 0.9 * SAMPLES
    assert importance_covered >= 0.9 * SAMPLES


@pytest.mark.parametrize("budget", [None, sj.Budget(tuples=150)], ids=["no budget", "budget"])
def test_results_of_rows_dropped_in_front_are_missing(budget: sj.Budget | None) -> None:
    """A third of the left rows and a fifth of the right ones never reach the engine: unbiased, and covered, over some samples."""
    spec = sj.JoinSpec(sj.TimeWindow(300), budget, None if budget is None else sj.Prob())
    random = np.random.default_rng(8)
    tables = [{"key": random.zipf(1.3, 900) % 60, "ts": np.arange(900)} for _ in range(2)]
    batch = sj.Batch.of(*tables)
    dropped = random.random(len(batch)) < np.where(batch.stream == 0, 1 / 3, 0.2)
    out = spec.build().push(replace(batch, null=dropped))
    whole = len(exact(spec, batch))
    missing, covered = [], 0
    for seed in range(SAMPLES):
        live = LiveRecall(spec, seed=seed, rows=96, drops=True)
        live.begin(batch)
        live.drop(int(dropped.sum()))
        for _ in live.followed(batch, [out]):
            pass
        now = live.estimate()
        assert now.shed == int(dropped.sum()) + len(out.shed)
        missing.append(now.missing)
        covered += now.low <= len(out) / whole <= now.high
    assert abs(np.mean(missing) - (whole - len(out))) < 3 * float(np.std(missing)) / SAMPLES**0.5
    assert covered >= 0.9 * SAMPLES
    room = LiveRecall.from_bytes(spec, LiveRecall(spec, drops=True).to_bytes(), drops=True)
    room.follow(batch, out)
    assert (room.estimate().results, room.estimate().missing) == (len(out), whole - len(out))
    with pytest.raises(sj.InputError, match=r"LiveRecall\(spec, drops=True\)"):
        LiveRecall(replace(spec, budget=sj.Budget(tuples=9), policy=sj.Prob())).drop(3)


@small
def test_memory_and_work_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are results: the sample shrinks to its least size, and grows again when the pairs are gone."""
    monkeypatch.setattr(row_sample, "BLOCK", 32)
    monkeypatch.setattr(row_sample, "WORK", 4)
    monkeypatch.setattr(row_sample, "CREDIT", 4)
    spec = sj.JoinSpec(sj.TimeWindow(200), sj.Budget(tuples=40), on=sj.Theta("x", "<"))
    engine, live = spec.build(), LiveRecall(spec, rows=256)
    sizes, saved = [], []
    for number in range(24):
        x = np.zeros(60) + (1 if number < 16 else -1)
        batch = engine.batch({"left": {"x": -x}, "right": {"x": x}})
        live.follow(batch, engine.push(batch))
        assert isinstance(live, SampledRecall)
        assert live._sample is not None
        sizes.append(live.remembered)
        saved.append(len(live.to_bytes()))
        assert sum(map(len, live._sample.rows)) <= 256 + 2 * 60 + 32
        assert live._decayed.size == 0
    assert max(sizes) <= 256
    assert min(sizes[8:16]) == 32
    assert sizes[-1] > 128
    assert max(saved) < 300 * 256


@small
def test_results_that_wait_are_forgotten_when_their_turn_is_over() -> None:
    spec, batch = rows_of("queue", 12, 400)
    engine, live = spec.build(), LiveRecall(spec)
    held = []
    for some in cut_at_instants(batch, list(range(0, 200, 5))):
        live.follow(some, engine.push(some))
        assert isinstance(live, SampledRecall)
        held.append(live._decayed.size)
    assert 0 < max(held) < 60


@small
def test_parts_of_a_split_join_add_up() -> None:
    spec, batch = rows_of("band", 12, 40)
    engines = [spec.build(part=(k, 3)) for k in range(3)]
    lives = [LiveRecall(spec, seed=k, part=(k, 3)) for k in range(3)]
    parts = [(some, (int(some.ts.max()) + 1,) * 2) for some in cut_at_instants(batch, [4, 9])]
    for some, clocks in parts:
        for engine, live in zip(engines, lives, strict=True):
            live.begin(some)
            pieces = list(live.followed(some, engine.chunks(some, limit=3, clocks=clocks), clocks))
            assert len(pieces) >= 1
    one = spec.with_budget(None).build()
    whole = sum(len(one.push(some, clocks=clocks)) for some, clocks in parts)
    now = combine([live.sums() for live in lives])
    assert now.results + now.missing == whole
    assert now.low == now.high < 1.0
    with pytest.raises(sj.SpecError, match="part must be"):
        LiveRecall(sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=2)), part=(0, 2))


@small
def test_a_join_that_keeps_all_has_recall_one() -> None:
    spec, batch = rows_of("band", 12, 30)
    spec = spec.with_budget(None)
    spec = replace(spec, policy=sj.KeepAll())
    live = followed(spec, run(spec, [batch]))
    live = LiveRecall.from_bytes(spec, live.to_bytes())
    now = live.estimate()
    assert (now.recall, now.low, now.high, live.remembered) == (1.0, 1.0, 1.0, 0)
    assert now.results == len(exact(spec, batch)) > 0


@small
def test_the_estimator_fits_the_join() -> None:
    budget, time = sj.Budget(tuples=9), sj.TimeWindow(5)
    for spec, kind in (
        (sj.JoinSpec(time, budget), PairRecall),
        (sj.JoinSpec(time, budget, on=sj.Equal("x")), PairRecall),
        (sj.JoinSpec(dict.fromkeys("abc", time), budget), MultiRecall),
        (sj.JoinSpec(dict.fromkeys("abc", sj.RowWindow(5)), budget), SampledRecall),
        (sj.JoinSpec(time, budget, on=sj.Band("x", within=1.0)), SampledRecall),
    ):
        assert type(LiveRecall(spec)) is kind


@small
def test_what_is_wrong_is_said() -> None:
    spec = joins(12)["band"][0]
    with pytest.raises(sj.SpecError, match="spec must be a JoinSpec, not str"):
        LiveRecall("spec")  # type: ignore[arg-type]
    with pytest.raises(sj.SpecError, match="rows must be a whole number from 16 to"):
        LiveRecall(spec, rows=15)
    saved = LiveRecall(spec).to_bytes()
    with pytest.raises(sj.SnapshotError, match="damaged"):
        LiveRecall.from_bytes(spec, saved[:-1] + b"?")
    with pytest.raises(sj.SnapshotError, match="another setting of lateness"):
        LiveRecall.from_bytes(replace(spec, lateness=3), saved)
    with pytest.raises(sj.SnapshotError, match="another setting of seed"):
        LiveRecall.from_bytes(spec, saved, seed=1)
    with pytest.raises(sj.SnapshotError, match="do not begin with its mark"):
        LiveRecall.from_bytes(spec, b"nothing")
