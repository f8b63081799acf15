"""shedjoin on Spark: `shed_join` for DataFrames, streaming and batch; `start` for a query that keeps account."""

from shedjoin.spark.join import shed_join
from shedjoin.spark.session import prepare, session
from shedjoin.spark.start import start

__all__ = ["prepare", "session", "shed_join", "start"]
