"""The arguments of a join are written once; signatures, docstrings and errors follow."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.spark import shed_join, start
from shedjoin.spark.join_args import DOCS, PARAMETERS, complete

pytestmark = pytest.mark.small

FUNCTIONS = pytest.mark.parametrize("function", [shed_join, start])


@FUNCTIONS
def test_signatures_show_all_arguments_by_keyword(function: Callable[..., Any]) -> None:
    found = signature(function).parameters
    assert list(found)[:3] == ["left", "right", "more"]
    assert {name: found[name] for name in PARAMETERS} == PARAMETERS
    assert not any(one.kind is Parameter.VAR_KEYWORD for one in found.values())
    defaults = {
        "time": Parameter.empty,
        "how": "inner",
        "lateness": "watermark",
        "combine": "min",
        "seed": 0,
        "weights": False,
    }
    assert {name: one.default for name, one in PARAMETERS.items() if one.default is not None} == defaults


@FUNCTIONS
def test_docstrings_list_all_arguments(function: Callable[..., Any]) -> None:
    text = getdoc(function) or ""
    listed = re.findall(r"^(\w+)$", text.partition("----------\n")[2], re.MULTILINE)
    assert listed == list(signature(function).parameters)[3:]
    assert all(doc in re.sub(r"\s+", " ", text) for doc in DOCS.values())


def test_the_page_names_every_argument() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    assert [name for name in PARAMETERS if f"`{name}`" not in text] == []


@FUNCTIONS
def test_an_unknown_or_a_missing_argument_is_named(function: Callable[..., Any]) -> None:
    given: dict[str, Any] = {"output": "out"} if function is start else {}
    called = function.__name__
    with pytest.raises(
        sj.SpecError, match=rf"{called} has no argument 'budgt' \(perhaps budget\?\): it takes .*on, pred"
    ):
        function(None, None, time="at", window=3, budgt=3, **given)
    with pytest.raises(sj.SpecError, match=rf"{called} has no argument 'x': it takes "):
        function(None, None, time="at", window=3, x=3, **given)
    with pytest.raises(sj.SpecError, match=r"^time is missing\. The event time: a column name, a pair"):
        function(None, None, window=3, **given)


def test_defaults_fill_in_what_is_not_given() -> None:
    args = complete({"time": "at", "window": 3, "seed": 7}, shed_join)
    assert list(args) == list(PARAMETERS)
    assert (args["seed"], args["combine"], args["on"]) == (7, "min", None)
