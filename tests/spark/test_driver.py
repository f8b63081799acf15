"""What the driver of a query imports. (That a query runs so is seen where a driver has a process of its own: `test_cluster`,
`test_connect`.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import shedjoin.spark

#: Modules that run engines, on workers. All others are the driver's, or are used by both.
WORKERS = {
    "copies",
    "daemon",
    "engines",
    "keeping",
    "operator",
    "predicate_shard",
    "predicate_state",
    "state",
}
IMPORTS = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    importlib.import_module(f"shedjoin.spark.{name}")
print(*(name for name in ("numba", "pandas", "scipy", "matplotlib", "rich") if name in sys.modules))
"""


def imported(*names: str) -> set[str]:
    """What comes with these modules, of that which takes its time."""
    done = subprocess.run([sys.executable, "-c", IMPORTS, *names], capture_output=True, text=True, check=True)
    return {*done.stdout.split()}


def test_a_driver_imports_no_engine() -> None:
    names = {path.stem for path in Path(str(shedjoin.spark.__file__)).parent.glob("*.py")}
    assert names > WORKERS
    assert imported(*sorted(names - WORKERS - {"__init__"})) == set()


def test_a_worker_does() -> None:
    assert "numba" in imported("operator", "predicate_shard")
