"""Build a distribution, and look at what is in it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parent.parent


def project_of(folder: Path) -> dict[str, Any]:
    """The table [project] of a distribution."""
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return project


def build(folder: Path, into: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of the distribution in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, sdist


def files_in(archive: Path) -> set[PurePosixPath]:
    """The files of a wheel, or of an sdist without its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {PurePosixPath(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        return {PurePosixPath(*PurePosixPath(name).parts[1:]) for name in sdist.getnames()}


def tops(files: set[PurePosixPath]) -> set[str]:
    """What lies at the top of an archive."""
    return {file.parts[0] for file in files}


def unpinned(project: dict[str, Any]) -> set[str]:
    """The requirements, those of extras too, for which constraints.txt has no version."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all("==" in line and "/" not in line for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    extras = project.get("optional-dependencies", {}).values()
    wanted = {
        need.partition(">=")[0].partition("[")[0] for group in (project["dependencies"], *extras) for need in group
    }
    return wanted - {"shedjoin"} - pinned
