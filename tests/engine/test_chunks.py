"""Output in pieces: the same as in one, and never more than the limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import shedjoin as sj
from naive import Row
from shedjoin.engine.engine import CHUNK
from strategies import REPRESENTATIVES, Case, Chooser, batch, cases_of, for_all, records, told


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_pieces_add_up_to_the_push(chooser: Chooser) -> None:
    def check(drawn: tuple[Case, int]) -> None:
        case, limit = drawn
        whole, cut = case.spec.build(seed=case.seed), case.spec.build(seed=case.seed)
        silent = case.spec.build(seed=case.seed)
        for rows in case.pushes:
            parts = list(cut.chunks(batch(rows), limit=limit))
            assert all(len(part) <= limit for part in parts)
            out = whole.push(batch(rows))
            assert told(cut, sj.Output.joined(parts)) == told(whole, out)
            assert sj.Output.joined(parts).stats == out.stats
            quiet = list(silent.chunks(batch(rows), limit=limit, emit=False))
            assert sum(len(part) for part in quiet) == 0
            assert [record for part in quiet for record in records(part.shed)] == records(out.shed)
        assert cut.snapshot() == whole.snapshot() == silent.snapshot()

    for_all(st.tuples(cases_of(chooser), st.sampled_from((1, 2, 3, 7, 1000))), check, label=chooser, examples=8)


@pytest.mark.small
def test_one_row_with_many_partners_leaves_in_pieces_too() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(1000)).build()
    engine.push(batch([Row(0, 1, ts) for ts in range(50)]))
    parts = list(engine.chunks(batch([Row(1, 1, 60)]), limit=8))
    assert [len(part) for part in parts] == [8] * 6 + [2]
    assert np.concatenate([part.left for part in parts]).tolist() == list(range(50))
    assert [part.stats["results"] for part in parts] == [0] * 6 + [50]


@pytest.mark.small
def test_an_engine_in_the_middle_of_a_push_is_not_used() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(1000)).build()
    rows = batch([Row(stream, 1, ts) for ts in range(9) for stream in (0, 1)])
    pieces = engine.chunks(rows, limit=2)
    next(pieces)
    for use in (engine.snapshot, lambda: engine.push(rows), lambda: engine.set_budget(None), lambda: engine.live(0)):
        with pytest.raises(sj.InputError, match="take all pieces"):
            use()
    assert sum(len(piece) for piece in pieces) == 79
    assert len(engine.snapshot()) > 0


@pytest.mark.small
@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "8"])
def test_a_limit_is_a_number_of_pairs(limit: int) -> None:
    with pytest.raises(sj.SpecError, match="limit must be a whole number of at least 1"):
        sj.JoinSpec(sj.TimeWindow(10)).build().chunks(batch([]), limit=limit)


@pytest.mark.small
@pytest.mark.parametrize("chooser", REPRESENTATIVES, ids=str)
def test_what_is_live_is_what_is_stored(chooser: Chooser) -> None:
    def check(case: Case) -> None:
        engine = case.spec.build(seed=case.seed)
        gone: set[tuple[int, int]] = set()
        for rows in case.pushes:
            out = engine.push(batch(rows))
            gone |= {(record.stream, record.seq) for record in records(out.shed) if record.why != "late"}
            for stream in (0, 1):
                live = engine.live(stream)
                assert live.size == engine.residents[stream]
                assert (np.diff(live) > 0).all()
                assert not gone & {(stream, int(seq)) for seq in live}

    for_all(cases_of(chooser), check, label=f"live {chooser}", examples=6)


def test_a_log_of_several_pieces_is_that_of_several_pushes_and_stays_as_it_is() -> None:
    """A buffer that is full becomes part of a log; what comes later goes elsewhere."""
    keys = np.arange(CHUNK + CHUNK // 2) % 1000
    spec = sj.JoinSpec(sj.TimeWindow(5000), sj.Budget(tuples=10), sj.Rand())
    engine, in_steps = spec.build(), spec.build()
    table = sj.Batch.of({"key": keys}, {"key": keys})
    first = engine.push(table).shed
    assert len(first._pieces.parts) > 1
    before = first.records()
    steps = [in_steps.push(table.take(slice(at, at + 10_000))).shed for at in range(0, len(table), 10_000)]
    assert np.array_equal(np.concatenate([log.records() for log in steps]), before)
    assert np.array_equal(sj.ShedLog(log.records() for log in steps).records(), before)
    size = keys.size
    engine.push(
        left={"key": keys, "ts": np.arange(size, 2 * size)}, right={"key": keys, "ts": np.arange(size, 2 * size)}
    )
    first.seq[:] = -1  # a column is a copy
    assert np.array_equal(first.records(), before)
