"""What is no set is refused; numbers of any size find one another."""

import pytest

import shedjoin as sj


@pytest.mark.parametrize("row", [[None, 1], [None], "oil", b"oil"])
def test_a_row_that_is_no_set_of_items_is_refused(row):
    join = sj.PredicateJoin(sj.TimeWindow(10), sj.Overlap("k"))
    with pytest.raises(sj.InputError, match="k must h"):
        join.build().push(left={"k": [row]})


@pytest.mark.parametrize("number", [2.0**62, -(2.0**62), 2.0**80, 9.2e16])
@pytest.mark.parametrize("within", [0.01, 0.5])
def test_lists_and_scan_agree_on_large_numbers(number, within):
    found = []
    for index in ("lists", "scan"):
        join = sj.PredicateJoin(sj.TimeWindow(10), sj.Band("p", within=within), index=index)
        found.append(len(join.build().push(left={"p": [number, number]}, right={"p": [number, -number]})))
    assert found == [2, 2]


@pytest.mark.parametrize("column", [5, [{1: None}], [7]])
def test_what_holds_no_weighted_sets_is_refused(column):
    join = sj.PredicateJoin(sj.TimeWindow(10), sj.InnerProduct("t", at_least=1))
    with pytest.raises(sj.InputError, match="t must"):
        join.build().push(left={"t": column})


def test_clocks_are_a_pair():
    with pytest.raises(sj.InputError, match="clocks must be"):
        sj.PredicateJoin(sj.TimeWindow(10), sj.Overlap("k")).build().push(left={"k": [[1]]}, clocks=5)
