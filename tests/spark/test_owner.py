"""One owner: a directory in which a query runs is refused to others until the query, or its process, has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from streams import read, side, write

import shedjoin as sj
from shedjoin.spark import start
from shedjoin.spark.lock import Owner

#: Owns a directory until it is killed.
HOLDER = """
import sys, time
from shedjoin.spark.lock import Owner
owner = Owner.of(sys.argv[1])
print("mine", flush=True)
time.sleep(600)
"""


def test_a_process_that_owns_a_directory_keeps_others_out_until_it_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    with pytest.raises(
        sj.InputError, match=rf"is the output of a query that runs in process {holder.pid} on \S+, since .*: stop that"
    ):
        Owner.of(str(tmp_path))
    holder.kill()
    holder.wait()
    Owner.of(str(tmp_path)).release()


def test_a_query_owns_its_output_while_it_runs(spark: Any, tmp_path: Path, cache: str) -> None:
    for name, seed, column in (("l", 1, "a"), ("r", 2, "b")):
        write(tmp_path / name, side(seed, 60, 5, column), 1)

    def begin() -> Any:
        streams = (read(spark, tmp_path / name) for name in ("l", "r"))
        given = {"on": "k", "time": "ts", "window": "1 second", "lateness": 0, "select": ["k", "a", "b"]}
        return start(*streams, output=tmp_path / "out", cache=cache, **given)

    query = begin()
    try:
        with pytest.raises(sj.InputError, match=r"is the output of a query that runs in process \d+"):
            begin()
        query.processAllAvailable()
    finally:
        query.stop()
    again = begin()  # at once: Spark may not have told of the end yet
    again.stop()
    taking = [sys.executable, "-c", "import sys; from shedjoin.spark.lock import Owner; Owner.of(sys.argv[1])"]
    end = time.monotonic() + 60
    while (tried := subprocess.run([*taking, str(tmp_path / "out")], capture_output=True, check=False)).returncode:
        assert time.monotonic() < end, tried.stderr  # Spark tells of the end a little later
