"""Cubes of shards: every result meets in one shard, and no other cube has less load."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine.graph import Graph, parse
from shedjoin.spark.hypercube import HyperCube, _Search, choose, dimensions, weights_of
from shedjoin.spark.join_graph import cube_of
from shedjoin.spark.on_args import On, rates_of, read_on


def random_graph(draw: np.random.Generator) -> tuple[Graph, int]:
    """Streams linked along a tree, and a few more predicates; each equality or not, on any of two attributes."""
    streams = int(draw.integers(2, 5))
    names = [f"s{place}" for place in range(streams)]
    links = [(int(draw.integers(0, place)), place) for place in range(1, streams)]
    links += [tuple(draw.choice(streams, 2, replace=False).tolist()) for _ in range(int(draw.integers(0, 3)))]
    on = [
        f"{names[one]}.{draw.choice(['x', 'y'])} {draw.choice(['=', '=', '<', '!='])} {names[two]}.{draw.choice(['x', 'y'])}"
        for one, two in links
    ]
    return parse(on, names), streams


def shards_of_rows(cube: HyperCube, stream: int, attributes: np.ndarray, hashes: np.ndarray) -> list[set[int]]:
    first = cube.first(stream, attributes, hashes)
    return [{int(one) + offset for offset in cube.offsets(stream).tolist()} for one in first]


@pytest.mark.parametrize("seed", range(30))
def test_every_combination_that_may_be_a_result_meets_in_one_shard(seed: int) -> None:
    draw = np.random.default_rng(seed)
    graph, streams = random_graph(draw)
    cube = choose(dimensions(graph), int(draw.integers(1, 20)), draw.random(streams) + 0.1)
    rows = [draw.integers(0, 3, (5, max(len(graph.columns[stream]), 1))) for stream in range(streams)]
    places = [shards_of_rows(cube, stream, mine, draw.integers(-(2**62), 2**62, 5)) for stream, mine in enumerate(rows)]
    for stream in range(streams):
        assert {len(shards) for shards in places[stream]} == {cube.copies(stream)}
        for shards in places[stream]:  # each row is counted in one of its shards, and never outside of the cube
            assert sum(cube.first_of(shard, stream) == shard for shard in shards) == 1
            assert shards <= set(range(cube.shards))
    met = 0
    for chosen in product(range(5), repeat=streams):
        equal = all(
            rows[one.left][chosen[one.left], one.left_attr] == rows[one.right][chosen[one.right], one.right_attr]
            for one in graph.equalities
        )
        if equal:
            met += 1
            assert len(set.intersection(*(places[stream][row] for stream, row in enumerate(chosen)))) == 1
    assert met


@pytest.mark.parametrize("seed", range(30))
def test_no_other_cube_has_less_load(seed: int) -> None:
    draw = np.random.default_rng(100 + seed)
    graph, streams = random_graph(draw)
    dims = dimensions(graph)
    shards = int(draw.integers(1, 40 if len(dims) < 4 else 12))
    weights = tuple(draw.choice([1.0, 1.0, 0.3, 5.0], streams).tolist())
    search = _Search(dims, shards, weights)
    assert shards ** len(dims) < 3 * 10**6
    every = [shares for shares in product(range(1, shards + 1), repeat=len(dims)) if math.prod(shares) <= shards]
    found = search.key(choose(dims, shards, weights).shares)
    assert all(found[:2] <= search.key(shares)[:2] for shares in every)


def test_the_load_of_a_shard_is_what_it_gets_of_each_stream() -> None:
    """By hand, for 6 shards: a/3 + b/6 + c/2 of 12 rows each; a shard of (6, 1) would get 12 rows of c alone."""
    graph = parse(["a.x = b.x", "b.y = c.y"], "abc")
    cube = choose(dimensions(graph), 6, (12.0, 12.0, 12.0))
    assert cube.shares == (3, 2)
    assert _Search(cube.dims, 6, (12.0, 12.0, 12.0)).key((3, 2))[:2] == (12.0, 72.0)
    assert choose(dimensions(graph), 6, (1200.0, 12.0, 12.0)).shares == (
        6,
        1,
    )  # a hundred times the rows: sent once each


def test_shards_that_do_not_help_are_left_out() -> None:
    """Of 7 shards a matrix of 3 x 2 is better than a line of 7."""
    cube = choose(dimensions(parse("a.x < b.x", "ab")), 7, (1.0, 1.0))
    assert (cube.shares, cube.shards) == ((3, 2), 6)
    assert [cube.copies(stream) for stream in (0, 1)] == [2, 3]


def test_a_checkpoint_keeps_its_cube() -> None:
    graph = parse("a.x < b.x", "ab")
    windows = (sj.TimeWindow(9), sj.TimeWindow(3))
    assert cube_of(graph, 6, windows, (1.0, 1.0)).shares == (3, 2)
    assert cube_of(graph, 6, windows, (1.0, 99.0)).shares == (1, 6)
    assert cube_of(graph, 6, windows, (1.0, 99.0), before=[3, 2]).shares == (3, 2)
    assert cube_of(graph, 6, (sj.RowWindow(9), sj.TimeWindow(3)), (1.0, 1.0)).shards == 6


def test_rates_and_windows_weigh() -> None:
    assert weights_of((sj.TimeWindow(10), sj.TimeWindow(5)), (1.0, 2.0)) == (2.0, 3.0)
    assert rates_of(None, "abc") == (1.0, 1.0, 1.0)
    assert rates_of({"a": 5, "b": 2, "c": 1}, "abc") == (5.0, 2.0, 1.0)
    with pytest.raises(sj.SpecError, match="rates must be a number above 0 for each stream, not 0 for b"):
        rates_of((1, 0, 2), "abc")


def test_predicates_are_told_from_columns() -> None:
    assert read_on("k", None, "ab") == On((("k", "k"),))
    assert read_on(["k", ("x", "y")], None, "ab") == On((("k", "k"), ("x", "y")))
    assert read_on("x=y", None, "ab") == On((("x=y", "x=y"),))  # a column may be called so
    keys = read_on(["a.k = b.k", "b.k = c.j", "a.d = c.d", "b.d = a.d"], None, "abc").keys
    assert keys == (("k", "k", "j"), ("d", "d", "d"))
    assert read_on(["a.k = b.k", "b.k = c.k", "a.t < c.t"], None, "abc").keys == ()
    with pytest.raises(sj.SpecError, match="on speaks of a stream 'd'"):
        read_on(["a.k = d.k"], None, "abc")
    with pytest.raises(sj.SpecError, match="no predicate leads to 'c'"):
        read_on(["a.k < b.k"], None, "abc")


def test_many_streams_and_shards_are_arranged_in_a_moment() -> None:
    names = [f"s{place}" for place in range(16)]
    graph = parse([f"{one}.y = {two}.x" for one, two in pairwise(names)], names)
    cube = choose(dimensions(graph), 1024, [1.0] * 16)
    assert 512 < cube.shards <= 1024
