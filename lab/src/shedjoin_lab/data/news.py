"""reuters_news_1987: news items as sets of terms, two streams (Reuters-21578, Distribution 1.0; research use only)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shedjoin.errors import SpecError
from shedjoin.workloads.workload import Columns, Workload, columns
from shedjoin_lab.data.columns import numbered, times
from shedjoin_lab.data.folder import read

DATA_SET = "reuters_news_1987"
FILES = ("news_usa.parquet", "news_elsewhere.parquet")
SETS = ("keywords", "title_words", "topics", "tickers", "places", "people", "orgs", "exchanges")


def news_sets(folder: Path, attribute: str = "keywords") -> Workload:
    """Row i holds terms `items[offsets[i] : offsets[i + 1]]`, numbered alike in both streams; `ts` in milliseconds."""
    return Workload(tuple(_streams(folder, attribute)))


def news_keyed(folder: Path, attribute: str = "topics") -> Workload:
    """One row for each term of each item: an equi-join finds items that share a term, once for each such term."""
    return Workload(
        tuple(
            columns(stream["items"], np.repeat(stream["ts"], np.diff(stream["offsets"])))
            for stream in _streams(folder, attribute)
        )
    )


def _streams(folder: Path, attribute: str) -> list[Columns]:
    if attribute not in SETS:
        raise SpecError(f"attribute must be one of {', '.join(SETS)}, not {attribute!r}")
    tables = [read(folder, DATA_SET, file, ["ts", attribute]) for file in FILES]
    lists = [table[attribute].combine_chunks() for table in tables]
    stamps = [times(table["ts"], "ms") for table in tables]
    first = min(int(ts[0]) for ts in stamps if ts.size)
    terms = numbered(*(pa.chunked_array([one.flatten()]) for one in lists))
    return [
        {"items": np.asarray(items), "offsets": _offsets(one), "ts": ts - first, "importance": np.ones(ts.size)}
        for items, one, ts in zip(terms, lists, stamps, strict=True)
    ]


def _offsets(lists: pa.ListArray) -> NDArray[np.int64]:
    sizes = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    return np.concatenate(([0], np.cumsum(sizes)))
