"""shedjoin on Spark: `shed_join` for DataFrames, `start` for a query with logs and metrics, `refine` to complete it later,
`estimate` for aggregates with intervals.

`static_join` chooses which rows of whole DataFrames to keep.
"""

from shedjoin.spark.archive import Archive, Layout
from shedjoin.spark.estimate import estimate
from shedjoin.spark.join import shed_join
from shedjoin.spark.refine import Refinement, refine
from shedjoin.spark.session import lean, prepare, session
from shedjoin.spark.start import start
from shedjoin.spark.static import StaticJoin, static_join

__all__ = [
    "Archive",
    "Layout",
    "Refinement",
    "StaticJoin",
    "estimate",
    "lean",
    "prepare",
    "refine",
    "session",
    "shed_join",
    "start",
    "static_join",
]
