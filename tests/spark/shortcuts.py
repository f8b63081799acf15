"""What a Spark in tests does by the thousand and need not: processes for files, and looking for classes."""

from __future__ import annotations

from functools import cache
from typing import Any

from py4j.java_gateway import JVMView

#: Hadoop's file system, but that permissions stay as the operating system gives them.
SOURCE = """
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {}
    }
    public LocalFiles() { super(new Raw()); }
}
"""
#: Checkpoints by that file system. Spark's own choice runs `readlink` before each file; and each has another with a checksum.
CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}


def remember_classes() -> None:
    """Look a class of Java up once: for `jvm.functions`, in every operation on a column, Java opens all jars again and again."""
    if not hasattr(JVMView.__getattr__, "cache_info"):
        JVMView.__getattr__ = cache(JVMView.__getattr__)


def without_processes(spark: Any) -> None:
    """Have Hadoop set no permissions: without its native library it runs `chmod` for every file and directory it makes.

    The class is compiled by what Spark compiles queries with. Hadoop keeps the first file system that it makes for files.
    """
    java, hadoop = spark.sparkContext._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    before, compiler = hadoop.getClassLoader(), java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(before)
    compiler.cook(SOURCE)
    files = java.org.apache.hadoop.fs.FileSystem
    hadoop.setClassLoader(compiler.getClassLoader())
    hadoop.set("fs.file.impl", "LocalFiles")
    files.closeAll()
    made = files.get(java.java.net.URI.create("file:///"), hadoop)
    hadoop.unset("fs.file.impl")
    hadoop.setClassLoader(before)
    assert made.getClass().getName() == "LocalFiles"
