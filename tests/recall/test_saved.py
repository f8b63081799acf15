"""Estimates of earlier formats are refused with a sentence: `saved/` has one of each."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import shedjoin as sj
from shedjoin.recall import LiveRecall

SAVED = Path(__file__).parent / "saved"
TIME = sj.TimeWindow(9)


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "window", "words"),
    [
        ("pairs-1.z", TIME, "has an older format"),
        ("many-2.z", dict.fromkeys("abc", TIME), "do not begin with its mark"),
    ],
)
def test_earlier_formats(name: str, window: sj.TimeWindow | dict[str, sj.TimeWindow], words: str) -> None:
    spec = sj.JoinSpec(window, sj.Budget(tuples=6), sj.Simp(), lateness=1)
    with pytest.raises(sj.SnapshotError, match=words):
        LiveRecall.from_bytes(spec, zlib.decompress((SAVED / name).read_bytes()), seed=3, rows=16)
