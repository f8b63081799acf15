"""Another number of shards: the state is split by key and put together, and nothing is lost, doubled or false."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dict_store import DictStore
from shards import TRAVELS, Shards, job, pairs
from test_shard import cut, exact, rows

import shedjoin as sj
from shedjoin.spark.job import Job
from shedjoin.spark.metrics import latest, recall_of
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
    "auto": sj.JoinSpec(WINDOW, B, sj.Auto(memory=16.0, every=40, gain=0.0, stretches=1), lateness=40),
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


def of_type(how: str, budget: int | None, window: sj.Window = WINDOW, **more: Any) -> sj.JoinSpec:
    return sj.JoinSpec(window, None if budget is None else sj.Budget(tuples=budget), how=how, **more)


def shards_of(spec: sj.JoinSpec, shards: int = 1) -> Job:
    """A job whose results may have rows of one side alone."""
    return job(spec, shards, schemas=(TRAVELS.serialize().to_pybytes(),) * 2, recall=False)


def given_rows(given: dict[str, list[dict[str, Any]]]) -> Counter[tuple[int | None, int | None]]:
    return Counter((row.get("l0"), row.get("r0")) for row in given["result"])


@pytest.mark.parametrize("how", ["left_semi", "left_anti", "full_outer"])
@pytest.mark.parametrize("window", [WINDOW, sj.RowWindow(40)], ids=["time", "rows"])
def test_rows_without_a_partner_stay_exact(how: str, window: sj.Window) -> None:
    parts = cut(rows(24, keys=400), 9, tasks=1)
    spec = of_type(how, None, window)
    split = replace(spec, counted_elsewhere=isinstance(window, sj.RowWindow))
    whole, shards, found = Shards(shards_of(spec)), Shards(shards_of(spec)), 0
    for place, (left, right) in enumerate(parts):
        if place in (3, 6):
            shards = moved(shards, shards_of(split, 3) if place == 3 else shards_of(spec))
        mine = given_rows(shards.batch(left, right))
        assert mine == given_rows(whole.batch(left, right))
        found += mine.total() if place >= 3 else 0
    assert found > 20


@pytest.mark.parametrize("how", ["left_semi", "left_anti", "full_outer"])
def test_what_shards_know_of_shed_rows_goes_along(how: str) -> None:
    """Within a budget nothing false is given after a move, to more shards and to fewer."""
    sides = rows(25, keys=400)
    true = set(exact(sides, 300))
    met = [{pair[side] for pair in true} for side in (0, 1)]
    spec = of_type(how, 220, policy=sj.Rand(), lateness=40)
    shards, alone, unknown = Shards(shards_of(spec, 2)), 0, 0
    for place, (left, right) in enumerate(cut(sides, 12)):
        if place in (4, 8):
            shards = moved(shards, shards_of(spec, 5 if place == 4 else 1))
        given = shards.batch(left, right)
        for a, b in given_rows(given):
            if a is not None and b is not None:
                assert (a, b) in true
            elif a is not None:
                assert (a in met[0]) == (how == "left_semi")
            else:
                assert b not in met[1]
            alone += place >= 4 and None in (a, b)
        unknown += sum(record["why"] == "unknown" for record in given["shed"])
    assert alone > 10
    assert unknown > 10


def test_partners_that_were_found_are_counted_on() -> None:
    sides = rows(26)
    spec = of_type("inner", None, matches=(2, None))
    parts = cut(sides, 6)
    whole, shards = Shards(job(spec)), Shards(job(spec))
    for place, (left, right) in enumerate(parts):
        if place == 3:
            shards = moved(shards, job(spec, 4))
        assert pairs(shards.batch(left, right)["result"]) == pairs(whole.batch(left, right)["result"])


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


@pytest.mark.parametrize("window", [WINDOW, sj.RowWindow(60)], ids=str)
def test_live_recall_begins_anew_with_new_shards_and_with_a_budget(window: sj.Window) -> None:
    """It is then of results of rows that came since, and says from which micro-batch on. Samples hold all rows here."""
    sides, parts = rows(24), cut(rows(24), 12)
    by_rows = isinstance(window, sj.RowWindow)
    free, held = sj.JoinSpec(window, lateness=40), sj.JoinSpec(window, sj.Budget(tuples=60), sj.Prob(), lateness=40)

    def of(spec: sj.JoinSpec, shards: int) -> Job:
        return job(replace(spec, counted_elsewhere=by_rows), shards)

    exact_run, shards = Shards(of(free, 3)), Shards(of(free, 3))
    exact_pairs, found = [], []
    edges = [np.linspace(0, len(ts), 12 * 2 + 1).astype(int)[::2] for _, ts in sides]  # as `cut` has them
    told: list[dict[str, Any]] = []
    for place, (left, right) in enumerate(parts):
        if place == 3:
            shards.job = of(held, 3)
        if place == 7:
            shards = moved(shards, of(held, 2))
        given = shards.batch(left, right)
        found += pairs(given["result"])
        exact_pairs += pairs(exact_run.batch(left, right)["result"])
        told = given["metric"]
        begun = 7 if place >= 7 else 3
        recalled = recall_of(told)
        if place < 3:
            assert recalled is None
            continue
        assert {row["recall_from"] for row in told} == {begun}
        first = [int(edge[begun]) for edge in edges]
        mine, all_of = (
            [pair for pair in some if pair[0] >= first[0] and pair[1] >= first[1]] for some in (found, exact_pairs)
        )
        assert recalled is not None
        assert recalled.results == len(mine)
        assert recalled.missing == len(all_of) - len(mine)
        assert recalled.low == recalled.recall == recalled.high
    assert len(latest(told)) == 2


def test_a_lost_copy_changes_no_recall_that_began_anew() -> None:
    """What the state store has is enough: the estimate is in it from its first micro-batch on."""
    parts = cut(rows(25), 8)
    free, held = FREE, sj.JoinSpec(WINDOW, sj.Budget(tuples=60), sj.Prob(), lateness=40)
    told = []
    for cache in (False, None):
        shards = Shards(job(free, 2, cache=cache))
        for place, (left, right) in enumerate(parts):
            if place == 3:
                shards.job = job(held, 2, cache=cache)
            given = shards.batch(left, right)
        told.append([(row["recall"], row["recall_low"], row["live_missing"]) for row in given["metric"]])
    assert told[0] == told[1]
