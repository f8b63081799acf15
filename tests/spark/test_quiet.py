"""What a script of a user's own has on its standard error: next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import streams

SCRIPT = """
import sys
from shedjoin.spark import session, start

spark = session(settings={"spark.master": "local[1]", "spark.driver.host": "127.0.0.1"})
left, right = (
    spark.readStream.schema(f"k bigint, ts timestamp, {name} bigint").parquet(f"{sys.argv[1]}/{name}") for name in "ab"
)
query = start(
    left, right, on="k", time="ts", window="4 seconds", budget="80 tuples", lateness=0, output=f"{sys.argv[1]}/out",
    select=["k", "a", "b"], trigger={"availableNow": True},
)
query.awaitTermination()
"""
#: Said by Java, and by a process of Spark's, before anybody can ask them not to.
UNAVOIDABLE = ("WARNING: Using incubator modules", "Starting Streaming TransformWithStateInPandas Python worker.")


@pytest.mark.own_spark
def test_a_script_has_a_quiet_screen(tmp_path: Path) -> None:
    for seed, name in enumerate("ab"):
        streams.write(tmp_path / name, streams.side(seed, 60, 9, name), 1)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ}, check=False)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(UNAVOIDABLE)]
    assert said == []
