"""One Spark session for all tests, and streams cut into files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plans import large_plans
from sessions import local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = local_session(tmp_path_factory.mktemp("spark"))
        yield made
        made.stop()


@pytest.fixture
def small(spark: Any) -> Iterator[Any]:
    """The session, set for large plans over little data."""
    with large_plans(spark):
        yield spark


@pytest.fixture
def cache(tmp_path: Path) -> str:
    """A place for copies that no other test has."""
    return str(tmp_path / "copies")
