"""A standalone cluster on loopback: master and two workers from the installed package; one worker is killed midway."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import free_port, kill, launch, wait_for
from streams import SECOND, exact, side, write

HERE = Path(__file__).parent

pytestmark = pytest.mark.own_spark

CLIENT = """
import sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from shedjoin.spark import session, start
from processes import QUICK_JAVA
from shortcuts import CHECKPOINTS
from streams import read

master, folder = sys.argv[1], Path(sys.argv[2])
builder = (
    SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.executor.memory", "512m")
    .config("spark.ui.showConsoleProgress", "false").config("spark.sql.session.timeZone", "UTC")
    .config("spark.executor.cores", "1").config("spark.cores.max", "2")
    .config("spark.driver.extraJavaOptions", QUICK_JAVA).config("spark.executor.extraJavaOptions", QUICK_JAVA)
    .config(map=CHECKPOINTS)
)
spark = session(builder)
spark.sparkContext.setLogLevel("OFF")
streams = (read(spark, folder / name) for name in ("l", "r"))
query = start(
    *streams, output=folder / "out", trigger={"availableNow": True}, on="k", time="ts", window="2 seconds", lateness=0,
    select=["k", "a", "b"], shards=2, cache=str(folder / "copies"),
)
query.awaitTermination()
spark.stop()
assert "numba" not in sys.modules, "kernels run on workers: a driver has no use for them"
"""


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    base = "org.apache.spark.deploy"
    processes = [
        launch(
            folder, "master", f"{base}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
    ]
    try:
        for number in (1, 2):
            processes.append(
                launch(
                    folder, f"worker{number}", f"{base}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                    "--cores", "1", "--memory", "700m", url,
                )
            )  # fmt: skip
        for number in (1, 2):
            wait_for(folder / f"worker{number}.log", "Successfully registered with master")
        yield url, processes[1:]
    finally:
        for process in reversed(processes):
            kill(process)


def test_a_worker_that_is_killed_changes_no_row(tmp_path: Path) -> None:
    left, right = side(31, 1000, 40, "a"), side(32, 1000, 40, "b")
    for name, table in (("l", left), ("r", right)):
        write(tmp_path / name, table, 3)
    results = tmp_path / "out" / "results"
    with cluster(tmp_path) as (url, workers):
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, url, str(tmp_path)],
            cwd=HERE,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.DEVNULL,
            stderr=(tmp_path / "client.log").open("wb"),
        )
        try:
            while client.poll() is None and len(list(results.glob("*"))) < 1:
                time.sleep(0.1)
            assert client.poll() is None, (tmp_path / "client.log").read_text()[-3000:]
            kill(workers[0])
            assert client.wait(timeout=300) == 0, (tmp_path / "client.log").read_text()[-3000:]
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()
    assert len(list(results.glob("sj_batch=*"))) == 3
    found = pq.read_table(results)
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == exact(left, right, 2 * SECOND)
