"""The missing results of three streams, from archives made by engines in this process, in one step and in several."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import archives
import pyarrow as pa
from archives import Row

import shedjoin as sj
from shedjoin.spark import Archive, Layout, refine
from shedjoin.spark.archive import shed_columns

T, R = sj.TimeWindow, sj.RowWindow
NAMES = ("x", "y", "z")
LAYOUT = Layout((), tuple((name, stream, "label") for stream, name in enumerate(NAMES)), NAMES)
Found = tuple[str, ...]


def exact(made: archives.Made) -> set[tuple[int, ...]]:
    """docs/nway.md, "What a result is", word for word."""
    found = set()
    for shard in {row.shard for row in made.rows}:
        ours = [row for row in made.rows if row.shard == shard]
        sides = [[row for row in ours if row.stream == stream and row.key is not None] for stream in range(3)]
        for chosen in product(*sides):
            if len({row.key for row in chosen}) == 1 and all(in_window(row, chosen, made) for row in chosen):
                found.add((shard, *(row.seq for row in chosen)))
    return found


def in_window(row: Row, chosen: tuple[Row, ...], made: archives.Made) -> bool:
    window = made.windows[row.stream]
    if isinstance(window, sj.TimeWindow):
        return max(one.ts for one in chosen) - row.ts < window.length
    last = max((one.batch, one.ts) for one in chosen)
    return (row.batch, row.ts) == last or row.seq >= made.arrived(row.stream, *last) - window.rows


def archive(spark: Any, made: archives.Made, upto: int) -> Archive:
    sides = [
        pa.Table.from_pylist(
            [
                dict(
                    zip(
                        archives.ROW,
                        (archives.label(row), row.shard, row.seq, row.key, row.ts, 1.0, row.batch),
                        strict=True,
                    )
                )
                for row in made.rows
                if row.stream == stream and row.batch <= upto
            ],
            pa.schema(archives.ROW),
        )
        for stream in range(3)
    ]
    kinds = {"shard": pa.int32(), "stream": pa.int32(), "why": pa.string()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in shed_columns(NAMES)])
    shed = pa.Table.from_pylist([record for record in made.shed if record["batch"] <= upto], schema)
    left, right, third = (spark.createDataFrame(side) for side in sides)
    stretches = spark.createDataFrame(archives.stretches(made, upto))
    return Archive(left, right, spark.createDataFrame(shed), made.windows, LAYOUT, (third,), left_out=stretches)


def test_any_number_of_steps_gives_each_missing_result_once(small: Any, tmp_path: Path) -> None:
    """Windows of both kinds, of which rows are compared with parts; three of time are in the test of `start`."""
    parts = sj.Selective(basic=2, rate=False, period=5, rank_period=7, sample=0.2, fraction=0.6)
    made = archives.make((R(48), T(6), R(36)), shards=16, batches=6, seed=5, rows=10, names=NAMES, selective=parts)
    assert len(made.left_out) > 40
    missing = exact(made) - set(made.met)
    assert set(made.met) < exact(made)
    batch_of = {archives.label(row): row.batch for row in made.rows}
    due = Counter(tuple(f"{shard}/{stream}/{seq}" for stream, seq in enumerate(seqs)) for shard, *seqs in missing)
    total = 0
    for upto in (2, 5):
        outcome = refine(archive(small, made, upto), into=tmp_path / "refined")
        now = {labels: 1 for labels in due if max(batch_of[label] for label in labels) <= upto}
        assert Counter(tuple(row) for row in outcome.rows.select(*NAMES).collect()) == now
        assert outcome.new == len(now) - total
        assert outcome.incomplete == {
            name: len({labels[stream] for labels in now}) for stream, name in enumerate(NAMES)
        }
        total = len(now)
    assert total == len(missing) > 80
    assert any(record["why"] == "late" for record in made.shed)
