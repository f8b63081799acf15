"""What the driver of a query imports. (That a query runs so is seen where a driver has a process of its own: `test_cluster`,
`test_connect`.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shedjoin as sj
import shedjoin.spark
from shedjoin.spark import start

#: Modules that run engines, on workers, and `room`, by which `explain` counts their memory. All others are the driver's, or are
#: used by both.
WORKERS = {
    "daemon",
    "deadline",
    "host_copy",
    "moved_state",
    "room",
    "shard",
    "shard_state",
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
    assert "numba" in imported("shard")


@pytest.mark.parametrize("output", [None, "", " ", 3, b"out"])
def test_start_writes_only_where_it_is_told(output: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        sj.SpecError, match=rf"output must be the path of a directory, as text or a Path, not {output!r}"
    ):
        start(None, None, output=output, on="k", time="ts", window="1 second")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_start_writes_into_no_file_and_to_no_address(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("mine")
    for output, match in ((file, f"but {file} is a file"), ("s3://bucket/out", "not an address: 's3://bucket/out'")):
        with pytest.raises(sj.SpecError, match=f"output must be .*{match}"):
            start(None, None, output=output, on="k", time="ts", window="1 second")  # type: ignore[arg-type]
    assert file.read_text() == "mine"
