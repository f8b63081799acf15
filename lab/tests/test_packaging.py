"""What an installed lab promises."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import shedjoin as sj
from distributions import ROOT, build, files_in, project_of, tops, unpinned

LAB = ROOT / "lab"


def test_it_has_the_version_of_shedjoin_and_needs_that_one() -> None:
    project = project_of(LAB)
    assert sj.__version__ == project["version"] == importlib.metadata.version("shedjoin-lab")
    assert project["dependencies"] == [f"shedjoin[offline,plot,spark]=={sj.__version__}"]
    assert unpinned(project) == set()


def test_the_package_is_typed() -> None:
    assert importlib.resources.files("shedjoin_lab").joinpath("py.typed").is_file()


def test_distributions_hold_the_lab_alone(tmp_path: Path) -> None:
    archives = build(LAB, tmp_path)
    wheel, sdist = map(files_in, archives)
    sources = {path.relative_to(LAB / "src") for path in (LAB / "src").rglob("*.py")}
    assert tops(wheel) == {"shedjoin_lab", f"shedjoin_lab-{sj.__version__}.dist-info"}
    assert {PurePosixPath(path) for path in sources} <= wheel
    assert {PurePosixPath("src", path) for path in sources} <= sdist
    with zipfile.ZipFile(archives[0]) as file:
        (entries,) = (name for name in file.namelist() if name.endswith("entry_points.txt"))
        assert file.read(entries).decode().split("\n") == ["[shedjoin.commands]", "lab = shedjoin_lab.commands", ""]


def test_it_lists_its_figures_without_the_packages_that_run_and_draw_them() -> None:
    script = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyspark", "matplotlib", "pandas", "scipy", "pylmcf"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
import shedjoin.cli
assert shedjoin.cli.main(["lab", "list"]) == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "das2003" in done.stdout
