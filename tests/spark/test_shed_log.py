"""The shed log of a query has the keys of its rows, not only numbers made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streams import read, side, write

from shedjoin.spark import start

ROWS = 300


def tables(kind: str) -> list[pa.Table]:
    """Two or three streams; rows of the first come in two files, of which the later is read first."""
    made = []
    for number, name in enumerate("abc"):
        table = side(number, ROWS, 20, name)
        key = table["k"]
        if kind == "text":
            table = table.set_column(0, "k", pc.binary_join_element_wise("key", key.cast(pa.string()), "-"))
        elif kind == "two":
            table = table.append_column("day", pc.cast(pc.multiply(key, 86_400_000), pa.date64()).cast(pa.date32()))
        elif kind == "narrow" and number == 1:  # the common type is that of the other side
            table = table.set_column(0, "k", key.cast(pa.int32()))
        made.append(table)
    return made


@pytest.mark.parametrize(
    ("kind", "streams", "keys"),
    [("number", 2, ["k"]), ("narrow", 2, ["k"]), ("text", 2, ["k"]), ("two", 2, ["k", "day"]), ("text", 3, ["k"])],
)
def test_records_have_the_keys_of_their_rows(
    spark: Any, tmp_path: Path, cache: str, kind: str, streams: int, keys: list[str]
) -> None:
    inputs = tables(kind)[:streams]
    for table, name in zip(inputs, "abc", strict=False):
        write(tmp_path / name, table.slice(ROWS // 2), 1)
        write(tmp_path / name, table.slice(0, ROWS // 2), 1, first=1)  # late
    query = start(
        *(read(spark, tmp_path / name) for name in "abc"[:streams]),
        on=keys,
        time="ts",
        window="2 seconds",
        lateness=0,
        budget="60 tuples",
        select=list("abc"[:streams]),
        output=tmp_path / "out",
        archive=True,
        cache=cache,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    shed = spark.read.parquet(str(tmp_path / "out" / "shed"))
    assert {row["why"] for row in shed.select("why").distinct().collect()} == {"evicted", "late"}
    found = 0
    for number, name in enumerate(("left", "right") if streams == 2 else ("s0", "s1", "s2")):
        rows = spark.read.parquet(str(tmp_path / "out" / "archive" / name))
        met = shed.where(f"stream = {number}").join(rows, (shed.shard == rows._sj_shard) & (shed.seq == rows._sj_seq))
        same = [met[f"key_{key}"] == met[key] for key in keys]
        found += met.where(same[0] & same[-1]).count()
    assert found == shed.count() > 0
