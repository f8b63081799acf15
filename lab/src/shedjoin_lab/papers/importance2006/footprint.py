"""`python -m`: how much memory a method takes, in a process of its own; prints one row as JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from shedjoin_lab.experiment import Row
from shedjoin_lab.methods import Setting, counted
from shedjoin_lab.papers.importance2006.methods import METHODS
from shedjoin_lab.papers.importance2006.synthetic import workload_of


def footprint(params: dict[str, Any]) -> Row:
    """What was measured, and `top_kilobytes`: the most memory in use, above what the loaded program has."""
    method = METHODS[params["method"]]
    setting = Setting(params["window"], params["memory"], params["warmup"], params["seed"])
    method(workload_of({**params, "rows": 10}), setting)  # loads the solver and what was compiled
    start = _forget_the_most()
    run = method(workload_of(params), setting)
    return {**counted(run), "top_kilobytes": max(_most() - start, 0)}


def _forget_the_most() -> int:
    """Set the most memory in use back to what is in use, where the system can (Linux), and return it in kB."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")
    return _most()


def _most() -> int:
    """The most memory in use so far, in kB."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


if __name__ == "__main__":
    print(json.dumps(footprint(json.loads(sys.argv[1]))))
