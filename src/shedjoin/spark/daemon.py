"""Spark's daemon for Python workers, with all that a shard imports in it: `spark.python.daemon.module`.

Spark forks its Python workers off a daemon that has imported nothing, so that each spends about two seconds on imports; and
a worker is lost with every task that fails. Forked off this one they are there at once, and share its memory.
"""

from __future__ import annotations

import gc
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Spark 4 warns of pandas 3 whatever it is asked to do
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import shedjoin.spark.operator
    import shedjoin.spark.predicate_shard
    import shedjoin.spark.processor  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # what is here is here to stay: workers that looked through it would copy it
    manager()
