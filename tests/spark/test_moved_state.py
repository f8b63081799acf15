"""Another number of shards: the state is split by key and put together, and nothing is lost, doubled or false."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dict_store import DictStore
from shards import Shards, job, pairs
from test_shard import cut, exact, rows

import shedjoin as sj
from shedjoin.spark.job import Job
from shedjoin.spark.moved_state import Numbering, given_away, put_together

WINDOW = sj.TimeWindow(300)
FREE = sj.JoinSpec(WINDOW, lateness=40)
B = sj.Budget(tuples=120)


def moved(shards: Shards, new: Job) -> Shards:
    """The same join in another number of shards."""
    sent: dict[int, list[Any]] = {shard: [] for shard in range(new.shards)}
    for place, store in enumerate(shards.stores):
        for shard, one in given_away(shards.job, place, new, store):
            sent[shard].append(one)
    stores = [DictStore() for _ in range(new.shards)]
    for shard, store in enumerate(stores):
        put_together(new, shard, sent[shard], store)
    return Shards(new, stores)


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 8)])
def test_an_exact_join_stays_exact(before: int, after: int) -> None:
    parts = cut(rows(21), 12)
    whole, shards = Shards(job(FREE)), Shards(job(FREE, before))
    for place, (left, right) in enumerate(parts):
        if place in (4, 8):
            shards = moved(shards, job(FREE, after if place == 4 else before))
        given = shards.batch(left, right)
        assert pairs(given["result"]) == pairs(whole.batch(left, right)["result"])
        told = given["metric"][0]["changed"]
        assert told == (
            None
            if place not in (4, 8)
            else f"shards: {before} -> {after}"
            if place == 4
            else f"shards: {after} -> {before}"
        )


BUDGETED = {
    "prospect": sj.JoinSpec(WINDOW, B, sj.Prospect(), lateness=40),
    "prob by window": sj.JoinSpec(WINDOW, B, sj.Prob(sj.InWindow()), lateness=40),
    "life": sj.JoinSpec(WINDOW, B, sj.Life(sj.Decayed(50.0)), lateness=40),
    "cumulative": sj.JoinSpec(WINDOW, B, sj.Dgl(), lateness=40),
    "age": sj.JoinSpec(WINDOW, B, sj.Age(sj.History()), lateness=40),
    "lots": sj.JoinSpec(WINDOW, B, sj.Rand(), lateness=40),
    "importance": sj.JoinSpec(WINDOW, B, sj.SimpProb(sj.CountMin(64, 2)), lateness=40),
    "met": sj.JoinSpec(WINDOW, B, sj.SimpProb(sj.Met()), lateness=40),
    "in bytes": sj.JoinSpec(WINDOW, sj.Budget(bytes=192 * 120, allocation="fixed"), sj.Prob(), lateness=40),
}


@pytest.mark.parametrize("name", BUDGETED)
def test_the_log_says_what_is_missing(name: str) -> None:
    """A row that is logged after the move is found by its number, which tells its old shard and number."""
    spec, sides = BUDGETED[name], rows(22)
    shards, found, log = Shards(job(spec, 2)), [], []
    numbers: dict[tuple[int, int, int], int] = {}  # of each row: stream, shard, number -> its name
    parts = cut(sides, 8)
    numbering = None
    for place, (left, right) in enumerate(parts):
        if place == 4:
            counts = [store_arrived(shards, number) for number in range(2)]
            numbering = Numbering.of(2, counts, over_all=False)
            shards = moved(shards, job(spec, 5))
        kinds = ("result", "shed", "metric", "input_left", "input_right")
        shards.job = replace(shards.job, kinds=kinds)
        given = shards.batch(left, right)
        found += pairs(given["result"])
        for stream, kind in enumerate(kinds[3:]):
            numbers |= {(stream, row["a2"], row["a3"]): row["a0"] for row in given[kind]}
        for record in given["shed"]:
            shard, seq, stream = record["shard"], record["seq"], record["stream"]
            if numbering is not None and place >= 4 and numbering.first[stream] <= seq < numbering.start[stream]:
                seq, shard = divmod(seq - numbering.first[stream], numbering.shards)
            log.append(numbers[stream, shard, seq])
            assert record["ts"] == int(sides[stream][1][log[-1]])
    assert numbering is not None
    assert len(set(found)) == len(found)
    assert set(found) < set(exact(sides, 300))
    assert len(log) > 300


def store_arrived(shards: Shards, number: int) -> list[int]:
    state = shards.job.state(number, shards.stores[number])
    state.open()
    return list(state.engine.arrived)


def test_windows_of_rows_count_on() -> None:
    spec = sj.JoinSpec(sj.RowWindow(40), sj.Budget(tuples=60), sj.Prob())
    over_all = replace(spec, counted_elsewhere=True)
    parts = cut(rows(23), 9, tasks=1)
    free = [replace(one, budget=None, policy=None) for one in (spec, over_all)]
    whole, shards = Shards(job(free[0])), Shards(job(free[0]))
    for place, (left, right) in enumerate(parts):
        if place in (3, 6):
            shards = moved(shards, job(free[1], 3) if place == 3 else job(free[0]))
        assert pairs(shards.batch(left, right)["result"]) == pairs(whole.batch(left, right)["result"])
    capped = Shards(job(spec))
    for place, (left, right) in enumerate(parts):
        if place == 4:
            capped = moved(capped, job(over_all, 3))
        told = capped.batch(left, right)["metric"]
        assert sum(one["resident_left"] + one["resident_right"] for one in told) <= 60


def test_numbers_tell_the_old_shard_and_its_number() -> None:
    numbering = Numbering.of(3, [[5, 9], [7, 0], [1, 1]], over_all=False)
    assert (numbering.first, numbering.start) == ((7, 9), (28, 36))
    assert Numbering.of(3, [[5, 9], [5, 9], [5, 9]], over_all=True).start == (5, 9)
    with pytest.raises(sj.SnapshotError, match="row numbers are too large"):
        Numbering.of(100, [[2**50, 1]], over_all=False)
