"""The site's settings: every page has its place, figures open large, and the reference names what is public."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import shedjoin as sj
import shedjoin.spark
from shedjoin import errors as errors_module

ROOT = Path(__file__).parent.parent
#: Constants, results of functions, and bases: others on the page say what they are.
TOLD_ELSEWHERE = {
    "ROW_BYTES", "UNLIMITED", "WHY", "Estimator", "MultiRun", "Optimum", "Plan", "Policy", "Predicate", "Refinement",
    "Reordering", "Sets", "StaticJoin", "Truncated", "simulate_multi", "truncated_joins",
}  # fmt: skip


def hook() -> Any:
    found = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_once() -> None:
    named = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2])
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_reference_names_what_is_public() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    errors = {name for name in dir(errors_module) if name in sj.__all__}
    assert {*sj.__all__, *shedjoin.spark.__all__} - errors - set(re.findall(r"\w+", text)) == TOLD_ELSEWHERE


def test_links_out_of_the_documentation_become_text_and_figures_open_large() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="operate.md"))
    assert hook().on_page_markdown("see [the log](../CHANGELOG.md)", page) == "see `the log`"
    assert hook().on_page_markdown("![a](figures/a.png)", page) == "[![a](figures/a.png)](figures/a.png)"
    deep = SimpleNamespace(file=SimpleNamespace(src_uri="decisions/001-x.md"))
    assert hook().on_page_markdown("[spark](../spark.md)", deep) == "[spark](../spark.md)"
