"""The daemon that Spark's Python workers are forked off, and the settings that go with it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from shedjoin.spark.daemon import forget_archives
from shedjoin.spark.session import ELSEWHERE, alone, lean

LOADS = "from shedjoin.spark.daemon import load_kernels; print(load_kernels())"
#: A shard's first micro-batches after that: keys and rows that are more and more, then a clock that lets them go.
WORKS = f"""{LOADS}
from numba.core.caching import Cache
from shards import Shards, job, table
import shedjoin as sj
load = Cache.load_overload
Cache.load_overload = lambda self, *what: print("loads", self._name) or load(self, *what)
for budget in (None, sj.Budget(tuples=300)):
    shards = Shards(job(sj.JoinSpec(sj.TimeWindow(3000), budget), kinds=("result", "shed", "metric")))
    for start in (0, 3000, 9000):
        rows = table([place % 700 for place in range(3000)], range(start, start + 3000))
        shards.batch([rows], [rows])
"""
#: Shards of every kind, and what comes with them that the daemon did not have.
IMPORTS = f"""{LOADS}
import sys
there = {{*sys.modules}}
import shedjoin as sj
from shards import Shards, job, table
from shedjoin.spark.hypercube import HyperCube
window, memory = sj.TimeWindow(5), sj.Budget(tuples=6)
rows = table([1, 2, 1], [0, 1, 2])
for spec in (sj.JoinSpec(window, memory), sj.JoinSpec(dict.fromkeys("abc", window), memory, on="key")):
    one = job(spec, kinds=("result", "shed", "metric"))
    Shards(one).batch(*[[rows] for _ in one.names])
spread = sj.JoinSpec(window, memory, on=sj.Overlap("tags", at_least=1))
list(job(spread, kinds=("metric",), kept=((), ()), cube=HyperCube.of_copies(1)).shard(0).run(()))
late = {{*sys.modules}} - there
print(*(name for name in late if name.startswith(("shedjoin", "numba", "pyarrow", "pandas"))))
"""


def told(program: str, **environment: str) -> str:
    """What a new process says of its kernels."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_kernels_that_are_not_on_disk_are_not_compiled_by_the_daemon(tmp_path: Path) -> None:
    assert told(LOADS, NUMBA_CACHE_DIR=str(tmp_path)) == "False"
    assert not list(tmp_path.rglob("*.nbc"))


def test_a_shard_finds_all_its_kernels_loaded() -> None:
    """What a worker has to load itself it does not share: that was 28 MB of each."""
    assert told(WORKS) == "True"


def test_a_shard_imports_nothing_that_the_daemon_has_not() -> None:
    """Nor would it share that."""
    assert told(IMPORTS) == "True"


def test_finders_of_archives_are_dropped_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("first_of_the_archive.py", "")
        archive.writestr("second_of_the_archive.py", "")
    monkeypatch.syspath_prepend(tmp_path / "a.zip")
    __import__("first_of_the_archive")
    assert any(isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())
    forget_archives()
    assert not any(isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())
    __import__("second_of_the_archive")


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


def test_sorting_begins_with_small_pages_unless_somebody_says_otherwise() -> None:
    assert alone({})["spark.buffer.pageSize"] == "2m"
    assert alone({"spark.buffer.pageSize": "64m"})["spark.buffer.pageSize"] == "64m"


def test_a_python_of_another_kind_has_its_own_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.python.daemon.module" in lean()
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python-of-another-kind")
    assert "spark.python.daemon.module" not in lean()
