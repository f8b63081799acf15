"""The missing results of three streams, from archives made by engines in this process, in one step and in several."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import archives
import numpy as np
import pyarrow as pa
from archives import Row

import shedjoin as sj
from shedjoin.spark import Archive, Layout, refine
from shedjoin.spark.archive import shed_columns

T, R = sj.TimeWindow, sj.RowWindow
NAMES = ("x", "y", "z")
LAYOUT = Layout((), tuple((name, stream, "label") for stream, name in enumerate(NAMES)), NAMES)
Found = tuple[str, ...]


def make(windows: tuple[Any, ...], *, shards: int, batches: int, seed: int) -> archives.Made:
    """Each shard has its own random rows and its own engine; late rows and nulls among them."""
    made = archives.Made(windows)  # type: ignore[arg-type]
    draw = np.random.default_rng(seed)
    for shard in range(shards):
        budget = sj.Budget(tuples=int(draw.integers(3, 8)), allocation=str(draw.choice(["fixed", "variable"])))
        policy = (sj.Rand(), sj.Prob(), sj.Life())[int(draw.integers(3))]
        skew = [None, 3][int(draw.integers(2))]
        spec = sj.MultiJoinSpec(
            windows=dict(zip(NAMES, windows, strict=True)),
            on="key",
            budget=budget,
            policy=policy,
            lateness=2,
            max_skew=skew,
        )
        engine, counts, clock = spec.build(seed=shard), [0, 0, 0], 0
        for batch in range(batches):
            size = int(draw.integers(0, 10))
            stream = draw.integers(0, 3, size)
            ts = clock + np.cumsum(draw.integers(0, 3, size)) - draw.choice([0, 0, 0, 1, 2, 9], size)
            clock += int(draw.integers(0, 6))
            keys = [None if key == 0 else int(key) for key in draw.choice([0, 1, 1, 1, 2], size)]
            order = np.lexsort((stream, ts))
            stream, ts, keys = stream[order], ts[order], [keys[place] for place in order]
            for side, time, key in zip(stream.tolist(), ts.tolist(), keys, strict=True):
                made.rows.append(Row(shard, side, counts[side], key, time, batch))
                counts[side] += 1
            if not size:
                continue
            out = engine.push(engine.rows({"stream": stream, "key": keys, "ts": ts}))
            made.met |= {(shard, *row): batch for row in out.rows.tolist()}  # type: ignore[misc]
            for record in out.shed.to_arrow().to_pylist():
                known = {
                    "shard": shard,
                    "batch": batch,
                    "left_at": record["when"],
                    "stream": NAMES.index(record["stream"]),
                }
                made.shed.append({**record, **known})
    return made


def exact(made: archives.Made) -> set[tuple[int, ...]]:
    """docs/nway.md, "What a result is", word for word."""
    found = set()
    for shard in {row.shard for row in made.rows}:
        ours = [row for row in made.rows if row.shard == shard]
        sides = [[row for row in ours if row.stream == stream and row.key is not None] for stream in range(3)]
        for chosen in product(*sides):
            if len({row.key for row in chosen}) == 1 and all(
                in_window(row, chosen, made.windows, ours) for row in chosen
            ):
                found.add((shard, *(row.seq for row in chosen)))
    return found


def in_window(row: Row, chosen: tuple[Row, ...], windows: tuple[Any, ...], rows: list[Row]) -> bool:
    window = windows[row.stream]
    if isinstance(window, sj.TimeWindow):
        return max(one.ts for one in chosen) - row.ts < window.length
    last = max((one.batch, one.ts) for one in chosen)
    arrived = sum(one.stream == row.stream and (one.batch, one.ts) <= last for one in rows)
    return (row.batch, row.ts) == last or row.seq >= arrived - window.rows


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
    return Archive(left, right, spark.createDataFrame(shed), made.windows, LAYOUT, (third,))


def test_any_number_of_steps_gives_each_missing_result_once(small: Any, tmp_path: Path) -> None:
    """Windows of both kinds; three of time are in the test of `start`."""
    made = make((R(4), T(6), R(3)), shards=40, batches=6, seed=5)
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
    assert total == len(missing) > 200
    assert any(record["why"] == "late" for record in made.shed)
