"""Checkpoints on a local disk, written without a process for each step.

Spark renames the files of a checkpoint by Hadoop's `FileContext`, which on a local disk starts `readlink` twice for each file and
twice for its checksum: some fifty processes a micro-batch. Hadoop's `FileSystem` does the same rename there without them. On
other file systems its renames are not those that Spark asks for, so these keep Spark's own way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from shedjoin.spark.inputs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark's setting, and what it is on a local disk.
SETTING = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
#: A query that starts beside another must not take what was set for that one.
_starting = Lock()


@contextmanager
def written_for(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Queries that start meanwhile write the files of this checkpoint as suits its disk: they keep the settings of then."""
    with _starting:
        if is_connect(spark) or spark.conf.get(SETTING, None) is not None or not _is_local(spark, checkpoint):
            yield
            return
        spark.conf.set(SETTING, LOCAL)
        try:
            yield
        finally:
            spark.conf.unset(SETTING)


def _is_local(spark: Any, checkpoint: str) -> bool:
    """Whether Hadoop finds this path on the disks of this machine."""
    try:
        path = spark._jvm.org.apache.hadoop.fs.Path(checkpoint)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        return bool(files.getUri().getScheme() == "file")
    except Exception:  # the query will not start either, and Spark says why
        return False
