"""shedjoin on Spark: `shed_join` for DataFrames, streaming and batch."""

from shedjoin.spark.join import shed_join
from shedjoin.spark.session import prepare, session

__all__ = ["prepare", "session", "shed_join"]
