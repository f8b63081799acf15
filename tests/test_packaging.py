"""What an installed package promises."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import shedjoin as sj

ROOT = Path(__file__).parent.parent


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sj.__version__ == project["version"] == importlib.metadata.version("shedjoin")
    assert f"## [{sj.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_package_is_typed() -> None:
    assert importlib.resources.files("shedjoin").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", sj.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(sj, name) is not None


def test_the_library_needs_no_extra() -> None:
    """A fresh interpreter in which the extras' packages cannot be imported still has the library, measures and CLI."""
    script = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyspark", "matplotlib", "pandas", "prometheus_client", "scipy"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
import shedjoin, shedjoin.quality, shedjoin.cli
shedjoin.JoinSpec(window=shedjoin.TimeWindow(3)).build()
assert shedjoin.quality.dice(([1], [1]), ([1], [1])) == 1.0
assert shedjoin.cli.main(["lab", "list"]) == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all("==" in line and "/" not in line for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    extras = project["optional-dependencies"].values()
    wanted = {
        need.partition(">=")[0].partition("[")[0] for group in (project["dependencies"], *extras) for need in group
    }
    assert wanted - {"shedjoin"} <= pinned
