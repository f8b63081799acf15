"""Where the time of a large micro-batch goes: CPU time of Java and of Python for a million rows, step by step, once warm.

Each step does what the one before does, and more: Spark reads both streams; hands them to Python; joins them; writes results. CPU
time, because it can be added up: a step that takes 1.0 s of CPU takes at least 0.5 s on two cores. A running query is not asked
how far it is: its answers would cost more than small micro-batches do.

    python benchmarks/spark_time.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from page_sections import check_sections, write_section
from process_tree import tree
from spark_queries import CORES, spark_session, stream_of
from window_streams import SIDES, make

#: Rows of a stream in each micro-batch; micro-batches, of which the first half are not counted.
ROWS, BATCHES, WINDOW = 500_000, 6, 10_000_000
JAVA, COMPILER, PYTHON = "Java", "Java's compiler", "Python"


def cpu() -> dict[str, float]:
    """What this process and all below it have used, by kind."""
    used = {JAVA: 0.0, COMPILER: 0.0, PYTHON: 0.0}
    for pid in tree(os.getpid()):
        with suppress(OSError):
            name, ticks = ticks_of(Path(f"/proc/{pid}"), 4)
            used[JAVA if name == "java" else PYTHON] += ticks
            for thread in Path(f"/proc/{pid}/task").iterdir() if name == "java" else ():
                with suppress(OSError):
                    name, ticks = ticks_of(thread, 2)
                    used[COMPILER] += ticks if "CompilerThre" in name else 0.0
    return used


def ticks_of(process: Path, parts: int) -> tuple[str, float]:
    """The name of a process or thread, and its seconds of CPU: its own, and with four parts those of its children that ended."""
    name, _, rest = (process / "stat").read_text().rpartition(")")
    return name.partition("(")[2], sum(map(int, rest.split()[11 : 11 + parts])) / os.sysconf("SC_CLK_TCK")


def spent(before: dict[str, float], rows: float) -> dict[str, float]:
    """Seconds of CPU since then, for a million rows."""
    return {kind: (used - before[kind]) / rows * 1e6 for kind, used in cpu().items()}


def twice(work: Callable[[], Any], rows: int) -> dict[str, float]:
    """A batch job, once warm."""
    work()
    before = cpu()
    work()
    return spent(before, rows)


def streamed(query: Any, checkpoint: Path) -> dict[str, float]:
    """The second half of the micro-batches of a query that joins all there is."""
    done = awaited(query, checkpoint, BATCHES // 2)
    before = cpu()
    all_done = awaited(query, checkpoint, BATCHES)
    found = spent(before, 2 * ROWS * (all_done - done))
    query.awaitTermination()
    return found


def awaited(query: Any, checkpoint: Path, least: int) -> int:
    """Wait until this many micro-batches are committed; returns their number."""
    waited = 0
    while (done := sum(path.name.isdigit() for path in (checkpoint / "commits").glob("*"))) < least:
        time.sleep(0.02)
        waited += 1
        if waited % 100 == 0 and not query.isActive:
            query.awaitTermination()  # it raises what went wrong
            raise RuntimeError(f"{checkpoint} has {done} micro-batches, not {least}")
    return done


def swallowed(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    yield from ()


def steps(folder: Path) -> dict[str, dict[str, float]]:
    """CPU time of each step, by its name."""
    from shedjoin.spark import shed_join, start

    spark = spark_session("shedjoin")
    make(folder, ROWS * BATCHES, 20_000, BATCHES)
    total, found = 2 * ROWS * BATCHES, {}
    past = [spark.read.parquet(str(folder / side)) for side in SIDES]
    both = past[0].toDF("k", "ts", "row").unionAll(past[1].toDF("k", "ts", "row"))
    found["Spark reads both streams"] = twice(lambda: both.write.format("noop").mode("overwrite").save(), total)
    given = both.mapInArrow(swallowed, "k long")
    found["and hands them to Python"] = twice(lambda: given.write.format("noop").mode("overwrite").save(), total)
    sides = [stream_of(spark, folder / side) for side in SIDES]
    asked: dict[str, Any] = {"on": "k", "time": ("ts_left", "ts_right"), "lateness": 0}
    asked["window"] = f"{WINDOW} microseconds"

    def joined(name: str, sink: str) -> dict[str, float]:
        writer = shed_join(*sides, **asked).writeStream.format(sink).trigger(availableNow=True)
        checkpoint = folder / name / "checkpoint"
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.start(str(folder / name / "out")) if sink == "parquet" else writer.start()
        return streamed(query, checkpoint)

    found["`shed_join`, results thrown away"] = joined("noop", "noop")
    found["`shed_join` into a Parquet sink"] = joined("sink", "parquet")
    for title, archive in (("`start`", False), ("`start(archive=True)`", True)):
        place = folder / f"start-{archive}"
        query = start(*sides, output=place, archive=archive, trigger={"availableNow": True}, **asked)
        found[title] = streamed(query, place / "checkpoint")
    spark.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a page whose section is replaced (default: it is only printed)")
    page = parser.parse_args().page
    if page is not None:
        check_sections(page, ["time"])
    with tempfile.TemporaryDirectory() as temporary:
        found = steps(Path(temporary))
    lines = [
        f"CPU seconds for a million rows, micro-batches of {2 * ROWS:,}, {CORES} cores.",
        "",
        "| | Java | of that its compiler | Python | both |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {used[JAVA]:.2f} | {used[COMPILER]:.2f} | {used[PYTHON]:.2f} | {used[JAVA] + used[PYTHON]:.2f} |"
            for name, used in found.items()
        ),
    ]
    made = "\n".join(lines) + "\n"
    print(made)
    if page is not None:
        write_section(page, "time", made)


if __name__ == "__main__":
    main()
