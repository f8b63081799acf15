"""Snapshots of n-way joins: honest ones go on as if nothing had been, forged ones are refused or do no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from nway_forging import POLICIES, rows, spec_of

from shedjoin.errors import SnapshotError

HERE = Path(__file__).parent
#: So many of each policy; more were tried when this was written.
FORGERIES = 8


@pytest.mark.small
@pytest.mark.parametrize("name", POLICIES)
def test_an_engine_goes_on_from_any_point(name: str) -> None:
    spec = spec_of(name)
    random, engine = Random(name), spec.build(seed=2)
    other = spec.build(seed=2)
    for start in range(0, 20, 5):
        batch = rows(random, engine, start, 15)
        other = spec.resume(other.snapshot())
        mine, theirs = engine.push(batch), other.push(batch)
        assert sorted(mine.rows.tolist()) == sorted(theirs.rows.tolist())
        assert mine.shed.records().tobytes() == theirs.shed.records().tobytes()
    assert engine.counters == other.counters


def test_forged_snapshots_are_refused_or_do_no_harm() -> None:
    """In a process of its own, with the JIT off: there, a place outside of an array is an error."""
    done = subprocess.run(
        [sys.executable, str(HERE / "nway_forging.py"), str(FORGERIES)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, _, _ in told] == list(POLICIES)
    assert all(int(refused) + int(harmless) == FORGERIES for _, refused, harmless in told)
    assert sum(int(refused) for _, refused, _ in told) > 0


@pytest.mark.small
def test_what_is_refused_is_told() -> None:
    spec = spec_of("prob")
    engine = spec.build()
    engine.push(rows(Random(1), engine, 0, 60))
    engine._state.arrays["buckets"]["span"][:] = 10**6
    with pytest.raises(SnapshotError, match="contradicts itself: a ring holds more than it has"):
        spec.resume(engine.snapshot())
