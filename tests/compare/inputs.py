"""The streams of a job: rows with few keys, in files that Spark reads in their order."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from streams import read, write

from compare.jobs import LAG, MILLISECOND, SECOND, Job

#: Times are multiples of a tick, so that some rows have the same.
ROWS, KEYS, STEP, TICK = 160, 12, 50 * MILLISECOND, 50 * MILLISECOND
#: The columns of both sides: key, time, a number of the row, and a value.
SIDES = {"left": ("ts", "a", "x"), "right": ("at", "b", "y")}
#: When the first rows come (to Spark, rows at 0 are late); when all windows have ended, and the numbers of rows that come then.
BEGIN, END, ENDS = 3_600 * SECOND, 10_000 * SECOND, {"left": -1, "right": -2}


def key_columns(job: Job) -> list[str]:
    return ["k", "day"] if job.keys == "columns" else ["k"]


def table(job: Job, side: str) -> pa.Table:
    """The rows of a side, in the order in which they come."""
    random = Random(f"{job.seed} {side}")
    time, name, value = SIDES[side]
    rows = [
        _row(job, random, number, side) | {time: BEGIN + number * STEP + random.randrange(STEP // TICK) * TICK}
        for number in range(ROWS)
    ]
    if job.duplicates:
        rows += [dict(rows[random.randrange(ROWS)]) for _ in range(ROWS // 5)]
    lag = 0 if job.order in ("sorted", "ahead") else LAG
    rows.sort(key=lambda row: row[time] + random.uniform(0, lag))
    return pa.Table.from_pylist(rows, _schema(job, time, name, value))


def ended(job: Job, rows: pa.Table, side: str) -> pa.Table:
    """The rows, and one long after them without a partner: when it comes, all windows have ended, as they have in a batch.

    Its value is null: a row that passes no condition moves clocks as well. Not in Spark: there a row that a condition on its
    own columns rejects, as `x < y` does where x is null, is gone before the watermark sees it.
    """
    time, name, value = SIDES[side]
    key: Any = ENDS[side]
    known = 0.0 if job.form == "both streams" else None
    last = {"k": f"key {key}" if job.keys == "text" else key, time: END, name: ENDS[side], value: known}
    if job.keys == "columns":
        last["day"] = date(2024, 1, 1)
    return pa.concat_tables([rows, pa.Table.from_pylist([last], rows.schema)])


def _key(job: Job, random: Random, number: int, side: str) -> int:
    """Unique keys, and those of the other stream, are near in number where they are near in time."""
    if job.unique == "many":
        return min(random.randrange(KEYS), random.randrange(KEYS))
    return number if job.unique in (side, "both") else max(0, number + random.randrange(-KEYS, KEYS))


def _row(job: Job, random: Random, number: int, side: str) -> dict[str, Any]:
    _, name, value = SIDES[side]
    key = None if job.nulls and random.random() < 0.1 else _key(job, random, number, side)
    row: dict[str, Any] = {"k": key, name: number}
    if job.keys == "text" and key is not None:
        row["k"] = f"key {key}"
    if job.keys == "columns":
        day = random.randrange(2) if job.unique == "many" else (key or 0) % 2
        row["day"] = None if job.nulls and random.random() < 0.1 else date(2024, 1, 1) + timedelta(day)
    row[value] = None if job.nulls and random.random() < 0.2 else random.randrange(100) / 4
    return row


def _schema(job: Job, time: str, name: str, value: str) -> pa.Schema:
    kinds = {"k": pa.string() if job.keys == "text" else pa.int64()}
    if job.keys == "columns":
        kinds["day"] = pa.date32()
    kinds |= {time: pa.timestamp("us", tz="UTC"), name: pa.int64(), value: pa.float64()}
    return pa.schema(kinds)


def write_sides(job: Job, folder: Path) -> None:
    """Where one stream runs ahead, most of it is in its first file; late rows are in files that come after newer ones."""
    for side in SIDES:
        rows, files, first = table(job, side), job.batches, 0
        if job.order == "ahead" and side == "right" and files > 1:
            first = rows.num_rows * 4 // 5
        elif job.order == "late":
            newest = rows.num_rows * (files - 1) // files
            rows, first = pa.concat_tables([rows.slice(newest), rows.slice(0, newest)]), rows.num_rows - newest
        if job.form == "both streams":  # Spark's own stream may end without the rows of its last file
            write(folder / side, ended(job, rows.slice(0, 0), side), 1, first=files)
        else:
            rows = ended(job, rows, side)
        if first:
            write(folder / side, rows.slice(0, first), 1)
            write(folder / side, rows.slice(first), files - 1, first=1)
        else:
            write(folder / side, rows, files)


def streamed(spark: Any, job: Job, folder: Path) -> list[Any]:
    """The sides as streams, with watermarks where the job has them."""
    delays = {"none": (None, None), "both": (LAG, LAG), "one": (LAG, None), "unlike": (LAG, 2 * LAG)}[job.watermarks]
    frames = []
    for (side, (time, *_)), delay in zip(SIDES.items(), delays, strict=True):
        frame = read(spark, folder / side)
        frames.append(frame if delay is None else frame.withWatermark(time, f"{delay // MILLISECOND} milliseconds"))
    return frames


def at_rest(spark: Any, folder: Path) -> list[Any]:
    return [spark.read.parquet(str(folder / side)) for side in SIDES]
