"""Snapshots: the contents of a join as bytes, with a version, the join they belong to, and a checksum. Data, never code."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.records import TRAIL_RECORD
from shedjoin.errors import SnapshotError

MAGIC = b"SHEDJOIN"
VERSION = 11
_HEAD = struct.Struct("<8sIQ")
_DIGEST = 32
#: Kinds of columns.
KINDS = ("<i8", "<i4", "|i1", "<f8", "<u8")
_PARTS = ("signature", "extra", "shapes")


class Saved(NamedTuple):
    """What a snapshot holds."""

    signature: dict[str, Any]
    extra: dict[str, Any]
    columns: dict[str, NDArray[Any]]


def pack(columns: Mapping[str, NDArray[Any]], signature: dict[str, Any], extra: dict[str, Any]) -> bytes:
    """Bytes from which `unpack` makes the same columns."""
    shapes = {name: [_kind(array), list(array.shape)] for name, array in columns.items()}
    header = json.dumps({"signature": signature, "extra": extra, "shapes": shapes}).encode()
    parts = [_HEAD.pack(MAGIC, VERSION, len(header)), header, *(array.tobytes() for array in columns.values())]
    body = b"".join(parts)
    return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _kind(array: NDArray[Any]) -> str:
    return "trail" if array.dtype == TRAIL_RECORD else array.dtype.str


def unpack(snapshot: bytes) -> Saved:
    """The columns of a snapshot, of known kinds and the lengths that the header gives them; what they hold is not looked at."""
    snapshot = _plain(snapshot)
    header, start = _checked_header(snapshot)
    columns = {}
    for name, entry in header["shapes"].items():
        kind, shape = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        dtype = TRAIL_RECORD if kind == "trail" else np.dtype(kind) if kind in KINDS else None
        if dtype is None or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise SnapshotError(f"the snapshot's header says of {name!r} that it is {entry!r}, which makes no sense")
        count = math.prod(shape)
        if count * dtype.itemsize > len(snapshot) - _DIGEST - start:
            raise SnapshotError(f"the snapshot is cut short: {name!r} does not fit into it")
        columns[name] = np.frombuffer(snapshot, dtype, count, start).reshape(shape).copy()
        start += count * dtype.itemsize
    if start != len(snapshot) - _DIGEST:
        raise SnapshotError(f"the snapshot has {len(snapshot) - _DIGEST - start} bytes more than its header speaks of")
    return Saved(header["signature"], header["extra"], columns)


def _plain(snapshot: bytes) -> bytes:
    return bytes(snapshot) if isinstance(snapshot, bytearray | memoryview) else snapshot


def numbers(record: NDArray[Any]) -> NDArray[Any]:
    """The record without its addresses, which mean nothing elsewhere."""
    plain = record.copy()
    for name in plain.dtype.names or ():
        if name.endswith("_at") or name.startswith("code of "):
            plain[name] = 0
    return plain


def _checked_header(snapshot: bytes) -> tuple[dict[str, Any], int]:
    if not isinstance(snapshot, bytes) or snapshot[:8] != MAGIC:
        raise SnapshotError("these are not the bytes of a shedjoin snapshot (they do not begin with its mark)")
    if len(snapshot) < _HEAD.size + _DIGEST:
        raise SnapshotError(f"the snapshot is cut short: {len(snapshot)} bytes are less than its frame alone")
    _, version, length = _HEAD.unpack_from(snapshot)
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has format {version}, this shedjoin reads format {VERSION}: go on with the version that wrote it, or "
            "begin anew"
        )
    if hashlib.blake2b(snapshot[:-_DIGEST], digest_size=_DIGEST).digest() != snapshot[-_DIGEST:]:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit its contents")
    return _read_header(snapshot[_HEAD.size : _HEAD.size + length]), _HEAD.size + length


def _read_header(text: bytes) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise SnapshotError(f"the snapshot's header cannot be read: {reason}") from None
    if not isinstance(header, dict) or not all(isinstance(header.get(part), dict) for part in _PARTS):
        raise SnapshotError(f"the snapshot's header lacks one of {', '.join(_PARTS)}")
    return header
