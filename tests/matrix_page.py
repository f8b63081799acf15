"""docs/matrix.md, written from a run: what combines with what, what has no meaning and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from matrix import DIALS, ESTIMATORS, Combination, Part, all_parts, parts_of, tried
from matrix_laws import LAWS
from shedjoin.meaning import MEANINGLESS

#: What a value of None is called.
UNSET = {"budget": "none", "where": "no where", "cpu": "no limit", "also": "nothing"}
HEADS = {
    "streams": "streams", "condition": "condition", "where": "where", "window": "windows", "how": "join type",
    "budget": "budget", "allocation": "allocation", "policy": "policy", "estimator": "estimator", "cpu": "CPU", "also": "also",
}  # fmt: skip
HELD, FAILED = "●", "✗"
Value = tuple[str, Any]


class Failure(NamedTuple):
    combination: Combination
    seed: int
    what: str


@dataclass
class Survey:
    """What ran, and how any two values go together: what the run says, or by which reasons they have no meaning."""

    ran: int
    failures: list[Failure]
    marks: dict[Part, str]

    @property
    def broken(self) -> int:
        return len({failure.combination for failure in self.failures})


def survey(ran: Iterable[Combination], failures: Sequence[Failure]) -> Survey:
    run = set(ran)
    marks = {part: HELD for one in run for part in parts_of(one)}
    marks |= {part: FAILED for failure in failures for part in parts_of(failure.combination)}
    random = Random(0)
    for part in all_parts(2):
        if part not in marks:
            reasons = {_reasons(one) for one in tried({dial: (value,) for dial, value in part}, random)}
            marks[part] = ", ".join(map(str, sorted(few(reasons))))
    return Survey(len(run), list(failures), marks)


def _reasons(one: Combination) -> frozenset[int]:
    """The numbers of the sentences that are true of a combination."""
    true = (number for number, why in enumerate(MEANINGLESS, 1) if any(why.holds(dials) for dials in one.moments))
    return frozenset(true)


def few(reasons: Iterable[frozenset[int]]) -> list[int]:
    """Few reasons of which each combination has one: that of most combinations first."""
    chosen: list[int] = []
    rest = [true for true in reasons if true]
    while rest:
        counts = Counter(number for true in rest for number in sorted(true))
        chosen.append(counts.most_common(1)[0][0])
        rest = [true for true in rest if chosen[-1] not in true]
    return chosen


def word(dial: str, value: Any) -> str:
    return UNSET.get(dial, "none") if value is None else str(value).replace("_", " ")


def values_of(*dials: str) -> list[Value]:
    set_values = {"allocation": DIALS["allocation"][1:], "estimator": ESTIMATORS}
    return [(dial, value) for dial in dials for value in set_values.get(dial, DIALS[dial])]


def grid(found: Survey, rows: Sequence[Value], columns: Sequence[Value]) -> list[str]:
    """A line a value: how it goes together with each value of other dials."""
    place = {dial: number for number, dial in enumerate(DIALS)}
    heads = [f"{value} streams" if dial == "streams" else word(dial, value) for dial, value in columns]
    lines = ["| | | " + " | ".join(heads) + " |", "| --- | --- |" + " :-: |" * len(columns)]
    for dial, some in itertools.groupby(rows, key=lambda row: row[0]):
        for number, (_, value) in enumerate(some):
            marks = []
            for other, its in columns:
                first, second = sorted([(dial, value), (other, its)], key=lambda one: place[one[0]])
                marks.append("" if dial == other else found.marks.get((first, second), ""))
            name = HEADS[dial] if number == 0 else ""
            lines.append(f"| {name} | {word(dial, value)} | " + " | ".join(marks) + " |")
    return [*lines, ""]


def page(found: Survey, how: str) -> str:
    """The page as Markdown. `how`: a sentence on the run."""
    laws = "\n".join(f"- {law.__name__.replace('_', ' ')}" for law in LAWS)
    lines = [
        "# The matrix: which settings combine",
        "",
        "Written by `make matrix`. Each setting of a join is a dial; a combination is one value of every dial. All combinations",
        "have a meaning except those that the list below names.",
        "",
        how,
        "",
        f"{found.ran - found.broken:,} combinations hold all laws; {found.broken:,} break one.",
        "",
        "For each combination that runs, a small random input is drawn. These laws hold for it:",
        "",
        laws,
        "",
        "The twin is `tests/naive`: the same join in plain Python, with scans. Repeat one combination with",
        "`python tests/run_matrix.py <name> --seed <number>`.",
        "",
        "## What combines with what",
        "",
        f"{HELD} all combinations of the run with both values hold the laws; {FAILED} one of them breaks a law; a number: the",
        "two values do not go together, for the reason of that number below; empty: not drawn.",
        "",
        *grid(
            found,
            values_of("condition", "policy", "estimator", "cpu", "also"),
            values_of("streams", "condition", "where", "window", "how", "budget", "allocation"),
        ),
        *grid(found, values_of("policy", "estimator", "cpu"), values_of("cpu", "also")),
        "Without a budget only three policies are drawn, because nothing is given up. Policies that expect partners take every",
        "estimator; the others take none.",
        "",
        "## What has no meaning",
        "",
        "The sentences are the error messages (`shedjoin.meaning`).",
        "",
        "| | argument | sentence |",
        "| ---: | --- | --- |",
        *(f"| {number} | `{one.argument}` | {one.sentence} |" for number, one in enumerate(MEANINGLESS, 1)),
        "",
        *_failures(found),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _failures(found: Survey) -> list[str]:
    if not found.failures:
        return []
    rows = [f"| `{one.combination}` | {one.seed} | {one.what} |" for one in found.failures[:100]]
    return ["## Laws that break", "", "| combination | seed | |", "| --- | ---: | --- |", *rows, ""]
