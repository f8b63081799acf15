"""Snapshots: the arrays of a state as bytes, with a version, the join they belong to, and a checksum. Data, never code."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.handle import Handle
from shedjoin.errors import SnapshotError

MAGIC = b"SHEDJOIN"
VERSION = 1
_HEAD = struct.Struct("<8sIQ")
_DIGEST = 32


def encode(state: Handle, signature: dict[str, Any], extra: dict[str, Any]) -> bytes:
    """Bytes from which `decode` makes the same state."""
    shapes = {name: list(array.shape) for name, array in state.arrays.items()}
    header = json.dumps({"signature": signature, "extra": extra, "shapes": shapes}).encode()
    parts = [_HEAD.pack(MAGIC, VERSION, len(header)), header, numbers(state.record).tobytes()]
    parts += [array.tobytes() for array in state.arrays.values()]
    body = b"".join(parts)
    return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()


def decode(snapshot: bytes, state: Handle, signature: dict[str, Any]) -> dict[str, Any]:
    """Put the state of a snapshot in place of a new one; returns what else was saved."""
    header, start = _checked_header(snapshot)
    for name, mine in signature.items():
        theirs = header["signature"].get(name)
        if theirs != json.loads(json.dumps(mine)):
            raise SnapshotError(
                f"the snapshot is of a join with another {name}: it has {theirs!r}, this join {mine!r}. "
                "Only the budget may change between a snapshot and its resumption."
            )
    state.record[:] = np.frombuffer(snapshot, state.record.dtype, 1, start)
    start += state.record.nbytes
    for name, template in list(state.arrays.items()):
        shape = tuple(header["shapes"][name])
        count = int(np.prod(shape))
        saved = np.frombuffer(snapshot, template.dtype, count, start).reshape(shape)
        state.hold(**{name: saved.copy()})
        start += count * template.dtype.itemsize
    extra: dict[str, Any] = header["extra"]
    return extra


def numbers(record: NDArray[Any]) -> NDArray[Any]:
    """The record without its addresses, which mean nothing elsewhere."""
    plain = record.copy()
    for name in plain.dtype.names or ():
        if name.endswith("_at"):
            plain[name] = 0
    return plain


def _checked_header(snapshot: bytes) -> tuple[dict[str, Any], int]:
    if not isinstance(snapshot, bytes | bytearray | memoryview) or bytes(snapshot[:8]) != MAGIC:
        raise SnapshotError("these are not the bytes of a shedjoin snapshot (they do not begin with its mark)")
    if len(snapshot) < _HEAD.size + _DIGEST:
        raise SnapshotError(f"the snapshot is cut short: {len(snapshot)} bytes are less than its frame alone")
    _, version, length = _HEAD.unpack_from(snapshot)
    if version != VERSION:
        raise SnapshotError(f"the snapshot has format {version}, this shedjoin reads format {VERSION}")
    if hashlib.blake2b(snapshot[:-_DIGEST], digest_size=_DIGEST).digest() != bytes(snapshot[-_DIGEST:]):
        raise SnapshotError("the snapshot is damaged: its checksum does not fit its contents")
    return json.loads(bytes(snapshot[_HEAD.size : _HEAD.size + length])), _HEAD.size + length
