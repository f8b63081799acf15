"""Spark Connect: the same call through a server that is started from the installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from plans import INTERPRETED
from processes import free_port, kill, launch, wait_for_port
from shortcuts import CHECKPOINTS
from streams import SECOND, exact, side, write

from shedjoin.spark.session import LEAN

HERE = Path(__file__).parent

pytestmark = pytest.mark.own_spark

#: Runs in a process of its own: one process is either a classic driver or a client.
CLIENT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession, functions as fn
from shedjoin.spark import refine, session, shed_join, start
from streams import pairs, read

folder = Path(sys.argv[1])
builder = (
    SparkSession.builder.remote(sys.argv[2])
    .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
)
spark = session(builder)
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
options = dict(on="k", time="ts", window="2 seconds", lateness=0, select=["k", "a", "b"], cache=str(folder / "copies"))
frames = [spark.read.parquet(str(folder / name)) for name in ("l", "r")]
batch = shed_join(*frames, **options).toArrow()
three = shed_join(*frames, frames[1].withColumnRenamed("b", "c"), **{**options, "select": ["k", "a", "b", "c"]})
three = three.where("b = c").toArrow()  # each pair with the right row itself: the pairs again
near = {"name": "band", "column": "k", "within": 1}
planned = shed_join(*frames, predicate=near, **{**options, "on": None, "select": ["a", "b"]})
assert planned.columns == ["a", "b"]
passing = shed_join(*frames, where="left.a < right.b AND b % 2 = 0 AND NOT (left.a + right.b = 7)", **options).toArrow()
query = start(
    *(read(spark, folder / name) for name in ("l", "r")), output=folder / "out", trigger={"availableNow": True}, archive=True,
    budget="40 tuples", **options
)
query.awaitTermination()
refined = refine(folder / "out", spark=spark)
missed = [(row["a"], row["b"]) for row in refined.rows.collect()]
def counted(streams):
    streams = streams[0].withWatermark("ts", "1 second"), streams[1].withWatermark("ts", "1 second").withColumnRenamed("ts", "at")
    joined = shed_join(*streams, **{**options, "time": ("ts", "at"), "lateness": "1 second", "select": ["at"]})
    return joined.groupBy(fn.window("at", "1 second")).count().selectExpr("CAST(window.start AS bigint) AS start", "count")


appended = counted([read(spark, folder / name) for name in ("l", "r")]).writeStream.format("parquet")
appended = appended.option("checkpointLocation", str(folder / "c")).trigger(availableNow=True).start(str(folder / "counts"))
appended.awaitTermination()
given, wanted = (
    sorted(map(tuple, frame.collect())) for frame in (spark.read.parquet(str(folder / "counts")), counted(frames))
)
found = {
    "counts": 0 < len(given) < len(wanted) and given == wanted[:len(given)],
    "batch": sorted(zip(batch["a"].to_pylist(), batch["b"].to_pylist())),
    "where": sorted(zip(passing["a"].to_pylist(), passing["b"].to_pylist())),
    "three": sorted(zip(three["a"].to_pylist(), three["b"].to_pylist())),
    "start": sorted([*pairs(spark, folder / "out" / "results"), *missed]),
    "missed": refined.count,
    "numba": "numba" in sys.modules,  # kernels run on workers: a driver has no use for them
}
(folder / "found.json").write_text(json.dumps(found))
spark.stop()
"""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Connect server in a process of its own."""
    port = free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **LEAN,
        **INTERPRETED,
        **CHECKPOINTS,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    process = launch(
        folder, "server", "org.apache.spark.deploy.SparkSubmit", "--class", main, *options, "spark-internal"
    )
    try:
        wait_for_port(port, process)
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill(process)


def test_the_same_call_works_over_connect(tmp_path: Path) -> None:
    left, right = side(21, 600, 30, "a"), side(22, 600, 30, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 2)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with server(tmp_path) as url:
        command = [sys.executable, "-c", CLIENT, str(tmp_path), url]
        done = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    wanted = [list(pair) for pair in exact(left, right, 2 * SECOND)]
    assert 0 < found.pop("missed") < len(wanted)
    assert found.pop("where") == [[a, b] for a, b in wanted if a < b and b % 2 == 0 and a + b != 7]
    assert found == {"batch": wanted, "three": wanted, "start": wanted, "numba": False, "counts": True}
