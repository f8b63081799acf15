"""Saved estimates: a header in JSON, arrays, and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.errors import SnapshotError

MAGIC = b"SHEDLIVE"
VERSION = 3
CHECKSUM_BYTES = 32


def to_bytes(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], rest: bytes) -> bytes:
    """A header, arrays, and bytes of any kind."""
    shapes = {name: array.shape for name, array in arrays.items()}
    text = json.dumps({"version": VERSION, **head, "shapes": shapes}).encode()
    body = b"".join([MAGIC, text, b"\n", *(np.ascontiguousarray(one).tobytes() for one in arrays.values()), rest])
    return body + _checksum(body)


def from_bytes(data: bytes, like: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, NDArray[Any]], bytes]:
    """What `to_bytes` was given. `like` has arrays of the same types, whatever their length."""
    if not isinstance(data, bytes | bytearray | memoryview) or bytes(data[: len(MAGIC)]) != MAGIC:
        raise SnapshotError("these are not the bytes of a recall estimate (they do not begin with its mark)")
    data = bytes(data)
    text, _, body = data[len(MAGIC) : -CHECKSUM_BYTES].partition(b"\n")
    if data[len(MAGIC) : len(MAGIC) + 1] != b"{":
        raise SnapshotError(
            f"the recall estimate has an older format, this shedjoin reads format {VERSION}: start a new one"
        )
    if _checksum(data[:-CHECKSUM_BYTES]) != data[-CHECKSUM_BYTES:]:
        raise SnapshotError("the saved recall estimate is damaged: its checksum does not match its contents")
    head = json.loads(text)
    if head["version"] != VERSION:
        raise SnapshotError(f"the recall estimate has format {head['version']}, this shedjoin reads format {VERSION}")
    arrays, start = {}, 0
    for name, shape in head["shapes"].items():
        if name not in like:
            raise SnapshotError(f"the recall estimate was saved by another join: this one has no {name!r}")
        arrays[name] = np.frombuffer(body, like[name].dtype, int(np.prod(shape)), start).reshape(shape).copy()
        start += arrays[name].nbytes
    return head, arrays, body[start:]


def check_signature(saved: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse an estimate that was saved with other settings."""
    for name in {**here, **saved}:
        if saved.get(name) != here.get(name):
            raise SnapshotError(
                f"the recall estimate was saved with another setting of {name}: {saved.get(name)!r}, here it is "
                f"{here.get(name)!r}. Only budget, level and half-life may change."
            )


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()
