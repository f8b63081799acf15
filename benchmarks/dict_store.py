"""Shards without Spark, in tests and benchmarks: where they leave their state."""

from __future__ import annotations


class DictStore:
    """A state store in memory; a task that fails can be undone by taking a copy back."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, int], bytes] = {}
        self.top: bytes | None = None

    def head(self) -> bytes | None:
        return self.top

    def set_head(self, value: bytes) -> None:
        self.top = value

    def get(self, name: str, part: int) -> bytes | None:
        return self.values.get((name, part))

    def put(self, name: str, part: int, value: bytes) -> None:
        self.values[name, part] = value

    def remove(self, name: str, part: int) -> None:
        self.values.pop((name, part), None)

    def copy(self) -> DictStore:
        other = DictStore()
        other.values, other.top = dict(self.values), self.top
        return other

    @property
    def size(self) -> int:
        return sum(map(len, self.values.values()))
