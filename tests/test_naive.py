"""The twin holds the laws that it is to check others by, whatever the dials."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

import pytest

import shedjoin as sj
from matrix import CONDITIONS, MORE_CONDITIONS, Case, draw, random_ones
from naive import Join, LeftOut, Output, Row, Twin, cause, completed, exact, instants, on, place
from naive.arithmetic import at_least
from naive.conditions import Histogram

EVERYTHING = (*CONDITIONS, *MORE_CONDITIONS)
#: How many combinations of each condition are drawn.
SAMPLES = 60


def run(case: Case, pushes: list[list[Row]] | None = None) -> tuple[Twin, list[Output]]:
    twin, outs = Twin(case.join, case.seed), []
    for number, rows in enumerate(case.pushes if pushes is None else pushes):
        if number in case.budgets:
            outs.append(twin.set_budget(case.budgets[number]))
        if number in case.policies:
            outs.append(twin.set_policy(case.policies[number]))
        outs.append(twin.push(rows, script=case.script))
        assert_within_cap(twin)
    return twin, [*outs, twin.end()]


def assert_within_cap(twin: Twin) -> None:
    """Rows that wait in an integrated queue count; an instant that is open has not been competed for yet."""
    if twin.time is None or (twin.join.queue is not None and twin.join.queue.integrated):
        assert not any(twin.is_over(group, cap) for group, cap in twin.groups())


def assert_borders_within_cap(case: Case, outs: list[Output]) -> None:
    budget = case.join.budget
    if budget is None or case.budgets:
        return
    caps = budget.caps(len(case.join.windows))
    for border in (border for out in outs for border in out.borders):
        used = border.tuples if budget.unit == "tuples" else border.bytes
        held = (sum(used),) if budget.allocation == "variable" else used
        assert all(mine <= cap for mine, cap in zip(held, caps, strict=True))


def told(outs: list[Output]) -> tuple[list[object], list[object], list[object]]:
    return (
        [*sorted(result for out in outs for result in out.results)],
        [record for out in outs for record in out.shed],
        [one for out in outs for one in out.left_out],
    )


def check(case: Case) -> None:
    twin, outs = run(case)
    assert_borders_within_cap(case, outs)
    log, left = [record for out in outs for record in out.shed], [one for out in outs for one in out.left_out]
    found = Counter(pair for out in outs for pair in out.pairs)
    if not case.join.matches:
        given, everything, _ = completed(case.join, case.pushes, log, left)
        assert found == given
        assert given <= everything
    assert twin.counters["rows"] == len(case.rows)
    _, again = run(case)
    assert told(again) == told(outs)
    if case.script is None and not case.budgets and not case.policies:
        whole = [row for rows in case.pushes for instant in instants(rows) for row in instant]
        alone = [list(run_) for _, run_ in itertools.groupby(whole, key=lambda row: row.ts)]
        assert told(run(case, alone)[1]) == told(run(case, [whole])[1])


@pytest.mark.parametrize("condition", EVERYTHING)
def test_laws_of_the_matrix(condition: str) -> None:
    """The cap holds; results and what is missing are the exact join; the same seed and another cut change nothing."""
    some = list(itertools.islice(random_ones({"condition": (condition,)}, Random(condition)), SAMPLES))
    assert len(some) == SAMPLES
    for number, combination in enumerate(some):
        check(draw(combination, number))


# --------------------------------------------------------------------------------------------- worked out by hand


def matches_of(join: Join, rows: list[Row]) -> list[list[float]]:
    """What each stored tuple can expect."""
    twin = Twin(join)
    twin.push(rows)
    return [[twin.order.current_matches(x) for x in sorted(side, key=lambda x: x.seq)] for side in twin.stored]


def prob(condition: sj.Predicate, estimator: sj.Estimator | None = None) -> Join:
    windows = (sj.TimeWindow(100), sj.TimeWindow(100))
    return Join(windows, on(condition), sj.Budget(tuples=50), sj.Prob(estimator or sj.History()))


def test_chances_of_numbers() -> None:
    right = [Row(1, number, 0) for number in (0.0, 1.5, 2.0, 3.9, 6.0)]
    # Buckets of width 2: one in the first, two in the second, none in the third, one in the fourth.
    band = matches_of(prob(sj.Band("x", within=2.0)), [Row(0, 3.0, 0), Row(0, 4.5, 0), *right])
    assert band[0] == [2.0 + (2.0 + 0.0) / 2, 0.0 + (2.0 + 1.0) / 2]
    # 6 / 63 needs buckets of 1/8: nothing shares one.
    below = matches_of(prob(sj.Theta("x", "<")), [Row(0, 1.75, 0), Row(0, 2.0, 0), Row(0, 9.0, 1), *right])
    assert below[0][:2] == [3.0, 2.5]
    assert below[1] == [0.0, 0.0, 1.5, 2.0, 2.0]


def test_chances_of_sets() -> None:
    right = [Row(1, frozenset(items), 0) for items in ((1, 2), (2, 3), (2,), ())]
    left = [Row(0, frozenset(items), 0) for items in ((1, 2), (), (4,))]
    overlap = matches_of(prob(sj.Overlap("x", at_least=1)), [*left, *right])
    assert overlap[0] == pytest.approx([4 * (1 - math.exp(-1.0)), 0.0, 0.0])
    assert matches_of(prob(sj.Subset("x")), [*left, *right])[0] == [4 * (1 / 4 * 3 / 4), 4.0, 0.0]
    assert matches_of(prob(sj.Superset("x")), [*left, *right])[0] == [4 * (1 / 4 + 3 / 4), 0.0, 0.0]
    assert matches_of(prob(sj.SameSet("x")), [*left, *right])[0] == [1.0, 1.0, 0.0]
    weighted = [Row(0, {1: 2.0, 2: -1.0}, 0), Row(1, {1: 1.0}, 0), Row(1, {1: 1.0, 2: 1.0}, 0)]
    assert matches_of(prob(sj.InnerProduct("x", at_least=1.0)), weighted)[0] == [2 * (1.0 * 2.0 + 0.5 * -1.0)]
    table = sj.Table({}, {1: 0.5, 2: 0.25})
    assert matches_of(prob(sj.Subset("x"), table), [*left, *right])[0] == [0.125, 1.0, 0.0]


def test_small_chances_keep_their_order() -> None:
    assert at_least(0, 2.0) == pytest.approx(1.0)
    assert at_least(2, 3.0) == pytest.approx(1 - math.exp(-3.0) * (1 + 3.0))
    chances = [at_least(5, mean) for mean in (0.0, 1e-9, 1e-6, 1e-3, 0.1, 5.0, 40.0)]
    assert chances == sorted(set(chances))


def test_a_histogram_widens() -> None:
    histogram, counts = Histogram(), Counter({5.0: 3})

    def rename(new: object) -> None:
        assert callable(new)
        counted = list(counts.items())
        counts.clear()
        for bucket, count in counted:
            counts[new(bucket)] += count

    histogram.widen(5.0, rename)
    assert list(histogram.buckets()) == [5.0]
    histogram.widen(6.0, rename)
    assert (histogram.width, dict(counts)) == (1 / 32, {160: 3})
    histogram.widen(-2.0, rename)
    assert (histogram.width, dict(counts)) == (1 / 4, {20: 3})
    assert len(histogram.buckets()) == 64
    assert histogram.bucket(6.0) in histogram.buckets()


def test_the_lowest_is_weighed_again_before_it_goes() -> None:
    """Tuple 0 was worth nothing when it came, and is worth most now: tuple 1 goes in its place."""
    join = Join(
        (sj.TimeWindow(100), sj.TimeWindow(100)),
        on(sj.Overlap("x")),
        sj.Budget(tuples=12, shares=(1, 5)),
        sj.Prob(),
    )
    twin = Twin(join)
    first = [Row(0, frozenset([1]), 0), Row(0, frozenset([2]), 1), Row(1, frozenset([2]), 1)]
    assert twin.push(first).shed == []
    assert [x.chance for x in twin.stored[0]] == [0.0, pytest.approx(1 - math.exp(-1.0))]
    out = twin.push([*(Row(1, frozenset([1]), 2) for _ in range(4)), Row(0, frozenset([1, 2]), 3)])
    assert [(record.stream, record.seq) for record in out.shed] == [(0, 1)]


def test_met_counts_the_own_probe() -> None:
    join = Join((sj.TimeWindow(9), sj.TimeWindow(9)), budget=sj.Budget(tuples=4), policy=sj.SimpProb(sj.Met()))
    twin = Twin(join)
    twin.push([Row(0, 1, 0), Row(0, 1, 0), Row(1, 1, 0), Row(0, 1, 1)])
    assert [x.met for x in (*twin.stored[0], *twin.stored[1])] == [0, 0, 1, 2]


def test_causes_are_told_in_order() -> None:
    join = Join((sj.TimeWindow(9), sj.TimeWindow(9)))
    (result,) = exact(join, [[Row(0, 1, 0), Row(1, 1, 1)]])
    stretch = LeftOut(1, 0, 0, 0, 0, 0, 1)
    assert cause(join, result, [], [stretch]) == "left out"
    assert cause(join, result, [], [stretch._replace(lo_seq=1, hi_seq=2)]) is None
    assert [x.through for x in place([[Row(0, 1, 0), Row(1, 1, 0)], [Row(0, 1, 0)]])] == [(1, 1), (1, 1), (2, 1)]


def test_a_change_in_the_middle_of_an_instant_parts_none_of_its_rows() -> None:
    """Two rows came where the window has one; both meet the third, which waits while the policy is changed."""
    windows = (sj.RowWindow(1), sj.RowWindow(1))
    twin = Twin(Join(windows, policy=sj.Dgl(), budget=sj.Budget(tuples=9), cpu=sj.VirtualCpu(1.0, probe=10.0)))
    twin.push([Row(0, 1, 0), Row(0, 1, 0), Row(1, 1, 0)])
    assert twin.residents == (1, 0)
    twin.set_policy(sj.Dgl(loss=0.5))
    assert twin.flush().pairs == [(0, 0), (1, 0)]
    assert twin.residents == (1, 1)


def test_told_clocks_wait_for_rows_that_wait() -> None:
    join = Join((sj.TimeWindow(9), sj.TimeWindow(9)), cpu=sj.VirtualCpu(1.0, probe=10.0))
    twin = Twin(join)
    out = twin.push([Row(0, 1, 0), Row(1, 1, 1), Row(0, 1, 2)], clocks=(50, 50))
    assert (twin.clocks, out.shed) == ([0, None], [])
    out = twin.flush()
    assert (twin.clocks, out.shed, len(out.results)) == ([50, 50], [], 2)
