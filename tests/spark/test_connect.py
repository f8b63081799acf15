"""Spark Connect: the same call through a server that is started from the installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from streams import SECOND, exact, side, write

HERE = Path(__file__).parent

#: Runs in a process of its own: one process is either a classic driver or a client.
CLIENT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from shedjoin.spark import session, shed_join, start
from streams import pairs, read, run

folder = Path(sys.argv[1])
builder = (
    SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    .config("spark.connect.grpc.binding.address", "127.0.0.1").config("spark.connect.grpc.binding.port", "0")
)
spark = session(builder)
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
options = dict(on="k", time="ts", window="2 seconds", select=["k", "a", "b"], cache=str(folder / "copies"))
frames = [spark.read.parquet(str(folder / name)) for name in ("l", "r")]
batch = shed_join(*frames, **options).toArrow()
run(shed_join(*(read(spark, folder / name) for name in ("l", "r")), **options), folder / "c", folder / "o")
query = start(
    *(read(spark, folder / name) for name in ("l", "r")), output=folder / "out", trigger={"availableNow": True}, **options
)
query.awaitTermination()
found = {
    "batch": sorted(zip(batch["a"].to_pylist(), batch["b"].to_pylist())),
    "stream": pairs(spark, folder / "o"),
    "start": pairs(spark, folder / "out" / "results"),
}
(folder / "found.json").write_text(json.dumps(found))
spark.stop()
"""


def test_the_same_call_works_over_connect(tmp_path: Path) -> None:
    left, right = side(21, 600, 30, "a"), side(22, 600, 30, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 2)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(tmp_path)],
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    wanted = [list(pair) for pair in exact(left, right, 2 * SECOND)]
    assert found == {"batch": wanted, "stream": wanted, "start": wanted}
