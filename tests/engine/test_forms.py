"""The forms of the loop: which one runs, that both tell the same, and that kernels are found by the type of a record."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numba
import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine.codes import PLAIN
from shedjoin.engine.forms import is_plain
from shedjoin.engine.handle import Handle, marked
from shedjoin.engine.jit import kernel
from shedjoin.engine.operation import operation
from shedjoin.errors import SpecError
from strategies import Case, Chooser, Combination, batch, cases, for_all, told

EXACT = sj.JoinSpec(window=sj.TimeWindow(5))
RECORD = np.dtype([("number", "i8")])
OTHER, EMPTY = marked(RECORD, "other"), marked(RECORD, "empty")


# --------------------------------------------------------------------------------------------------------- operations


@kernel
def _add(state, by):
    state["number"] += by


@kernel
def _take_away(state, by):
    state["number"] -= by


_change = operation(_add, {OTHER: _take_away, EMPTY: None})


@numba.njit
def _change_twice(state, narrow):
    _change(state[0], 5)
    _change(state[0], narrow)


@pytest.mark.small
def test_an_operation_calls_the_kernel_of_the_form() -> None:
    numbers = []
    for dtype in (RECORD, OTHER, EMPTY):
        handle = Handle(RECORD)
        _change_twice(handle.seen_as(dtype).for_kernel(), np.int32(2))
        numbers.append(int(handle["number"]))
    assert numbers == [7, -7, 0]


@pytest.mark.small
def test_a_marked_record_has_the_same_bytes() -> None:
    handle = Handle(RECORD)
    handle.seen_as(OTHER)["number"] = 3
    assert handle["number"] == 3
    assert OTHER != RECORD
    assert OTHER.itemsize == RECORD.itemsize


# -------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.small
@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        (EXACT, True),
        (replace(EXACT, window=(sj.TimeWindow(1), sj.TimeWindow(9))), True),
        (replace(EXACT, window=(sj.TimeWindow(1), sj.RowWindow(9))), False),
        (replace(EXACT, lateness=1), False),
        (replace(EXACT, max_skew=1), False),
        (replace(EXACT, importance="sum"), False),
        (replace(EXACT, policy=sj.Rand()), False),
        (replace(EXACT, budget=sj.Budget(tuples=2), policy=sj.Prob()), False),
    ],
    ids=str,
)
def test_settings_choose_the_form(spec: sj.JoinSpec, plain: bool) -> None:
    assert is_plain(spec.build()._cfg) == plain


@pytest.mark.small
def test_a_budget_that_may_come_is_not_plain() -> None:
    """A join that keeps all takes no budget; one with a policy takes it at any time, and is in the form PAIR from the start."""
    with pytest.raises(SpecError, match="keeps everything"):
        EXACT.build().set_budget(sj.Budget(tuples=1))
    rows = {"key": [1, 1, 1], "ts": [0, 1, 2]}
    engine, exact = replace(EXACT, policy=sj.Rand()).build(), EXACT.build()
    assert told(engine, engine.push(left=rows, right=rows)) == told(exact, exact.push(left=rows, right=rows))
    assert len(engine.set_budget(sj.Budget(tuples=2)).shed) == 4


@pytest.mark.small
def test_both_forms_tell_the_same() -> None:
    """With late rows, null keys, streams out of step and clocks from outside; and a join may change its form at any time."""

    def check(case: Case) -> None:
        spec = replace(EXACT, window=case.spec.window)
        plain, pair = spec.build(), in_form_pair(spec.build())
        for number, rows in enumerate(case.pushes):
            newest = max((row.ts for row in rows), default=0)
            clocks = (newest + 1, None) if number % 3 == 2 else None
            assert is_plain(plain._cfg)
            told_by_plain = told(plain, plain.push(batch(rows), clocks=clocks))
            assert told_by_plain == told(pair, pair.push(batch(rows), clocks=clocks))
            assert plain.counters == pair.counters
            if number % 2:  # each form goes on with what the other has stored
                plain, pair = spec.resume(pair.snapshot()), in_form_pair(spec.resume(plain.snapshot()))

    for_all(cases(Combination(Chooser("keep_all"), None, "time_time")), check, label="both forms", examples=60)


def in_form_pair(engine: sj.Engine) -> sj.Engine:
    """The same join in the form PAIR: PLAIN writes no trace."""
    engine._watch["trace_every"] = 1
    engine._set_caps(None)
    assert not is_plain(engine._cfg)
    return engine


def test_both_forms_are_found_on_disk_by_a_second_process() -> None:
    code = (
        "import shedjoin as sj; from shedjoin.engine import loop;"
        "rows = {'key': [1, 1], 'ts': [0, 1]};"
        "sj.JoinSpec(sj.TimeWindow(5)).build().push(left=rows, right=rows);"
        "sj.JoinSpec(sj.TimeWindow(5), sj.Budget(tuples=2)).build().push(left=rows, right=rows);"
        "entries = (loop.advance_plain, loop.advance_pair);"
        "print([(sum(e.stats.cache_hits.values()), sum(e.stats.cache_misses.values())) for e in entries])"
    )
    compiled = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=compiled, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[-1].stdout.strip() == "[(1, 0), (1, 0)]"


@pytest.mark.small
def test_plain_knows_settings_by_their_names() -> None:
    assert set(PLAIN) <= set(EXACT.build()._cfg.dtype.names or ())
