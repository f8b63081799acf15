"""Sample on tiny streams: sums are unbiased over every order of the u's, exactly, and so is the variance that is said.

With `power=0` the u's matter by their order alone, and a result counts 1 / u of the row that set the threshold. Means of such
products over n uniform numbers in order are fractions, so whole expectations are.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import shedjoin as sj
from naive import Join, Key, Row, Twin, exact, on
from naive.order import Order
from shedjoin import estimates

pytestmark = pytest.mark.small

Ranks = tuple[int, ...]
#: A sum of products of 1 / u: the factor of each product, by the ranks of its u's.
Sum = dict[Ranks, Fraction]
#: u's by rank. Their products differ, so that a weight says which ranks are behind it.
LOTS = [prime / 64 for prime in (11, 13, 17, 19, 23)]
RANKS = {
    round(math.prod(1 / LOTS[rank - 1] for rank in ranks), 9): ranks
    for size in range(3)
    for ranks in itertools.combinations_with_replacement(range(1, len(LOTS) + 1), size)
}


def plus(*sums: Sum) -> Sum:
    added: Sum = defaultdict(Fraction)
    for one in sums:
        for ranks, factor in one.items():
            added[ranks] += factor
    return added


def times(one: Sum, other: Sum) -> Sum:
    return plus(*({tuple(sorted(a + b)): p * q} for a, p in one.items() for b, q in other.items()))


def mean(of: Sum, numbers: int) -> Fraction:
    """Over all values of the u's in this order: n! / (n - m)! / ((r1 - 1) (r2 - 2) ... (rm - m)) for m ranks that rise."""
    return sum(
        (
            factor * math.perm(numbers, len(ranks)) / math.prod(rank - i for i, rank in enumerate(ranks, 1))
            for ranks, factor in of.items()
        ),
        Fraction(),
    )


def variance(weights: list[Sum]) -> Sum:
    """What the results of one row, in order of time, say of the variance: docs/estimates.md."""
    said: list[Sum] = []
    before: list[Sum] = []
    for weight in weights:
        excess = plus(weight, {(): Fraction(-1)})
        said.append(times(weight, plus(excess, *before, *before)))
        before.append(excess)
    return plus(*said)


def value_at(of: Sum) -> float:
    return float(sum(float(factor) * math.prod(1 / LOTS[rank - 1] for rank in ranks) for ranks, factor in of.items()))


def rows_of(text: str, key: dict[str, Any]) -> list[Row]:
    """'a1' is a row of stream 0 with key 1; a space ends an instant."""
    sizes = itertools.cycle((150, 300, 200))
    return [
        Row("abc".index(stream), key[name], ts, bytes=next(sizes))
        for ts, instant in enumerate(text.split())
        for stream, name in zip(instant[::2], instant[1::2], strict=True)
    ]


TWO, THREE = "a1 b1 a1 b2 b1 a1b1b2", "a1 b1 a1 c1 b1 a1b1c1"
WINDOWS = [sj.TimeWindow(20)] * 3


def budget(allocation: str = "variable", **amount: int) -> sj.Budget:
    return sj.Budget(**amount, allocation=allocation)  # type: ignore[arg-type]


KEYS = {name: int(name) for name in "12"}
CASES: dict[str, tuple[str, Join]] = {
    "fixed": (TWO, Join(WINDOWS[:2], Key(2), budget("fixed", tuples=4))),
    "variable": (TWO, Join(WINDOWS[:2], Key(2), budget(tuples=3))),
    "rows": (TWO, Join([sj.RowWindow(3)] * 2, Key(2), budget(tuples=3))),
    "bytes": (TWO, Join(WINDOWS[:2], Key(2), budget(bytes=760))),
    "band": (TWO, Join(WINDOWS[:2], on(sj.Band("x", within=1.0)), budget(tuples=3))),
    "sets": (TWO, Join(WINDOWS[:2], on(sj.Overlap("x", at_least=1)), budget(tuples=3))),
    "three streams": (THREE, Join(WINDOWS, Key(3), budget(tuples=3))),
    "three streams, fixed": (THREE, Join(WINDOWS, Key(3), budget("fixed", tuples=3))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("keep", [0.0, 0.34])
def test_all_orders_have_the_exact_join_as_their_mean(case: str, keep: float, monkeypatch: pytest.MonkeyPatch) -> None:
    text, join = CASES[case]
    names: dict[str, Any] = {"1": frozenset({1, 2}), "2": frozenset({2, 3})} if case == "sets" else KEYS
    rows, join = rows_of(text, names), replace(join, policy=sj.Sample(power=0.0, keep=keep))
    numbered: dict[tuple[int, int], int] = {}
    for row in rows:
        numbered[row.stream, sum(stream == row.stream for stream, _ in numbered)] = len(numbered)
    true, orders = len(exact(join, [rows])), [*itertools.permutations(range(1, len(LOTS) + 1))]
    whole, square, said, lost = Fraction(), Fraction(), Fraction(), 0
    for order in orders:
        lots = [*(LOTS[rank - 1] for rank in order), *[0.5] * len(rows)]  # those of the last instant do not matter
        monkeypatch.setattr(Order, "lot", lambda _, x, lots=lots: lots[numbered[x.stream, x.seq]])
        results = Twin(join).push(rows).results
        lost += len(results) < true
        total = plus(*({RANKS[round(one.weight, 9)]: Fraction(1)} for one in results))
        whole += mean(total, len(LOTS))
        if len(join.windows) > 2:
            continue
        stored: dict[int, list[Sum]] = defaultdict(list)
        for one in results:
            older = min(numbered[stream, seq] for stream, seq in enumerate(one.rows))
            stored[older].append({RANKS[round(one.weight, 9)]: Fraction(1)})
        spread = plus(*map(variance, stored.values()))
        square, said = square + mean(times(total, total), len(LOTS)), said + mean(spread, len(LOTS))
        columns = estimates._columns(
            [value_at(weight) for weights in stored.values() for weight in weights],
            [row for row, weights in stored.items() for _ in weights], None, None,
        )  # fmt: skip
        assert estimates._sums(columns, 1, columns.value).variance == pytest.approx(max(value_at(spread), 0.0))
    assert lost > len(orders) / 4
    assert whole / len(orders) == true
    if len(join.windows) == 2:
        assert said / len(orders) == square / len(orders) - true**2


def draw(random: Random) -> tuple[Join, list[Row]]:
    streams = random.choice((2, 2, 3))
    condition = random.choice((Key(2), on(sj.Band("x", 1.0)), on(sj.Theta("x", "<"))) if streams == 2 else (Key(3),))
    amount: dict[str, Any] = random.choice(({"tuples": random.randrange(4, 9)}, {"bytes": random.randrange(900, 1800)}))
    budget = sj.Budget(**amount, allocation=random.choice(("fixed", "variable")))
    estimator = random.choice(
        (sj.History(), sj.InWindow(), sj.Decayed(5.0), sj.CountMin(8, 2), sj.InMemory(), sj.Met())
    )
    policy = sj.Sample(estimator, random.choice((1.0, 0.5)), random.choice((0.0, 0.4)))
    window = random.choice((sj.TimeWindow(15), sj.RowWindow(9)))
    rows = [
        Row(
            random.randrange(streams), random.choice((0, 0, 1, 2, 4)), ts // 2, random.choice((1.0, 2.0, 0.5)),
            random.choice((100, 192, 250)),
        )
        for ts in range(24)
    ]  # fmt: skip
    return Join([window] * streams, condition, budget, policy), rows


@pytest.mark.parametrize("seed", range(30))
def test_a_result_is_there_just_when_all_its_rows_are_below_their_probabilities(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the u's of the others are. So the mean over its own is p x 1 / p = 1, for all weights and policies."""
    random = Random(seed)
    join, rows = draw(random)
    lots = {(stream, seq): random.random() for stream in join.streams for seq in range(len(rows))}
    own: dict[tuple[int, int], float] = {}
    monkeypatch.setattr(Order, "lot", lambda _, x: own.get((x.stream, x.seq), lots[x.stream, x.seq]))

    def weight() -> float | None:
        return next((one.weight for one in Twin(join).push(rows).results if one.rows == wanted), None)

    met = [members for members in exact(join, [rows]) if len({x.ts for x in members}) > 1]
    uncertain = 0
    for members in random.sample(met, min(len(met), 6)):
        wanted = tuple(x.seq for x in members)
        newest = max(members, key=lambda x: x.arrival)
        older = [x for x in members if x.ts < newest.ts]
        own = {(x.stream, x.seq): 1e-9 for x in older}
        twin = Twin(join)
        twin.push([row for row in rows if row.ts < newest.ts])
        there = {(x.stream, x.seq): 1.0 / twin.order.inverse(x) for side in twin.stored for x in side}
        chances = {name: there[name] for name in own}
        assert weight() == pytest.approx(1.0 / math.prod(chances.values()))
        own = {name: chance * (1.0 - 1e-9) for name, chance in chances.items()}
        assert weight() == pytest.approx(1.0 / math.prod(chances.values()))
        for name, chance in chances.items():
            if chance < 1.0:
                uncertain += 1
                own[name] = chance * (1.0 + 1e-9)
                assert weight() is None
                own[name] = chance * (1.0 - 1e-9)
    assert uncertain
