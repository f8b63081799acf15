"""What Spark sends to its Python processes."""

from __future__ import annotations

import subprocess
import sys

from pyspark.serializers import CloudPickleSerializer
from shards import job

import shedjoin as sj
from shedjoin.spark.processor import ShardProcessor

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
