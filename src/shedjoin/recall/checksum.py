"""A checksum at the end of a saved estimate."""

from __future__ import annotations

import hashlib

from shedjoin.errors import SnapshotError

#: The length of the checksum, in bytes.
CHECKSUM_BYTES = 32


def with_checksum(body: bytes) -> bytes:
    """The bytes, followed by their checksum.

    Examples
    --------
    >>> without_checksum(with_checksum(b"some numbers"))
    b'some numbers'
    """
    return body + _checksum(body)


def without_checksum(data: bytes) -> bytes:
    """The bytes without their checksum. Raises `SnapshotError` if it does not match."""
    body = data[:-CHECKSUM_BYTES]
    if _checksum(body) != data[-CHECKSUM_BYTES:]:
        raise SnapshotError("the saved recall estimate is damaged: its checksum does not match its contents")
    return body


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()
