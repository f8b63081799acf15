"""Settings of the CPU are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

import shedjoin as sj

pytestmark = pytest.mark.small


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sj.Selective(basic=0), ["Selective.basic", "0"]),
        (lambda: sj.Selective(basic=1, sample=0.0), ["Selective.sample", "above 0"]),
        (lambda: sj.Selective(basic=1, boost=1.0), ["Selective.boost", "above 1"]),
        (lambda: sj.Selective(basic=1, fraction=2.0), ["Selective.fraction", "at most 1"]),
        (lambda: sj.Selective(basic=1, rate=1), ["Selective.rate", "True or False"]),  # type: ignore[arg-type]
        (lambda: sj.VirtualCpu(0.0), ["VirtualCpu.capacity", "above 0"]),
        (lambda: sj.VirtualCpu(1.0, probe=-1.0), ["VirtualCpu.probe", "-1"]),
        (lambda: sj.Queue(), ["exactly one", "tuples, span"]),
        (lambda: sj.Queue(tuples=3, drop="oldest"), ["Queue.drop", "random, semantic"]),
        (lambda: sj.Queue(integrated=True), ["Queue.drop", "semantic"]),
        (lambda: sj.Deadline(0), ["Deadline.seconds", "above 0"]),
    ],
)
def test_settings_are_checked_when_made(make: Any, words: list[str]) -> None:
    with pytest.raises(sj.SpecError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)
