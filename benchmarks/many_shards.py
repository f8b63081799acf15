"""What a shard costs that has little but its fixed work: CPU time of one process that runs all shards of a small micro-batch.

python benchmarks/many_shards.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from statistics import median

import numpy as np
import pyarrow as pa
from dict_store import DictStore

import shedjoin as sj
from shedjoin.spark.exchange import METRIC, RESULT, Message, shard_labels
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.job import Job
from shedjoin.spark.packing import Packing, pack

#: Micro-batches, of which the first are not counted; keys; the window, in rows of each stream.
BATCHES, FIRST, KEYS, WINDOW = 14, 6, 20_000, 200_000
TRAVELS = pa.schema([("row", pa.int64()), ("ts", pa.int64())])


def messages(batch: int, rows: int, labels: tuple[int, ...]) -> dict[int, list[Message]]:
    """What the tasks of both streams send to each shard."""
    sent: dict[int, list[Message]] = defaultdict(list)
    cube, first = HyperCube.of_key(2, len(labels)), batch * rows
    for stream, name in enumerate(("left", "right")):
        key = np.random.default_rng([batch, stream]).integers(0, KEYS, rows)
        numbers = np.arange(first, first + rows)
        table = pa.RecordBatch.from_pydict({"key": key, "row": numbers, "ts": numbers})
        how = Packing(stream, name, labels, cube, TRAVELS.serialize().to_pybytes(), "ts", time_at=1)
        for packed in pack(iter([table]), how, 0):
            for row in packed.to_pylist():
                sent[row["label"]].append(Message(*(row[name] for name in Message._fields)))
    return sent


def seconds(shards: int, rows: int, cache: str) -> float:
    """CPU time of a micro-batch, once warm."""
    labels = shard_labels(shards, 2)
    spec = sj.JoinSpec(sj.TimeWindow(WINDOW))
    columns = ((0, 1), (0, 1))
    job = Job(spec.to_dict(), labels, HyperCube.of_key(2, shards), 0, columns, {}, (RESULT, METRIC), cache)
    stores = [DictStore() for _ in labels]
    took = []
    for batch in range(BATCHES):
        sent = messages(batch, rows, labels)
        begin = time.process_time()
        for number, label in enumerate(labels):
            for _ in job.given(number, sent[label], stores[number]):
                pass
        took.append(time.process_time() - begin)
    return median(took[FIRST:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", nargs="+", type=int, default=[2, 64])
    parser.add_argument("--rows", type=int, default=20_000, help="rows a micro-batch")
    given = parser.parse_args()
    for shards in given.shards:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as cache:
            took = seconds(shards, given.rows // 2, cache)
        print(f"{shards} shards, {given.rows:,} rows: {took:.3f} s of CPU, {took / shards * 1000:.2f} ms a shard")


if __name__ == "__main__":
    main()
