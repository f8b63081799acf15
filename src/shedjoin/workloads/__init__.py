"""Seeded streams with Zipf keys, or with keys that come once, for demos, job files and tests."""

from shedjoin.workloads.importance import IMPORTANCE
from shedjoin.workloads.unique import unique
from shedjoin.workloads.workload import Workload
from shedjoin.workloads.zipf import RANKS, zipf, zipf_probabilities

__all__ = ["IMPORTANCE", "RANKS", "Workload", "unique", "zipf", "zipf_probabilities"]
