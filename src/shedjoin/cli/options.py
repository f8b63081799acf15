"""Errors in options name the option that the user typed. They are raised before any work, if possible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shedjoin.errors import InputError, SpecError


@contextmanager
def as_typed(*names: str) -> Iterator[None]:
    """Errors of the library that begin with the name of one of these arguments begin with that of the option instead.

    Examples
    --------
    >>> with as_typed("upto"):
    ...     raise SpecError("upto must be the number of a batch, not -1")
    Traceback (most recent call last):
    shedjoin.errors.SpecError: --upto must be the number of a batch, not -1
    """
    try:
        yield
    except (InputError, SpecError) as reason:
        if not re.match(rf"(?:{'|'.join(names)})\b", str(reason)):
            raise
        raise type(reason)(f"--{reason}") from None


def check_file(path: Path | None, option: str) -> None:
    """See that a file can be written where it is to be."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise SpecError(f"{option} must be a file in an existing directory, not {path}")
