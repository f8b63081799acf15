"""Which build of shedjoin made a stored row: its version, and a digest of the sources that a measurement stands on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import shedjoin
from shedjoin_lab.experiment import Row
from shedjoin_lab.import_paths import IMPORT_PATHS

#: The column of stored rows.
BUILD = "build"
#: What only starts, stores or shows measurements, in each package.
ASIDE = {
    "shedjoin": ("atomic_file.py", "cli", "planner", "plots", "spark"),
    "shedjoin_lab": (
        "build.py",
        "commands.py",
        "import_paths.py",
        "agreement.py",
        "figures_page.py",
        "printed.py",
        "progress.py",
        "report.py",
        "store.py",
        "sweep.py",
        "web_report.py",
    ),
}


@cache
def build() -> str:
    """The version and eight signs of a digest; from the installed packages alone.

    Examples
    --------
    >>> build().partition("+")[0] == shedjoin.__version__
    True
    """
    folders = [Path(path, package) for path, package in zip(IMPORT_PATHS, ASIDE, strict=True)]
    return f"{shedjoin.__version__}+{digest_of(folders)}"


def digest_of(packages: Iterable[Path]) -> str:
    """A digest of the packages' sources that matter, and of where they are."""
    found = hashlib.blake2b(digest_size=4)
    for package in packages:
        aside = ASIDE[package.name]
        for path in sorted(package.rglob("*.py")):
            name = path.relative_to(package).as_posix()
            judged = path.name in ("claims.py", "judges.py")  # which rows make a claim hold
            if not judged and name not in aside and name.partition("/")[0] not in aside:
                content = path.read_bytes()
                found.update(f"{package.name}/{name} {len(content)} ".encode() + content)
    return found.hexdigest()


def builds_in_words(rows: Iterable[Row]) -> str:
    """How many rows each build has made, the most first; rows from before they carried one are named so.

    Examples
    --------
    >>> builds_in_words([{"build": "0.2.0+1b2c3d4e"}, {"build": "0.2.0+1b2c3d4e"}, {"matches": 3}])
    'Rows by build: 2 of 0.2.0+1b2c3d4e, 1 without one.'
    """
    counted = Counter(row.get(BUILD) for row in rows)
    said = [f"{count:,} {'without one' if name is None else f'of {name}'}" for name, count in counted.most_common()]
    return f"Rows by build: {', '.join(said) or 'none'}."
