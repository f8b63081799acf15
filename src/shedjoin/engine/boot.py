"""Which run of this machine it is: what is parked in memory does not outlive one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_mark() -> str | None:
    """Names this run of this machine; None where the system does not say."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None
