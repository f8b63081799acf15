"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from shedjoin.atomic_file import write_atomic


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    write_atomic(path, lambda file: file.write(b"old"))

    def half(file: object) -> None:
        file.write(b"ne")  # type: ignore[attr-defined]
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
