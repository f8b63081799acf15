"""The jobs: settings drawn by lot, so that any two values of two dials meet, and the same for the same number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import combinations, product
from random import Random
from typing import Any

from shedjoin.join_type import TYPES

#: How many there are.
JOBS = 320
MILLISECOND, SECOND = 1_000, 1_000_000
#: How far rows lag behind their stream, at most, where they are out of order.
LAG = 200 * MILLISECOND

INTERVALS: dict[str, dict[str, Any]] = {
    "narrow": {"window": "300 ms"},
    "wide": {"window": "2 seconds"},
    "everything": {"window": "1 hour"},
    "unlike": {"window": ("1 second", "250 ms")},
    "after": {"between": ("0 seconds", "2 seconds")},
    "later": {"between": ("1 second", "3 seconds")},
    "around": {"between": ("-1 second", "500 ms")},
    "before": {"between": ("-2 seconds", "-1 second")},
    "at once": {"between": ("0 seconds", "0 seconds")},
}
#: low <= right - left <= high of each, in microseconds.
BOUNDS = {
    "narrow": (-300 * MILLISECOND + 1, 300 * MILLISECOND - 1),
    "wide": (-2 * SECOND + 1, 2 * SECOND - 1),
    "everything": (-3600 * SECOND + 1, 3600 * SECOND - 1),
    "unlike": (-250 * MILLISECOND + 1, SECOND - 1),
    "after": (0, 2 * SECOND),
    "later": (SECOND, 3 * SECOND),
    "around": (-SECOND, SECOND // 2),
    "before": (-2 * SECOND, -SECOND),
    "at once": (0, 0),
}
#: Conditions beside keys and times, and the same for Spark; nulls fail them, or are said.
WHERE: dict[str, tuple[str, str]] = {
    "none": ("", ""),
    "compared": ("left.x < right.y", "x < y"),
    "chosen": ("left.x IN (1, 2.5, 20) OR right.y > 12", "x IN (1, 2.5, 20) OR y > 12"),
    "null": ("left.x IS NULL OR left.a + 3 > right.b", "x IS NULL OR a + 3 > b"),
}
#: Whose keys are unique, beside `matches`: rows of the other stream leave once they have found their one partner.
MATCHES: dict[str, dict[str, Any]] = {
    "many": {},
    "left": {"matches": (None, 1)},
    "right": {"matches": (1, None)},
    "both": {"matches": (1, 1)},
}
#: The dials. `form`: as a batch; as a stream; as a stream beside Spark's own stream; `start` without a budget, and within one,
#: with what `refine` adds. `order`: of the rows of a stream; `late`: further back than the lateness.
DIALS: dict[str, tuple[Any, ...]] = {
    "form": ("batch", "stream", "both streams", "start", "budget"),
    "how": tuple(TYPES),
    "unique": tuple(MATCHES),
    "interval": tuple(INTERVALS),
    "where": tuple(WHERE),
    "keys": ("number", "text", "columns"),
    "order": ("sorted", "lagging", "ahead", "late"),
    "watermarks": ("none", "both", "one", "unlike"),
    "batches": (1, 2, 5),
    "shards": (1, 2),
    "nulls": (False, True),
    "duplicates": (False, True),
}


#: The dials that `Job.has_meaning` looks at.
DECIDING = ("form", "how", "unique", "order", "watermarks", "batches", "duplicates")


@dataclass(frozen=True)
class Job:
    """One job: a value of each dial, and the seed of its rows."""

    seed: int
    form: str
    how: str
    unique: str
    interval: str
    where: str
    keys: str
    order: str
    watermarks: str
    batches: int
    shards: int
    nulls: bool
    duplicates: bool

    def __str__(self) -> str:
        told = (f"{name}={getattr(self, name)}" for name in DIALS)
        return f"job {self.seed}: {', '.join(told)}"

    @property
    def has_meaning(self) -> bool:
        """Late rows are missing until `refine`, and a row without a partner that was given before one came late stays given;
        Spark's own stream needs watermarks and has no anti join; a batch has neither."""
        if self.duplicates and self.unique != "many":
            return False
        if self.form == "batch":
            return self.order in ("sorted", "lagging") and self.watermarks == "none" and self.batches == 1
        if self.form == "both streams" and (self.watermarks not in ("both", "unlike") or self.how == "left_anti"):
            return False
        may_be_late = self.form in ("start", "budget") and self.how == "inner" and self.batches > 1
        return self.order != "late" or may_be_late


def pairs_of(job: Job) -> set[tuple[str, Any, str, Any]]:
    """Every two dials with their values."""
    return {(a, getattr(job, a), b, getattr(job, b)) for a, b in combinations(DIALS, 2)}


def drawn(seed: int, random: Random) -> Iterator[Job]:
    """Random jobs that have a meaning."""
    while True:
        job = Job(seed, **{name: random.choice(values) for name, values in DIALS.items()})
        if job.has_meaning:
            yield job


def all_jobs(count: int = JOBS) -> list[Job]:
    """For each the best of a few: the one with most pairs of values that no earlier job has."""
    covered: set[tuple[str, Any, str, Any]] = set()
    jobs = []
    for seed in range(count):
        some = drawn(seed, Random(seed))
        jobs.append(max((next(some) for _ in range(20)), key=lambda job: len(pairs_of(job) - covered)))
        covered |= pairs_of(jobs[-1])
    return jobs


def possible() -> set[tuple[str, Any, str, Any]]:
    """The pairs of values that some job has."""
    assert [field.name for field in fields(Job)] == ["seed", *DIALS]
    some = {name: values if name in DECIDING else values[:1] for name, values in DIALS.items()}
    whole = [job for job in (Job(0, *values) for values in product(*some.values())) if job.has_meaning]
    # The other dials take any value beside these.
    single = {(name, getattr(job, name)) for job in whole for name in DECIDING}
    single |= {(name, value) for name, values in DIALS.items() if name not in DECIDING for value in values}
    order = [*DIALS]
    free = {(*a, *b) for a in single for b in single if order.index(a[0]) < order.index(b[0])}
    decided = {pair for job in whole for pair in pairs_of(job)}
    return {pair for pair in free if pair in decided or not {pair[0], pair[2]} <= {*DECIDING}}
