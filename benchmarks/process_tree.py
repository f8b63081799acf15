"""The memory of a process and of all below it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def tree(root: int) -> list[int]:
    """A process and all below it, as far as they are still there."""
    found = [root]
    for pid in found:
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    found += [int(child) for child in (task / "children").read_text().split()]
    return found


def memory(pid: int) -> int:
    """In bytes; proportional, so that shared pages count once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
