"""Whether something lies at a path: Python is asked where it knows for sure, Spark where it may know better."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shedjoin.spark.refine_log import ELSEWHERE, read_if_there, surely_absent

LOCAL = {"spark.master": "local[2]"}


def spark_with(settings: dict[str, str]) -> Any:
    """A session with settings, and nothing that can be read."""
    return SimpleNamespace(conf=SimpleNamespace(get=settings.get))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


def test_what_is_not_there_is_not_loaded(tmp_path: Path) -> None:
    for place in ("none", "none/below"):
        for begin in ("", "file:", "file://"):
            assert read_if_there(spark_with(LOCAL), "text", f"{begin}{tmp_path}/{place}") is None
    for begin in ("", "file:", "file://"):
        assert not surely_absent(spark_with(LOCAL), f"{begin}{tmp_path}")


@pytest.mark.parametrize("path", ["s3://bucket/none", "hdfs:/none", "/no*ne", "/no[ne]", "/{no,ne}"])
def test_spark_is_asked_for_what_is_not_of_this_machine(path: str) -> None:
    assert not surely_absent(spark_with(LOCAL), path)


def test_spark_is_asked_where_paths_may_mean_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/none"
    assert surely_absent(spark_with(LOCAL), path)
    assert surely_absent(spark_with({**LOCAL, "spark.hadoop.fs.defaultFS": "file:///"}), path)
    for other in ({"spark.master": "spark://host:7077"}, {**LOCAL, "spark.hadoop.fs.defaultFS": "hdfs://host"}, {}):
        assert not surely_absent(spark_with(other), path)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert not surely_absent(spark_with(LOCAL), path)
    assert surely_absent(spark_with(LOCAL), f"file:{path}")


def test_what_spark_does_not_find_is_none_either(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.txt").write_text("x\n")
    for sure in (surely_absent, lambda spark, path: False):
        monkeypatch.setattr("shedjoin.spark.refine_log.surely_absent", sure)
        assert read_if_there(spark, "text", f"{tmp_path}/none") is None
        found = read_if_there(spark, "text", f"{tmp_path}/there")
        assert found is not None
        assert [row[0] for row in found.collect()] == ["x"]
