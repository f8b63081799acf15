"""`make compare`: joins on Spark beside Spark's own, row for row. A run that was stopped goes on where it was.

python tests/run_compare.py               all jobs that have not passed since the sources changed
python tests/run_compare.py --count 40    the first of them
python tests/run_compare.py 17            one, with the traceback where its rows differ
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "spark")]

from sessions import local_session  # noqa: E402

from compare.jobs import JOBS, Job, all_jobs  # noqa: E402
from compare.runs import compare  # noqa: E402

#: What passed, a line each.
RESULTS = ROOT / "build" / "compare.jsonl"
#: Spark waits for a Python process when a query starts: on a busy machine not long enough, which is no difference of rows.
ATTEMPTS, BUSY = 3, "Python worker failed to connect back"


def sources() -> str:
    """Of the sources as they are now: what passed with others is run again."""
    files = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tests" / "compare").glob("*.py")])
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def passed(results: Path, stamp: str) -> set[int]:
    """The jobs that are done."""
    lines = results.read_text().splitlines() if results.exists() else []
    told = [json.loads(line) for line in lines]
    return {one["job"] for one in told if one["sources"] == stamp}


def attempts(spark: Any, jobs: Sequence[Job], at_once: int) -> Iterator[tuple[Job, float, int, Exception | None]]:
    """Each job with its seconds, the rows of its result, and what went wrong."""

    def attempt(job: Job) -> tuple[Job, float, int, Exception | None]:
        begun, wrong = time.monotonic(), None
        for _ in range(ATTEMPTS):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found = compare(spark, job, Path(folder))
                    return job, time.monotonic() - begun, found, None
                except Exception as reason:
                    wrong = reason
                    if BUSY not in str(reason):
                        break
        return job, time.monotonic() - begun, 0, wrong

    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(attempt, job) for job in jobs]):
            yield done.result()


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare joins on Spark with Spark's own.")
    parser.add_argument("jobs", nargs="*", type=int, help="jobs to repeat, by their numbers; none: all")
    parser.add_argument("--count", type=int, default=JOBS, help="how many jobs there are")
    parser.add_argument("--at-once", type=int, default=2, help="queries that run side by side")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where is written what passed")
    told = parser.parse_args()
    stamp, jobs = sources(), all_jobs(told.count)
    known = set() if told.jobs else passed(told.results, stamp)
    wanted = [job for job in jobs if (job.seed in told.jobs if told.jobs else job.seed not in known)]
    print(f"{len(wanted)} jobs to run, {len(known)} have passed", flush=True)
    told.results.parent.mkdir(parents=True, exist_ok=True)
    failed, rows, begun = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, told.results.open("a") as log:
        spark = local_session(Path(folder))
        for number, (job, seconds, found, reason) in enumerate(attempts(spark, wanted, told.at_once), 1):
            rows += found
            if reason is None:
                log.write(
                    json.dumps({"job": job.seed, "sources": stamp, "rows": found, "seconds": round(seconds, 2)}) + "\n"
                )
                log.flush()
            else:
                failed += 1
                print(f"{job}\n    {type(reason).__name__}: {str(reason)[:600]}", flush=True)
                print(f"    to repeat it: {sys.executable} tests/run_compare.py {job.seed}", flush=True)
                if len(told.jobs) == 1:
                    raise reason
            left = (len(wanted) - number) * (time.monotonic() - begun) / number / 60
            print(f"{number} of {len(wanted)}, {failed} failed, {left:.0f} minutes left", flush=True)
        spark.stop()
    print(f"{len(wanted) - failed} jobs gave the {rows:,} rows of Spark's own join, {failed} did not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
