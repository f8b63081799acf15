"""What an installed package promises."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

import shedjoin as sj
from distributions import ROOT, build, files_in, project_of, tops, unpinned


def test_versions_agree() -> None:
    assert sj.__version__ == project_of(ROOT)["version"] == importlib.metadata.version("shedjoin")
    assert f"## [{sj.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_package_is_typed() -> None:
    assert importlib.resources.files("shedjoin").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", sj.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(sj, name) is not None


def test_the_library_needs_no_extra() -> None:
    """A fresh interpreter that can import neither the extras' packages nor the lab has the library, measures and CLI."""
    script = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyspark", "matplotlib", "pandas", "prometheus_client", "scipy", "pylmcf", "shedjoin_lab"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
import shedjoin, shedjoin.cli, shedjoin.planner, shedjoin.plots.draw, shedjoin.quality, shedjoin.workloads
shedjoin.JoinSpec(window=shedjoin.TimeWindow(3)).build()
assert shedjoin.quality.dice(([1], [1]), ([1], [1])) == 1.0
assert len(shedjoin.workloads.zipf(5, seed=0).left["key"]) == 5
try:
    shedjoin.cli.main(["--help"])
except SystemExit as end:
    assert end.code == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_requirement_is_pinned() -> None:
    assert unpinned(project_of(ROOT)) == set()


def test_distributions_hold_the_product_and_not_the_lab(tmp_path: Path) -> None:
    wheel, sdist = map(files_in, build(ROOT, tmp_path))
    assert tops(wheel) == {"shedjoin", f"shedjoin-{sj.__version__}.dist-info"}
    package = ROOT / "src" / "shedjoin"
    sources = {path.relative_to(package.parent) for path in package.rglob("*.py")}
    assert {
        PurePosixPath(path) for path in (*sources, "shedjoin/py.typed", "shedjoin/spark/log4j2.properties")
    } <= wheel
    assert {PurePosixPath("src", path) for path in sources} <= sdist
    assert tops(sdist) >= {"src", "tests", "docs", "benchmarks", "Makefile", "CHANGELOG.md", "README.md", "LICENSE"}
    assert "lab" not in tops(sdist)
    assert not [path for path in wheel | sdist if "shedjoin_lab" in path.parts]
