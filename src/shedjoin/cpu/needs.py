"""What a loop needs, or has to say, before it can go on."""

from __future__ import annotations

DONE = 0
STORE = 1  # room in the store; `io["part"]` says which
PAIRS = 2
SHED = 3
PAUSE = 4  # nothing: so many rows were processed
# Of dual windows only.
TABLE = 5
RINGS = 6
ADAPT = 7
