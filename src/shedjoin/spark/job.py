"""What a query tells its shards. The driver makes it, workers run it: here is what both need, and no engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shedjoin.cpu.join import PredicateJoin
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.keys import SIDES
from shedjoin.spark.shares import share_of
from shedjoin.spec import JoinSpec

if TYPE_CHECKING:
    from shedjoin.spark.operator import Shard
    from shedjoin.spark.predicate_shard import PredicateShard
    from shedjoin.spark.state import Store


@dataclass(frozen=True, slots=True)
class Job:
    """What every shard of a join on keys is told, as plain data."""

    spec: dict[str, Any]
    labels: tuple[int, ...]
    seed: int
    kept: tuple[tuple[int, ...], ...]  # of the columns that travel, those that results are made of
    signature: dict[str, Any]  # what may not change while the checkpoint lives, beside the spec
    kinds: tuple[str, ...]
    cache: str | bool | None
    shares: str = "adaptive"
    query: str = ""  # names this run, so that its copies are known
    names: tuple[str, ...] = SIDES  # of the streams
    recall: bool = True  # whether it is to be told
    timestamps: bool = True  # or times are whole numbers
    keys: bytes | None = None  # the Arrow schema of the key columns, where keys are hashed: the first of those kept

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
        spec = JoinSpec.from_dict(self.spec)
        if spec.budget is None:
            return spec
        return spec.with_budget(share_of(spec.budget, shard, self.shards, self.streams))

    def seed_of(self, shard: int) -> int:
        return (self.seed + shard) % 2**64

    def shard(self, number: int, store: Store | None = None) -> Shard:
        from shedjoin.spark.operator import Shard  # and with it the engines, for whoever runs one

        return Shard(self, number, store)


@dataclass(frozen=True, slots=True)
class GraphJob(Job):
    """What every shard of a join graph is told."""

    cube: HyperCube = field(default_factory=lambda: HyperCube((), ()))

    def shard(self, number: int, store: Store | None = None) -> Shard:
        from shedjoin.spark.graph_shard import GraphShard

        return GraphShard(self, number, store)


@dataclass(frozen=True, slots=True)
class PredicateJob:
    """What every shard of a join on a predicate is told, as plain data."""

    spec: dict[str, Any]
    labels: tuple[int, ...]
    seed: int
    kept: tuple[tuple[int, ...], tuple[int, ...]]  # of the columns that travel, those that results are made of
    signature: dict[str, Any]  # what may not change while the checkpoint lives, beside the spec
    kinds: tuple[str, ...]
    cache: str | bool | None
    spread: bool  # whether every shard gets all rows
    deadline: float | None = None  # seconds
    query: str = ""
    timestamps: bool = True  # or times are whole numbers

    def join_of(self, shard: int) -> PredicateJoin:
        """The join of one shard, with its share of the memory."""
        join = PredicateJoin.from_dict(self.spec)
        if join.budget is None:
            return join
        return join.with_budget(share_of(join.budget, shard, len(self.labels)))

    def part_of(self, shard: int) -> tuple[int, int]:
        return (shard, len(self.labels)) if self.spread else (0, 1)

    def seed_of(self, shard: int) -> int:
        return (self.seed + shard) % 2**64

    def shard(self, number: int, store: Store | None = None) -> PredicateShard:
        from shedjoin.spark.predicate_shard import PredicateShard

        return PredicateShard(self, number, store)
