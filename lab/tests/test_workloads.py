"""Generators: the same seed, the same streams; and the distributions they promise, within statistical error."""

from __future__ import annotations

import numpy as np
import pytest

from shedjoin.errors import SpecError
from shedjoin.workloads import Workload
from shedjoin_lab.workloads import Burst, at_rates, bursty, drifting, rotating, rotating_sets

#: Standard errors that a frequency may lie off: about one draw in 15,000 would, by chance, and seeds are fixed.
SIGMAS = 4.0

MAKERS = {
    "drifting": lambda seed: drifting(500, seed=seed, together=False, importance="rare_high"),
    "bursty": lambda seed: bursty(200, seed=seed, bursts=[Burst(50, 60)]),
    "rotating": lambda seed: rotating(500, seed=seed, window=50, values=100),
    "rotating_sets": lambda seed: rotating_sets(200, seed=seed, window=50),
    "at_rates": lambda seed: at_rates(500, seed=seed, rates=[1, 2, 3], distinct=[5, 50, 500], arrivals="poisson"),
}


def same(one: Workload, other: Workload) -> bool:
    return all(
        mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        for mine, theirs in zip(one.streams, other.streams, strict=True)
    )


@pytest.mark.parametrize("name", MAKERS)
def test_the_seed_decides(name: str) -> None:
    assert same(MAKERS[name](3), MAKERS[name](3))
    assert not same(MAKERS[name](3), MAKERS[name](4))


def test_popularity_drifts() -> None:
    workload = drifting(20_000, seed=1, domain=10, skew=2.0, every=100, swaps=3)
    start, end = (np.bincount(workload.left["key"][part], minlength=10) for part in (slice(100), slice(-100, None)))
    assert start.argmax() == 0
    assert end.argmax() != 0
    with pytest.raises(SpecError, match="no true table"):
        workload.table()


def test_streams_drift_together_or_apart() -> None:
    def top(together: bool) -> list[int]:
        workload = drifting(10_000, seed=4, domain=10, skew=3.0, every=50, swaps=5, together=together)
        return [int(np.bincount(stream["key"][-50:]).argmax()) for stream in workload.streams]

    assert top(True)[0] == top(True)[1]
    assert top(False)[0] != top(False)[1]


def test_bursts_multiply_the_rows_of_an_instant() -> None:
    workload = bursty(100, seed=0, rate=2, bursts=[Burst(10, 20, factor=5, streams=(0,)), Burst(15, 20, factor=2)])
    left, right = (np.bincount(stream["ts"], minlength=100) for stream in workload.streams)
    assert left[[9, 10, 14, 15, 19, 20]].tolist() == [2, 10, 10, 20, 20, 2]
    assert right[[9, 10, 14, 15, 19, 20]].tolist() == [2, 2, 2, 4, 4, 2]


def test_rotation_goes_round_once_in_two_windows_and_the_right_stream_lags() -> None:
    workload = rotating(400, seed=1, window=100, values=1000, skew=12.0)  # so skewed that only the top value comes
    ts = np.arange(400)
    for stream, lag in ((workload.left, 0), (workload.right, 125)):
        assert np.array_equal(stream["key"], 1 + 1000 * ((ts - lag) % 200) // 200)


def test_sets_have_about_five_different_items() -> None:
    stream = rotating_sets(5_000, seed=1, window=100).left
    sizes = np.diff(stream["offsets"])
    assert sizes.mean() == pytest.approx(5, abs=0.1)
    assert sizes.std() == pytest.approx(1, abs=0.1)
    sets = np.split(stream["items"], stream["offsets"][1:-1])
    assert all(np.all(np.diff(items) > 0) for items in sets)
    assert stream["items"].min() == 1
    assert stream["items"].max() == 100


@pytest.mark.parametrize("arrivals", ["one", "fixed", "poisson"])
def test_streams_come_at_their_rates(arrivals: str) -> None:
    rates, instants = [1.0, 4.0], 20_000
    workload = at_rates(instants, seed=2, rates=rates, distinct=[5, 50], arrivals=arrivals)
    expected = [rate / (sum(rates) if arrivals == "one" else 1) for rate in rates]
    for stream, rate, distinct in zip(workload.streams, expected, (5, 50), strict=True):
        assert stream["ts"].size / instants == pytest.approx(rate, abs=SIGMAS * np.sqrt(rate / instants))
        assert np.all(np.diff(stream["ts"]) >= 0)
        assert set(np.unique(stream["key"])) == set(range(1, distinct + 1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: drifting(5, seed=0, domain=1), "domain must be at least 2"),
        (lambda: Burst(5, 5), "Burst.stop must come after start=5"),
        (lambda: at_rates(5, seed=0, rates=[1], distinct=[1, 2]), "one number a stream"),
        (lambda: at_rates(5, seed=0, rates=[0], distinct=[1]), "rates must be above 0"),
        (lambda: at_rates(5, seed=0, rates=[1], distinct=[1], arrivals="late"), "arrivals must be one of"),
    ],
)
def test_bad_arguments_are_named(make: object, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        make()  # type: ignore[operator]
