"""Seeded streams of the papers, beside those with Zipf keys (`shedjoin.workloads`), and streams that drift or burst."""

from shedjoin_lab.workloads.bursts import Burst, bursty
from shedjoin_lab.workloads.drift import drifting
from shedjoin_lab.workloads.flash import flashing
from shedjoin_lab.workloads.rates import at_rates
from shedjoin_lab.workloads.rotating import rotating, rotating_sets, rotating_sets_at

__all__ = [
    "Burst",
    "at_rates",
    "bursty",
    "drifting",
    "flashing",
    "rotating",
    "rotating_sets",
    "rotating_sets_at",
]
