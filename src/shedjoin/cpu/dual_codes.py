"""The codes and the settings that a join with dual windows boils down to."""

from __future__ import annotations

import numpy as np

_CODES = (
    "size0",
    "size1",
    "timed",
    "rear",
    "front",
    "queue_cap",
    "drop",
    "period",
    "warmup",
    "emit",
    "output_importance",
)
#: Who goes from a full queue: any row; the one with the fewest partners in the histogram; the least likely one by a table.
DROP_RANDOM, DROP_COUNTED, DROP_TABLE = 0, 1, 2
_NUMBERS = ("capacity", "probe_cost", "update_cost")
SETTINGS_RECORD = np.dtype([(name, "f8") for name in _NUMBERS] + [(name, "i8") for name in _CODES])
