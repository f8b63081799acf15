"""Flink's interval join on the files of benchmarks/spark_join.py, run by the Python of an environment that has PyFlink.

    make flink
    python benchmarks/spark_join.py --cases large --flink .venv-flink/bin/python

State is on the heap, Flink's fastest place for it. Flink reads the rows as CSV (its Parquet reader is not in the package) and
writes CSV. The heap's limit is Java's own choice; JAVA_TOOL_OPTIONS sets another.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from importlib.metadata import version
from pathlib import Path

SOURCE = """
CREATE TABLE {name} (k BIGINT, ms BIGINT, {name}_row BIGINT, ts_{name} AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts_{name} AS ts_{name})
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
SINK = """
CREATE TABLE joined (k BIGINT, left_ms BIGINT, right_ms BIGINT, left_row BIGINT, right_row BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
JOIN = """
INSERT INTO joined SELECT l.k, l.ms, r.ms, left_row, right_row FROM left_rows AS l JOIN right_rows AS r ON l.k = r.k
AND ts_left_rows > ts_right_rows - INTERVAL '{seconds}' SECOND
AND ts_left_rows < ts_right_rows + INTERVAL '{seconds}' SECOND
"""


def run(sources: Path, out: Path, window: int, checkpoints: str) -> float:
    """The wall-clock time of one job, its start included."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = tables.get_config()
    config.set("parallelism.default", str(os.cpu_count() or 1))
    config.set("table.local-time-zone", "UTC")
    config.set("state.backend.type", "hashmap")
    config.set("pipeline.object-reuse", "true")
    if checkpoints:
        config.set("execution.checkpointing.interval", checkpoints)
        config.set("execution.checkpointing.storage", "filesystem")
        config.set("execution.checkpointing.dir", f"file://{out.parent}/checkpoints")
    for name in ("left", "right"):
        source = SOURCE.format(name=f"{name}_rows", path=sources / name).replace(f"{name}_rows_row", f"{name}_row")
        tables.execute_sql(source)
    tables.execute_sql(SINK.format(path=out))
    begin = time.perf_counter()
    tables.execute_sql(JOIN.format(seconds=f"{window / 1e6:.3f}")).wait()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder with left/ and right/ as CSV")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--window", type=int, required=True, help="in microseconds")
    parser.add_argument("--checkpoints", default="3 s", help="how often state is saved; empty: never")
    parser.add_argument(
        "--report", type=Path, required=True, help="file for the seconds taken and Flink's version, as JSON"
    )
    given = parser.parse_args()
    seconds = run(given.sources.resolve(), given.out.resolve(), given.window, given.checkpoints)
    given.report.write_text(json.dumps({"seconds": seconds, "version": version("apache-flink")}))


if __name__ == "__main__":
    main()
