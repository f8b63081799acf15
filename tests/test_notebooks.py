"""The notebooks of examples/ run from top to bottom, and are kept without output."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert [path.stem for path in EXAMPLES] == ["estimates", "first_join", "from_spark", "planner"]


@pytest.mark.own_spark
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter about itself
        from nbclient import NotebookClient

        book = nbformat.read(path, as_version=4)
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in book.cells)
        NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [text for cell in book.cells for text in cell.get("outputs", []) if text["output_type"] == "stream"]
    assert printed
    assert [text["text"] for text in printed if text["name"] == "stderr" and "Traceback" in text["text"]] == []
