"""Stored rows say which build made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.figures import FIGURE, parameters
from shedjoin.lab.build import BUILD, build, builds_in_words, digest_of
from shedjoin.lab.experiment import Row, Scale, identity
from shedjoin.lab.run import in_process, run
from shedjoin.lab.store import ID, Store


def test_the_digest_follows_what_is_measured_and_nothing_else(tmp_path: Path) -> None:
    for name, text in (("engine/loop.py", "one"), ("cli/run.py", "two"), ("lab/report.py", "three")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    first = digest_of(tmp_path)
    (tmp_path / "cli/run.py").write_text("other")
    (tmp_path / "lab/report.py").write_text("other")
    assert digest_of(tmp_path) == first
    (tmp_path / "engine/loop.py").write_text("other")
    assert digest_of(tmp_path) != first


def test_rows_of_before_are_kept_beside_new_ones(tmp_path: Path) -> None:
    """They have no build, and are not run again."""
    store = Store(tmp_path)
    old: list[Row] = [
        {ID: identity(params), **row}
        for params in parameters(Scale(seeds=1))[:3]
        for row in FIGURE.measure(params, None)
    ]
    store.add(FIGURE, old)
    assert run(FIGURE, Scale(seeds=1), store, in_process) == 1
    assert [row.get(BUILD) for row in store.read(FIGURE)].count(None) == 3
    assert builds_in_words(store.read(FIGURE)) == f"Rows by build: 3 without one, 1 of {build()}."


@pytest.mark.parametrize("rows", [[], [{"matches": 1}]])
def test_no_build_at_all(rows: list[Row]) -> None:
    assert builds_in_words(rows) == f"Rows by build: {'1 without one' if rows else 'none'}."
