"""The shard inside Spark's stateful operator.

When a query starts, Spark makes a Python process that only asks the processor for its state variables, and ends. What is here
travels there by value, and imports shedjoin (numba, pandas) when the first rows come, which saves about a second of every start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from shedjoin.spark.job import Job
    from shedjoin.spark.output_files import TaskFiles

#: Spark's own way to send things to its workers.
SENDING: Any = CloudPickleSerializer
by_value: Any = cloudpickle.register_pickle_by_value
by_value(sys.modules[__name__])


class SparkStore:
    """The state variables of one grouping key."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "value binary")
        self._blobs = handle.getMapState("blobs", "name string, part int", "value binary")

    def head(self) -> bytes | None:
        found = self._head.get()
        return None if found is None else bytes(found[0])

    def set_head(self, value: bytes) -> None:
        self._head.update((value,))

    def get(self, name: str, part: int) -> bytes | None:
        found = self._blobs.getValue((name, part))
        return None if found is None else bytes(found[0])

    def put(self, name: str, part: int, value: bytes) -> None:
        self._blobs.updateValue((name, part), (value,))

    def remove(self, name: str, part: int) -> None:
        self._blobs.removeKey((name, part))


#: Blobs go to Spark one by one if they are large, else together.
FRAME_BYTES = 1 << 16
GIVEN_COLUMNS = ["kind", "shard", "blob"]


def hush() -> None:
    """The process that asks for the state variables tells each of its steps on the user's screen: it need not."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == "pyspark.sql.streaming.transform_with_state_driver_worker":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class ShardProcessor(StatefulProcessor):
    """Each grouping key is the label of a shard; each input row a message to it."""

    def __init__(self, job: Job) -> None:
        self._sent = SENDING().dumps(job)
        self._job: Job | None = None  # a task may have several shards,
        self._files: TaskFiles | None = None  # which write the same files

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        hush()

    def job(self) -> Job:
        """The job, read when rows come."""
        if self._job is None:
            self._job = SENDING().loads(self._sent)
        return self._job

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = SparkStore(handle)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from shedjoin.spark.exchange import Message

        job = self.job()
        shard = job.labels.index(int(key[0]))
        messages = (
            Message(int(stream), int(task), int(part), int(size), int(newest), blob)
            for frame in rows  # column by column: pandas takes longer to make a frame of them
            for stream, task, part, size, newest, blob in zip(*(frame[one] for one in Message._fields), strict=True)
        )
        if job.files is not None and self._files is None:
            from shedjoin.spark.output_files import TaskFiles

            self._files = TaskFiles(job.files, shard)
        small: list[tuple[str, int, bytes]] = []  # each frame has its price
        for kind, blob in job.given(shard, messages, self._store, self._files):
            small.append((kind, shard, blob))
            if sum(len(one[-1]) for one in small) > FRAME_BYTES:
                yield pd.DataFrame(small, columns=GIVEN_COLUMNS)
                small = []
        if small:
            yield pd.DataFrame(small, columns=GIVEN_COLUMNS)

    def close(self) -> None:
        """All shards of the task are done: their files are whole. Nothing is held between micro-batches."""
        if self._files is not None:
            self._files.close()
            self._files = None


class SeedProcessor(ShardProcessor):
    """Each input row is what another shard gives to the shard of its label."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from shedjoin.spark.moved_state import Sent, put_together

        job = self.job()
        sent = [
            Sent(int(origin), [int(one) for one in arrived], int(batches), bytes(share), [bytes(one) for one in parts])
            for frame in rows
            for origin, arrived, batches, share, parts in frame[list(Sent._fields)].itertuples(index=False)
        ]
        put_together(job, job.labels.index(int(key[0])), sent, self._store)
        yield pd.DataFrame(
            {"kind": pd.Series(dtype=str), "shard": pd.Series(dtype="int32"), "blob": pd.Series(dtype=object)}
        )
