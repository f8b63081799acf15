"""Seeded streams: the workloads of the papers, and what real streams do to a join (drift, bursts)."""

from shedjoin.lab.workloads.bursts import Burst, bursty
from shedjoin.lab.workloads.drift import drifting
from shedjoin.lab.workloads.flash import flashing
from shedjoin.lab.workloads.importance import IMPORTANCE
from shedjoin.lab.workloads.rates import at_rates
from shedjoin.lab.workloads.rotating import rotating, rotating_sets, rotating_sets_at
from shedjoin.lab.workloads.workload import Workload
from shedjoin.lab.workloads.zipf import RANKS, zipf, zipf_probabilities

__all__ = [
    "IMPORTANCE",
    "RANKS",
    "Burst",
    "Workload",
    "at_rates",
    "bursty",
    "drifting",
    "flashing",
    "rotating",
    "rotating_sets",
    "rotating_sets_at",
    "zipf",
    "zipf_probabilities",
]
