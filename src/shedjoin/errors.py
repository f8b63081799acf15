"""Errors a user may meet. Each message names the argument, what came, and what is allowed."""

from __future__ import annotations


class ShedjoinError(Exception):
    """Base class: catch this to catch everything shedjoin raises on purpose."""


class SpecError(ShedjoinError, ValueError):
    """A join specification, or an argument of a run, has no meaning."""


class InputError(ShedjoinError, ValueError):
    """Rows that cannot be joined: missing columns, wrong types, bad values."""


class SnapshotError(ShedjoinError, ValueError):
    """A snapshot that is damaged, of another version, or of another join."""


class DataError(ShedjoinError, FileNotFoundError):
    """Data that an experiment needs is missing."""


class EnvironmentProblem(ShedjoinError, RuntimeError):
    """Something outside shedjoin (Java, Spark, a disk) is missing, too old or full."""
