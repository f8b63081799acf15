"""What Spark tells of a query, kept as rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from shedjoin.spark.listener import Listener, observe


def test_a_listener_keeps_batches_and_observed_results(spark: Any, tmp_path: Path) -> None:
    spark.range(0, 80, 1, 4).write.parquet(str(tmp_path / "in"))
    listener = Listener(keep=2)
    spark.streams.addListener(listener)
    try:
        rows = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        some = observe(rows.where("id % 2 = 0"))
        query = some.writeStream.format("noop").queryName("evens").trigger(availableNow=True).start()
        query.awaitTermination(60)
        deadline = time.monotonic() + 30  # events come a little later than the end
        while [row.batch for row in listener.rows()] != [2, 3] and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    kept = listener.rows(str(query.id))
    assert [row.batch for row in kept] == [2, 3]  # two of four are kept
    assert [(row.rows, row.results) for row in kept] == [(20, 10), (20, 10)]
    assert kept[0].as_row()["name"] == "evens"
    assert listener.rows("another") == []
    assert listener.failure(str(query.id)) is None
