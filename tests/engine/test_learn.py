"""Prospect: what it learns, what that is worth, and what it forgets. (Twin and laws are where those of all policies are.)"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import shedjoin as sj
from naive import Row, Twin
from shedjoin.engine.stages import learn, neighbours
from shedjoin.policies import prospect
from shedjoin.workloads import Workload, zipf
from shedjoin_lab.workloads import flashing, rotating
from strategies import INTERPRETED, LONG_SHAPE, Case, batch, columns_of, go_on, lay_out, records
from test_twin import run_twin

WINDOW = sj.TimeWindow(200)


def coefficients(engine: sj.Engine) -> np.ndarray:
    return engine._state.arrays["model"][:, learn.COEFFICIENT : learn.COEFFICIENT + learn.FEATURES]


@pytest.mark.small
@pytest.mark.parametrize("window", [sj.TimeWindow(60), sj.RowWindow(50)], ids=str)
def test_engine_and_twin_learn_the_same_to_the_last_digit(window: sj.TimeWindow | sj.RowWindow) -> None:
    draw = np.random.default_rng(5)
    rows = lay_out(LONG_SHAPE, draw.integers(2**40, size=200 if INTERPRETED else 1200).tolist())
    case = Case(sj.JoinSpec(window, sj.Budget(tuples=30, allocation="variable"), sj.Prospect(), lateness=2), rows)
    twin, engine = Twin(case.spec), case.spec.build()
    assert go_on(engine, case) == run_twin(twin, case)
    learned = coefficients(engine)
    assert learned.tolist() == twin.weights.coefficients  # type: ignore[attr-defined]
    assert learned.tolist() != [[learn.first_guess(feature) for feature in range(learn.FEATURES)]] * 2


def ring(engine: sj.Engine, number: int) -> float:
    return float(engine._state.arrays["model"][0, learn.NEAR + number])


@pytest.mark.small
def test_engine_and_twin_see_the_same_keys_move() -> None:
    """Popularity moves on through keys that are near each other, and then through others that are far apart and below 0."""
    draw = np.random.default_rng(6)
    near = [10**15 + i // 8 + draw.geometric(0.3) for i in range(300)]
    far = [-(10**6) + 4000 * (i // 8 + draw.geometric(0.1)) for i in range(460 if INTERPRETED else 1200)]
    rows = [Row(i % 2, int(key), i // 4) for i, key in enumerate(near + far)]
    case = Case(sj.JoinSpec(sj.TimeWindow(40), sj.Budget(tuples=30, allocation="variable"), sj.Prospect()), rows)
    twin, engine = Twin(case.spec), case.spec.build()
    assert go_on(engine, case) == run_twin(twin, case)
    learned = coefficients(engine)
    assert learned.tolist() == twin.weights.coefficients  # type: ignore[attr-defined]
    seen = twin.weights.neighbours  # type: ignore[attr-defined]
    assert (ring(engine, neighbours.TURNS), ring(engine, neighbours.SPEED)) == (seen.turns, seen.speed)
    assert seen.speed != 0
    assert (learned[:, learn.OWN :] != learn.NEIGHBOUR).all()


def test_a_ring_is_as_long_as_the_range_of_keys_unless_most_are_near_each_other() -> None:
    draw = np.random.default_rng(3)
    engine = sj.JoinSpec(WINDOW, sj.Budget(tuples=100), sj.Prospect()).build()
    lengths = []
    for keys in (16, 500, 2**62, 16):
        for _ in range(2):  # what they were before is not thought of any more
            engine.push(left={"key": draw.integers(0, keys, 800)}, right={"key": draw.integers(0, keys, 800)})
        lengths.append(1.0 / ring(engine, neighbours.TURNS))
    assert lengths[0] == 64.0
    assert 490.0 < lengths[1] <= 500.0
    assert 0.99 * 2.0**62 < lengths[2] < 1.01 * 2.0**62
    assert lengths[3] == 64.0


@pytest.mark.parametrize("period", [200, 330])
def test_it_sees_how_fast_popularity_moves(period: int) -> None:
    """A ring of 64 places turns once in a period of twice that."""
    streams = rotating(1500, seed=8, window=period, values=400, skew=0.8, rate=2)
    engine = sj.JoinSpec(WINDOW, sj.Budget(tuples=100), sj.Prospect()).build()
    engine.push(left=streams.left, right=streams.right)
    assert abs(ring(engine, neighbours.SPEED) / 16 - 200 / period) <= 1 / 16


def test_keys_that_do_not_move_have_no_neighbours() -> None:
    streams = zipf(4000, seed=8, domain=300, skew=0.7)
    engine = sj.JoinSpec(WINDOW, sj.Budget(tuples=100), sj.Prospect()).build()
    engine.push(left=streams.left, right=streams.right)
    assert ring(engine, neighbours.TIMES) > 0
    assert ring(engine, neighbours.SPEED) == 0
    near = slice(learn.NEAR + neighbours.RATIO, learn.NEAR + neighbours.SCORE)
    assert not engine._state.arrays["model"][:, near].any()


def test_it_sees_from_its_neighbours_that_the_turn_of_a_key_has_come() -> None:
    streams = rotating(3000, seed=8, window=200, values=400, skew=0.8, rate=2)
    estimators = (sj.History(), sj.InWindow(), sj.Decayed(3.0), sj.Decayed(12.0), sj.Decayed(50.0))
    best = max(results(streams, sj.Prob(estimator)) for estimator in estimators)
    assert results(streams, sj.Prospect()) > 1.5 * best
    # The same streams with keys that have no order: nothing is won, and little lost.
    number = np.random.default_rng(8).permutation(401)
    mixed = Workload(tuple({**stream, "key": number[stream["key"]]} for stream in streams.streams))
    assert 0.93 * best < results(mixed, sj.Prospect()) < 1.1 * best


def results(workload: Workload, policy: sj.Policy) -> int:
    spec = sj.JoinSpec(WINDOW, sj.Budget(tuples=100), policy)
    return sj.simulate(spec, workload.left, workload.right, warmup=400).matches


def test_it_learns_what_the_table_knows() -> None:
    streams = zipf(20_000, seed=8, ranks="uncorrelated")
    assert results(streams, sj.Prospect()) > 0.99 * results(streams, sj.Prob(streams.table()))


@pytest.mark.parametrize("seed", [8, 107])
def test_a_few_keys_with_many_rows_do_not_settle_what_others_are_worth(seed: int) -> None:
    """By chance, keys that are frequent on one stream may be so on the other, or not: that says nothing of the rest."""
    streams = zipf(50_000, seed=seed, domain=1000, skew=1.5, ranks="uncorrelated")
    assert results(streams, sj.Prospect()) > 0.993 * results(streams, sj.Prob())


def test_it_sees_a_burst_on_the_other_stream_coming() -> None:
    streams = flashing(6000, seed=8)
    estimators = (sj.History(), sj.InWindow(), sj.Decayed(12.0), sj.Decayed(50.0))
    best = max(results(streams, sj.Prob(estimator)) for estimator in estimators)
    assert results(streams, sj.Prospect()) > 1.1 * best


def test_a_stream_that_foretells_the_other_is_listened_to() -> None:
    """The right stream repeats what the left one had twenty rows before."""
    left = np.random.default_rng(4).integers(0, 300, 8000)
    engine = sj.JoinSpec(WINDOW, sj.Budget(tuples=100), sj.Prospect()).build()
    engine.push(left={"key": left}, right={"key": np.roll(left, 20)})
    of_left, of_right = coefficients(engine)
    own_fast = slice(1 + learn.LEVELS, learn.OWN)
    assert of_left[own_fast].max() > 0.2
    assert of_right[own_fast].max() < of_left[own_fast].max()


def test_keys_that_are_long_gone_are_forgotten() -> None:
    engine = sj.JoinSpec(sj.TimeWindow(4), sj.Budget(tuples=4), sj.Prospect()).build()
    for part in range(30):  # 2,000 time units are more than 320 windows
        keys = np.arange(400) + 400 * part
        engine.push(batch([Row(i % 2, int(key), 2000 * part + i // 20) for i, key in enumerate(keys)]))
    assert engine._state.arrays["keys"].size <= 2048


@pytest.mark.small
@pytest.mark.parametrize("window", [sj.TimeWindow(60), sj.RowWindow(50)], ids=str)
def test_engine_and_twin_learn_the_same_of_three_streams(window: sj.TimeWindow | sj.RowWindow) -> None:
    draw = np.random.default_rng(5)
    keys = draw.choice(12, 200 if INTERPRETED else 1200, p=np.arange(1, 13) / 78)
    moving = [int(key) + i // 60 for i, key in enumerate(keys)]
    rows = [Row(i % 3, {"key": key}, i // 4) for i, key in enumerate(moving)]
    budget = sj.Budget(tuples=30, allocation="variable")
    spec = sj.JoinSpec(dict.fromkeys("abc", window), budget, sj.Prospect())
    twin, engine = Twin(spec), spec.build()
    out, expected = engine.push(engine.rows(columns_of(rows))), twin.push(rows)
    assert sorted(map(tuple, out.rows.tolist())) == sorted(result.rows for result in expected.results)
    assert records(out.shed) == expected.shed
    assert coefficients(engine).tolist() == twin.weights.coefficients  # type: ignore[attr-defined]


def test_three_streams_get_more_than_by_chance() -> None:
    draw = np.random.default_rng(8)
    popularity = 1 / np.arange(1, 301)
    keys = draw.choice(300, (3, 20_000), p=popularity / popularity.sum())
    tables = {name: {"key": one} for name, one in zip("abc", keys, strict=True)}

    def found(policy: sj.Policy) -> int:
        spec = sj.JoinSpec(dict.fromkeys("abc", sj.TimeWindow(400)), sj.Budget(tuples=300), policy)
        engine = spec.engine(emit=False)
        engine.push(engine.batch(tables))
        return int(engine.counters["results"])

    assert found(sj.Prospect()) > 0.95 * found(sj.Prob())
    assert found(sj.Prospect()) > 2 * found(sj.Rand())


def test_what_an_earlier_revision_has_learned_is_learned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """From what is stored, as by another estimator."""
    spec = sj.JoinSpec(window=sj.TimeWindow(8), budget=sj.Budget(tuples=9), policy=sj.Prob())
    rows = {"key": [1, 2, 1], "ts": [0, 1, 2]}
    engine = spec.build()
    engine.push(left=rows, right=rows)
    with monkeypatch.context() as before:
        before.setattr(prospect, "REVISION", 1)
        old = spec.build()
        old.set_policy(sj.Prospect())
        old.push(left=rows, right=rows)
        saved = old.snapshot()
    engine.set_policy(sj.Prospect())
    again = replace(spec, policy=sj.Prospect()).resume(saved)
    assert again.residents == (3, 3)
    assert again.snapshot() == engine.snapshot()
