"""What an installed package promises."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import io
import json
import os
import subprocess
import sys
import venv
from pathlib import Path, PurePosixPath

import hatchling
import numpy as np
import pytest

import shedjoin as sj
from distributions import ROOT, build, files_in, project_of, tops, unpinned


def test_versions_agree() -> None:
    assert sj.__version__ == project_of(ROOT)["version"] == importlib.metadata.version("shedjoin")
    assert f"## [{sj.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {sj.__version__}\n" in (ROOT / "CITATION.cff").read_text()


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
        PurePosixPath(path)
        for path in (
            *sources,
            *(file.relative_to(package.parent) for file in (package / "dashboard" / "page").iterdir()),
            "shedjoin/py.typed",
            "shedjoin/spark/log4j2.properties",
        )
    } <= wheel
    assert {PurePosixPath("src", path) for path in sources} <= sdist
    assert tops(sdist) >= {"src", "tests", "docs", "benchmarks", "Makefile", "CHANGELOG.md", "README.md", "LICENSE"}
    assert "lab" not in tops(sdist)
    assert not [path for path in wheel | sdist if "shedjoin_lab" in path.parts]


def test_the_long_description_renders() -> None:
    from readme_renderer import markdown

    problems = io.StringIO()
    assert markdown.render((ROOT / "README.md").read_text(), stream=problems) is not None
    assert problems.getvalue() == ""


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_into_a_clean_environment(kind: str, tmp_path: Path) -> None:
    """The packages that it needs are borrowed; shedjoin itself is what was built, and not these sources."""
    wheel, sdist = build(ROOT, tmp_path)
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    borrowed = {str(Path(place).parents[1]) for place in (np.__file__, str(hatchling.__file__))}
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    subprocess.run(
        [*pip, "--no-build-isolation", str(wheel if kind == "wheel" else sdist)], check=True, capture_output=True
    )
    script = """
import json, sys, pathlib
import shedjoin as sj
from importlib.metadata import requires, version
from shedjoin.dashboard.server import FILES, PAGE
out = sj.JoinSpec(window=sj.TimeWindow(3)).build().push(left={"key": [1, 2]}, right={"key": [2, 1]})
extras = {one.partition("extra == ")[2].strip("\\"'") for one in requires("shedjoin")}
there = all((PAGE / name).is_file() for name, _ in FILES.values())
print(json.dumps([sj.__file__, version("shedjoin"), len(out), sorted(extras), there]))
"""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [python, "-c", script],
        cwd=tmp_path,
        env={**clean, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    place, version, results, extras, there = json.loads(done.stdout)
    assert Path(place).is_relative_to(tmp_path)
    assert (version, results, there) == (sj.__version__, 2, True)
    assert {"spark", "plot", "quality"} <= set(extras)
    said = subprocess.run(
        [python.parent / "shedjoin", "--version"], env=clean, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"shedjoin {sj.__version__}\n"
