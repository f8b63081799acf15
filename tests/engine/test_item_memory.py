"""Growing the arrays of the items layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.engine import item_memory
from shedjoin.engine.engine import Engine
from shedjoin.engine.structures.time_lists import FIXED_LISTS, NO_TUPLE

Entry = tuple[int, int, int]


def lists_of(engine: Engine) -> dict[tuple[int, int], list[Entry]]:
    """The tuples that are stored in each list, by what the list is for."""
    state, cfg = engine._state, engine._cfg
    found: dict[tuple[int, int], list[Entry]] = {}
    for number, one in enumerate(state.arrays["lists"]):
        fixed = number < FIXED_LISTS
        stream = number % 2 if fixed else int(one["tag"]) - 1
        first = int(one["start"]) + int(one["head"])
        entries = [
            (int(ts), int(seq), int(slot))
            for ts, seq, slot in zip(
                *(
                    state.arrays[name][first : first + int(one["length"])]
                    for name in ("list_ts", "list_seq", "list_slot")
                ),
                strict=True,
            )
            if slot != NO_TUPLE
            and not item_memory._are_gone(cfg, state, np.array([stream]), np.array([ts]), np.array([seq]))[0]
        ]
        if entries:
            found[number if fixed else FIXED_LISTS + stream, int(one["item"])] = entries
    return found


@pytest.mark.parametrize("window", [sj.TimeWindow(30), (sj.RowWindow(20), sj.TimeWindow(15))])
@pytest.mark.parametrize("predicate", [sj.Overlap("x", at_least=1), sj.Band("x", within=2.0)])
@pytest.mark.parametrize("budget", [None, sj.Budget(tuples=12)])
def test_lists_grow_as_if_made_anew(window: Any, predicate: sj.Predicate, budget: sj.Budget | None) -> None:
    rng = np.random.default_rng(3)

    def rows() -> dict[str, Any]:
        if isinstance(predicate, sj.Band):
            return {"x": rng.integers(0, 60, 90)}
        return {"x": [rng.choice(40, rng.integers(0, 5), replace=False).tolist() for _ in range(90)]}

    engine = sj.JoinSpec(window, budget, on=predicate).build(seed=1)
    engine.push(left=rows(), right=rows())
    engine.push(left=rows(), right=rows())
    before = lists_of(engine)
    item_memory.grow_lists(engine._cfg, engine._state, room=7)
    assert lists_of(engine) == before
    assert not engine._state.arrays["lists"]["dead"].any()
    item_memory.fill_lists(engine._cfg, engine._state, room=7)
    assert lists_of(engine) == before
