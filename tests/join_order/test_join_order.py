"""Join orders: the paper's numbers, the search against looking at everything, and the rules of thumb."""

from __future__ import annotations

import numpy as np
import pytest

from shedjoin.errors import SpecError
from shedjoin.join_order import (
    Equality,
    JoinOrder,
    Model,
    StreamStats,
    Theta,
    along_the_graph,
    best_global,
    best_orders,
)
from shedjoin_lab.papers.golab2003.buckets import buckets_by_cost, buckets_by_size
from shedjoin_lab.papers.golab2003.exhaustive import costs_of_all, exhaustive, exhaustive_orders
from shedjoin_lab.papers.golab2003.heuristics import (
    by_selectivity,
    expensive_first,
    fluctuating_first,
    heuristic,
    indexed_last,
)

TABLE5 = [(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)]
TABLE6 = [(100, 100, 200), (1, 100, 200), (1, 100, 20), (3, 100, 2)]
TABLE7 = [(11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20)]


def model(lines, **more):
    return Model.of([StreamStats(*line) for line in lines], **more)


def cost(lines, order):
    """With streams numbered from 1, as the paper does."""
    return round(model(lines).cost([stream - 1 for stream in order]))


@pytest.mark.parametrize(
    ("table", "order", "expected"),
    [
        (TABLE5, (1, 2, 3, 4), 16000),
        (TABLE5, (2, 1, 3, 4), 19600),
        (TABLE6, (2, 1, 3, 4), 80400),
        (TABLE6, (2, 3, 1, 4), 123150),
        (TABLE6, (2, 3, 4, 1), 248450),
        (TABLE6, (1, 2, 3, 4), 120000),
        (TABLE7, (3, 4, 1, 2), 49542),
        (TABLE7, (3, 1, 4, 2), 47977),
        (TABLE7, (3, 1, 2, 4), 51954),
        (TABLE7, (1, 2, 3, 4), 68200),
        (TABLE7, (2, 1, 3, 4), 79000),
    ],
)
def test_costs_of_the_paper(table, order, expected):
    assert cost(table, order) == expected


@pytest.mark.parametrize(("table", "worst"), [(TABLE5, 86850), (TABLE6, 646050)])
def test_worst_orders_of_the_paper(table, worst):
    assert round(costs_of_all(model(table))[1].max()) == worst


def test_fifth_and_mean_of_the_paper():
    assert round(np.sort(costs_of_all(model(TABLE5))[1])[4]) == 19600
    assert round(costs_of_all(model(TABLE7))[1].mean()) == 63362


@pytest.mark.parametrize(("table", "best"), [(TABLE5, 16000), (TABLE6, 80400), (TABLE7, 47977)])
def test_heuristic_and_search_find_the_papers_best(table, best):
    assert round(heuristic(model(table)).cost) == best
    assert round(best_global(model(table)).cost) == best
    assert round(exhaustive(model(table)).cost) == best
    assert best_orders(model(table)).cost <= best + 1e-6


def test_first_step_of_the_heuristic():
    assert by_selectivity(model(TABLE5)) == [(0, 1, 2, 3), (1, 0, 2, 3)]
    assert by_selectivity(model(TABLE7))[0] == (2, 3, 0, 1)


def random_model(rng, many, *, graph=False, tau=0.0):
    streams = [
        StreamStats(
            rate=float(rng.choice([1, 1, 2, 5, 20, 100])),
            window=float(rng.integers(20, 500)),
            values=float(rng.integers(2, 500)),
            buckets=float(rng.choice([1, 1, 5, 30])),
            cost=float(rng.choice([1, 1, 4])),
        )
        for _ in range(many)
    ]
    if not graph:
        return Model.of(streams, tau=tau)
    links = [Equality({at: float(rng.integers(2, 300)), at + 1: float(rng.integers(2, 300))}) for at in range(many - 1)]
    return Model.of(streams, links, [Theta(0, many - 1, float(rng.random()))], tau=tau)


@pytest.mark.parametrize("many", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("graph", [False, True])
def test_search_is_exact_up_to_six_streams(many, graph):
    rng = np.random.default_rng(many)
    for _ in range(6):
        one = random_model(rng, many, graph=graph, tau=float(rng.choice([0, 0, 7.5])))
        for naive in (False, True):
            assert best_global(one, naive=naive).cost == pytest.approx(exhaustive(one, naive=naive).cost)
        for general in (False, True):
            assert best_orders(one, general=general).cost == pytest.approx(exhaustive_orders(one, general=general).cost)


def test_search_beyond_six_streams():
    """Asked for: within 10% of the best in 99 of 100 instances. The search is exact, so it is the best in all."""
    rng = np.random.default_rng(1)
    near = []
    for trial in range(14):
        one = random_model(rng, 7 + trial % 2, graph=trial % 4 == 3)
        near.append(best_global(one).cost <= exhaustive(one).cost * (1 + 1e-9))
    assert all(near)


def test_two_ways_of_counting_agree():
    """The sum along a path of the search is what the walk through the paper's formula gives."""
    rng = np.random.default_rng(3)
    for graph in (False, True):
        one = random_model(rng, 6, graph=graph, tau=4.0)
        found = best_orders(one, general=True)
        assert one.cost_of_orders(found.orders) == pytest.approx(found.cost)
        orders, costs = costs_of_all(one)
        assert one.cost(orders[77].tolist()) == pytest.approx(costs[77])


def test_an_order_per_origin_is_never_worse():
    rng = np.random.default_rng(4)
    for _ in range(10):
        one = random_model(rng, 5, tau=5.0)
        assert best_orders(one).cost <= best_global(one).cost * (1 + 1e-9)
        assert best_orders(one, general=True).cost <= best_orders(one).cost * (1 + 1e-9)
        assert best_orders(one, general=True).cost <= best_global(one, naive=True).cost * (1 + 1e-9)


def test_twelve_streams_have_an_answer_that_no_exchange_improves():
    one = random_model(np.random.default_rng(5), 12)
    found = best_orders(one)
    for origin, order in enumerate(found.orders):
        mine = one.origin_cost(origin, order)
        for at in range(1, 11):
            other = list(order)
            other[at], other[at + 1] = other[at + 1], other[at]
            assert mine <= one.origin_cost(origin, other) * (1 + 1e-9)


def test_equal_buckets_do_not_change_the_order():
    plain, hashed = model(TABLE7), model([(*line, 5) for line in TABLE7])
    assert best_global(plain).orders == best_global(hashed).orders
    assert best_global(hashed).cost == pytest.approx(best_global(plain).cost / 5)


def test_lazy_goes_last_for_a_fast_stream_when_tau_is_long():
    """Fig 3(b): with many new tuples at once it pays to have them in the innermost loop."""
    streams = [StreamStats(1, 100, 50)] * 3 + [StreamStats(10, 100, 50)]
    assert best_orders(Model.of(streams, tau=1), general=True).orders[3][0] == 3
    assert best_orders(Model.of(streams, tau=50), general=True).orders[3][-1] == 3


def test_rules_of_thumb():
    hybrid = Model.of(
        [StreamStats(1, 100, 50, buckets=10), StreamStats(1, 100, 50), StreamStats(1, 50, 50, buckets=10)]
    )
    assert indexed_last(hybrid).orders[1] == (1, 2, 0)
    dear = Model.of([StreamStats(1, 100, 50), StreamStats(1, 100, 50), StreamStats(1, 100, 50, cost=9)])
    assert expensive_first(dear).orders[0] == (0, 2, 1)
    assert fluctuating_first(dear, [1]).orders[0] == (0, 1, 2)
    chain = Model.of([StreamStats(1, 100)] * 3, [Equality({0: 10, 1: 10}), Equality({1: 50, 2: 50})])
    assert along_the_graph(chain).orders == ((0, 1, 2), (1, 2, 0), (2, 1, 0))


def test_explain_says_order_cost_and_why():
    text = best_orders(Model.of([StreamStats(*line) for line in TABLE5], names=list("abcd"))).explain()
    assert "a new tuple of a: b, c, d" in text
    assert "in all 16,000 comparisons per time unit" in text
    assert "1 in 500 goes on" in text
    lazy = best_orders(Model.of([StreamStats(1, 100, 50)] * 3 + [StreamStats(10, 100, 50)], tau=50), general=True)
    assert "the outermost loop is over S3: 125 tuples" in lazy.explain()


@pytest.mark.parametrize(
    ("sizes", "total", "least", "expected"),
    [
        ([100, 100, 100, 5000], 48, 5, (5, 5, 5, 33)),
        ([1, 1], 5, 1, (3, 2)),
        ([0, 0, 0], 4, 1, (2, 1, 1)),
        ([10, 20, 70], 10, 1, (1, 2, 7)),
    ],
)
def test_buckets_by_size(sizes, total, least, expected):
    assert buckets_by_size(sizes, total, least=least) == expected


def test_buckets_by_cost_cost_less_than_others():
    fast = [StreamStats(1, 100, 50)] * 3 + [StreamStats(50, 100, 50)]

    def best(buckets):
        hashed = [StreamStats(s.rate, s.window, s.values, b) for s, b in zip(fast, buckets, strict=True)]
        return best_orders(Model.of(hashed)).cost

    ours = best(buckets_by_cost(Model.of(fast), 48))
    assert all(ours < best(other) for other in [(12, 12, 12, 12), (5, 5, 5, 33), (10, 10, 10, 18), (1, 1, 1, 45)])
    with pytest.raises(SpecError, match="total must be at least"):
        buckets_by_cost(Model.of(fast), 3)


def test_clear_words():
    with pytest.raises(SpecError, match="2 to 16 streams, not 1"):
        Model.of([StreamStats(1, 1)])
    with pytest.raises(SpecError, match=r"StreamStats\.rate"):
        StreamStats(-1, 1)
    with pytest.raises(SpecError, match="name each of the streams 0 to 3 once"):
        model(TABLE5).cost((0, 1, 2))
    with pytest.raises(SpecError, match="total must be at least"):
        buckets_by_size([1, 2], 1)
    with pytest.raises(SpecError, match=r"Theta\.selectivity"):
        Theta(0, 1, 2.0)
    with pytest.raises(SpecError, match="at least two streams"):
        Equality({0: 1.0})
    with pytest.raises(SpecError, match="one a stream"):
        JoinOrder(model(TABLE5), (), 0.0).model.cost_of_orders([])
