"""What `weights=True` costs a query on Spark: CPU time of the whole process tree, beside the same query without.

Both queries run in turn in one warm session; each round begins with the other one. On a shared machine CPU time tells more than
wall time.

    python benchmarks/spark_weights.py --rounds 4
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from spark_queries import spark_session, stream_of
from spark_start import cpu_seconds
from window_streams import SIDES, make

#: Rows a window; the exact join stores twice as many.
WINDOW = 10_000


def cost(spark: Any, folder: Path, name: str, weights: bool) -> float:
    """CPU seconds of one query from its start to its end."""
    from shedjoin.spark import start

    began = cpu_seconds()
    query = start(
        *(stream_of(spark, folder / side) for side in SIDES),
        on="k",
        time=("ts_left", "ts_right"),
        window=f"{WINDOW} milliseconds",
        lateness=0,
        budget=f"{WINDOW // 2} tuples",
        policy="sample",
        weights=weights,
        output=folder / name,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    return cpu_seconds() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600_000, help="rows a stream (default 600,000)")
    parser.add_argument("--batches", type=int, default=6, help="micro-batches (default 6)")
    parser.add_argument("--rounds", type=int, default=4, help="how often each query runs (default 4)")
    given = parser.parse_args()
    spark = spark_session("shedjoin")
    spent: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make(folder, given.rows, 20_000, given.batches)
        for place in range(-1, given.rounds):  # the first round warms up
            for weights in (False, True) if place % 2 else (True, False):
                seconds = cost(spark, folder, f"{place} {weights}", weights)
                print(f"round {place}, weights={weights}: {seconds:.1f} s of CPU", flush=True)
                if place >= 0:
                    spent[weights].append(seconds)
    spark.stop()
    ratios = [more / less for less, more in zip(spent[False], spent[True], strict=True)]
    print(f"without {median(spent[False]):.1f} s, with {median(spent[True]):.1f} s; median ratio {median(ratios):.3f}")


if __name__ == "__main__":
    main()
