"""Formats that Spark has only with a jar: which jar, and how to add it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from shedjoin.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Formats that come with Spark.
BUILT_IN = (
    "parquet", "orc", "csv", "json", "text", "xml", "binaryFile", "jdbc", "rate", "rate-micro-batch", "socket", "console",
    "noop",
)  # fmt: skip
#: Maven coordinates by format; of jdbc by the database in its url. The version of Spark is filled in.
PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:VERSION",
    "hudi": "org.apache.hudi:hudi-spark{minor}-bundle_2.13:VERSION",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13:VERSION",
    "jdbc:postgresql": "org.postgresql:postgresql:VERSION",
    "jdbc:mysql": "com.mysql:mysql-connector-j:VERSION",
    "jdbc:mariadb": "org.mariadb.jdbc:mariadb-java-client:VERSION",
    "jdbc:sqlserver": "com.microsoft.sqlserver:mssql-jdbc:VERSION",
    "jdbc:oracle": "com.oracle.database.jdbc:ojdbc11:VERSION",
    "jdbc:sqlite": "org.xerial:sqlite-jdbc:VERSION",
    "jdbc:h2": "com.h2database:h2:VERSION",
}
#: Places where the user may have added jars that the settings do not show.
ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "SPARK_CLASSPATH", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_HOME")
#: The messages of Spark and Java when a jar is missing.
_MISSING = re.compile(
    r"DATA_SOURCE_NOT_FOUND|Failed to find (?:the )?data source|No suitable driver|ClassNotFoundException",
    re.IGNORECASE,
)


def check_jar(place: str, form: str, options: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Refuse a format whose jar Spark will not have, before Spark starts. Silent where that cannot be known.

    Parameters
    ----------
    place
        What to call the format in an error, such as "sink.format".
    form, options
        As Spark takes them.
    settings
        Of Spark, by their full names.
    """
    package = PACKAGES.get(kind_of(form, options))
    if package is None or not settings.get("spark.master", "local").startswith("local") or "spark.remote" in settings:
        return
    given = any(name.startswith("spark.jars") or name.endswith("ClassPath") for name in settings)
    if not given and not any(name in os.environ for name in ELSEWHERE) and not _comes_with_spark(package):
        raise EnvironmentProblem(how_to_add(place, form, options))


def check_known(place: str, form: str, options: Mapping[str, str], spark: SparkSession) -> None:
    """Refuse a format that a running Spark does not have. (Connect has no way to check.)"""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return
    conf = spark._jsparkSession.sessionState().conf()
    try:
        jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(form, conf)
    except Exception as problem:
        if is_missing(problem):
            raise EnvironmentProblem(how_to_add(place, form, options)) from None
        raise


def is_missing(problem: BaseException) -> bool:
    """Whether Spark failed because it lacks a jar."""
    return _MISSING.search(str(problem)) is not None


def how_to_add(place: str, form: str, options: Mapping[str, str]) -> str:
    """One sentence: which jar is missing, and how to add it.

    Examples
    --------
    >>> how_to_add("sink.format", "kafak", {})
    "sink.format: Spark has no format 'kafak' (perhaps kafka?): correct the name, or add its jar: set jars.packages under [spark]
    of a job file, or spark.jars.packages of the session"
    """
    kind = kind_of(form, options)
    if kind not in PACKAGES and form != "jdbc":
        near = get_close_matches(form, [*BUILT_IN, *(name for name in PACKAGES if ":" not in name)], 1)
        perhaps = f" (perhaps {near[0]}?)" if near else ""
        return (
            f"{place}: Spark has no format {form!r}{perhaps}: correct the name, or add its jar: set jars.packages under [spark] "
            "of a job file, or spark.jars.packages of the session"
        )
    package = _filled(PACKAGES[kind]) if kind in PACKAGES else "GROUP:DRIVER:VERSION"
    what = "the database's driver, a jar" if form == "jdbc" else "a jar"
    return (
        f'{place}: {form} needs {what} that Spark does not have: set jars.packages = "{package}" under [spark] of a job file, '
        "or spark.jars.packages of the session"
    )


def kind_of(form: str, options: Mapping[str, str]) -> str:
    """The format, with the database that a jdbc url names.

    Examples
    --------
    >>> kind_of("jdbc", {"url": "jdbc:postgresql://host/db"}), kind_of("Kafka", {})
    ('jdbc:postgresql', 'kafka')
    """
    name = form.lower()
    return ":".join(options.get("url", name).split(":")[:2]).lower() if name == "jdbc" else name


def _filled(package: str) -> str:
    from pyspark import __version__ as spark

    return package.format(spark=spark, minor=".".join(spark.split(".")[:2]))


def _comes_with_spark(package: str) -> bool:
    """Whether a jar of this name lies in the directory of Spark's jars."""
    import pyspark

    artifact = _filled(package).split(":")[1]
    return any((Path(pyspark.__file__).parent / "jars").glob(f"{artifact}*.jar"))
