"""Estimates that earlier versions saved can be loaded: `saved/` has one of each format, written before `shedjoin.recall`."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import shedjoin as sj
from shedjoin.recall import LiveRecall, MultiRecall

SAVED = Path(__file__).parent / "saved"


def saved(name: str) -> bytes:
    return zlib.decompress((SAVED / name).read_bytes())


@pytest.mark.small
def test_pairs() -> None:
    data = saved("pairs-1.z")
    windows = (sj.TimeWindow(9), sj.RowWindow(5))
    spec = sj.JoinSpec(windows, sj.Budget(tuples=4), sj.Simp(), importance="sum", lateness=1)
    live = LiveRecall.from_bytes(spec, data, seed=3, rows=16)
    now = live.estimate()
    assert (now.results, now.shed, live.remembered) == (43, 44, 11)
    assert (now.missing, now.low, now.high) == pytest.approx((45.23263888888889, 0.4000003312, 0.5693650083))
    assert live.to_bytes() == data
    with pytest.raises(sj.SnapshotError, match="another setting of rows: 16, here it is 17"):
        LiveRecall.from_bytes(spec, data, seed=3, rows=17)


@pytest.mark.small
def test_many() -> None:
    data = saved("many-2.z")
    windows = dict.fromkeys("abc", sj.TimeWindow(9))
    spec = sj.MultiJoinSpec(windows, on="key", budget=sj.Budget(tuples=6), policy=sj.Simp(), lateness=1)
    live = MultiRecall(spec, seed=3, rows=12)
    live.load(data)
    now = live.estimate()
    assert (now.results, now.shed, live.remembered) == (24, 66, 6)
    assert (now.missing, now.low, now.high) == pytest.approx((262.38224266806964, 0.0043280748, 0.9983622718))
    assert live.to_bytes() == data
