"""Shards of join graphs without Spark: rows go through packing tasks to the cells of a cube, and results come once."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dict_store import DictStore
from shards import TRAVELS

import shedjoin as sj
from shedjoin.engine.graph import parse
from shedjoin.spark import state
from shedjoin.spark.exchange import LATE, METRIC, RESULT, SHED, Message, from_blob, inputs_of, shard_labels
from shedjoin.spark.hypercube import HyperCube, choose, dimensions
from shedjoin.spark.job import Job
from shedjoin.spark.metrics import latest, recall_of
from shedjoin.spark.packing import Packing, pack
from shedjoin.spark.payload import column_name

LENGTH, LATENESS = 30, 12
CHAIN = ("a.x = b.x", "b.y = c.y")
THETA = ("a.x < b.x", "|b.x - c.x| <= 1")
MIXED = ("a.x = b.x", "b.y < c.y", "a.x != c.x")
PAIR = ("left.x < right.x",)
GRAPHS = {"chain": CHAIN, "theta": THETA, "mixed": MIXED, "pair": PAIR}
#: Of each stream: attributes by name, times and, last, a number for each row.
Rows = list[dict[str, np.ndarray]]


def spec_of(on: tuple[str, ...], **more: Any) -> sj.JoinSpec:
    names = ("left", "right") if on == PAIR else ("a", "b", "c")
    window = sj.TimeWindow(LENGTH)
    return sj.JoinSpec(window if on == PAIR else dict.fromkeys(names, window), on=on, lateness=LATENESS, **more)


def rows_of(spec: sj.JoinSpec, seed: int, count: int = 60) -> Rows:
    """Values from 0 to 4, times out of order within the lateness; 4 will be null in x."""
    draw = np.random.default_rng(seed)
    streams = []
    for _ in spec.names:
        ts = np.arange(count) * 3
        ts = ts[np.argsort(ts + draw.integers(0, LATENESS, count), kind="stable")]
        streams.append({"x": draw.integers(0, 5, count), "y": draw.integers(0, 4, count), "ts": ts})
    return streams


def exact(spec: sj.JoinSpec, rows: Rows) -> Counter[tuple[int, ...]]:
    """Every combination is looked at."""
    graph = parse(spec.on, spec.names)
    sides = [range(len(side["ts"])) for side in rows]
    compare = {0: np.equal, 1: np.less, 5: np.not_equal}
    grids = np.meshgrid(*sides, indexing="ij")
    fits = np.ones(grids[0].shape, bool)
    times = np.stack([side["ts"][grid] for side, grid in zip(rows, grids, strict=True)])
    fits &= times.max(axis=0) - times.min(axis=0) < LENGTH
    for stream, names in enumerate(graph.columns):
        if "x" in names:
            fits &= rows[stream]["x"][grids[stream]] != 4
    for one in (*graph.equalities, *graph.thetas):
        left = rows[one.left][graph.columns[one.left][one.left_attr]][grids[one.left]]
        right = rows[one.right][graph.columns[one.right][one.right_attr]][grids[one.right]]
        fits &= abs(left - right) <= one.band if one.op == 6 else compare[one.op](left, right)
    return Counter(zip(*(grid[fits].tolist() for grid in grids), strict=True))


class Cube:
    """All shards of a join graph, micro-batch after micro-batch."""

    def __init__(
        self,
        spec: sj.JoinSpec,
        shards: int,
        *,
        archive: bool = False,
        stores: Any = None,
        shares: str = "adaptive",
        front: float = 0.0,
    ) -> None:
        self.front = front
        self.spec, self.graph = spec, parse(spec.on, spec.names)
        self.cube: HyperCube = choose(dimensions(self.graph), shards, [1.0] * len(spec.names))
        labels = shard_labels(self.cube.shards, self.cube.shards)
        kinds = (RESULT, SHED, METRIC, *(inputs_of(spec.names) if archive else ()))
        self.job = Job(
            spec=spec.to_dict(), labels=labels, seed=0, kept=((0, 1),) * len(spec.names), signature={}, kinds=kinds,
            cache=False, shares=shares, names=spec.names, cube=self.cube, front=front > 0,
        )  # fmt: skip
        self.stores = stores or [DictStore() for _ in labels]

    def sent(self, rows: Rows, first: int, last: int, tasks: int = 2) -> list[Message | Any]:
        """What the packing tasks send: (label, message)."""
        found = []
        for stream, side in enumerate(rows):
            names = self.graph.columns[stream]
            how = Packing(
                stream, self.spec.names[stream], self.job.labels, self.cube, TRAVELS.serialize().to_pybytes(), "ts",
                counted=self.job.adaptive, numbered=self.spec.counted_elsewhere, named=len(self.job.kinds) > 3,
                front=self.front, marked=True,
            )  # fmt: skip
            edges = np.linspace(first, last, tasks + 1).astype(int).tolist()
            for task, (start, end) in enumerate(pairwise(edges)):
                for batch in pack(iter([self.table(side, names, start, end)]), how, task, first):
                    found += [
                        (row["label"], Message(*(row[name] for name in Message._fields))) for row in batch.to_pylist()
                    ]
        return found

    def table(self, side: dict[str, np.ndarray], names: tuple[str, ...], start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end)
        null = (side["x"][start:end] == 4) & ("x" in names)
        fields = {f"k{place}": pa.array(side[name][start:end]) for place, name in enumerate(names)}
        fields["row"] = pa.array(number * 0x9E3779B97F4A7C1)  # a hash of the row; those who need none do not look
        key = pa.StructArray.from_arrays([*fields.values()], names=[*fields], mask=pa.array(null))
        columns = {
            "key": key,
            "ts": pa.array(side["ts"][start:end]),
            "row": pa.array(number),
            "text": pa.array([f"{one:>7}" for one in number]),
        }
        return pa.RecordBatch.from_pydict(columns)

    def batch(self, rows: Rows, first: int, last: int) -> dict[str, list[dict[str, Any]]]:
        """Run one micro-batch; returns the rows of each kind."""
        sent = self.sent(rows, first, last)
        given: dict[str, list[dict[str, Any]]] = {kind: [] for kind in (*self.job.kinds, LATE)}
        for number, (label, store) in enumerate(zip(self.job.labels, self.stores, strict=True)):
            mine = [message for to, message in reversed(sent) if to == label]
            for kind, blob in self.job.shard(number, store).run(mine):
                if kind == LATE:
                    given[kind].append({"late": int(blob)})
                    continue
                for part in from_blob(blob):
                    given[kind] += part.to_pylist()
        return given

    def run(self, rows: Rows, batches: int) -> list[dict[str, list[dict[str, Any]]]]:
        edges = np.linspace(0, len(rows[0]["ts"]), batches + 1).astype(int).tolist()
        return [self.batch(rows, first, last) for first, last in pairwise(edges)]

    def results(self, given: list[dict[str, list[dict[str, Any]]]]) -> Counter[tuple[int, ...]]:
        streams = len(self.spec.names)
        names = [column_name(streams, stream, 0) for stream in range(streams)]
        return Counter(tuple(row[name] for name in names) for one in given for row in one[RESULT])


def total(given: list[dict[str, list[dict[str, Any]]]], name: str) -> int:
    return sum(row[name] for one in given for row in one[METRIC])


@pytest.mark.parametrize("on", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("shards", [1, 4, 6])
def test_any_number_of_shards_gives_the_exact_join(on: tuple[str, ...], shards: int) -> None:
    spec = spec_of(on)
    rows = rows_of(spec, 1)
    cube = Cube(spec, shards)
    given = cube.run(rows, 3)
    assert cube.results(given) == exact(spec, rows)
    assert len(exact(spec, rows)) > 50
    for stream, name in enumerate(spec.names):  # each row is counted once, wherever it goes
        assert total(given, f"rows_{name}") == 60
        assert cube.cube.copies(stream) <= shards
    nulls = sum(
        int((side["x"] == 4).sum())
        for side, names in zip(rows, parse(on, spec.names).columns, strict=True)
        if "x" in names
    )
    assert total(given, "nulls") == nulls
    assert all(row["recall"] is None for one in given for row in one[METRIC])


@pytest.mark.parametrize("on", [CHAIN, THETA, PAIR], ids=["chain", "theta", "pair"])
def test_a_budget_holds_for_all_copies_and_late_rows_count_once(on: tuple[str, ...]) -> None:
    """What is missing is known from the shed log and the archive of each shard."""
    budget = sj.Budget(tuples=36)
    spec = spec_of(on, budget=budget, policy=sj.Rand())
    rows = rows_of(spec, 2)
    for side in rows:
        side["ts"][50], side["x"][50] = 0, 1  # late in the last batch
    cube = Cube(spec, 4, archive=True)
    assert cube.cube.shards == 4
    given = cube.run(rows, 3)
    found, whole = cube.results(given), exact(spec, rows)
    assert max(found.values()) == 1
    assert found.keys() < whole.keys()
    for one in given:
        assert sum(row["peak_tuples"] for row in one[METRIC]) <= 36
    assert total(given, "late") == len(spec.names) == sum(row["late"] for one in given for row in one[LATE])
    late = Counter((row["stream"], row["seq"]) for one in given for row in one[SHED] if row["why"] == "late")
    assert sum(late.values()) == sum(cube.cube.copies(stream) for stream in range(len(spec.names)))
    assert Counter(found) + missing(cube, given) == whole
    told = recall_of(latest([row for one in given for row in one[METRIC]]))
    assert told is not None
    in_time = sum(50 not in rows for rows in whole)  # recall is over rows that were not late
    assert (told.results + told.missing, told.low) == (in_time, told.high)


def missing(cube: Cube, given: list[dict[str, list[dict[str, Any]]]]) -> Counter[tuple[int, ...]]:
    """The rule of docs/nway.md, "Budgets", in each shard: its archive has all rows that went there."""
    names, graph = cube.spec.names, cube.graph
    found: Counter[tuple[int, ...]] = Counter()
    for shard in range(cube.cube.shards):
        sides, gone, late = [], {}, {}
        for kind in inputs_of(names):
            rows = [row for one in given for row in one[kind] if row["a2"] == shard]
            assert [row["a3"] for row in rows] == list(range(len(rows)))
            sides.append([row for row in rows if row["a4"] is not None])
        for row in (row for one in given for row in one[SHED] if row["shard"] == shard):
            seen = [0 if row["why"] == "dropped" else row[f"seen_{name}"] for name in names]
            if row["why"] == "late":
                late[row["stream"], row["seq"]] = seen, [row[f"expired_{name}"] for name in names]
            else:
                gone[row["stream"], row["seq"]] = seen
        for chosen in product(*sides):
            times = [row["a5"] for row in chosen]
            if max(times) - min(times) >= LENGTH or not holds(graph, [row["a4"] for row in chosen]):
                continue
            pairs = permutations(enumerate(chosen), 2)
            if any(
                has_missed(gone, late, (stream, row["a3"]), place, other) for (stream, row), (place, other) in pairs
            ):
                found[tuple(row["a0"] for row in chosen)] += 1
    return found


def has_missed(gone: Any, late: Any, row: tuple[int, int], place: int, other: dict[str, Any]) -> bool:
    """Whether a row had left when another came, or came when the other had expired."""
    if row in gone and other["a3"] >= gone[row][place]:
        return True
    if row not in late or late[row][1][place] is None:
        return False
    return bool(other["a3"] < late[row][0][place] and other["a5"] <= late[row][1][place])


def holds(graph: Any, keys: list[list[int]]) -> bool:
    for one in (*graph.equalities, *graph.thetas):
        left, right = keys[one.left][one.left_attr], keys[one.right][one.right_attr]
        if not {0: left == right, 1: left < right, 5: left != right, 6: abs(left - right) <= one.band}[one.op]:
            return False
    return True


@pytest.mark.parametrize("on", [CHAIN, THETA, PAIR], ids=["chain", "theta", "pair"])
def test_rows_that_are_dropped_in_front_are_logged_and_missing(on: tuple[str, ...]) -> None:
    """In each shard that they would have gone to; metrics count them once. Recall counts what they would have met."""
    spec = spec_of(on, budget=sj.Budget(tuples=60), policy=sj.Rand())
    rows = rows_of(spec, 6)
    cube = Cube(spec, 4, archive=True, front=0.25)
    given = cube.run(rows, 3)
    found, whole = cube.results(given), exact(spec, rows)
    dropped = Counter((row["stream"]) for one in given for row in one[SHED] if row["why"] == "dropped")
    for stream, name in enumerate(spec.names):
        told = total(given, f"dropped_{name}")
        assert 5 < told < 25
        assert dropped[stream] == told * cube.cube.copies(stream)
    assert found.keys() < whole.keys()
    assert found + missing(cube, given) == whole
    told = recall_of(latest([row for one in given for row in one[METRIC]]))
    assert told is not None
    assert (told.results, told.results + told.missing) == (found.total(), whole.total())


@pytest.mark.parametrize("on", [CHAIN, MIXED, PAIR], ids=["chain", "mixed", "pair"])
@pytest.mark.parametrize("tuples", [None, 40], ids=["exact", "shedding"])
def test_row_windows_count_the_rows_of_all_shards(on: tuple[str, ...], tuples: int | None) -> None:
    """Four shards give what one gives; with a budget, what is missing follows from numbers over all shards."""
    time_spec = spec_of(on)
    windows = dict(zip(time_spec.names, (sj.RowWindow(12), sj.TimeWindow(40), sj.RowWindow(9)), strict=False))
    plain = sj.JoinSpec(windows, on=on, lateness=LATENESS)
    split = sj.JoinSpec(
        windows, on=on, lateness=LATENESS, counted_elsewhere=True,
        budget=None if tuples is None else sj.Budget(tuples=tuples), policy=None if tuples is None else sj.Rand(),
    )  # fmt: skip
    rows = rows_of(plain, 7)
    one, four = Cube(plain, 1), Cube(split, 4, archive=True)
    whole, given = one.results(one.run(rows, 3)), four.run(rows, 3)
    found = four.results(given)
    assert four.cube.shards == 4
    numbers: list[dict[int, int]] = []
    for kind in inputs_of(plain.names):  # a row has one number, whichever shard it is in
        pairs = {(row["a0"], row["a3"]) for batch in given for row in batch[kind]}
        assert sorted(number for _, number in pairs) == list(range(60))
        numbers.append(dict(pairs))
    if tuples is None:
        assert found == whole
        return
    gone: dict[tuple[int, int], dict[int, list[int]]] = {}
    for row in (row for batch in given for row in batch[SHED]):
        seen = [row[f"seen_{name}"] for name in plain.names]
        gone.setdefault((row["stream"], row["seq"]), {})[row["shard"]] = seen
    lost = Counter()
    for result in whole:
        seqs = [numbers[stream][row] for stream, row in enumerate(result)]
        shards = [
            {shard for shard in range(4) if (seq, shard) in where}
            for seq, where in zip(seqs, places(given, plain.names), strict=True)
        ]
        (shard,) = set.intersection(*shards)  # they meet in one
        if any(
            seqs[other] >= gone[stream, seq][shard][other]
            for stream, seq in enumerate(seqs)
            if shard in gone.get((stream, seq), {})
            for other in range(len(seqs))
            if other != stream
        ):
            lost[result] += 1
    assert found + lost == whole
    assert 0 < lost.total() < whole.total()


def places(given: list[dict[str, list[dict[str, Any]]]], names: tuple[str, ...]) -> list[set[tuple[int, int]]]:
    """Of each stream: numbers of rows and the shards they are archived in."""
    return [{(row["a3"], row["a2"]) for batch in given for row in batch[kind]} for kind in inputs_of(names)]


def test_an_archived_row_has_one_name_in_all_shards() -> None:
    spec = spec_of(MIXED)
    cube = Cube(spec, 6, archive=True)
    given = cube.run(rows_of(spec, 3), 2)
    for stream, kind in enumerate(inputs_of(spec.names)):
        for one in given:
            copies = Counter(row["a7"] for row in one[kind] if row["a4"] is not None)
            assert set(copies.values()) == {cube.cube.copies(stream)}
            named = {(row["a0"], row["a7"]) for row in one[kind]}
            assert len(named) == len({name for name, _ in named}) == len({number for _, number in named}) == 30


def test_memory_goes_to_the_shards_that_hold_rows() -> None:
    """Most rows of b have one x and one y: one of four shards has most of the rows, and gets more than a quarter."""
    spec = spec_of(CHAIN, budget=sj.Budget(tuples=60), policy=sj.Prob())
    rows = rows_of(spec, 5)
    draw = np.random.default_rng(5)
    for side in rows:
        hot = draw.random(60) < 0.8
        side["x"][hot], side["y"][hot] = 1, 2
    peaks, found = [], []
    for shares in ("adaptive", "equal"):
        cube = Cube(spec, 4, shares=shares)
        given = cube.run(rows, 4)
        peaks.append(max(row["peak_tuples"] for row in given[-1][METRIC]))
        found.append(len(cube.results(given)))
        assert sum(row["peak_tuples"] for row in given[-1][METRIC]) <= 60
    assert peaks[0] > peaks[1] == 15
    assert found[0] > found[1]


def test_a_shard_goes_on_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the log of batches, and from a base: results, shed log and memory are the same."""
    spec = spec_of(MIXED, budget=sj.Budget(tuples=60), policy=sj.Prob())
    rows = rows_of(spec, 4)
    outcomes = []
    for least in (1 << 22, 1):
        monkeypatch.setattr(state, "LEAST_REDO", least)
        cube = Cube(spec, 6)
        cube.run([{name: column[:40] for name, column in side.items()} for side in rows], 3)
        again = Cube(spec, 6, stores=[store.copy() for store in cube.stores])
        given = again.batch(rows, 40, 60)
        outcomes.append((given[RESULT], given[SHED], [row["resident_a"] for row in given[METRIC]]))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0]
