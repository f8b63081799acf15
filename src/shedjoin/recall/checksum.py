"""A checksum behind what is saved of an estimate, so that damage is noticed."""

from __future__ import annotations

import hashlib

from shedjoin.errors import SnapshotError

#: How many bytes it takes.
SEAL = 32


def sealed(body: bytes) -> bytes:
    """The bytes with their checksum behind them.

    Examples
    --------
    >>> opened(sealed(b"some numbers"))
    b'some numbers'
    """
    return body + hashlib.blake2b(body, digest_size=SEAL).digest()


def opened(data: bytes) -> bytes:
    """The bytes without their checksum, if it fits."""
    body, mark = data[:-SEAL], data[-SEAL:]
    if hashlib.blake2b(body, digest_size=SEAL).digest() != mark:
        raise SnapshotError("the saved recall estimate is damaged: its checksum does not fit its contents")
    return body
