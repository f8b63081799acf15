"""docs/matrix.md, written from a run: what combines with what, what has no meaning and why."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from matrix import DIALS, ESTIMATORS, Combination, Pair, combinations, pairs_of
from matrix_laws import LAWS
from shedjoin.meaning import MEANINGLESS, Meaningless

#: What a value of None is called.
UNSET = {"budget": "none", "where": "no where", "cpu": "no limit", "also": "nothing"}
HEADS = {
    "streams": "streams", "condition": "condition", "where": "where", "window": "windows", "budget": "budget",
    "allocation": "allocation",     "policy": "policy", "estimator": "estimator", "cpu": "CPU", "also": "also",
}  # fmt: skip
HELD, FAILED, NOT_RUN = "●", "✗", "·"
Value = tuple[str, Any]


class Failure(NamedTuple):
    combination: Combination
    seed: int
    what: str


@dataclass
class Survey:
    """What the whole product holds, and what of it ran."""

    ran: int = 0
    failures: list[Failure] = field(default_factory=list)
    total: int = 0
    meaningless: Counter[Meaningless] = field(default_factory=Counter)
    marks: dict[Pair, str] = field(default_factory=dict)

    @property
    def meaningful(self) -> int:
        return self.total - self.meaningless.total()


def survey(ran: Iterable[Combination], failures: Sequence[Failure]) -> Survey:
    """Go through the whole product."""
    run, broken = set(ran), {failure.combination for failure in failures}
    found = Survey(len(run), list(failures))
    marks: defaultdict[str, set[Pair]] = defaultdict(set)
    reasons: defaultdict[Pair, set[frozenset[int]]] = defaultdict(set)
    for one in combinations():
        found.total += 1
        reason = one.why_not
        if reason is not None:
            found.meaningless[reason] += 1
            true = frozenset(
                number for number, why in enumerate(MEANINGLESS, 1) if any(why.holds(dials) for dials in one.moments)
            )
            for pair in pairs_of(one):
                reasons[pair].add(true)
        else:
            marks[FAILED if one in broken else HELD if one in run else NOT_RUN] |= pairs_of(one)
    found.marks = {pair: ", ".join(map(str, sorted(few(true)))) for pair, true in reasons.items()}
    for mark in (NOT_RUN, HELD, FAILED):  # the last that is true of a pair counts
        found.marks |= dict.fromkeys(marks[mark], mark)
    return found


def few(reasons: Iterable[frozenset[int]]) -> list[int]:
    """Few reasons of which each combination has one: that of most combinations first."""
    chosen: list[int] = []
    rest = list(reasons)
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
                marks.append("" if dial == other else found.marks.get((*first, *second), ""))
            name = HEADS[dial] if number == 0 else ""
            lines.append(f"| {name} | {word(dial, value)} | " + " | ".join(marks) + " |")
    return [*lines, ""]


def page(found: Survey, how: str) -> str:
    """The page as Markdown. `how`: a sentence on the run."""
    passed = found.ran - len({failure.combination for failure in found.failures})
    laws = "\n".join(f"- {law.__name__.replace('_', ' ')}" for law in LAWS)
    counts = [
        ("all combinations of values", found.total),
        ("have no meaning", found.meaningless.total()),
        ("have a meaning", found.meaningful),
        ("were run", found.ran),
        ("hold all laws", passed),
        ("break a law", len({failure.combination for failure in found.failures})),
    ]
    lines = [
        "# The matrix: which settings combine",
        "",
        "Written by `make matrix`. Each setting of a join is a dial; a combination is one value of every dial. All combinations",
        "have a meaning except those that the list below names.",
        "",
        how,
        "",
        "| | combinations |",
        "| --- | ---: |",
        *(f"| {name} | {count:,} |" for name, count in counts),
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
        f"{HELD} ran, and all laws hold; {FAILED} a law breaks; {NOT_RUN} not part of this run;",
        "a number: no meaning, for the reason of that number below; empty: not drawn. A cell stands for all combinations that",
        "have both values. A mark other than a number says that at least one of them has a meaning.",
        "",
        *grid(
            found,
            values_of("condition", "policy", "estimator", "cpu", "also"),
            values_of("streams", "condition", "where", "window", "budget", "allocation"),
        ),
        *grid(found, values_of("policy", "estimator", "cpu"), values_of("cpu", "also")),
        "Without a budget only three policies are drawn, because nothing is given up. Policies that expect partners take every",
        "estimator; the others take none.",
        "",
        "## What has no meaning",
        "",
        "The sentences are the error messages (`shedjoin.meaning`).",
        "",
        "| | argument | sentence | combinations |",
        "| ---: | --- | --- | ---: |",
        *(
            f"| {number} | `{one.argument}` | {one.sentence} | {found.meaningless[one]:,} |"
            for number, one in enumerate(MEANINGLESS, 1)
        ),
        "",
        "A combination counts for the first sentence that is true of it. 0: it is outside the values of the tables.",
        "",
        *_failures(found),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _failures(found: Survey) -> list[str]:
    if not found.failures:
        return []
    rows = [f"| `{one.combination}` | {one.seed} | {one.what} |" for one in found.failures[:100]]
    return ["## Laws that break", "", "| combination | seed | |", "| --- | ---: | --- |", *rows, ""]
