"""One Spark session for all tests, and streams cut into files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plans import INTERPRETED, large_plans
from processes import QUICK_JAVA


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        from shedjoin.spark import session
        from shedjoin.spark.session import LEAN

        folder = tmp_path_factory.mktemp("spark")
        builder = (
            SparkSession.builder.master("local[2]")
            .appName("shedjoin tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.driver.extraJavaOptions", QUICK_JAVA)
            # What a failing task takes with it is a worker, and a new one need not import all anew.
            .config(map=LEAN)
            .config("spark.sql.streaming.pollingDelay", "5ms")
            .config(map=INTERPRETED)
        )
        made = session(builder)
        made.sparkContext.setLogLevel("OFF")
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
