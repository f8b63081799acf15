"""Which build of shedjoin made a stored row: its version, and a digest of the sources that a measurement stands on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import shedjoin
from shedjoin.lab.experiment import Row

#: The column of stored rows.
BUILD = "build"
#: What only starts, stores or shows measurements.
ASIDE = (
    "cli",
    "planner",
    "plots",
    "spark",
    *(f"lab/{name}.py" for name in ("build", "commands", "progress", "report", "store", "sweep")),
)


@cache
def build() -> str:
    """The version and eight signs of a digest; from the installed package alone.

    Examples
    --------
    >>> build().partition("+")[0] == shedjoin.__version__
    True
    """
    return f"{shedjoin.__version__}+{digest_of(Path(shedjoin.__file__).parent)}"


def digest_of(package: Path) -> str:
    """A digest of the sources that matter, and of where they are."""
    found = hashlib.blake2b(digest_size=4)
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        judged = path.name in ("claims.py", "judges.py")  # which rows make a claim hold
        if not judged and name not in ASIDE and name.partition("/")[0] not in ASIDE:
            content = path.read_bytes()
            found.update(f"{name} {len(content)} ".encode() + content)
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
