"""Formats that Spark has not: one sentence that says which jar to add, before a query starts."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark import __version__

from shedjoin.errors import EnvironmentProblem
from shedjoin.spark.sources import Sink, Source

KAFKA = f'format: kafka needs a jar .* jars.packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:{__version__}" under'


@pytest.mark.parametrize(("form", "words"), [("kafka", KAFKA), ("kafak", r"no format 'kafak' \(perhaps kafka\?\)")])
def test_a_missing_jar_is_named(spark: Any, form: str, words: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"^sink.*{words}"):
        Sink(form).check(spark)
    with pytest.raises(EnvironmentProblem, match=f"^left.*{words}"):
        Source("left", form).frame(spark)
    Sink("noop").check(spark)


def test_a_missing_driver_is_named(spark: Any) -> None:
    for name, package in (("postgresql", "org.postgresql:postgresql:VERSION"), ("unknown", "GROUP:DRIVER:VERSION")):
        sink = Sink("jdbc", options={"url": f"jdbc:{name}://host/base", "dbtable": "t"})
        with pytest.raises(EnvironmentProblem, match=f"jdbc needs the database's driver.*{package}"):
            sink(spark.range(3), 0)
