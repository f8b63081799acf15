"""One query as the page shows it: follows its directory, and says in plain sentences how it is."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from shedjoin.dashboard.points import RECENT, Point, Series, point_of, shard_memory
from shedjoin.errors import ShedjoinError
from shedjoin.parse import format_age, parse_budget
from shedjoin.spark.advice import idle_memory, what_if_lines
from shedjoin.spark.compatibility import in_words
from shedjoin.spark.lock import is_running
from shedjoin.spark.metric_files import MetricFiles
from shedjoin.spark.metrics import fractions_of, latest, streams_of, summarise
from shedjoin.spark.start import JOB, read_job

#: Micro-batches that are read before the next query has its turn.
TURN = 50
#: No micro-batch for so many seconds, and for so many times the usual interval, is worth a word.
QUIET, INTERVALS = 60.0, 10
#: Keep the last of what went wrong, and of the restarts.
KEPT = 5
EVENTS = 200


class Query:
    """Follows the output directory of `start`. `read` is for one thread; what it found is for all.

    Parameters
    ----------
    folder
        The output directory; it may not be there yet.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._job: dict[str, Any] | None = None
        self._job_problem: str | None = None
        self._stamp: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._files = MetricFiles(self.folder)
        self._seen = -1
        self._there = self._left = 0  # micro-batches that are there, and those that were not read yet
        self._series = {"whole": Series(), "recent": Series(RECENT, merge=False)}
        self._last: Point | None = None
        self._rows: list[Mapping[str, Any]] = []
        self._intervals: list[float] = []
        self._problems: list[str] = []
        self._hindrance: str | None = None
        self._restarts: list[dict[str, Any]] = []

    def follow(self) -> bool:
        """`read`, as one of several queries: what hinders it is said on its page, and stops no other."""
        more, hindrance = False, None
        try:
            more = self.read()
        except Exception as reason:
            hindrance = f"{self.folder} cannot be read: {reason}"
        with self._lock:
            self._hindrance = hindrance
        return more

    def read(self) -> bool:
        """Read a turn's work; whether there is more."""
        self._read_job()
        if self._job is None:
            return False
        numbers = self._files.batches()
        with self._lock:
            if numbers and numbers[-1] < self._seen:  # another query began in the directory
                self._begin()
            new = [number for number in numbers if number > self._seen]
            self._there, self._left = len(numbers), len(new)
        for number in new[:TURN]:
            if not self._read_batch(number):
                return False
        return len(new) > TURN

    def _read_job(self) -> None:
        path = self.folder / JOB
        try:
            stamp = path.stat().st_mtime_ns
        except OSError:
            stamp = None
        if stamp == self._stamp:
            return
        job, problem = None, None
        try:
            job = read_job(self.folder)
        except (ShedjoinError, OSError) as reason:
            problem = str(reason)
        with self._lock:
            self._job, self._job_problem, self._stamp = job or self._job, problem, stamp

    def _read_batch(self, number: int) -> bool:
        """Add a micro-batch; False if it is still being written."""
        try:
            rows = self._files.read(number)
            if rows is None:
                return False
            point = None if not rows else self._point(rows)
        except (ShedjoinError, KeyError, TypeError) as reason:
            words = str(reason) if isinstance(reason, ShedjoinError) else f"micro-batch {number} has no column {reason}"
            with self._lock:
                self._seen = number
                self._problems = [*self._problems, words][-KEPT:]
            return True
        with self._lock:
            self._seen = number
            if point is not None:
                self._add(point, rows)
        return True

    def _point(self, rows: list[dict[str, Any]]) -> Point:
        at = max(row["at"] for row in rows)
        return point_of(rows, self.unit, self._cap(at), None if self._last is None else self._last.at)

    def _add(self, point: Point, rows: list[dict[str, Any]]) -> None:
        for series in self._series.values():
            series.add(point)
        restored = sum(bool(row["restored"]) for row in rows)
        if restored and self._last is not None:
            what = f"restart: {restored} of {len(rows)} shards were rebuilt from the checkpoint"
            self._restarts = [*self._restarts, {"at": point.at, "what": what}][-EVENTS:]
        self._last, self._rows = point, list(rows)
        self._intervals = [*self._intervals, point.interval][-20:]

    @property
    def unit(self) -> str:
        """Of the budget; tuples without one."""
        budget = {} if self._job is None else self._job["spec"].get("budget") or {}
        return "bytes" if budget.get("bytes") is not None else "tuples"

    def _cap(self, at: datetime) -> int | None:
        """The budget at a time: that of now, or the one before the first change after that time."""
        assert self._job is not None
        budget = self._job["spec"].get("budget")
        for change in reversed(self._job.get("changes", [])):
            if datetime.fromisoformat(change["at"]) <= at:
                break
            budget = change.get("budget_before", budget)
        amount = None if budget is None else budget.get(self.unit)
        return None if amount is None else int(amount)

    # ------------------------------------------------------------------------------------------------ what the page asks for

    def card(self) -> dict[str, Any]:
        """What a list of queries says of this one."""
        with self._lock:
            state, words = self._state()
            point = self._last
            return {
                "name": self.folder.name or str(self.folder),
                "path": str(self.folder),
                "state": state,
                "words": words,
                "recall": None if point is None else point.recall,
            }

    def page(self, view: str, epoch: int, start: int) -> dict[str, Any]:
        """All that the page shows, with the points of a series from `start` on."""
        card = self.card()
        with self._lock:
            point = self._last
            return card | {
                "unit": self.unit,
                "streams": streams_of(self._rows[0]) if self._rows else [],
                "shards": shard_memory(latest(self._rows), self.unit) if self._rows else {},
                "fractions": fractions_of(self._rows),
                "settings": self._settings(),
                "notes": self._notes(),
                "events": self._events(),
                "now": None if point is None else {"at": point.at, "batch": point.batch},
                "series": self._series[view].since(epoch, start),
            }

    def _settings(self) -> dict[str, str]:
        if self._job is None:
            return {}
        spec, timestamps = self._job["spec"], self._job.get("timestamps", True)
        told = {
            name: spec.get(name) for name in ("how", "window", "windows", "between", "lateness", "budget", "policy")
        }
        told |= {"shards": self._job.get("shards"), "where": self._job.get("where")}
        kept = ("budget", "policy")
        return {
            name: in_words(name, value, timestamps=timestamps)
            for name, value in told.items()
            if value is not None or name in kept
        }

    def _events(self) -> list[dict[str, Any]]:
        """Changes and restarts, in order of time."""
        job = self._job or {}
        changes = [
            {"at": datetime.fromisoformat(change["at"]).timestamp(), "what": change["what"]}
            for change in job.get("changes", [])
        ]
        return sorted([*changes, *self._restarts], key=lambda event: float(event["at"]))[-EVENTS:]

    def _notes(self) -> list[str]:
        """What is wrong, or missing."""
        notes = [f"{problem.rstrip('.')}. The charts leave this micro-batch out." for problem in self._problems]
        notes += [problem for problem in (self._hindrance, self._job_problem) if problem is not None]
        if self._last is not None and self._last.recall is None:
            budget = (self._job or {"spec": {}})["spec"].get("budget")
            exact = budget is None and not self._last.dropped and fractions_of(self._rows) is None
            words = "No budget: nothing is shed. The results are exact, but for those of late rows."
            notes.append(words if exact else "Recall is not measured.")
        return notes + self._advice()

    def _advice(self) -> list[str]:
        """What to set, as far as the last micro-batch tells."""
        found = summarise(self._rows)
        if found is None or self._job is None:
            return []
        idle = idle_memory(found, parse_budget(self._job["spec"].get("budget")))
        return [*what_if_lines(found.what_if), *([] if idle is None else [idle])]

    def _state(self) -> tuple[str, str]:
        """A word, and a sentence."""
        if self._hindrance is not None:
            return "broken", self._hindrance
        if self._job is None:
            if self._job_problem is not None:
                return "broken", self._job_problem
            return "absent", f"No query was started in {self.folder} yet: it has no {JOB}."
        running = is_running(self.folder)
        if self._last is None:
            if self._problems:
                return "broken", self._problems[-1]
            words = {
                True: "The query runs, and has not finished its first micro-batch yet.",
                False: "The query stopped before its first micro-batch was finished.",
                None: "No micro-batch is finished yet.",
            }
            return "empty", words[running]
        if self._left > TURN:
            return "reading", f"Reading micro-batches: {self._there - self._left:,} of {self._there:,}."
        return self._speed(self._last, running)

    def _speed(self, last: Point, running: bool | None) -> tuple[str, str]:
        age = max(datetime.now(UTC).timestamp() - last.at, 0.0)
        when = f"micro-batch {last.batch:,} ended {format_age(age)}"
        if running is False:
            return "stopped", f"Stopped: the last {when}. The figures are as of then."
        if age > max(QUIET, INTERVALS * median(self._intervals)):
            rest = "waits for input" if running else "waits for input, or has stopped"
            return "quiet", f"No news: the last {when}. The query {rest}."
        return "running", f"Running: {when}."
