"""What is no input of an n-way join gets a sentence, and leaves the engine as it was."""

import pytest

import shedjoin as sj

SPEC = sj.MultiJoinSpec(windows=dict.fromkeys("abc", sj.TimeWindow(10)), on="key")
ROWS = {name: {"key": [1]} for name in "abc"}


@pytest.mark.parametrize(
    "act",
    [
        lambda engine: engine.push(5),
        lambda engine: engine.batch(5),
        lambda engine: engine.push(ROWS, clocks=5),
        lambda engine: engine.set_order(5),
        lambda engine: engine.push({})["zz"],
        lambda _: sj.simulate_multi(SPEC, 5),
        lambda _: sj.simulate_multi(SPEC, ROWS, warmup="x"),
        lambda _: sj.simulate_multi(SPEC, ROWS, warmup=float("nan")),
    ],
)
def test_misuse_is_answered_by_a_sentence(act):
    engine = SPEC.build()
    with pytest.raises((sj.InputError, sj.SpecError), match=r"must|no stream|takes"):
        act(engine)
    assert len(engine.push(ROWS)) == 1


def test_a_predicate_that_lets_all_pass_is_not_called_none():
    engine = SPEC.build()
    engine.push({"a": {"key": [1] * 50}})
    told = engine.explain()
    assert "one value, as far as is known" in told
    assert "no predicate" not in told
