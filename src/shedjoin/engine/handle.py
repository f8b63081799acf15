"""Handles: a record of numbers plus the addresses of arrays, passed to kernels as one pointer.

A kernel that takes thirty arrays as arguments copies some three hundred words for every call inside it, and takes a hundred times
as long as the same kernel that is given one record (measured: docs/decisions/003). So a state is a record whose
fields are counters and addresses; `views` makes the functions by which kernels see the arrays behind it.
The `Handle` keeps the arrays alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Unique:
    """What holds addresses of arrays cannot be copied: the copy would work on the memory of the original."""

    def __reduce_ex__(self, protocol: Any) -> Any:  # copy, deepcopy and pickle all come here
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled: take its snapshot() and resume that")


class Handle(Unique):
    """Numbers and arrays that kernels work on."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.record: NDArray[Any] = np.zeros(1, dtype)
        self.arrays: dict[str, NDArray[Any]] = {}

    def hold(self, **arrays: NDArray[Any]) -> None:
        """Put arrays behind the handle, in place of those of the same name; the last axis is the one that varies."""
        for name, array in arrays.items():
            if not array.flags.c_contiguous:
                array = np.ascontiguousarray(array)
            self.hold_at(name, array, array.ctypes.data)
            self.record[f"{name}_room"] = array.shape[-1]

    def hold_at(self, name: str, array: NDArray[Any], address: int) -> None:
        """Put an array behind the handle of which as much is used as the numbers say."""
        self.arrays[name] = array
        self.record[f"{name}_at"] = address

    def resize(self, **rooms: int) -> None:
        """Say how much of arrays is used, where that is not all."""
        for name, room in rooms.items():
            self.record[f"{name}_room"] = room

    def __getitem__(self, field: str) -> Any:
        return self.record[0][field]

    def __setitem__(self, field: str, value: Any) -> None:
        self.record[field] = value

    def seen_as(self, dtype: np.dtype[Any]) -> Handle:
        """The same numbers and arrays under a record of another type."""
        seen = Handle(dtype)
        seen.record, seen.arrays = self.record.view(dtype), self.arrays
        return seen

    def for_kernel(self) -> Any:
        """What an entry kernel takes: it looks at element 0."""
        from numba import config  # whoever gets here is about to run a kernel: the others need no numba

        return [self] if config.DISABLE_JIT else self.record


def cache_lines(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start where a cache line does."""
    shape = (shape,) if isinstance(shape, int) else shape
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip : skip + size].view(dtype).reshape(shape)


def marked(dtype: np.dtype[Any], mark: str) -> np.dtype[Any]:
    """A record of the same bytes that is another type to numba: its first bytes have one more name."""
    fields: dict[str, Any] = dict(dtype.fields or {}) | {mark: (np.uint8, 0)}
    formats, offsets = [field[0] for field in fields.values()], [field[1] for field in fields.values()]
    return np.dtype({"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize})


def pointers(*names: str) -> list[tuple[str, str]]:
    """The fields that a handle needs for arrays of these names."""
    return [(f"{name}_{part}", "i8") for name in names for part in ("at", "room")]
