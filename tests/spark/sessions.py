"""The local Spark of tests: short queries over few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plans import INTERPRETED
from processes import QUICK_JAVA
from shortcuts import CHECKPOINTS, remember_classes, without_processes


def local_session(folder: Path) -> Any:
    """A session on two cores that writes nothing outside of a folder."""
    from pyspark.sql import SparkSession

    from shedjoin.spark import session
    from shedjoin.spark.session import LEAN

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
        # A busy machine is no failure: workers may take longer to connect than Spark's 15 seconds.
        .config("spark.python.authenticate.socketTimeout", "300s")
        .config(map=INTERPRETED)
        .config(map=CHECKPOINTS)
    )
    made = session(builder)
    made.sparkContext.setLogLevel("OFF")
    remember_classes()
    without_processes(made)
    return made
