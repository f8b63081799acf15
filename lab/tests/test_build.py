"""Stored rows say which build made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from figures import FIGURE, parameters
from shedjoin_lab.build import ASIDE, BUILD, build, builds_in_words, digest_of
from shedjoin_lab.experiment import Row, Scale, identity
from shedjoin_lab.import_paths import IMPORT_PATHS
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import ID, Store


def test_the_digest_follows_what_is_measured_and_nothing_else(tmp_path: Path) -> None:
    packages = [tmp_path / "shedjoin", tmp_path / "shedjoin_lab"]
    measured = ("shedjoin/engine/loop.py", "shedjoin_lab/workloads/drift.py")
    aside = ("shedjoin/cli/run.py", "shedjoin_lab/report.py", "shedjoin_lab/papers/das2003/claims.py")
    for name in (*measured, *aside):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    first = digest_of(packages)
    for name in aside:
        (tmp_path / name).write_text("other")
    assert digest_of(packages) == first
    for name in measured:
        before = digest_of(packages)
        (tmp_path / name).write_text("other")
        assert digest_of(packages) != before


def test_what_is_aside_is_there() -> None:
    """A file that was renamed would count as measured."""
    for path, (package, aside) in zip(IMPORT_PATHS, ASIDE.items(), strict=True):
        assert all(Path(path, package, name).exists() for name in aside)


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
