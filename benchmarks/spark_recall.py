"""What live recall costs on Spark: one query with a budget, with the estimate and without it, on the same files, in turn.

python benchmarks/spark_recall.py --rounds 3
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from spark_queries import spark_session, stream_of, times_of, with_rows
from window_streams import make

#: Rows a stream, micro-batches, keys; a window of as many rows of each stream as this, of which a fourth fit.
ROWS, BATCHES, KEYS, WINDOW = 2_000_000, 4, 20_000, 10_000


def run(spark: Any, folder: Path, recall: bool) -> tuple[float, float, float | None]:
    """Seconds of the warm micro-batches (median) and of the shards in them (mean), and the recall that was told."""
    from shedjoin.spark import start

    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    query = start(
        *(stream_of(spark, folder / name) for name in ("left", "right")),
        output=out,
        recall=recall,
        trigger={"availableNow": True},
        on="k",
        time=("ts_left", "ts_right"),
        window=f"{WINDOW} milliseconds",
        lateness=0,
        budget=f"{WINDOW // 2} tuples",
    )
    query.awaitTermination()
    took = times_of(with_rows(query))
    rows = spark.read.parquet(str(out / "metrics")).where(f"batch >= {BATCHES // 2}").collect()
    told = [row["recall"] for row in rows if row["recall"] is not None]
    return (
        float(np.median(took[BATCHES // 2 :])),
        float(np.mean([row["seconds"] for row in rows])),
        float(np.mean(told)) if told else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (the first round is not counted)")
    given = parser.parse_args()
    spark = spark_session("shedjoin")
    found: dict[bool, list[tuple[float, float, float | None]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary), ROWS, KEYS, BATCHES)
        for number in range(1 + given.rounds):
            for recall in (True, False):
                one = run(spark, Path(temporary), recall)
                print(f"round {number}, {'with' if recall else 'without'} recall: {one}", flush=True)
                if number:
                    found[recall].append(one)
    spark.stop()
    print(f"\n{2 * ROWS // BATCHES:,} rows a micro-batch, a fourth of the memory; medians of {given.rounds} rounds\n")
    print("| | a micro-batch, once warm | work of a shard |\n| --- | ---: | ---: |")
    medians = {
        recall: [float(np.median([one[place] for one in runs])) for place in (0, 1)] for recall, runs in found.items()
    }
    for recall, (batch, shard) in medians.items():
        print(f"| {'with' if recall else 'without'} live recall | {batch:.2f} s | {shard:.3f} s |")
    more = [medians[True][place] / medians[False][place] - 1 for place in (0, 1)]
    print(f"\nLive recall adds {more[0]:.1%} to a micro-batch and {more[1]:.1%} to a shard's work.")


if __name__ == "__main__":
    main()
