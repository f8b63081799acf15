"""Join types on Spark: the rows of Spark's own join, and under a budget never a false one; `refine` settles the rest."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from plans import large_plans
from streams import SECOND, read, run, write

import shedjoin as sj
from shedjoin.join_type import TYPES
from shedjoin.spark import refine, shed_join, start
from shedjoin.spark.metrics import summarise

Rows = Counter[tuple[Any, ...]]
#: A window of rows whose times differ by less than this, for both joins.
LENGTH = 4
TIME = {"on": "k", "time": ("at", "seen"), "window": f"{LENGTH} seconds", "lateness": "1 second"}


def side(seed: int, name: str, time: str, rows: int = 240, keys: int = 30, words: bool = False) -> pa.Table:
    """Rows in the order of their times up to a second, with nulls and duplicates; and one long after all of them."""
    random = Random(seed)
    at = [place // 3 * SECOND // 2 - random.choice((0, 0, SECOND // 2)) for place in range(rows)]
    key: list[Any] = [random.choice((None, *range(keys))) for _ in at]
    if words:
        key = [None if one is None else f"key {one}" for one in key]
    last = "the end" if words else -1
    return pa.table(
        {
            "k": pa.array([*key, f"{last} {name}" if words else -1 - seed], pa.string() if words else pa.int64()),
            time: pa.array([*at, 10_000 * SECOND], pa.timestamp("us", tz="UTC")),
            name: pa.array([*range(rows), -1], pa.int64()),
        }
    )


def tables(words: bool = False) -> list[pa.Table]:
    return [side(1, "a", "at", words=words), side(2, "b", "seen", words=words)]


def by_spark(frames: list[Any], how: str, *, more: str = "") -> Rows:
    """What Spark's own join gives."""
    for frame, name in zip(frames, ("l", "r"), strict=True):
        frame.createOrReplaceTempView(name)
    kind = how.replace("_", " ")
    micros = "unix_micros(seen) - unix_micros(at)"
    on = f"l.k = r.k and abs({micros}) < {LENGTH * SECOND}{more}"
    columns = "l.k, a" if how in ("left_semi", "left_anti") else "coalesce(l.k, r.k), a, b"
    return Counter(
        tuple(row) for row in frames[0].sparkSession.sql(f"select {columns} from l {kind} join r on {on}").collect()
    )


def columns_of(how: str) -> list[str]:
    return ["k", "a"] if how in ("left_semi", "left_anti") else ["k", "a", "b"]


def rows_of(frame: Any, how: str) -> Rows:
    return Counter(tuple(row) for row in frame.select(*columns_of(how)).collect())


def settled(rows: Rows) -> Rows:
    """Without the rows that come after the end of all windows: those are still stored when a stream stops."""
    return Counter({row: count for row, count in rows.items() if -1 not in row[1:]})


@pytest.mark.parametrize(
    ("how", "words"), [*((how, False) for how in TYPES), ("full_outer", True), ("left_semi", True)]
)
def test_a_batch_join_gives_the_rows_of_sparks_own(spark: Any, how: str, words: bool) -> None:
    frames = [spark.createDataFrame(table) for table in tables(words)]
    joined = shed_join(*frames, **TIME, how=how, shards=2)
    assert rows_of(joined, how) == by_spark(frames, how)
    if how in ("left_semi", "left_anti"):
        assert joined.columns == ["k", "at", "a"]
    else:
        assert joined.columns == ["k", "at", "a", "seen", "b"]


@pytest.mark.parametrize("how", ["FULL", "semi"])
def test_a_stream_gives_the_rows_of_sparks_own(spark: Any, tmp_path: Path, how: str) -> None:
    made = tables()
    for name, table in zip("lr", made, strict=True):
        write(tmp_path / name, table, 3)
    full = {"FULL": "full_outer", "semi": "left_semi"}[how]
    joined = shed_join(*(read(spark, tmp_path / name) for name in "lr"), **TIME, how=how, shards=2)
    run(joined, tmp_path / "checkpoint", tmp_path / "out")
    exact = by_spark([spark.createDataFrame(table) for table in made], full)
    assert settled(rows_of(spark.read.parquet(str(tmp_path / "out")), full)) == settled(exact)


@pytest.mark.parametrize(
    ("how", "budget", "front"),
    [
        ("full_outer", 40, 0),
        ("left_anti", 16, 0),
        ("left_semi", 12, 0),
        ("full_outer", 400, (0.1, 0.05)),
        ("left_anti", 30, 0.1),
        ("left_semi", None, 0.1),
    ],
)
def test_results_and_refined_rows_are_the_exact_join(
    spark: Any, tmp_path: Path, how: str, budget: int | None, front: Any
) -> None:
    """(A full outer join preserves left rows as a left one does, and right rows as a right one.)

    Also where the number of shards changes in between: what is known of partners and of shed rows goes along.
    """
    made, out = tables(), tmp_path / "out"
    changed = how in ("full_outer", "left_anti") and not front
    for shards, files in ((1, (0, 2)), (2, (2, 4))) if changed else ((2, (0, 4)),):
        for name, table in zip("lr", made, strict=True):
            first, end = (table.num_rows * place // 4 for place in files)
            write(tmp_path / name, table.slice(first, end - first), files[1] - files[0], first=files[0])
        start(
            *(read(spark, tmp_path / name) for name in "lr"),
            **TIME,
            how=how,
            budget=budget,
            policy=None if budget is None else "rand",
            front=front,
            shards=shards,
            output=str(out),
            archive=True,
            trigger={"availableNow": True},
        ).awaitTermination()
    exact = settled(by_spark([spark.createDataFrame(table) for table in made], how))
    given = settled(rows_of(spark.read.parquet(str(out / "results")), how))
    assert given <= exact
    with large_plans(spark):
        first = refine(str(out), upto=1)
        last = refine(str(out))
        rest = settled(rows_of(last.rows, how))
    assert first.count <= last.count
    assert given + rest == exact
    assert rest
    assert given
    counted = spark.read.parquet(str(out / "metrics")).agg({"certain": "sum", "unknown": "sum"}).first()
    assert counted[0] is not None
    logged = spark.read.parquet(str(out / "shed")).where("why = 'unknown'").count()
    assert 0 <= logged <= max(counted)
    assert len(json.loads((out / "job.json").read_text())["moves"]) == changed


@pytest.mark.parametrize("how", ["full_outer", "left_anti", "left_semi"])
def test_rows_that_are_dropped_without_a_log_make_no_row_false(spark: Any, how: str) -> None:
    frames = [spark.createDataFrame(table) for table in tables()]
    found, exact = rows_of(shed_join(*frames, **TIME, how=how, front=0.1, shards=2), how), by_spark(frames, how)
    assert found < exact
    if how == "full_outer":
        assert any(None in row[1:] for row in found)


def test_predicates_and_join_graphs_judge_rows_in_one_shard(spark: Any) -> None:
    frames = [spark.createDataFrame(table) for table in tables()]
    graph = dict(TIME, on=["left.k = right.k", "left.a < right.b"])
    found = shed_join(*frames, **graph, how="full", select={"k": "left.k", "a": "left.a", "b": "right.b"})
    exact = by_spark(frames, "full_outer", more=" and l.a < r.b")
    assert Counter(row[1:] for row in rows_of(found, "full_outer").elements()) == Counter(
        row[1:] for row in exact.elements()
    )
    band = {name: value for name, value in TIME.items() if name != "on"} | {"predicate": sj.Band("k", within=0.0)}
    chosen = {"k": "left.k", "a": "left.a", "b": "right.b"}
    near = shed_join(*frames, **band, how="left", select=chosen)
    assert rows_of(near, "left_outer") == Counter(by_spark(frames, "left_outer"))
    with pytest.raises(sj.SpecError, match="shards must be 1 with how='full' here"):
        shed_join(*frames, **band, how="full", select=chosen, shards=2)
    with pytest.raises(sj.SpecError, match="shards must be 1 with how='full' here"):
        shed_join(*frames, **dict(graph, on="left.a < right.b"), how="full", select=chosen, shards=2)


BAND = {name: value for name, value in TIME.items() if name != "on"} | {"predicate": sj.Band("k", within=1.0)}
THETA = TIME | {"on": ["|left.k - right.k| <= 1"]}
OWN = {"left_semi": ["a"], "left_anti": ["a"], "left_outer": ["a", "b"], "right_outer": ["a", "b"]}


def near_keys(frames: list[Any], how: str) -> Rows:
    """What Spark's own join gives where keys differ by at most 1."""
    for frame, name in zip(frames, ("l", "r"), strict=True):
        frame.createOrReplaceTempView(name)
    on = f"abs(l.k - r.k) <= 1 and abs(unix_micros(seen) - unix_micros(at)) < {LENGTH * SECOND}"
    asked = f"select {', '.join(OWN[how])} from l {how.replace('_', ' ')} join r on {on}"
    return Counter(tuple(row) for row in frames[0].sparkSession.sql(asked).collect())


@pytest.mark.parametrize("how", OWN)
def test_predicates_and_join_graphs_judge_rows_in_several_shards(spark: Any, how: str) -> None:
    """Each row that is judged is in one of them, and its partners in all."""
    frames = [spark.createDataFrame(table) for table in tables()]
    exact = near_keys(frames, how)
    for join in (BAND, THETA):
        found = shed_join(*frames, **join, how=how, select=OWN[how], shards=3)
        assert Counter(map(tuple, found.collect())) == exact
    by_rows = dict(BAND, window="9 rows", how=how, select=OWN[how])
    one, several = (Counter(map(tuple, shed_join(*frames, **by_rows, shards=n).collect())) for n in (1, 3))
    assert one == several


@pytest.mark.parametrize(("how", "join"), [("left_anti", BAND), ("right_outer", BAND), ("left_semi", THETA)])
def test_several_shards_settle_what_a_predicate_left_open(
    spark: Any, tmp_path: Path, how: str, join: dict[str, Any]
) -> None:
    made, out = tables(), tmp_path / "out"
    for name, table in zip("lr", made, strict=True):
        write(tmp_path / name, table, 2)
    given = {**join, "how": how, "select": OWN[how], "budget": 60, "policy": "rand", "shards": 3, "front": (0, 0.05)}
    frames = [read(spark, tmp_path / name) for name in "lr"]
    start(*frames, **given, output=str(out), archive=True, trigger={"availableNow": True}).awaitTermination()
    exact = ended(near_keys([spark.createDataFrame(table) for table in made], how))
    with large_plans(spark):
        done = refine(str(out))
        rest = ended(Counter(map(tuple, done.rows.collect())))
    results = ended(Counter(map(tuple, spark.read.parquet(str(out / "results")).select(*OWN[how]).collect())))
    assert results + rest == exact
    assert results
    assert rest
    told = summarise(row.asDict() for row in spark.read.parquet(str(out / "metrics")).collect())
    assert told is not None
    assert told.rows == sum(table.num_rows for table in made)
    with pytest.raises((sj.SpecError, sj.SnapshotError), match=r"rows are stored in several shards|another shards"):
        start(*frames, **{**given, "shards": 1}, output=str(out), archive=True)


def ended(rows: Rows) -> Rows:
    """Without the rows that are still stored when a stream stops."""
    return Counter({row: count for row, count in rows.items() if -1 not in row})


@pytest.mark.parametrize("how", ["left_outer", "full_outer", "left_anti"])
def test_conditions_are_part_of_the_join(spark: Any, how: str) -> None:
    """A row that fails a condition on its own stream has no partner; it is given alone, as Spark's own join gives it."""
    frames = [spark.createDataFrame(table) for table in tables()]
    joined = shed_join(
        *frames, **TIME, how=how, where="left.a < right.b AND left.a > 20 AND right.b IS NOT NULL", shards=2
    )
    assert rows_of(joined, how) == by_spark(frames, how, more=" and l.a < r.b and l.a > 20 and r.b is not null")


def test_three_streams(spark: Any) -> None:
    frames = [spark.createDataFrame(table) for table in (*tables(), side(3, "c", "then"))]
    joined = shed_join(*frames, **(TIME | {"time": ("at", "seen", "then")}), how="left", shards=2)
    for frame, name in zip(frames, "lrt", strict=True):
        frame.createOrReplaceTempView(name)

    def near(one: str, other: str) -> str:
        return f"abs(unix_micros({one}) - unix_micros({other})) < {LENGTH * SECOND}"

    both = f"select r.k, b, c, seen, then from r join t on r.k = t.k and {near('seen', 'then')}"
    exact = spark.sql(
        f"select l.k, a, b, c from l left join ({both}) o on l.k = o.k and {near('at', 'seen')} and {near('at', 'then')}"
    )
    assert Counter(map(tuple, joined.select("k", "a", "b", "c").collect())) == Counter(map(tuple, exact.collect()))


def test_matches_and_what_makes_no_sense(spark: Any) -> None:
    frames = [spark.createDataFrame(table) for table in tables()]
    few = shed_join(*frames, **TIME, matches=(1, 1), shards=2).count()
    assert 0 < few < shed_join(*frames, **TIME).count()
    for wrong, sentence in (
        (dict(how="sideways"), "how must be one of inner, left_semi"),
        (dict(how="semi", select=["a", "b"]), "select: a left_semi join gives columns of left alone, so it has no 'b'"),
        (dict(matches=(0.5, 1)), "matches must have one number"),
        (
            dict(how="left", where="factorial(left.a + right.b) > 3"),
            "where: .* cannot be decided while rows are joined",
        ),
    ):
        with pytest.raises(sj.SpecError, match=sentence):
            shed_join(*frames, **(TIME | wrong))
