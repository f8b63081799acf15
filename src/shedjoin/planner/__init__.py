"""The planner: from a sample of two streams to the memory and the policy for a target."""

from shedjoin.planner.candidates import CANDIDATES, Candidate
from shedjoin.planner.planning import plan
from shedjoin.planner.result import Need, Plan, Point, Recommendation

__all__ = ["CANDIDATES", "Candidate", "Need", "Plan", "Point", "Recommendation", "plan"]
