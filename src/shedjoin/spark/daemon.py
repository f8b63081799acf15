"""Spark's daemon for Python workers, with all that a shard imports and runs in it: `spark.python.daemon.module`.

Spark forks its Python workers off a daemon that has imported nothing, so that each spends about three seconds on imports and
kernels; and a worker is lost with every task that fails. Forked off this one they are there at once, and share its memory.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import warnings
import zipimport
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from numba.core import event
from numba.cpython import numbers  # noqa: F401 - kernels of some joins name it when they are loaded

from shedjoin.batch import Batch
from shedjoin.budget import Budget
from shedjoin.recall import LiveRecall
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Spark 4 always warns about pandas 3
    import pyspark.worker
    from pyspark import daemon

    # All engines come with them: what a shard imports late, and the driver never.
    from shedjoin.spark import processor, shard  # noqa: F401

    with suppress(ImportError):  # the stateful operator imports them when it is first used
        import pandas  # noqa: F401
        import pyspark.sql.streaming.proto.StateMessage_pb2  # noqa: F401

#: So many keys, and rows of one, that tables of keys and rows have to grow.
KEYS = 600


class Uncached(Exception):
    """A kernel that is not on disk yet."""


class _Refusal(event.Listener):  # type: ignore[misc]
    def on_start(self, event: Any) -> None:
        raise Uncached

    def on_end(self, event: Any) -> None:
        pass


def load_kernels() -> bool:
    """Load the kernels of joins of two streams on keys, as far as most queries use them; whether they were on disk.

    Those that are not are left to the workers: compiling takes a minute, and Spark would wait for its daemon that long. Those
    of other kinds of joins are theirs too, a tenth of a second each: here they would take 22 MB of every query.
    """
    pa.array([0])  # the first list of Python values loads more of pyarrow
    try:
        with event.install_listener("numba:compile", _Refusal()):
            _two_streams()
    except Uncached:
        return False
    except Exception as reason:  # workers will meet it again, where Spark hands on what they say
        sys.stderr.write(f"shedjoin.spark.daemon: kernels were not loaded: {reason!r}\n")
        return False
    return True


def _two_streams() -> None:
    keys = [*range(KEYS), *[0] * KEYS]
    many = {"key": keys, "ts": [0] * len(keys)}
    rows = Batch.of(many, many)
    for budget in (None, Budget(tuples=KEYS)):
        spec = JoinSpec(window=TimeWindow(2), budget=budget)
        engine = spec.build()
        out = engine.push(rows, clocks=(1, 1))
        spec.resume(engine.snapshot())
    live = LiveRecall(spec)
    live.follow(rows, out)
    live.estimate()
    LiveRecall.from_bytes(spec, live.to_bytes())


def forget_archives() -> None:
    """Drop the caches of finders for zipped packages: they find packages again when needed.

    Spark adds a folder to a worker's path and has all finders look anew; one for each package inside `pyspark.zip` would then
    read the list of the whole archive, and keep it for itself: 22 MB a worker.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def give_back() -> None:
    """Return freed memory to the system: Spark keeps workers, and those of one stage wait while others work."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # only the GNU C library has it
        ctypes.CDLL(None).malloc_trim(0)


def worker(sock: Any, authenticated: bool) -> int:
    """Spark's worker, for one task."""
    try:
        return task(sock, authenticated)
    finally:
        give_back()


task = daemon.worker

if __name__ == "__main__":
    load_kernels()
    forget_archives()
    give_back()
    gc.freeze()  # what is here is here to stay: workers that looked through it would copy it
    daemon.worker = worker
    daemon.manager()
