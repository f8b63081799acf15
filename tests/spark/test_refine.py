"""Refinement: results and refined rows are the exact join, in any number of steps, whatever happens in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import archives
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import streams
from plans import large_plans

import shedjoin as sj
from shedjoin.spark.archive import Archive, Layout
from shedjoin.spark.lock import alone_in
from shedjoin.spark.refine import Refinement, refine
from shedjoin.spark.refine_log import RefineLog
from shedjoin.spark.start import start

module = sys.modules["shedjoin.spark.refine"]  # the package has a function of that name
T, R = sj.TimeWindow, sj.RowWindow
LAYOUT = Layout((), (("left", 0, "label"), ("right", 1, "label")))


def stored(spark: Any, folder: Path, made: archives.Made, upto: int, after: int = -1) -> Archive:
    """Some more batches, written as files; the archive of all that is there by then."""
    names = ("left", "right", "shed")
    for name, table in zip(names, archives.tables(made, upto, after), strict=True):
        (folder / name).mkdir(exist_ok=True, parents=True)
        pq.write_table(table, folder / name / f"{upto}.parquet")
    left, right, shed = (spark.read.parquet(str(folder / name)) for name in names)
    return Archive(left, right, shed, made.windows, LAYOUT)


def labels(pairs: Any) -> Counter[tuple[str, str]]:
    return Counter((f"{shard}/0/{left}", f"{shard}/1/{right}") for shard, left, right in pairs)


def rows_of(outcome: Refinement) -> Counter[tuple[str, str]]:
    return Counter((row["left"], row["right"]) for row in outcome.rows.collect())


def batch_of(made: archives.Made) -> dict[str, int]:
    return {archives.label(row): row.batch for row in made.rows}


def test_any_number_of_steps_gives_each_missing_row_once(small: Any, tmp_path: Path) -> None:
    """A window of each kind; two of time are in the test below."""
    made = archives.make((T(5), R(100)), shards=30, batches=7, seed=5)
    missing = labels(made.exact() - set(made.met))
    known_at = batch_of(made)
    after, total = -1, 0
    for upto in (2, 6):
        outcome = refine(stored(small, tmp_path / "archive", made, upto, after), into=tmp_path / "refined")
        due = Counter({pair: n for pair, n in missing.items() if max(known_at[pair[0]], known_at[pair[1]]) <= upto})
        assert rows_of(outcome) == due
        assert (outcome.count, outcome.batches) == (due.total(), upto)
        assert outcome.new == due.total() - total
        assert outcome.incomplete["left"] == len({left for left, _ in due})
        assert outcome.incomplete["right"] == len({right for _, right in due})
        after, total = upto, due.total()
    assert total == missing.total() > 150


def test_what_was_begun_is_finished_and_nothing_comes_twice(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = archives.make((T(5), T(3)), shards=20, batches=4, seed=6)
    target = tmp_path / "refined"
    refine(stored(small, tmp_path / "archive", made, 1), into=target)

    def dies(*args: object) -> None:
        raise OSError("the disk is full")

    archive = stored(small, tmp_path / "archive", made, 2, 1)
    for owner, name in (
        (module, "_newly_incomplete"),
        (RefineLog, "finish"),
    ):  # in the middle; when all but the note is done
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, dies)
            with pytest.raises(OSError, match="the disk is full"):
                refine(archive, into=target)
    archive = stored(small, tmp_path / "archive", made, 3, 2)
    outcome = refine(archive, into=target)
    assert rows_of(outcome) == labels(made.exact() - set(made.met))
    again = refine(archive, into=target)
    assert (again.new, again.count, again.arm) == (0, outcome.count, outcome.arm)
    whole = refine(archive)
    assert (whole.count, whole.arm) == (outcome.count, outcome.arm)
    assert rows_of(whole) == rows_of(outcome)


def test_one_key_with_half_of_all_rows_is_spread_over_time(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    draw = archives.np.random.default_rng(3)
    left, right = ({"key": draw.choice([1, 2, 3], 3000, p=[0.5, 0.25, 0.25])} for _ in range(2))
    spec = sj.JoinSpec(T(20), budget=sj.Budget(tuples=8), policy=sj.Rand())
    run = sj.simulate(spec, left, right)
    exact = sj.simulate(sj.JoinSpec(T(20)), left, right)
    sides = [
        pa.table(
            {
                "_sj_shard": pa.array([0] * 3000, pa.int32()),
                "_sj_seq": range(3000),
                "_sj_key": side["key"],
                "_sj_ts": range(3000),
                "_sj_imp": [1.0] * 3000,
                "sj_batch": [0] * 3000,
                name: range(3000),
            }
        )
        for name, side in (("l", left), ("r", right))
    ]
    log = run.shed.to_arrow().drop_columns(["tick"]).rename_columns({"when": "left_at"})
    zeros = pa.array([0] * len(run.shed))
    shed = log.append_column("shard", zeros.cast(pa.int32())).append_column("batch", zeros)
    frames = [spark.createDataFrame(table) for table in (*sides, shed)]
    outcome = refine(Archive(*frames, spec.windows))
    assert outcome.count + run.results == exact.results
    assert outcome.rows.columns == ["l", "r"]
    capsys.readouterr()
    module.missing_results(Archive(*frames, spec.windows)).explain()
    joins = [line for line in capsys.readouterr().out.splitlines() if "Join [" in line and "bucket" in line]
    assert len(joins) == 2  # both sides are joined by an equality on the bucket


def test_a_query_is_completed_while_it_grows(spark: Any, tmp_path: Path, cache: str) -> None:
    left, right = streams.side(1, 3000, 60, "a", lag=streams.SECOND), streams.side(2, 3000, 60, "b")
    output = tmp_path / "out"
    settings: dict[str, Any] = {
        "on": "k",
        "time": "ts",
        "window": "4 seconds",
        "lateness": "300 ms",
        "budget": "80 tuples",
    }
    outcomes = []
    for part in (0, 1):
        for name, table in (("l", left), ("r", right)):
            streams.write(tmp_path / name, table.slice(1500 * part, 1500), 2, first=2 * part)
        sides = (streams.read(spark, tmp_path / name) for name in ("l", "r"))
        query = start(
            *sides,
            output=output,
            archive=True,
            trigger={"availableNow": True},
            select=["k", "a", "b"],
            cache=cache,
            **settings,
        )
        query.awaitTermination()
        if part == 0:
            # Killed after the last batch was written and before Spark knew: that batch will be run again.
            for path in (output / "checkpoint" / "commits").glob("*1*"):
                path.unlink()
        with alone_in(f"{output}/refined"), pytest.raises(sj.InputError, match=r"is being refined by process \d+ on "):
            refine(output)
        with large_plans(spark):
            outcomes.append(refine(output))
        assert outcomes[-1].batches == (0, 3)[part]
    assert outcomes[0].count == outcomes[0].new > 0
    assert outcomes[1].count == outcomes[0].count + outcomes[1].new
    late = spark.read.parquet(str(output / "shed")).where("why = 'late'").count()
    assert late > 0
    results = spark.read.parquet(str(output / "results"))
    refined = spark.read.parquet(str(output / "refined"))
    assert refined.columns == results.columns
    found = sorted((row["a"], row["b"]) for row in results.unionByName(refined).collect())
    assert found == streams.exact(left, right, 4 * streams.SECOND)
    assert outcomes[1].rows.count() == outcomes[1].count == refined.count()


def test_a_lock_lasts_as_long_as_its_holder(tmp_path: Path) -> None:
    (tmp_path / "_lock").write_text("process 1 on a machine that was switched off\n")
    with alone_in(str(tmp_path)):
        with pytest.raises(sj.InputError, match="one refinement at a time"), alone_in(f"file://{tmp_path}"):
            pass
        holder = f"import sys; from shedjoin.spark.lock import alone_in\nwith alone_in({str(tmp_path)!r}): pass"
        other = subprocess.run([sys.executable, "-c", holder], capture_output=True, text=True, check=False)
        assert f"is being refined by process {os.getpid()} on " in other.stderr
    with alone_in(str(tmp_path)), alone_in("s3://bucket/refined"):
        pass


def test_what_cannot_be_refined_gets_one_sentence(small: Any, tmp_path: Path) -> None:
    with pytest.raises(sj.InputError, match=r"it has no job\.json"):
        refine(tmp_path)
    job = {
        "format": 4,
        "moves": [],
        "checkpoint": None,
        "spec": {"window": {"time": 5}},
        "on": [["k", "k"]],
        "columns": [["k", "left", "k"]],
    }
    (tmp_path / "job.json").write_text(json.dumps({**job, "archive": False}))
    with pytest.raises(sj.InputError, match="start the query with archive=True"):
        refine(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps({**job, "archive": True}))
    nothing = refine(tmp_path)
    assert (nothing.count, nothing.batches, nothing.arm) == (0, None, 0)
    assert nothing.rows.columns == ["k"]
    for batch in (0, 1):
        small.range(1).write.parquet(str(tmp_path / "metrics" / f"batch={batch}"))
    with pytest.raises(sj.InputError, match="which batches are complete is not known"):
        refine(tmp_path)


def test_a_hash_collision_makes_no_row(small: Any) -> None:
    """In odd shards all rows of one hash have different keys."""
    made = archives.make((T(5), T(5)), shards=6, batches=2, seed=15)
    left, right, shed = archives.tables(made, 1)
    other = right.append_column("k", pa.array(["ab"[shard % 2] for shard in right["_sj_shard"].to_pylist()]))
    left = left.rename_columns({"label": "mine"}).append_column("k", pa.array(["a"] * len(left)))
    frames = [small.createDataFrame(table) for table in (left, other, shed)]
    layout = Layout.plain(frames[0], frames[1], (("k", "k"),))
    missing = made.exact() - set(made.met)
    of_one_key = [pair for pair in missing if pair[0] % 2 == 0]
    assert refine(Archive(*frames, made.windows, layout)).count == len(of_one_key)
    assert 0 < len(of_one_key) < len(missing)


@pytest.mark.parametrize("lost", ["first", "middle"])
@pytest.mark.parametrize("window", [T(5), R(9)], ids=str)
def test_an_archive_with_a_hole_is_refused(small: Any, tmp_path: Path, lost: str, window: Any) -> None:
    made = archives.make((T(5), window), shards=2, batches=3, seed=2)
    victim = next(row for row in made.rows if row.stream == 1 and row.seq == (0 if lost == "first" else 1))
    made.rows.remove(victim)
    with pytest.raises(sj.InputError, match=r"the archive of right is not whole: (shard \d has|there are) "):
        refine(stored(small, tmp_path, made, 2))


def test_bad_arguments_get_one_sentence(spark: Any) -> None:
    made = archives.make((T(5), T(5)), shards=1, batches=1, seed=2)
    left, right, shed = (spark.createDataFrame(table) for table in archives.tables(made, 0))
    with pytest.raises(sj.InputError, match="both sides have a column 'label'"):
        Archive(left, right, shed, made.windows)
    with pytest.raises(sj.InputError, match="shed has no column 'why'"):
        Archive(left, right, shed.drop("why"), made.windows, LAYOUT)
    with pytest.raises(sj.SpecError, match="upto must be the number of a batch"):
        refine(Archive(left, right, shed, made.windows, LAYOUT), upto=-1)
