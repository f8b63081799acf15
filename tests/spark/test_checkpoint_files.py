"""How the files of a checkpoint are written: Spark's setting, while a query starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shedjoin.spark.checkpoint_files import LOCAL, SETTING, written_for


@pytest.fixture(autouse=True)
def own_way(spark: Any) -> Iterator[None]:
    """Spark's own way to begin with: the session of the tests has chosen another."""
    before = spark.conf.get(SETTING, None)
    spark.conf.unset(SETTING)
    yield
    if before is not None:
        spark.conf.set(SETTING, before)


def test_a_local_checkpoint_is_written_without_processes(spark: Any, tmp_path: Any) -> None:
    with written_for(spark, str(tmp_path)):
        assert spark.conf.get(SETTING) == LOCAL
        loaded = spark._jvm.java.lang.Class.forName(LOCAL)  # a name that Spark has
    assert loaded.getName() == LOCAL
    assert spark.conf.get(SETTING, None) is None


def test_it_is_set_back_when_a_query_does_not_start(spark: Any, tmp_path: Any) -> None:
    with pytest.raises(KeyError), written_for(spark, str(tmp_path)):
        raise KeyError
    assert spark.conf.get(SETTING, None) is None


def test_the_setting_of_a_user_stays(spark: Any, tmp_path: Any) -> None:
    given = LOCAL.replace("FileSystemBased", "FileContextBased")
    spark.conf.set(SETTING, given)
    try:
        with written_for(spark, str(tmp_path)):
            assert spark.conf.get(SETTING) == given
        assert spark.conf.get(SETTING) == given
    finally:
        spark.conf.unset(SETTING)


def test_another_file_system_keeps_sparks_own_way(spark: Any) -> None:
    """One that Hadoop has without a server: a view on others."""
    hadoop = "spark.hadoop.fs.viewfs.mounttable.test.link./data"
    spark.conf.set(hadoop.removeprefix("spark.hadoop."), "file:///tmp")
    try:
        with written_for(spark, "viewfs://test/data/checkpoint"):
            assert spark.conf.get(SETTING, None) is None
    finally:
        spark.conf.unset(hadoop.removeprefix("spark.hadoop."))


def test_what_is_wrong_with_a_checkpoint_spark_says(spark: Any) -> None:
    with written_for(spark, "nowhere://host/checkpoint"):
        assert spark.conf.get(SETTING, None) is None
