"""Documentation runs: every Python block of a page is executed, in order, in one namespace; links lead somewhere."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shedjoin.cli.file_job import read_file_job
from shedjoin.cli.stream_job import read_stream_job
from shedjoin.estimators import ESTIMATORS
from shedjoin.policies import POLICIES
from shedjoin.predicates import Overlap

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *ROOT.glob("lab/README.md"), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Blocks that say this run in tests/spark/test_pages.py.
ON_SPARK = ("shedjoin.spark", "/data/", "shed_join(", "withWatermark(", "joined.", ".alias(")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def plain_blocks(page: Path) -> list[str]:
    """Those that need no Spark."""
    return [block for block in blocks(page, "python") if not any(sign in block for sign in ON_SPARK)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if plain_blocks(page)], ids=name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment `# -> value` after an expression is checked: the expression must have that repr."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, "page", module)
    found = plain_blocks(page)
    checked = sum(run(block, f"{name(page)}, block {place}", vars(module)) for place, block in enumerate(found))
    assert checked == sum(block.count("  # -> ") for block in found)


def run(block: str, where: str, namespace: dict[str, Any]) -> int:
    """Run a block statement by statement; returns how many values were checked."""
    lines, checked = block.splitlines(), 0
    for statement in ast.parse(block, where).body:
        _, arrow, expected = lines[(statement.end_lineno or 1) - 1].partition("# -> ")
        if arrow and isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), where, "eval", dont_inherit=True), namespace)
            assert repr(value) == expected.strip(), f"{where}: {ast.unparse(statement)}"
            checked += 1
        else:
            exec(compile(ast.Module([statement], []), where, "exec", dont_inherit=True), namespace)
    return checked


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    gone = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert gone == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_job_files_are_jobs(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        (tmp_path / "job.toml").write_text(block)
        if "workload" in tomllib.loads(block):
            assert len(read_file_job(tmp_path / "job.toml").left["key"]) > 0
            continue
        for source in ("impressions", "clicks", "news", "wire"):
            (tmp_path / source).mkdir(exist_ok=True)
        job = read_stream_job(tmp_path / "job.toml")
        if job.on.predicate is not None:
            assert job.on.predicate == Overlap(("words", "terms"), at_least=3)
            continue
        assert job.on.keys == (("ad", "ad"),)
        assert job.spec.budget is not None


def test_a_page_names_every_policy_and_estimator() -> None:
    text = (ROOT / "docs" / "policies.md").read_text()
    missing = [kind.__name__ for kind in (*POLICIES.values(), *ESTIMATORS.values()) if f"`{kind.__name__}" not in text]
    assert missing == []


def test_every_page_is_on_the_map() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    missing = [str(page) for page in pages if f"]({page})" not in text and page.name != "index.md"]
    assert missing == []
