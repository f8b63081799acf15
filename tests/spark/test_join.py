"""`shed_join` on Spark: the exact join, in streams and in batch, however the input is cut."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import real_streams
import spark_real
from plans import COMPILED, set_for
from streams import SECOND, exact, pairs, read, run, side, write

import shedjoin as sj
from shedjoin.errors import DataError
from shedjoin.spark import shed_join
from shedjoin_lab.data.folder import data_set_folder

COLUMNS = ["k", "a", "b"]
#: dns x ssl of network_wrccdc_2018 on the client, within a second: what its README says.
CLIENTS = 220_341


@pytest.fixture(scope="module")
def logs() -> list[pa.Table]:
    """Look-ups and handshakes of a real network; where that data is not, streams with a key that has half of all rows."""
    try:
        sides = real_streams.SOURCES["clients"](data_set_folder("network_wrccdc_2018"))
    except DataError:
        return real_streams.half_in_one(3000, 0.5)
    assert real_streams.exact_sums(*sides, SECOND)[0] == CLIENTS
    return sides


def sums(spark: Any, output: Path) -> Any:
    counted = spark_real.Counted()
    counted.take(spark.read.parquet(str(output)), 0)
    return counted.total()


WAYS = [(4, 1, 2, "shuffled"), (3, 3, 1, "by time"), (2, 1, 2, "left first")]


@pytest.mark.parametrize(("files", "each", "shards", "order"), WAYS)
def test_streams_are_joined_exactly(
    spark: Any, tmp_path: Path, cache: str, logs: list[pa.Table], files: int, each: int, shards: int, order: str
) -> None:
    lateness = 5 * SECOND if order == "shuffled" else 0
    for seed, (name, table) in enumerate(zip(("l", "r"), logs, strict=True)):
        rows = spark_real.shuffled(table, lateness, seed) if lateness else table
        write(tmp_path / name, rows if (name, order) != ("r", "left first") else rows.slice(0, 0), files)

    def go_on() -> None:
        joined = shed_join(
            read(spark, tmp_path / "l", each),
            read(spark, tmp_path / "r", each),
            on="k",
            time="ts",
            window="1 second",
            lateness=timedelta(microseconds=lateness),
            shards=shards,
            select={"ln": "left.n", "rn": "right.n"},
            cache=cache,
        )
        assert joined.isStreaming
        assert joined.columns == ["ln", "rn"]
        run(joined, tmp_path / "c", tmp_path / "o")

    with set_for(spark, COMPILED):
        go_on()
        if order == "left first":
            write(tmp_path / "r", logs[1], files, first=files)
            go_on()
        assert sums(spark, tmp_path / "o") == real_streams.exact_sums(*logs, SECOND)


def test_the_sums_are_those_of_all_pairs() -> None:
    """What real streams are held against, against nested loops."""
    left, right = real_streams.half_in_one(300, 0.5)
    found = [(a, b) for a, b in exact(left, right, 40_000)]
    first, second = real_streams.MODULI
    wanted = [(1, a % first, b % second, (a % first) * (b % second)) for a, b in found]
    assert real_streams.exact_sums(left, right, 40_000) == tuple(map(sum, zip(*wanted, strict=True)))
    late = spark_real.shuffled(left, 9000, 1)["ts"].cast(pa.int64()).to_numpy()
    behind = max(int(late[:place].max()) - int(late[place]) for place in range(1, 300))
    assert 0 < behind < 9000


def test_batch_dataframes_are_joined_by_the_same_call(spark: Any) -> None:
    left, right = side(5, 2000, 40, "a", lag=SECOND), side(6, 1500, 40, "b", lag=SECOND)
    frames = (spark.createDataFrame(table).repartition(3) for table in (left, right))
    joined = shed_join(*frames, on="k", time="ts", window="2 seconds", shards=2, select=COLUMNS)
    assert not joined.isStreaming
    found = joined.toArrow()
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == exact(left, right, 2 * SECOND)


def test_with_a_budget_the_output_is_the_engines(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = side(7, 1500, 60, "a"), side(8, 1500, 60, "b")
    write(tmp_path / "l", left, 3)
    write(tmp_path / "r", right, 3)
    joined = shed_join(
        read(spark, tmp_path / "l"),
        read(spark, tmp_path / "r"),
        on="k",
        time="ts",
        window="4 seconds",
        lateness=0,
        budget="100 tuples",
        policy="age",
        shards=1,
        select=COLUMNS,
        cache=cache,
    )
    run(joined, tmp_path / "c", tmp_path / "o")
    found = pairs(spark, tmp_path / "o")
    spec = sj.JoinSpec(sj.TimeWindow(4 * SECOND), sj.Budget(tuples=100), sj.Age())
    # The engine is given the keys themselves, in order of time.
    engine = spec.build()
    sides = [{"key": t["k"], "ts": t["ts"].cast("int64")} for t in (left, right)]
    out = engine.push(left=sides[0], right=sides[1])
    assert found == sorted(zip(out.left.tolist(), out.right.tolist(), strict=True))
    assert 0 < len(found) < len(exact(left, right, 4 * SECOND))
