"""Seeded streams with Zipf keys, for demos, job files and tests."""

from shedjoin.workloads.importance import IMPORTANCE
from shedjoin.workloads.workload import Workload
from shedjoin.workloads.zipf import RANKS, zipf, zipf_probabilities

__all__ = ["IMPORTANCE", "RANKS", "Workload", "zipf", "zipf_probabilities"]
