"""Pace: how r is adapted while a push runs, so that it ends in time."""

from shedjoin.engine.pace import PARTS, Pace, Script, Watch, part_of

__all__ = ["PARTS", "Pace", "Script", "Watch", "part_of"]
