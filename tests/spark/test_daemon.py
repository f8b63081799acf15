"""The daemon that Spark's Python workers are forked off, and the settings that go with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shedjoin.spark.session import ELSEWHERE, alone, lean

LOADS = "from shedjoin.spark.daemon import load_kernels; print(load_kernels())"


def told(**environment: str) -> str:
    """What a new process says of its kernels."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_kernels_that_are_not_on_disk_are_not_compiled_by_the_daemon(tmp_path: Path) -> None:
    assert told(NUMBA_CACHE_DIR=str(tmp_path)) == "False"
    assert not list(tmp_path.rglob("*.nbc"))


def test_kernels_on_disk_are_loaded() -> None:
    assert told() == "True"


@pytest.mark.parametrize(
    ("settings", "environment", "chosen"),
    [
        ({}, {}, True),
        ({"spark.driver.extraJavaOptions": "-Dx=1"}, {}, False),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseZGC"}, {}, False),
        ({}, {"JDK_JAVA_OPTIONS": "-XX:+UseZGC"}, False),
        ({}, {"SPARK_CONF_DIR": "/etc/spark"}, False),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--conf x=y pyspark-shell"}, False),
    ],
)
def test_a_collector_is_chosen_only_where_nobody_else_may_have(
    settings: dict[str, str], environment: dict[str, str], chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("-XX:+UseSerialGC" in lean(settings).get("spark.driver.defaultJavaOptions", "")) == chosen
    assert settings.items() <= alone(settings).items()


def test_a_python_of_another_kind_has_its_own_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.python.daemon.module" in lean()
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python-of-another-kind")
    assert "spark.python.daemon.module" not in lean()
