"""The settings of a join that cannot be combined, with an error message for each combination.

This is the only such list. `JoinSpec` raises its messages as errors, `tests/matrix.py` excludes these combinations,
and docs/matrix.md prints it. All other settings combine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from shedjoin.errors import SpecError

#: Conditions other than predicates: one key that all streams have, or a join graph.
KEY, GRAPH = "key", "graph"
#: Conditions by which tuples are stored by a key: equal values, and equal sets by their hash.
KEYED = (KEY, "equal", "same_set")


@dataclass(frozen=True, slots=True)
class Dials:
    """The settings of a join as plain values, as far as the list uses them.

    Parameters
    ----------
    streams
        How many there are.
    condition
        `KEY`, `GRAPH`, or the name of a predicate, such as "overlap".
    windows
        The kinds of windows that occur.
    budget
        Whether there is one, or will be one later.
    policy, estimator
        Their names.
    follows_results
        Whether priorities depend on the results of each instant.
    lazy
        Whether results are evaluated in rounds.
    cpu
        "virtual", "deadline" or None.
    queue
        "random", "semantic", "integrated" or None.
    selective, dual
        Whether these are set.
    how
        The join type.
    recall
        Whether recall is estimated while the join runs.
    what_if
        Whether other memory sizes are tried while the join runs.
    best_speed
        Whether dual windows search for the best speed, to drop the rows beyond it.
    """

    streams: int = 2
    condition: str = KEY
    windows: frozenset[str] = frozenset({"time"})
    budget: bool = False
    policy: str = "keep_all"
    estimator: str | None = None
    follows_results: bool = False
    lazy: bool = False
    cpu: str | None = None
    queue: str | None = None
    selective: bool = False
    dual: bool = False
    how: str = "inner"
    recall: bool = False
    what_if: bool = False
    best_speed: bool = False

    @property
    def limits_cpu(self) -> bool:
        return self.cpu is not None or self.queue is not None or self.selective or self.dual


class Meaningless(NamedTuple):
    """The refused argument, the settings that exclude it, and the reason."""

    argument: str
    holds: Callable[[Dials], bool]
    sentence: str


MEANINGLESS: tuple[Meaningless, ...] = (
    Meaningless(
        "on",
        lambda d: d.condition not in (KEY, GRAPH) and d.streams != 2,
        "A predicate compares two streams: for more streams use a join graph.",
    ),
    Meaningless(
        "policy",
        lambda d: d.policy == "keep_all" and d.budget,
        "KeepAll() keeps everything and cannot stay within a budget: leave one of the two out.",
    ),
    Meaningless(
        "policy",
        lambda d: d.policy == "prospect" and d.condition not in KEYED,
        "Prospect() learns from a key that all streams share: take a policy such as Prob() here.",
    ),
    Meaningless(
        "policy",
        lambda d: d.policy == "sample" and d.how != "inner",
        "Sample() gives weights to pairs of rows, and rows without a partner have no weight: leave how out.",
    ),
    Meaningless(
        "policy",
        lambda d: d.policy == "sample" and d.limits_cpu,
        "Sample() knows the probability that memory kept a row, but not that a slow CPU compared it: leave one of the two out.",
    ),
    Meaningless(
        "policy",
        lambda d: d.estimator == "table" and d.condition == "same_set",
        "Table() gives weights to single values, and SameSet compares whole sets: take History() or InWindow().",
    ),
    Meaningless(
        "policy",
        lambda d: d.estimator == "count_min" and d.condition == "theta",
        "CountMin() counts single values, and Theta needs sums over ranges of them: take History() or InWindow().",
    ),
    Meaningless(
        "evaluate_every",
        lambda d: d.lazy and d.limits_cpu,
        "A CPU limit applies to each probe, and lazy evaluation probes in rounds: leave one of the two out.",
    ),
    Meaningless(
        "evaluate_every",
        lambda d: d.lazy and d.follows_results,
        "Age(), Dgl(), Cumulative() and Met() need the results of each instant, which lazy evaluation finds later.",
    ),
    Meaningless(
        "queue",
        lambda d: d.queue is not None and d.cpu != "virtual",
        "A queue holds the rows that a slow CPU has not reached: give cpu=VirtualCpu(...) as well.",
    ),
    Meaningless(
        "cpu",
        lambda d: d.cpu == "deadline" and not d.selective,
        "A deadline is met by comparing rows with a part of the windows: give selective=Selective(...) as well.",
    ),
    Meaningless(
        "queue",
        lambda d: d.queue == "integrated" and not d.budget,
        "An integrated queue shares the budget of the memory: give one, or bound the queue by tuples or span.",
    ),
    Meaningless(
        "queue",
        lambda d: d.queue == "integrated" and d.estimator == "met",
        "Met() has no estimate for a row before its probe, so an integrated queue would drop all waiting rows.",
    ),
    Meaningless(
        "queue",
        lambda d: d.queue == "integrated" and d.policy == "age",
        "Age() learns when rows in memory find partners, and rows in a queue find none: bound the queue by tuples or span.",
    ),
    Meaningless(
        "dual",
        lambda d: d.dual and len(d.windows) > 1,
        "Dual windows need windows of one kind: the aux-window is as long as they are.",
    ),
    Meaningless(
        "dual",
        lambda d: d.best_speed and not (d.streams == 2 and d.condition in KEYED),
        "The best speed is computed from the key frequencies of two streams: in other joins set front to a share or False.",
    ),
    Meaningless(
        "how",
        lambda d: d.streams > 2 and d.how not in ("inner", "left_semi", "left_outer"),
        "A join of three and more streams is inner, left_semi or left_outer: its first stream with all others.",
    ),
    Meaningless(
        "how",
        lambda d: d.dual and d.how != "inner" and "row" in d.windows,
        "Dual windows of rows count released rows, so it is not known which partners a row has missed.",
    ),
    Meaningless(
        "how",
        lambda d: d.recall and d.how in ("left_semi", "left_anti"),
        "Live recall counts pairs: Engine.sure_recall has a lower limit for the rows of left_semi and left_anti joins.",
    ),
    Meaningless(
        "what_if",
        lambda d: d.what_if and d.how in ("left_semi", "left_anti"),
        "A what-if curve counts pairs, and left_semi and left_anti joins deliver none.",
    ),
    Meaningless(
        "what_if",
        lambda d: d.what_if and d.policy == "replay",
        "Replay() identifies the rows of a join by their numbers, and miniatures get only some rows: leave one of the two out.",
    ),
)


def why_not(dials: Dials) -> Meaningless | None:
    """The first reason why settings cannot be combined; None: they can."""
    return next((one for one in MEANINGLESS if one.holds(dials)), None)


def check_meaning(owner: str, dials: Dials) -> None:
    """Raise the error of settings that cannot be combined, with the name of the argument."""
    reason = why_not(dials)
    if reason is not None:
        raise SpecError(f"{owner}.{reason.argument}: {reason.sentence}")
