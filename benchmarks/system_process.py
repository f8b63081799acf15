"""One system of a benchmark in a process of its own, and the memory that it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from process_tree import memory, tree


def run_alone(script: str, system: str, folder: Path, window: int, rows: int, *more: str) -> dict[str, Any]:
    """Run `script --one system`: what it reports, its peak of memory, and its rows/s in all and once warm."""
    command = [sys.executable, script, "--one", system, "--folder", str(folder), "--window", str(window), *more]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    peak = peak_of(process)
    if process.returncode:
        raise SystemExit(f"{system} failed; run it alone to see why: {' '.join(command)}")
    found = json.loads((folder / f"{system}.json").read_text())
    return {**found, "peak": peak, "speed": rows / found["seconds"], "steady": rows / found["warm"]}


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process and all below it held at once, in bytes, as seen five times a second."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(memory(pid) for pid in tree(process.pid)))
        time.sleep(0.2)
    return peak


def check_equal(rows: list[dict[str, Any]]) -> None:
    """All systems must have given the same results."""
    if len({(row["results"], row["hash"]) for row in rows}) > 1:
        found = {row["system"]: (row["results"], row["hash"]) for row in rows}
        raise SystemExit(f"the outputs differ: {found}")
