"""Where other processes find shedjoin and the lab when they are run from a source tree and not installed."""

from __future__ import annotations

from pathlib import Path

import shedjoin
import shedjoin_lab

IMPORT_PATHS = tuple(str(Path(str(package.__file__)).parent.parent) for package in (shedjoin, shedjoin_lab))
