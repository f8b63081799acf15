"""What Spark sends to its Python processes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer
from shards import job

import shedjoin as sj
from shedjoin.spark.job import Job
from shedjoin.spark.processor import FRAME_BYTES, ShardProcessor

#: As Spark's process that asks a processor for its state variables does it.
RECEIVER = """
import sys
from pyspark.serializers import CPickleSerializer
processor = CPickleSerializer().loads(sys.stdin.buffer.read())
print(type(processor).__name__, "shedjoin" in sys.modules)
"""


def test_a_processor_is_received_without_an_import_of_shedjoin() -> None:
    sent = CloudPickleSerializer().dumps(ShardProcessor(job(sj.JoinSpec(sj.TimeWindow(5)))))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RECEIVER], input=sent, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["ShardProcessor", "False"]


def test_small_blobs_go_to_spark_together_and_large_ones_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large blob is not held while the next one is made."""
    sizes, made = [10, FRAME_BYTES, FRAME_BYTES + 1, 20, 30], 0

    def given(*_: Any) -> Any:
        nonlocal made
        for size in sizes:
            made += 1
            yield f"kind {made}", bytes(size)

    monkeypatch.setattr(Job, "given", given)
    processor = ShardProcessor(job(sj.JoinSpec(sj.TimeWindow(5)), 2))
    label = processor.job().labels[1]
    processor._store = None  # type: ignore[assignment]
    told = []
    for frame in processor.handleInputRows((label,), iter(()), None):
        told.append((made, [len(blob) for blob in frame["blob"]]))
        assert list(frame["shard"]) == [1] * len(frame)
        assert list(frame.columns) == ["kind", "shard", "blob"]
    assert told == [(2, [10, FRAME_BYTES]), (3, [FRAME_BYTES + 1]), (5, [20, 30])]
