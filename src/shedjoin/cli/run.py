"""`shedjoin run JOB`: a streaming join on Spark, from a job file."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from shedjoin.cli.advice import advice
from shedjoin.cli.preflight import check_job
from shedjoin.cli.progress import progress
from shedjoin.cli.stream_job import StreamJob, read_stream_job
from shedjoin.cli.top import share
from shedjoin.errors import EnvironmentProblem, InputError, SpecError
from shedjoin.spark.java import check_java
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.spark.metrics import Summary, fractions_of, summarise
from shedjoin.spark.prometheus import Endpoint, QueryCollector
from shedjoin.spark.sources import first_line

#: Seconds between two looks at the metrics.
LOOK = 0.3
#: The log of Spark and its workers, in the output directory.
LOG = "spark.log"
#: An error of this library inside of Spark's message.
_OURS = re.compile(r"shedjoin\.errors\.(\w+): (.+)")
#: Spark's message if a source has another path than its checkpoint: the current path, and an earlier file.
_MOVED = re.compile(r"Wrong basePath (\S+) for the root path: (\S+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the streaming join of a job file until its sources end or Ctrl-C. The same command continues it."
    )
    parser.add_argument("job", type=Path, metavar="JOB", help="a TOML file with [left], [right], [join] and [output]")
    parser.add_argument("--available-now", action="store_true", help="join the existing input, then end")
    parser.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="serve metrics for Prometheus (0: any free port)"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run the job and tell of each batch."""
    job = read_stream_job(args.job)
    port = job.run.metrics_port if args.metrics_port is None else args.metrics_port
    if port is not None and not 0 <= port <= 65535:
        raise SpecError(f"--metrics-port must be from 0 to 65535, not {port}")
    trigger = {"availableNow": True} if args.available_now else job.run.spark_trigger()
    check_job(job)
    check_java()
    console = Console()
    with ExitStack() as stack:
        collector = QueryCollector(query=job.run.name or "", budget=budget_of(job))
        if port is not None:
            endpoint = stack.enter_context(Endpoint(collector, port=port, host=job.run.metrics_host))
            console.print(f"metrics at {endpoint.url}")
        output = Path(job.output.path)
        log, name = output / LOG, {"spark.app.name": f"shedjoin {job.run.name or output.name}"}
        with progress(console, f"starting Spark; its log is {log}"):
            spark = stack.enter_context(open_session({**name, **job.settings}, log))
        stop = stack.enter_context(stopped_by_signals())
        run_query(
            spark, job, trigger, stop, collector, lambda text: console.print(text, highlight=False, soft_wrap=True)
        )
    return 0


@contextmanager
def open_session(settings: Mapping[str, str], log: Path, *, check: bool = True) -> Iterator[Any]:
    """A session in which Spark, its workers included, says what it has to say in a file."""
    from shedjoin.spark.session import own_session

    with ExitStack() as stack:
        try:
            with errors_to(log), sheltered():
                spark = stack.enter_context(own_session(settings, check=check))
        except EnvironmentProblem as problem:
            raise EnvironmentProblem(f"{problem} (see {log})") from problem
        yield spark


@contextmanager
def errors_to(log: Path) -> Iterator[None]:
    """What is started meanwhile has its standard error in a file, for good."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def sheltered() -> Iterator[None]:
    """What is started meanwhile ignores SIGTERM, for good: sent to the process group, it would end Spark before its query.

    Spark does the same with Ctrl-C. Its JVM ends when this process does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def budget_of(job: StreamJob) -> dict[str, int]:
    budget = job.spec.budget
    return {} if budget is None else {budget.unit: budget.total}


def run_query(
    spark: Any,
    job: StreamJob,
    trigger: dict[str, Any] | None,
    stop: threading.Event,
    collector: QueryCollector,
    say: Callable[[str], None],
) -> None:
    """Start the query and follow it until it ends, fails or is to stop."""
    from shedjoin.spark import start

    watch = MetricFiles(job.output.path)
    watch.skip()
    query = start(
        *(source.frame(spark) for source in job.sources),
        output=job.output.path,
        archive=job.output.archive,
        recall=job.output.recall,
        sink=job.sink,
        checkpoint=job.output.checkpoint,
        trigger=trigger,
        name=job.run.name,
        **job.join,
    )
    say(f"running; results, shed log and metrics in {job.output.path}")
    rows: list[dict[str, Any]] = []

    def tell(batch: list[dict[str, Any]]) -> None:
        rows.extend(batch)
        collector.add(batch)
        summary = summarise(batch)
        if summary is not None:
            say(batch_line(summary, job, fractions_of(batch)))

    follow(query, watch, stop, tell)
    done = summarise(rows)
    how = "stopped; the same command goes on from here" if stop.is_set() else "done"
    say(f"{how}. " + ("No new batch." if done is None else f"{done.rows:,} rows, {done.results:,} results."))
    for line in [] if done is None else advice(done, job):
        say(line)


def follow(query: Any, watch: MetricFiles, stop: threading.Event, tell: Callable[[list[dict[str, Any]]], None]) -> None:
    """Tell of each batch of a query until it ends or is to stop; raises what it fails of."""
    failed: str | None = None
    try:
        while not stop.is_set() and not query.awaitTermination(LOOK):
            for batch in watch.new():
                tell(batch)
    except Exception as reason:  # Spark raises what made the query end
        failed = reason_of(reason)
    finally:
        query.stop()
    for batch in watch.new():
        tell(batch)
    if failed is not None:
        raise InputError(f"the query failed: {failed}")


def batch_line(batch: Summary, job: StreamJob, fractions: tuple[float, ...] | None = None) -> str:
    """A micro-batch in one line."""
    parts = [
        f"batch {batch.batches[1]}: {batch.rows:,} rows, {batch.seconds:.1f} s of work in the shards",
        f"{batch.results:,} results",
    ]
    if batch.shed:
        parts.append(f"{batch.shed:,} tuples shed")
    if batch.certain is not None:
        parts.append(f"unmatched: {batch.certain:,} certain, {batch.unknown:,} unknown")
        parts.append(f"at least {batch.sure_recall:.1%} of the rows given alone")
    if batch.late:
        parts.append(f"{batch.late:,} rows late")
    if fractions is not None and fractions[0] < 1.0:
        parts.append(f"compared with {fractions[0]:.1%} of the windows")
    if batch.recall is not None:
        estimate = batch.recall
        parts.append(f"recall {share((estimate.recall, estimate.low, estimate.high))}")
    budget = job.spec.budget
    if budget is None:
        parts.append(f"{batch.resident:,} tuples stored")
    else:
        stored = batch.resident if budget.unit == "tuples" else batch.stored_bytes
        parts.append(f"{stored:,} of {budget.total:,} {budget.unit} stored")
    return ", ".join(parts)


def reason_of(problem: BaseException) -> str:
    """Why a query failed, in one sentence: what this library says if it was that, else the first line of Spark's words."""
    ours = _OURS.findall(str(problem))
    if ours:
        return str(ours[-1][1]).strip()
    moved = _MOVED.search(str(problem))
    if moved is not None:
        return (
            f"the checkpoint has still to read {moved[2]}, which is not in the source's current directory,  {moved[1]}: put the "
            "source's path back, or start with a new output directory"
        )
    return first_line(problem)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; Spark's own handler would tear the running batch apart."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def asked(number: int, frame: object) -> None:
        if stop.is_set():  # asked twice: at once
            raise KeyboardInterrupt
        print("shedjoin: stopping the query", file=sys.stderr)
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
