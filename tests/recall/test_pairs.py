"""Live recall against the truth from the shed log, and against a slow and obvious twin."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recall_runs import BUSY, INTERPRETED, SPEC, Pushed, batch_of, cut_at_instants, followed, rows, run, run_busy, zipf
from sample_twin import Twin

import shedjoin as sj
from shedjoin.recall import PairRecall, pairs
from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, combine
from shedjoin.recall.sample import state

small = pytest.mark.small


@pytest.fixture(scope="module")
def busy() -> Pushed:
    return run_busy()


def found(live: PairRecall) -> list[float]:
    names = [f"live_{what}missing{power}" for what in ("", "importance_") for power in ("", "_square", "_cube")]
    return [live.sums()[name] for name in names]


MANY = 10 if INTERPRETED else 150
HARD = settings(max_examples=MANY, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@small
@HARD
@given(SPEC, rows(25 if INTERPRETED else 90), st.lists(st.integers(0, 200), max_size=3), st.integers(0, 3))
def test_the_kernel_and_the_twin_agree(
    spec: sj.JoinSpec, table: list[dict[str, Any]], cuts: list[int], seed: int
) -> None:
    """A tiny sample without credit for work, so that it is thinned out and grows all the time."""
    pushed = run(spec, cut_at_instants(batch_of(table), cuts), seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "START_CREDIT", 0)
        live, twin = followed(pushed, spec, seed=seed, rows=16), Twin(spec, seed, 16)
        for batch, out in pushed.pushes:
            twin.follow(batch, out.shed)
    assert live.remembered == len(twin.sample)
    assert live._state["scale"][0] == pytest.approx(twin.scale, rel=1e-12)
    assert found(live) == pytest.approx(twin.sums(), rel=1e-9)


@small
def test_the_kernel_and_the_twin_agree_on_a_long_stream() -> None:
    batch = zipf(150 if INTERPRETED else 2500, seed=3, keys=40)
    spec = sj.JoinSpec(window=sj.TimeWindow(60), budget=sj.Budget(tuples=40), policy=sj.Rand(), importance="sum")
    pushed = run(spec, [batch])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "START_CREDIT", 1)
        live, twin = followed(pushed, spec, seed=1, rows=64), Twin(spec, 1, 64)
        twin.follow(batch, pushed.pushes[0][1].shed)
    assert twin.removed
    assert twin.scale < 1 / state.FLOOR, "the sample was never thinned out"
    assert live.remembered == len(twin.sample)
    assert found(live) == pytest.approx(twin.sums(), rel=1e-9)


# ------------------------------------------------------------------------------------------------ exact where it can be


@small
@HARD
@given(SPEC, rows(20 if INTERPRETED else 60), st.lists(st.integers(0, 200), max_size=3))
def test_with_room_for_all_rows_it_is_exact(spec: sj.JoinSpec, table: list[dict[str, Any]], cuts: list[int]) -> None:
    """Windows of both kinds, lateness, null and late rows, streams that run ahead."""
    pushed = run(spec, cut_at_instants(batch_of(table), cuts))
    now = followed(pushed, spec).estimate()
    missing, missing_importance = pushed.truth(spec)
    delivered = sum(len(out) for _, out in pushed.pushes)
    delivered_importance = math.fsum(float(x) for _, out in pushed.pushes for x in out.importance)
    assert (now.results, now.missing, now.missing_low, now.missing_high) == (delivered, missing, missing, missing)
    assert now.recall == now.low == now.high == (delivered / (delivered + missing) if missing else 1.0)
    share = delivered_importance / (delivered_importance + missing_importance) if missing else 1.0
    assert now.importance == pytest.approx(share)
    assert now.importance_low == now.importance_high == now.importance
    assert now.late == sum(out.stats["late"] for _, out in pushed.pushes)
    assert now.shed + now.late == sum(len(out.shed) for _, out in pushed.pushes)


@small
def test_nothing_shed_is_a_recall_of_one() -> None:
    for spec in (sj.JoinSpec(sj.TimeWindow(5)), sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=10_000))):
        pushed = run(spec, [zipf(100, seed=1)])
        for recent in (False, True):
            now = followed(pushed, spec).estimate(recent=recent)
            assert (now.recall, now.low, now.high) == (1.0, 1.0, 1.0)
            assert (now.importance, now.importance_low, now.importance_high) == (1.0, 1.0, 1.0)


@small
def test_before_anything_happened() -> None:
    now = PairRecall(BUSY).estimate()
    assert (now.recall, now.low, now.high, now.results, now.missing) == (1.0, 1.0, 1.0, 0, 0.0)


@small
def test_late_rows_are_counted_apart() -> None:
    spec = sj.JoinSpec(window=sj.TimeWindow(5), budget=sj.Budget(tuples=100))
    batch = sj.Batch.rows({"stream": [0, 1, 1, 0, 1], "key": [1, 1, 2, 1, 1], "ts": [0, 0, 50, 1, 2]})
    now = followed(run(spec, [batch]), spec).estimate()
    assert (now.late, now.shed, now.results, now.recall) == (1, 0, 2, 1.0)


@small
def test_without_a_policy_that_sheds_late_rows_are_counted_too() -> None:
    spec = sj.JoinSpec(window=sj.TimeWindow(5))
    batch = sj.Batch.rows({"stream": [0, 1, 1, 1], "key": [1, 1, 2, 1], "ts": [0, 0, 50, 2]})
    assert followed(run(spec, [batch]), spec).estimate().late == 1


@small
def test_a_budget_that_changes() -> None:
    batch = zipf(100 if INTERPRETED else 400, seed=2)
    halves = [batch.take(slice(0, len(batch) // 2)), batch.take(slice(len(batch) // 2, None))]
    engine, pushed = BUSY.build(), Pushed()
    pushed.push(engine, halves[0])
    pushed.pushes.append((sj.Batch.of(), engine.set_budget(sj.Budget(tuples=10))))
    pushed.push(engine, halves[1])
    assert len(pushed.pushes[1][1].shed) > 0
    assert followed(pushed, BUSY).estimate().missing == pushed.truth(BUSY)[0]


# ----------------------------------------------------------------------------------------------- cuts, restarts, shards


@small
def test_cuts_change_nothing() -> None:
    """Not even the last bit, though the small sample is thinned out again and again."""
    batch = zipf(150 if INTERPRETED else 4000, seed=4)
    specs = [BUSY, sj.JoinSpec((sj.RowWindow(100), sj.TimeWindow(90)), sj.Budget(tuples=60), sj.Rand())]
    for spec in specs:
        sums = []
        for cuts in ([], [40], [3, 77, 150, 300, 1200, 2222]):
            pushed = run(spec, cut_at_instants(batch, cuts))
            live = followed(pushed, spec, rows=64)
            sums.append({name: value for name, value in live.sums().items() if "recent" not in name})
        assert sums[0] == sums[1] == sums[2]
        assert sums[0]["live_missing_square"] > 0 or INTERPRETED


@small
def test_a_restart_changes_nothing() -> None:
    batch = zipf(150 if INTERPRETED else 4000, seed=4)
    pushed = run(BUSY, cut_at_instants(batch, list(range(0, 4000, 307))))
    through = followed(pushed, BUSY, rows=64)
    live = PairRecall(BUSY, rows=64)
    for part, out in pushed.pushes:
        live = PairRecall.from_bytes(BUSY.with_budget(sj.Budget(tuples=7)), live.to_bytes(), rows=64)
        live.follow(part, out)
    assert live.sums() == through.sums()
    assert live.to_bytes() == through.to_bytes()


@small
def test_saved_bytes_are_checked(busy: Pushed) -> None:
    saved = followed(busy, BUSY, rows=64).to_bytes()
    flipped = bytearray(saved)
    flipped[len(saved) // 2] ^= 1
    for bytes_, words in (
        (b"", "do not begin with its mark"),
        (saved[:20], "checksum"),
        (saved[:8] + b"\x63" + saved[9:], "older format"),
        (bytes(flipped), "checksum"),
        (saved[:-1], "checksum"),
    ):
        with pytest.raises(sj.SnapshotError, match=words):
            PairRecall.from_bytes(BUSY, bytes_, rows=64)
    with pytest.raises(sj.SnapshotError, match="another setting of seed"):
        PairRecall.from_bytes(BUSY, saved, seed=1, rows=64)
    with pytest.raises(sj.SnapshotError, match="another setting of window"):
        PairRecall.from_bytes(sj.JoinSpec(sj.TimeWindow(3), BUSY.budget), saved, rows=64)


@small
def test_shards_add_up() -> None:
    """Two joins side by side: what is delivered and missing adds up, and the limits are closer than the sums of limits."""
    parts, truth = [], 0
    for shard in (0, 1):
        pushed = run(BUSY, [zipf(200 if INTERPRETED else 5000, seed=10 + shard)])
        parts.append(followed(pushed, BUSY, seed=shard, rows=32))
        truth += pushed.truth(BUSY)[0]
    whole = combine([live.sums() for live in parts])
    single = [live.estimate() for live in parts]
    assert set(parts[0].sums()) == set(LIVE_COLUMNS)
    assert whole.results == sum(one.results for one in single)
    assert whole.missing == pytest.approx(sum(one.missing for one in single))
    assert whole.missing_high - whole.missing_low < sum(one.missing_high - one.missing_low for one in single)
    assert whole.missing_low <= truth <= whole.missing_high


@small
def test_results_in_pieces(busy: Pushed) -> None:
    batch, out = busy.pushes[0]
    live = PairRecall(BUSY)
    for piece in np.array_split(out.importance, 7):
        live.deliver(replace(out, importance=piece))
    live.watch(batch, out.shed, late=0)
    assert live.sums() == followed(busy, BUSY).sums()


# ------------------------------------------------------------------------------------------------------------ recently


@small
def test_recent_recall_follows_a_change() -> None:
    """Memory for everything, then for hardly anything: the recent estimate falls to the new level, the total lags."""
    size = 60 if INTERPRETED else 400
    parts = cut_at_instants(zipf(40 * size, seed=6), [])[0]
    engine = sj.JoinSpec(sj.TimeWindow(100), sj.Budget(tuples=400), sj.Rand()).build()
    live = PairRecall(sj.JoinSpec(sj.TimeWindow(100), sj.Budget(tuples=400), sj.Rand()), recent=2)
    seen: list[RecallEstimate] = []
    for step in range(40):
        if step == 20:
            live.follow(sj.Batch.of(), engine.set_budget(sj.Budget(tuples=20)))
        part = parts.take(slice(2 * size * step, 2 * size * (step + 1)))
        live.follow(part, engine.push(part))
        seen.append(live.estimate(recent=True))
    assert seen[19].recall == 1.0
    assert seen[39].recall < 0.3
    assert live.estimate().recall > 0.5
    assert seen[39].results < live.estimate().results / 4


@small
def test_recent_counts_are_rescaled() -> None:
    """Rescaling does not change the estimate."""
    pushed = run(BUSY, cut_at_instants(zipf(60 if INTERPRETED else 600, seed=7), list(range(0, 2000, 3))))
    plain = followed(pushed, BUSY, rows=32, recent=0.5).estimate(recent=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "LARGEST_WEIGHT", 16.0)
        rescaled = followed(pushed, BUSY, rows=32, recent=0.5).estimate(recent=True)
    assert (rescaled.recall, rescaled.low, rescaled.high) == pytest.approx((plain.recall, plain.low, plain.high))
    assert rescaled.results == pytest.approx(plain.results)


# -------------------------------------------------------------------------------------------------------------- errors


@small
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PairRecall("spec"), "spec must be a JoinSpec"),  # type: ignore[arg-type]
        (lambda: PairRecall(BUSY, rows=15), "rows must be a whole number from 16"),
        (lambda: PairRecall(BUSY, level=1.0), "level must be a number between 0 and 1"),
        (lambda: PairRecall(BUSY, seed=-1), "seed must be"),
        (lambda: PairRecall(BUSY, recent=0), "recent must be a number of pushes"),
        (lambda: combine([], level=0), "level must be a number between 0 and 1"),
    ],
)
def test_arguments_are_checked(make: Any, words: str) -> None:
    with pytest.raises(sj.ShedjoinError, match=words):
        make()


@small
def test_pushes_must_not_be_left_out(busy: Pushed) -> None:
    batch = busy.pushes[0][0]
    halves = cut_at_instants(batch, [len(batch) // 4])
    second = run(BUSY, halves).pushes[1]
    with pytest.raises(sj.InputError, match="from its first"):
        PairRecall(BUSY).follow(*second)


@small
def test_all_results_must_be_emitted(busy: Pushed) -> None:
    batch, out = busy.pushes[0]
    bare = replace(out, columns=(out.left[:0], out.right[:0]), importance=out.importance[:0])
    with pytest.raises(sj.InputError, match="emits all of them"):
        PairRecall(BUSY).follow(batch, bare)
    with pytest.raises(sj.InputError, match="out must be the Output"):
        PairRecall(BUSY).follow(batch, out.shed)  # type: ignore[arg-type]
