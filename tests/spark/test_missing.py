"""Missing pairs by Spark, against the exact join by two nested loops."""

from __future__ import annotations

from typing import Any

import archives
import pytest

import shedjoin as sj
from shedjoin.spark.archive import Archive, Layout, Move, shed_columns, shed_ddl
from shedjoin.spark.missing import missing_results

T, R = sj.TimeWindow, sj.RowWindow
#: With time windows every shard is a random case of its own, so that a few Spark jobs try hundreds of them.
SHARDS = 40
#: Rows are compared with parts of the windows.
PARTS = sj.Selective(basic=2, rate=False, period=5, rank_period=7, sample=0.2, fraction=0.4)
#: One of each kind is in the test of `refine`.
CASES = [((T(2), T(9)), None), ((R(40), R(150)), None), ((T(5), T(8)), PARTS), ((R(45), T(7)), PARTS)]


def archive_of(spark: Any, made: archives.Made, upto: int) -> Archive:
    left, right, shed = archives.tables(made, upto)
    layout = Layout((), (("left", 0, "label"), ("right", 1, "label")))
    stretches = spark.createDataFrame(archives.stretches(made, upto)) if made.left_out else None
    frames = (spark.createDataFrame(table) for table in (left, right, shed))
    return Archive(*frames, made.windows, layout, left_out=stretches)


def pairs_of(frame: Any) -> list[archives.Pair]:
    found = []
    for row in frame.collect():
        assert row["left"]["label"] == f"{row['_sj_shard']}/0/{row['_sj_seq_left']}"
        assert row["right"]["label"] == f"{row['_sj_shard']}/1/{row['_sj_seq_right']}"
        found.append((row["_sj_shard"], row["_sj_seq_left"], row["_sj_seq_right"]))
    return found


@pytest.mark.parametrize(("windows", "selective"), CASES, ids=str)
def test_results_and_missing_pairs_are_the_exact_join_at_every_step(small: Any, windows: Any, selective: Any) -> None:
    made = archives.make(windows, shards=SHARDS, batches=6, seed=11, selective=selective)
    assert (len(made.left_out) > 50) == (selective is not None)
    exact = made.exact()
    assert len(made.met) > 100
    assert len(exact) > 1.2 * len(made.met)
    assert any(record["why"] == "late" for record in made.shed)
    missing = exact - set(made.met)
    came = {(row.shard, row.stream, row.seq): row.batch for row in made.rows}
    due = {(s, left, right): max(came[s, 0, left], came[s, 1, right]) for s, left, right in missing}

    first = missing_results(archive_of(small, made, 2))  # all pairs of an archive
    then = missing_results(archive_of(small, made, 5), 2)  # and what is new in a grown one
    steps = [pairs_of(step) for step in (first, then)]
    for step, batches in zip(steps, (range(3), range(3, 6)), strict=True):
        assert sorted(step) == sorted(pair for pair, batch in due.items() if batch in batches)
        assert len(step) > 25


def archived_by(moves: tuple[Move, ...], batch: int, shard: int, seq: int) -> tuple[int, int]:
    """The shard and the number by which a row of the log was archived, one change after the other, the last first."""
    for move in reversed(moves):
        if move.renumbers and batch > move.after and move.first[0] <= seq < move.start[0]:
            seq, shard = divmod(seq - move.first[0], move.shards)
    return shard, seq


def test_a_row_is_known_in_the_log_through_many_changes_of_shards(small: Any) -> None:
    """The plan grows by the same with each change."""
    moves, arrived = [], 40
    for after, shards in enumerate((2, 3, 1, 4, 2, 3)):
        first = arrived
        arrived = first + first * shards
        moves.append(Move(after * 2 + 1, shards, (first, first), (arrived, arrived)))
        arrived += 10
    told = [
        (batch, shard, seq)
        for batch in range(14)
        for shard in range(4)
        for seq in {0, 7, *(one.first[0] for one in moves), *(one.first[0] + 5 for one in moves), arrived - 1}
    ]
    nothing = dict.fromkeys(shed_columns(("left", "right")), 0)
    rows = [
        tuple({**nothing, "why": "evicted", "batch": batch, "shard": shard, "seq": seq}.values())
        for batch, shard, seq in told
    ]
    shed = small.createDataFrame(rows, shed_ddl(("left", "right")))
    side = small.createDataFrame(
        [], "x int, _sj_shard int, _sj_seq long, _sj_key long, _sj_ts long, _sj_imp double, sj_batch long"
    )
    layout = Layout((), (("x", 0, "x"), ("y", 1, "x")))

    def logged(count: int) -> Any:
        archive = Archive(side, side, shed, (T(5), T(5)), layout, moves=tuple(moves[:count]))
        return archive.logged(0, ["evicted"])

    found = logged(6).select("batch", "shard", "seq", "_sj_shard", "_sj_seq").collect()
    assert {tuple(row)[:3]: tuple(row)[3:] for row in found} == {one: archived_by(tuple(moves), *one) for one in told}
    sizes = [len(logged(count)._jdf.queryExecution().analyzed().toString()) for count in (2, 4, 6)]
    assert sizes[2] - sizes[1] < 1.5 * (sizes[1] - sizes[0])
