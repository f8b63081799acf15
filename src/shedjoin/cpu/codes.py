"""The integer codes that kernels switch on where the CPU is short, and the settings that a join boils down to."""

from __future__ import annotations

import numpy as np

#: Times that are never reached, in either direction.
NEVER = -(2**62)
FOREVER = 2**62

# Who goes when a queue or the memory is full.
NO_ONE = 0
RANDOM = 1
LOWEST = 2
# What the priority of a stored tuple is made of.
BY_IMPORTANCE = 0
BY_MATCHES = 1  # importance times the partners it met on arrival
BY_STATISTICS = 2  # importance times what the lists say of its items

_CODES = (
    "code",
    "index",
    "size0",
    "size1",
    "lateness",
    "max_skew",  # -1: none
    "part",  # which tuples are stored here: those whose number in their stream, divided by `parts`, leaves this
    "parts",
    "output_importance",
    "warmup",
    "emit",
    # Selective processing.
    "basic",  # length of a basic window; 0: whole windows
    "ages",  # how many ages a basic window may have
    "ahead",  # how many of them lie in the probing row's future
    "correlation",
    "direction",
    "utility",
    "rate",
    "kinds",
    "rate_every",
    "rank_every",
    # The virtual CPU; capacity 0: rows are processed when they arrive.
    "queue_cap",  # 0: no bound
    "queue_span",
    "queue_victim",
    "integrated",
    # Memory.
    "groups",  # 0: no budget; 1: one memory; 2: one a stream
    "victim",
    "priority",
)
_NUMBERS = ("bound", "boost", "sample", "capacity", "probe_cost", "compare_cost", "lookup_cost", "update_cost")
SETTINGS_RECORD = np.dtype([(name, "f8") for name in _NUMBERS] + [(name, "i8") for name in _CODES])
