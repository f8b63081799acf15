"""A shard, its state and its copies, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dict_store import DictStore
from shards import Shards, Sides, Tables, cut, job, messages, pairs, table

import shedjoin as sj
from shedjoin.spark import host_copy, payload, shard, state
from shedjoin.spark.exchange import Message, from_blob
from shedjoin.spark.host_cache import OWNER, forget
from shedjoin.spark.job import Job
from shedjoin.spark.metrics import curve_of_rows
from shedjoin.spark.state import read_head

SPEC = sj.JoinSpec(sj.TimeWindow(300), lateness=40)
SHEDDING = sj.JoinSpec(sj.TimeWindow(300), sj.Budget(tuples=120, allocation="fixed"), sj.Prob(), lateness=40)
#: Goes over to another policy whenever that found more in the last 150 rows or so of the shard.
TRYING = replace(SHEDDING, policy=sj.Auto(memory=16.0, every=150, gain=0.0, stretches=1))
#: Beside miniatures of all rows with other memories.
FORESEEING = replace(SHEDDING, what_if=sj.WhatIf(tuples=10_000, memory=1e6, every=60))


def rows(seed: int, count: int = 900, keys: int = 12) -> Sides:
    """Keys and times of two streams, out of order within the lateness; some keys are null."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        ts = np.arange(count) * 2
        ts = ts[np.argsort(ts + random.integers(0, 40, count), kind="stable")]
        key = random.integers(0, keys, count)
        sides.append((key, ts))
    return sides


def exact(sides: Sides, length: int) -> list[tuple[int, int]]:
    (left, left_ts), (right, right_ts) = sides
    meet = (left[:, None] == right[None, :]) & (abs(left_ts[:, None] - right_ts[None, :]) < length)
    meet &= left[:, None] != 3
    return sorted((int(a), int(b)) for a, b in zip(*np.nonzero(meet), strict=True))


def run(shards: Shards, batches: Tables) -> list[tuple[int, int]]:
    return pairs([row for left, right in batches for row in shards.batch(left, right)["result"]])


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("batches", [1, 7, 40])
def test_without_a_budget_the_join_is_exact(shards: int, batches: int) -> None:
    sides = rows(1)
    assert run(Shards(job(SPEC, shards)), cut(sides, batches)) == exact(sides, 300)


@pytest.mark.parametrize("shards", [1, 3])
def test_results_of_lazy_evaluation_come_with_a_round_and_in_batch_at_the_end(shards: int) -> None:
    sides = rows(4)
    lazy = replace(SPEC, evaluate_every=200)
    parts, whole = cut(sides, 6), exact(sides, 300)
    streamed = run(Shards(job(lazy, shards)), parts)
    late = [max(int(sides[0][1][a]), int(sides[1][1][b])) for a, b in sorted({*whole} - {*streamed})]
    assert {*streamed} < {*whole}
    assert min(late) >= 1800 - 200 - 2 * SPEC.lateness  # only the last round is not out yet
    given = job(lazy, shards, kinds=("result",))
    ((left, right),) = cut(sides, 1)
    sent = list(messages((left, right), given.labels))
    found: list[Any] = []
    for number, label in enumerate(given.labels):
        mine = [Message(*(row[name] for name in Message._fields)) for row in sent if row["label"] == label]
        for _, blob in shard.Shard(given, number).run(mine):
            found += [row for batch in from_blob(blob) for row in batch.to_pylist()]
    assert pairs(found) == whole


@pytest.mark.parametrize("ahead", [0, 1])
def test_one_stream_may_be_read_to_its_end_first(ahead: int) -> None:
    sides = rows(2)
    parts = cut(sides, 6)
    first = [(left, []) if ahead == 0 else ([], right) for left, right in parts]
    second = [([], right) if ahead == 0 else (left, []) for left, right in parts]
    assert run(Shards(job(SPEC, 2)), first + second) == exact(sides, 300)


def test_shards_expire_by_the_clocks_of_the_whole() -> None:
    """The rows of one key stop in one shard; the other streams on."""
    shards = Shards(job(sj.JoinSpec(sj.TimeWindow(50)), 4))
    for step in range(20):
        ts = [step * 20 + place for place in range(20)]
        told = shards.batch([table([step if step < 5 else 77] * 20, ts)], [table([99] * 20, ts)])["metric"]
    assert len({(row["clock_left"], row["clock_right"]) for row in told}) == 1
    assert sum(row["resident_left"] for row in told) == 50


def test_a_shard_is_the_engine_on_sorted_batches() -> None:
    """With one shard, results, shed log and memory are those of an engine that is given the rows in order."""
    sides = rows(3)
    shards, engine = Shards(job(SHEDDING)), SHEDDING.build(seed=0)
    for left, right in cut(sides, 9):
        given = shards.batch(left, right)
        parts = [pa.concat_batches(tasks) for tasks in (left, right)]
        parts = [part.take(np.argsort(part["ts"], kind="stable")) for part in parts]
        out = engine.push(left=parts[0].select(["key", "ts"]), right=parts[1].select(["key", "ts"]))
        names = [part["row"].to_numpy() for part in parts]
        starts = [total - len(part) for total, part in zip(engine.arrived, parts, strict=True)]
        assert len(given["result"]) == len(out)
        new = out.left >= starts[0]
        assert set(names[0][out.left[new] - starts[0]]) <= {row["l0"] for row in given["result"]}
        log = out.shed.to_arrow().to_pylist()
        assert [(row["stream"], row["seq"], row["why"], row["seen_left"]) for row in given["shed"]] == [
            (row["stream"], row["seq"], row["why"], row["seen_left"]) for row in log
        ]
        (told,) = given["metric"]
        assert (told["resident_left"], told["resident_right"]) == engine.residents
        assert sum(engine.residents) <= 120
        assert 0 <= told["recall_low"] <= told["recall"] <= told["recall_high"] <= 1


def test_the_budget_is_shared_by_the_shards() -> None:
    shards = Shards(job(SHEDDING, 3, shares="equal"))
    for left, right in cut(rows(4), 6):
        told = shards.batch(left, right)["metric"]
        assert all(row["resident_left"] + row["resident_right"] <= 40 for row in told)
    assert sum(row["resident_left"] + row["resident_right"] for row in told) > 100


# --------------------------------------------------------------------------------------------- stopping and going on


class Ways:
    """How the state gets from one micro-batch to the next."""

    names = ("copy", "store", "turns", "retry")


@pytest.mark.parametrize("spec", [SPEC, SHEDDING], ids=["exact", "shedding"])
def test_of_a_batch_that_is_mostly_gone_again_the_engine_is_kept(
    spec: sj.JoinSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "LEAST_ROWS", 16)
    monkeypatch.setattr(state, "REDO_BYTES", 1000)  # a batch of so few rows is not large otherwise
    spec = replace(spec, window=sj.TimeWindow(20), budget=spec.budget and sj.Budget(tuples=12))
    parts = cut(rows(7), 4)
    shards, copied = Shards(job(spec)), Shards(job(spec, cache=None))
    for left, right in parts:
        assert shards.batch(left, right)["result"] == copied.batch(left, right)["result"]
        assert any(name.startswith("base") for name, _ in shards.stores[0].values)
        assert not any(name.startswith("redo") for name, _ in shards.stores[0].values)


#: How many micro-batches each way of keeping the state is tried for.
BATCHES = 15


@cache
def without_a_copy(spec: sj.JoinSpec) -> list[dict[str, list[dict[str, Any]]]]:
    """What the micro-batches give when each is restored from the store, as it is made by default."""
    plain = Shards(job(spec, 2))
    return [plain.batch(left, right) for left, right in cut(rows(5), BATCHES)]


@pytest.mark.parametrize(
    "spec", [SPEC, SHEDDING, TRYING, FORESEEING], ids=["exact", "shedding", "trying", "foreseeing"]
)
@pytest.mark.parametrize("way", Ways.names)
def test_however_the_state_is_kept_the_output_is_the_same(
    spec: sj.JoinSpec, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_a_copy(spec)
    monkeypatch.setattr(state, "LEAST_REDO", 20_000)  # so that there are several bases in this short run
    monkeypatch.setattr(payload, "SLACK", 50)
    parts = cut(rows(5), BATCHES)
    folder = str(tmp_path / "cache")
    shards = Shards(job(spec, 2, cache=folder if way != "store" else False))
    restored = []
    for number, (left, right) in enumerate(parts):
        if way == "turns":  # each other micro-batch has no copy of the one before
            shards.job = job(spec, 2, cache=folder if number % 2 else False)
        if way == "retry":  # what was done is lost, and done again
            before = [store.copy() for store in shards.stores]
            shards.batch(left, right)
            shards.stores = before
        given = shards.batch(left, right)
        assert pairs(given["result"]) == pairs(expected[number]["result"])
        assert given["shed"] == expected[number]["shed"]
        changing = ("at", "seconds", "restored", "state_bytes")
        for mine, theirs in zip(given["metric"], expected[number]["metric"], strict=True):
            assert {k: v for k, v in mine.items() if k not in changing} == {
                k: v for k, v in theirs.items() if k not in changing
            }
        restored.append({row["restored"] for row in given["metric"]})
    if spec == TRYING:
        assert sum(row["policy_changes"] for row in given["metric"]) > 1
    if spec == FORESEEING:
        curve = curve_of_rows(given["metric"])
        assert curve is not None
        assert curve.recall[4.0].recall > curve.recall[0.25].recall > 0.0
    wanted: dict[str, list[set[bool]]] = {
        "copy": [{False}] * BATCHES,
        **dict.fromkeys(("store", "turns", "retry"), [{False}] + [{True}] * (BATCHES - 1)),
    }
    assert restored == wanted[way]


def test_two_attempts_never_share_a_copy(tmp_path: Path) -> None:
    parts = cut(rows(6), 3)
    spec = job(SPEC, 1, cache=str(tmp_path / "cache"))
    shards = Shards(spec)
    shards.batch(*parts[0])
    one, two = (Shards(spec, [store.copy() for store in shards.stores]) for _ in range(2))
    first, second = one.batch(*parts[1]), two.batch(*parts[1])
    assert pairs(first["result"]) == pairs(second["result"])
    assert [first["metric"][0]["restored"], second["metric"][0]["restored"]] == [False, True]
    # Each goes on with its own copy.
    assert pairs(one.batch(*parts[2])["result"]) == pairs(two.batch(*parts[2])["result"])


def test_a_task_that_is_given_up_leaves_no_copy(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    spec = job(SPEC, 1, cache=str(folder))
    shards = Shards(spec)
    parts = cut(rows(7), 3)
    shards.batch(*parts[0])
    assert len(list(folder.iterdir())) == 1
    messages = [Message(0, 0, 0, 1, 5, b"no Arrow at all")]
    with pytest.raises(pa.ArrowInvalid):
        list(shard.Shard(spec, 0, shards.stores[0].copy()).run(messages))
    assert list(folder.iterdir()) == []
    assert shards.batch(*parts[1])["metric"][0]["restored"]


def test_copies_of_no_use_are_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an ended query at once; those of processes that are no more now and then, when somebody leaves a copy."""
    monkeypatch.setattr(host_copy, "EVERY", 0.0)
    folder = tmp_path / "cache"
    parts = cut(rows(8), 2)
    queries = [Shards(job(SPEC, 1, cache=str(folder), query=name)) for name in ("one", "two", "three")]
    for shards in queries[:2]:
        shards.batch(*parts[0])
    assert len(list(folder.iterdir())) == 2
    forget("one", str(folder))
    (left,) = folder.iterdir()
    owner = json.loads((left / OWNER).read_text())
    assert owner["query"] == "two"
    (left / OWNER).write_text(json.dumps({**owner, "began": "another boot's"}))
    (folder / "taken-999999999-x.y").mkdir()
    queries[2].batch(*parts[0])
    (rest,) = folder.iterdir()
    assert json.loads((rest / OWNER).read_text())["query"] == "three"
    assert queries[1].batch(*parts[1])["metric"][0]["restored"]
    assert not queries[2].batch(*parts[1])["metric"][0]["restored"]


def test_only_so_many_copies_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    shards = Shards(job(SPEC, 2, cache=str(folder)))
    for left, right in cut(rows(8), 12):
        shards.batch(left, right)
        assert len(list(folder.iterdir())) <= 4


# ------------------------------------------------------------------------------------------------ what may change


def test_the_budget_may_change() -> None:
    parts = cut(rows(9), 10)
    shards = Shards(job(SHEDDING))
    for left, right in parts[:5]:
        shards.batch(left, right)
    engine = shards.stores[0].copy()
    shards.job = job(SHEDDING.with_budget(sj.Budget(tuples=40, allocation="fixed")))
    given = shards.batch(*parts[5])
    (told,) = given["metric"]
    assert told["resident_left"] + told["resident_right"] <= 40
    assert told["evicted"] == sum(row["why"] == "evicted" for row in given["shed"])
    # The same from the state alone, with a batch between the change and the restart.
    again = Shards(shards.job, [engine])
    again.batch(*parts[5])
    assert again.batch(*parts[6])["shed"] == shards.batch(*parts[6])["shed"]


ADDITIVE = sj.JoinSpec(
    sj.TimeWindow(300), sj.Budget(tuples=120, allocation="fixed"), sj.Additive(1.0, 1.0, estimator=sj.Decayed(100.0))
)


def test_the_numbers_of_the_policy_may_change(tmp_path: Path) -> None:
    """What comes of it is the same from copies and from the state store, and is what an engine does."""
    parts = cut(rows(9), 10)
    other = replace(
        ADDITIVE,
        policy=sj.Additive(0.5, 3.0, 1.0, estimator=sj.Decayed(7.0)),
        budget=sj.Budget(tuples=90, allocation="fixed"),
    )
    copied, restored = (Shards(job(ADDITIVE, cache=cache)) for cache in (str(tmp_path / "cache"), False))
    for place, (left, right) in enumerate(parts):
        if place in (5, 7):
            spec = other if place == 5 else ADDITIVE
            copied.job, restored.job = job(spec, cache=str(tmp_path / "cache")), job(spec)
        one, two = copied.batch(left, right), restored.batch(left, right)
        assert one["shed"] == two["shed"]
        assert pairs(one["result"]) == pairs(two["result"])
    assert not one["metric"][0]["restored"]
    assert two["metric"][0]["restored"]
    engine, log = ADDITIVE.build(), []
    for place, (left, right) in enumerate(parts):
        if place in (5, 7):
            spec = other if place == 5 else ADDITIVE
            assert spec.policy is not None
            engine.set_policy(spec.policy)
            log.append(engine.set_budget(spec.budget).shed)
        sides = [pa.concat_batches(tasks) for tasks in (left, right)]
        sides = [side.take(np.argsort(side["ts"], kind="stable")).select(["key", "ts"]) for side in sides]
        log.append(engine.push(left=sides[0], right=sides[1]).shed)
    assert sum(map(len, log[-1:])) == len(two["shed"]) > 0
    assert log[-1].seq.tolist() == [row["seq"] for row in two["shed"]]


def test_a_budget_may_be_taken_away_and_come_back() -> None:
    parts = cut(rows(9), 12)
    shards = Shards(job(SHEDDING))
    free = job(sj.JoinSpec(sj.TimeWindow(300), lateness=40))
    stored = []
    for place, (left, right) in enumerate(parts):
        shards.job = free if 4 <= place < 8 else job(SHEDDING)
        (told,) = shards.batch(left, right)["metric"]
        stored.append(told["peak_tuples"])
        assert told["peak_tuples"] >= told["resident_left"] + told["resident_right"]
    assert max(stored[:4]) == 120
    assert max(stored[4:8]) > 240
    assert max(stored[8:]) == 120


CHANGES: dict[str, Job] = {
    "window": job(sj.JoinSpec(sj.TimeWindow(301), lateness=40)),
    "lateness": job(sj.JoinSpec(sj.TimeWindow(300), lateness=41)),
    "seed": job(SPEC, seed=1),
    "shards": job(SPEC, 2),
    "columns of left": job(SPEC, signature={"columns of left": [["row", "int"]]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_may_not_change_is_refused(name: str) -> None:
    shards = Shards(job(SPEC))
    shards.batch([table([1], [1])], [])
    changed = CHANGES[name]
    with pytest.raises(sj.SnapshotError, match=f"a join with another {name}: .*the budget may change"):
        list(shard.Shard(changed, 0, shards.stores[0]).run([]))


#: What a join goes on by, one after the other: none of them asks the estimator of the one before.
OTHERS: tuple[tuple[sj.Budget | None, sj.Policy | None], ...] = (
    (None, None),
    (sj.Budget(tuples=90), None),
    (sj.Budget(tuples=70, allocation="fixed"), sj.Dgl(estimator=sj.InWindow())),
    (sj.Budget(tuples=50), sj.SimpProb(sj.Met())),
    (None, None),
    (sj.Budget(tuples=60), sj.Prob(sj.CountMin(64, 2))),
)


def test_a_budget_and_another_estimator_come_on_the_way(tmp_path: Path) -> None:
    """What comes of them is the same from copies and from the state store, is told, and is what the log says."""
    sides = rows(9)
    parts = cut(sides, 2 * len(OTHERS))
    copied, restored = (Shards(job(SPEC, cache=cache)) for cache in (str(tmp_path / "cache"), False))
    found, gone = [], 0
    for place, (left, right) in enumerate(parts):
        budget, policy = OTHERS[place // 2]
        spec = replace(SPEC, budget=budget, policy=policy)
        copied.job, restored.job = job(spec, cache=str(tmp_path / "cache")), job(spec)
        one, two = copied.batch(left, right), restored.batch(left, right)
        assert one["shed"] == two["shed"]
        assert pairs(one["result"]) == pairs(two["result"])
        (told,) = two["metric"]
        assert (told["changed"] is None) == (place % 2 == 1 or place == 0)
        if budget is not None:
            assert told["resident_left"] + told["resident_right"] <= budget.total
        found += pairs(two["result"])
        gone += len(two["shed"])
    assert gone > 0
    whole = exact(sides, 300)
    assert len(set(found)) == len(found)
    assert set(found) < set(whole)
    assert not one["metric"][0]["restored"]
    assert two["metric"][0]["restored"]


def test_damage_is_noticed() -> None:
    shards = Shards(job(SPEC))
    for left, right in cut(rows(10), 4):
        shards.batch(left, right)
    whole = shards.stores[0]
    for name in whole.values:
        for broken in (b"", bytes(len(whole.values[name])), None):
            store = whole.copy()
            if broken is None:
                del store.values[name]
            else:
                store.values[name] = broken
            with pytest.raises(sj.SnapshotError, match=r"damaged|lost"):
                list(shard.Shard(shards.job, 0, store).run([]))
    store = whole.copy()
    assert store.top is not None
    store.top = store.top.replace(b"lineage", b"lineagf")
    with pytest.raises(sj.SnapshotError, match="head in the state store is damaged"):
        list(shard.Shard(shards.job, 0, store).run([]))


# ------------------------------------------------------------------------------------------------ how much is written


def test_what_a_batch_writes_does_not_grow_with_the_window(tmp_path: Path) -> None:
    """Over many batches, with a window of ten and of a hundred batches."""
    written: dict[int, int] = {}
    for length in (100, 1000):
        shards = Shards(
            job(sj.JoinSpec(sj.TimeWindow(length)), kinds=("result", "metric"), cache=str(tmp_path / "cache"))
        )
        total = 0
        for step in range(240):
            ts = list(range(step * 10, step * 10 + 10))
            told = shards.batch([table(ts, ts, step * 10)], [table(ts, ts, step * 10)])["metric"][0]
            total += told["state_bytes"] if step >= 120 else 0
        written[length] = total
        assert told["resident_left"] == length
    assert written[1000] < 2 * written[100]


def test_the_state_holds_what_is_live_and_little_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_REDO", 100)
    monkeypatch.setattr(payload, "SLACK", 50)
    shards = Shards(job(sj.JoinSpec(sj.TimeWindow(100)), kinds=("result",), cache=str(tmp_path / "cache")))
    sizes = []
    for step in range(300):
        ts = list(range(step * 10, step * 10 + 10))
        shards.batch([table(ts, ts, step * 10)], [table(ts, ts, step * 10)])
        sizes.append(len(shards.stores[0].values))
    head: dict[str, Any] | None = read_head(shards.stores[0])
    assert head is not None
    segments = [len(stream["segments"]) for stream in head["payloads"]]
    assert max(segments) <= 20
    assert max(sizes) <= 100 + 2 * 20 + 2  # the log, segments, a base and its estimate


def test_small_values_are_written_over_and_large_ones_removed() -> None:
    store = DictStore()
    blobs = state.Blobs(store)
    small, large = blobs.put_over("one", b"small"), blobs.put_over("two", bytes(state.SMALL + 1))
    for receipt in (small, large):
        blobs.give_up(receipt)
    assert [name for name, _ in store.values] == [small[0]]
    over = blobs.put_over("three", b"other")
    assert blobs.get(over) == b"other"
    assert [name for name, _ in store.values] == [over[0]] == [small[0]]
    with pytest.raises(sj.SnapshotError, match="damaged"):
        blobs.get(small)


def test_small_and_large_segments_come_back_from_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_copy, "APART", 1000)
    copied, restored = (Shards(job(SPEC, cache=cache)) for cache in (str(tmp_path / "cache"), False))
    kinds = set()
    for left, right in cut(rows(4, 500), 20):
        given = copied.batch(left, right)
        assert pairs(given["result"]) == pairs(restored.batch(left, right)["result"])
        assert not given["metric"][0]["restored"]
        (there,) = sorted((tmp_path / "cache").glob("*"), key=lambda path: path.stat().st_mtime)[-1:]
        kinds |= {path.name.partition("-")[0] for path in there.iterdir()}
    assert kinds == {"engine", "arrays", OWNER, "segment"}


def test_a_hot_key_leaves_in_bounded_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "BLOB_ROWS", 500)
    store = DictStore()
    shards = Shards(job(SPEC, kinds=("result",)), [store])
    ts = list(range(200))
    sizes = []
    sent = list(shards_messages(shards.job, table([1] * 200, ts), table([1] * 200, ts)))
    for _, blob in shard.Shard(shards.job, 0, store).run(sent):
        sizes.append(sum(rows.num_rows for rows in from_blob(blob)))
    assert max(sizes) <= 500
    assert sum(sizes) == 200 * 200


def shards_messages(spec: Job, left: pa.RecordBatch, right: pa.RecordBatch) -> list[Message]:
    fields = Message._fields
    return [Message(*(row[name] for name in fields)) for row in messages(([left], [right]), spec.labels)]


def test_what_an_earlier_revision_of_a_policy_began_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would be pushed again, and others kept than were."""
    spec = replace(SHEDDING, policy=sj.Prospect())
    begun = Shards(job(spec))
    with monkeypatch.context() as before:
        before.setattr(sj.Prospect, "revision", 1)
        for left, right in cut(rows(5), 3)[:1]:
            begun.batch(left, right)
    with pytest.raises(sj.SnapshotError, match=r"another revision of Prospect\(\)"):
        begun.batch(*cut(rows(5), 3)[1])
