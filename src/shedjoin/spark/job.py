"""The description of a query for its shards. The driver creates it, and workers run it. This module needs no engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from shedjoin.spark.budget_split import share_of
from shedjoin.spark.error_columns import ErrorColumns
from shedjoin.spark.exchange import FILES, LATE, Given, Message, to_blob
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.keys import SIDES
from shedjoin.spark.output_files import OutputFiles, TaskFiles
from shedjoin.spec import JoinSpec

if TYPE_CHECKING:
    from shedjoin.spark.shard import Shard
    from shedjoin.spark.shard_state import ShardState
    from shedjoin.spark.state import Store


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of every shard, as plain data."""

    spec: dict[str, Any]
    labels: tuple[int, ...]
    cube: HyperCube  # which shards rows go to
    seed: int
    kept: tuple[tuple[int, ...], ...]  # of the columns that travel, those that results are made of
    signature: dict[str, Any]  # what may not change on a checkpoint, in addition to the spec
    kinds: tuple[str, ...]
    cache: str | bool | None
    shares: str = "adaptive"
    query: str = ""  # names this run, so that its copies are known
    names: tuple[str, ...] = SIDES  # of the streams
    recall: bool = True  # whether it is to be told
    timestamps: bool = True  # or times are whole numbers
    keys: bytes | None = None  # the Arrow schema of the key columns, where keys are hashed: the first of those kept
    deadline: float | None = None  # seconds
    front: bool = False  # whether rows are dropped before they are sent
    weights: bool = False  # whether results have them
    target: float | None = None  # the recall that memory follows
    error: ErrorColumns | None = None  # the error of sums that it follows
    schemas: tuple[
        bytes, ...
    ] = ()  # the Arrow schemas of the columns kept, where a result may have rows of one side only
    files: OutputFiles | None = None  # what shards write themselves

    @property
    def shards(self) -> int:
        return len(self.labels)

    @property
    def streams(self) -> int:
        return len(self.names)

    @property
    def adaptive(self) -> bool:
        """Whether memory moves between shards."""
        return self.shares == "adaptive" and self.shards > 1 and self.spec.get("budget") is not None

    def spec_of(self, shard: int) -> JoinSpec:
        """The join of one shard: its share of the memory, as long as nothing is known of the streams."""
        spec = self.join
        if spec.budget is None:
            return spec
        return spec.with_budget(share_of(spec.budget, shard, self.shards, self.streams))

    def part_of(self, shard: int) -> tuple[int, int]:
        """Which part of a join that is split a shard is."""
        return (shard, self.shards) if self.cube.is_everywhere else (0, 1)

    def seed_of(self, shard: int) -> int:
        return (self.seed + shard) % 2**64

    @property
    def join(self) -> JoinSpec:
        """The join of all shards together."""
        return _read(json.dumps(self.spec))

    def state(self, number: int, store: Store | None = None) -> ShardState:
        """The state of a shard alone."""
        from shedjoin.spark.shard_state import ShardState

        return ShardState(self, number, store, time.perf_counter)

    def given(
        self, number: int, messages: Iterable[Message], store: Store | None = None, files: TaskFiles | None = None
    ) -> Iterator[Given]:
        """What comes of a micro-batch of a shard, as blobs; of what goes to files, their names."""
        shard = self.shard(number, store)
        if files is None:
            yield from shard.run(messages)
            return
        try:
            for kind, batches in shard.batches(messages):
                if files.takes(kind):
                    files.write(kind, batches)
                else:
                    yield kind, to_blob(*batches)
            yield FILES, files.names()
            if shard.late:
                yield LATE, str(shard.late).encode()
        except BaseException:  # also when Spark stops reading
            files.discard()
            raise

    def shard(self, number: int, store: Store | None = None) -> Shard:
        from shedjoin.spark.shard import Shard  # and with it the engines, for whoever runs one

        return Shard(self, number, store)


@lru_cache(maxsize=8)
def _read(spec: str) -> JoinSpec:
    """A spec of plain data, read once for all shards of a task."""
    return JoinSpec.from_dict(json.loads(spec))
