"""The condition of a join: a key, a join graph, or a predicate, with one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from shedjoin.engine.codes import SAME
from shedjoin.engine.graph import Graph
from shedjoin.predicates import Predicate
from shedjoin.spark.hypercube import ROW, HyperCube
from shedjoin.spark.join_graph import attributes_column, is_hashed
from shedjoin.spark.keys import Keys, is_number, key_number
from shedjoin.spark.value_columns import ARCHIVED_VALUES, item_number, item_type, value_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A stream, and a column of it.
End = tuple[int, str]


class Compared(NamedTuple):
    """Columns that make one number by which rows are compared, and the types in which they do."""

    names: list[str]
    types: list[str]
    number: Callable[[DataFrame], Column]


class Condition(ABC):
    """What rows are joined on.

    Attributes
    ----------
    cube
        Which shards a row goes to.
    values
        What a predicate compares (number, set, weighted); None: numbers of 64 bits.
    archived
        The type of `_sj_key` in the archive.
    copied
        Whether rows may be stored, and archived, in several shards.
    has_groups
        Whether partners share a value.
    """

    cube: HyperCube
    values: ClassVar[str | None] = None
    archived: str = "bigint"
    copied: ClassVar[bool] = False
    has_groups: ClassVar[bool] = True

    @property
    def keys(self) -> Keys:
        """The key columns, one name a stream."""
        return Keys(())

    @property
    def key_columns(self) -> list[tuple[str, str]]:
        """What the columns of the key are called in the shed log, and their types."""
        return []

    @abstractmethod
    def columns(self, side: int) -> list[str]:
        """The columns of a stream that are compared."""

    def hashed(self, side: int) -> list[str]:
        """Those that travel as hashes, so that their values are compared once more."""
        return []

    def equal(self) -> list[tuple[End, End]]:
        """The columns that are compared once more."""
        return []

    @abstractmethod
    def column(self, frame: DataFrame, side: int, row: Sequence[str]) -> Column:
        """The compared value of a row, null if it joins nothing. `row`: the columns for a hash of the row."""

    @abstractmethod
    def weighed(self, side: int) -> list[Compared]:
        """The values that a `Table` has weights for."""

    @abstractmethod
    def signature(self) -> dict[str, Any]:
        """What may not change while a checkpoint lives."""


@dataclass(frozen=True)
class OnKey(Condition):
    """A key that all streams have. Each row goes to the shard of its hash."""

    pairs: Keys
    types: list[str]
    cube: HyperCube

    @property
    def keys(self) -> Keys:
        return self.pairs

    @property
    def key_columns(self) -> list[tuple[str, str]]:
        return [(f"key_{pair[0]}", kind) for pair, kind in zip(self.pairs.pairs, self.types, strict=True)]

    def columns(self, side: int) -> list[str]:
        return self.pairs.names(side)

    def hashed(self, side: int) -> list[str]:
        return [] if is_number(self.types) else self.columns(side)

    def equal(self) -> list[tuple[End, End]]:
        hashed = () if is_number(self.types) else self.pairs.pairs
        return [((0, pair[0]), (side, pair[side])) for pair in hashed for side in range(1, len(pair))]

    def column(self, frame: DataFrame, side: int, row: Sequence[str]) -> Column:
        return key_number(frame, self.columns(side), self.types)

    def weighed(self, side: int) -> list[Compared]:
        names = self.columns(side)
        return [Compared(names, self.types, partial(key_number, names=names, types=self.types))]

    def signature(self) -> dict[str, Any]:
        return {"keys": [[*pair, kind] for pair, kind in zip(self.pairs.pairs, self.types, strict=True)]}


@dataclass(frozen=True)
class OnGraph(Condition):
    """A join graph. Each row goes to the cells of the cube that agree with it."""

    graph: Graph
    types: list[list[str]]
    cube: HyperCube
    archived: str = "array<bigint>"
    copied: ClassVar[bool] = True

    def columns(self, side: int) -> list[str]:
        return list(self.graph.columns[side])

    def hashed(self, side: int) -> list[str]:
        both = zip(self.graph.columns[side], self.types[side], strict=True)
        return [name for name, kind in both if is_hashed(kind)]

    def equal(self) -> list[tuple[End, End]]:
        columns = self.graph.columns
        return [
            ((one.left, columns[one.left][one.left_attr]), (one.right, columns[one.right][one.right_attr]))
            for one in self.graph.equalities
            if is_hashed(self.types[one.left][one.left_attr])
        ]

    def column(self, frame: DataFrame, side: int, row: Sequence[str]) -> Column:
        names = self.graph.columns[side]
        own = any(dim.get(side) == ROW for dim in self.cube.dims)
        return attributes_column(frame, names, self.types[side], list(dict.fromkeys([*names, *row])) if own else [])

    def weighed(self, side: int) -> list[Compared]:
        made = []
        for place in dict.fromkeys(part[side] for part in self.graph.parts if side in part):
            names, types = [self.graph.columns[side][place]], [self.types[side][place]]
            made.append(Compared(names, types, partial(key_number, names=names, types=types)))
        return made

    def signature(self) -> dict[str, Any]:
        return {"attributes": self.types, "cube": list(self.cube.shares)}


@dataclass(frozen=True)
class OnPredicate(Condition):
    """A predicate on numbers or sets. Rows go to all shards, equal sets to that of their hash.

    Where partners are counted, each row of the stream whose partners count goes to one shard, and all shards store the other.
    """

    predicate: Predicate
    types: list[Any]
    cube: HyperCube

    @property
    def values(self) -> str:  # type: ignore[override]
        return self.predicate.kind

    @property
    def archived(self) -> str:  # type: ignore[override]
        return "bigint" if self.has_groups else ARCHIVED_VALUES[self.predicate.kind]

    @property
    def copied(self) -> bool:  # type: ignore[override]
        return not self.has_groups and not self.cube.is_everywhere

    @property
    def has_groups(self) -> bool:  # type: ignore[override]
        return self.predicate.code == SAME

    def columns(self, side: int) -> list[str]:
        return [self.predicate.columns[side]]

    def column(self, frame: DataFrame, side: int, row: Sequence[str]) -> Column:
        return value_column(frame, self.predicate.columns[side], self.predicate.kind)

    def weighed(self, side: int) -> list[Compared]:
        name, kind = self.predicate.columns[side], item_type(self.types[side], self.predicate.kind)
        return [Compared([name], [kind], partial(item_number, name=name))]

    def signature(self) -> dict[str, Any]:
        return {"values": [kind.simpleString() for kind in self.types]}
