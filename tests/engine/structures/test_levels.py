"""Counts by level, against a plain list."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from shedjoin.engine.handle import Handle
from shedjoin.engine.records import MANY_STATE
from shedjoin.engine.structures import levels
from strategies import INTERPRETED

pytestmark = pytest.mark.small


def test_ranks_are_those_of_a_plain_list() -> None:
    if not INTERPRETED:  # kernels are called as parts of the loop alone; the tests of dual windows run them compiled
        assert callable(levels.add)
        return
    random, st, there = Random(1), Handle(MANY_STATE), list[float]()
    kinds = {"level": np.float64, "level_count": np.int64, "level_sum": np.int64}
    st.hold(**{name: np.zeros((2, 16), kind) for name, kind in kinds.items()})
    st.resize(**dict.fromkeys(kinds, 16))
    for _ in range(600):
        if there and random.random() < 0.5:
            gone = there.pop(random.randrange(len(there)))
            levels.add(st, 1, gone, -1)
        else:
            value = float(random.randrange(random.choice((3, 40))))
            if len({*there, value}) > 7:
                continue
            assert not levels.lacks_room(st, 1)
            there.append(value)
            levels.add(st, 1, value, 1)
        for value in {*there, 2.5}:
            at = levels.find(st, 1, value)
            assert levels.below(st, 1, at) == sum(one < value for one in there)
            if value in there:
                assert st.arrays["level_count"][1, at] == there.count(value)
    assert st["levels_size"][0] == 0
