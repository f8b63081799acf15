"""The laws of the matrix: what must hold for the engine in every combination that has a meaning.

`hold(case)` runs them all. Each law is a function of a `Trial`, which works out once what several of them ask.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from matrix import CHECKED, GRAPHS, PREDICATES, Case
from naive import (
    Completed,
    Conditional,
    LeftOut,
    Output,
    Record,
    Row,
    Twin,
    completed,
    instants,
    text,
    without_limits,
)
from shedjoin.engine.pace import Script
from shedjoin.quality.arrivals import Arrivals
from shedjoin.quality.missing import exact_rows, missing_rows, record_counts
from shedjoin.recall import LiveRecall
from strategies import records

NAMES = ("a", "b", "c")
#: The dials of the twin's join that a spec has under the same name.
SHARED = ("budget", "policy", "importance", "lateness", "max_skew", "evaluate_every", "expire_every", "matches")
#: Miniatures of all rows with other memories.
FORESEEING = sj.WhatIf(tuples=2**20, memory=1e6, every=8)
CPU_DIALS = ("selective", "cpu", "queue", "dual")


class Told(NamedTuple):
    """What a push or a change gave, and what was stored after it."""

    results: list[tuple[tuple[int, ...], float]]
    shed: list[Record]
    left_out: list[LeftOut]
    residents: tuple[int, ...]
    used: tuple[int, ...]


def spec_of(case: Case) -> sj.JoinSpec:
    """The join of a case, as a user writes it."""
    join, combination = case.join, case.combination
    settings = {name: getattr(join, name) for name in SHARED}
    settings["how"] = join.how.name
    if not join.expire_every:
        del settings["expire_every"]
    settings |= {name: getattr(join, name) for name in CPU_DIALS if getattr(join, name) is not None}
    if join.dual is not None:
        settings["dual"] = sj.Dual(join.dual.rear, join.dual.front, join.dual.period, join.dual.distribution)
    if isinstance(join.condition, Conditional):
        names = ("left", "right") if is_pair(case) else NAMES
        settings["where"] = text(join.condition.tree, names)
    if combination.condition in PREDICATES:
        return sj.JoinSpec(tuple(join.windows), on=PREDICATES[combination.condition], **settings)
    if combination.condition == "key" and combination.streams == 2:
        return sj.JoinSpec(tuple(join.windows), **settings)
    window = dict(zip(NAMES, join.windows, strict=False))
    predicates = GRAPHS.get((combination.condition, combination.streams), "key")
    # Orders are looked at often, so that they change on the way.
    return sj.JoinSpec(window, on=predicates, reordering=sj.Reordering(every=7, drift=0.0), **settings)


def is_pair(case: Case) -> bool:
    """Whether the streams are left and right."""
    one = case.combination
    return one.condition in PREDICATES or (one.condition == "key" and one.streams == 2)


def batch_of(engine: sj.Engine, case: Case, rows: Sequence[Row]) -> sj.Batch:
    """Rows in the order in which they come."""
    columns: dict[str, Any] = {
        "stream": [row.stream for row in rows],
        "ts": [row.ts for row in rows],
        "importance": [row.importance for row in rows],
        "bytes": [row.bytes for row in rows],
        "kind": [row.kind for row in rows],
    }
    if (case.combination.condition, case.combination.streams) in GRAPHS:
        columns |= {column: [row.value[column] for row in rows] for column in "xy"}
    else:
        columns["key" if case.combination.condition == "key" else "x"] = [row.value for row in rows]
    if case.combination.where:
        columns |= {column: [row.more[column] for row in rows] for column in CHECKED}
    dropped = np.array([row.dropped for instant in instants(rows) for row in instant], np.bool_)
    return engine.rows(columns).without(dropped if dropped.any() else None)


# ------------------------------------------------------------------------------------------------- running a case


class Run:
    """A case on its way through the engine."""

    def __init__(self, case: Case, recall: bool = False, what_if: sj.WhatIf | None = None) -> None:
        self.case, self.spec = case, replace(spec_of(case), what_if=what_if)
        self.engine = self.spec.build(seed=case.seed)
        self.recall = LiveRecall(self.spec, seed=case.seed) if recall else None
        self.logs: list[sj.ShedLog] = []
        self.left_out: list[sj.LeftOutLog] = []
        self.closed: list[sj.Output] = []

    def told(self, out: sj.Output, batch: sj.Batch | None = None) -> Told:
        if self.recall is not None:
            self.recall.follow(batch_of(self.engine, self.case, ()) if batch is None else batch, out)
        self.logs.append(out.shed)
        self.left_out.append(out.left_out)
        found = sorted(zip(map(tuple, out.rows.tolist()), out.importance.tolist(), strict=True))
        left = [LeftOut(*one) for one in out.left_out.records().tolist()]
        return Told(found, records(out.shed), left, tuple(self.engine.residents), tuple(self.engine.used))

    def push(self, batch: sj.Batch) -> Told:
        # A deadline is a clock of the machine: here it is said what r becomes.
        pace = None if self.case.script is None else Script(self.case.script)
        pieces, self.closed = [*self.closed, *self.engine.chunks(batch, limit=1 << 16, pace=pace)], []
        return self.told(sj.Output.joined(pieces), batch)

    def set_budget(self, budget: sj.Budget) -> Told:
        self.spec = self.spec.with_budget(budget)
        return self.told(self.engine.set_budget(budget))

    def set_policy(self, policy: sj.Policy) -> None:
        """It may close an instant; what comes of that is told with the push."""
        self.spec = replace(self.spec, policy=policy)
        self.closed = [*self.closed, self.engine.set_policy(policy)]

    def stop_and_go_on(self) -> None:
        """The engine is replaced by one that resumes from its snapshot."""
        self.engine = self.spec.resume(self.engine.snapshot())

    def end(self) -> Told:
        return self.told(self.engine.end())

    def whole(self, batches: Sequence[sj.Batch], stops: Container[int] = ()) -> list[Told]:
        """All pushes and changes; `stops`: before which pushes the engine is replaced by its snapshot."""
        history = []
        for number, batch in enumerate(batches):
            if number in stops:
                self.stop_and_go_on()
            if number in self.case.budgets:
                history.append(self.set_budget(self.case.budgets[number]))
            if number in self.case.policies:
                self.set_policy(self.case.policies[number])
            history.append(self.push(batch))
        return [*history, self.end()]


def run_twin(case: Case) -> tuple[Twin, list[Told]]:
    twin = Twin(case.join, case.seed)

    def told(out: Output) -> Told:
        found = sorted((result.rows, result.importance) for result in out.results)
        return Told(found, out.shed, out.left_out, twin.residents, twin.used)

    history = []
    for number, rows in enumerate(case.pushes):
        if number in case.budgets:
            history.append(told(twin.set_budget(case.budgets[number])))
        closed = twin.set_policy(case.policies[number]) if number in case.policies else Output()
        out = twin.push(rows, script=case.script)
        history.append(told(out.after(closed)))
    return twin, [*history, told(twin.end())]


def by_hand(case: Case) -> Case:
    """The same join with every change that `Auto` made as one that its user makes, after as many rows."""
    run, changes = Run(case), {}
    first = run.engine.trying.first
    for number, rows in enumerate(case.pushes):
        if number in case.budgets:
            run.set_budget(case.budgets[number])
        if number in case.policies:
            run.set_policy(case.policies[number])
        run.push(batch_of(run.engine, case, rows))
        if run.engine.trying is not None:
            changes |= {one.rows: one.policy for one in run.engine.trying.changes}
    pushes, budgets, policies, came = [], {}, {}, 0
    for number, rows in enumerate(case.pushes):
        if number in case.budgets:
            budgets[len(pushes)] = case.budgets[number]
        if number in case.policies:
            policies[len(pushes)] = case.policies[number]
        inside = [at for at in changes if came < at < came + len(rows)]
        for start, end in itertools.pairwise([came, *inside, came + len(rows)]):
            if start in inside:
                policies[len(pushes)] = changes[start]
            pushes.append(rows[start - came : end - came])
        came += len(rows)
        if rows and came in changes:  # before what is changed by hand there
            policies[len(pushes)] = changes[came]
            pushes.append([])
    return replace(case, join=replace(case.join, policy=first), pushes=pushes, budgets=budgets, policies=policies)


def what_auto_changes_could_be_changed_by_hand(trial: Trial) -> None:
    """And the twin does the same then."""
    if trial.case.combination.policy != "auto":
        return
    other = Trial(by_hand(trial.case))
    assert results_of(trial.history) == results_of(other.history)
    assert shed_by(trial.history) == shed_by(other.history)
    assert left_by(trial.history) == left_by(other.history)
    assert trial.history[-1].residents == other.history[-1].residents
    the_engine_does_what_the_twin_does(other)


def rows_of(history: Sequence[Told]) -> Counter[tuple[int, ...]]:
    return Counter(row for told in history for row, _ in told.results)


def results_of(history: Sequence[Told]) -> list[tuple[tuple[int, ...], float]]:
    return sorted(result for told in history for result in told.results)


def shed_by(history: Sequence[Told]) -> list[Record]:
    return [record for told in history for record in told.shed]


def left_by(history: Sequence[Told]) -> list[LeftOut]:
    return [one for told in history for one in told.left_out]


@dataclass
class Trial:
    """A case, with what several laws ask of it worked out once."""

    case: Case

    @cached_property
    def run(self) -> Run:
        return Run(self.case, recall=self.case.combination.also == "live recall")

    @cached_property
    def history(self) -> list[Told]:
        return self.run.whole(self.batches)

    @cached_property
    def batches(self) -> list[sj.Batch]:
        return [batch_of(self.run.engine, self.case, rows) for rows in self.case.pushes]

    @cached_property
    def completed(self) -> Completed:
        return completed(self.case.join, self.case.pushes, shed_by(self.history), left_by(self.history))

    @property
    def exact(self) -> Counter[tuple[int, ...]]:
        return self.completed.exact

    @property
    def missing(self) -> Counter[tuple[int, ...]]:
        return self.exact - self.completed.given

    @property
    def is_exact(self) -> bool:
        """Whether what is not shed is complete: rows that leave after some partners are only exact for rows without more."""
        return not any(self.case.join.matches or ())

    @cached_property
    def one_batch(self) -> sj.Batch:
        """All rows in one push: instants that pushes had cut are whole again."""
        ordered = [row for rows in self.case.pushes for instant in instants(rows) for row in instant]
        return batch_of(self.run.engine, self.case, ordered)

    @cached_property
    def alone(self) -> list[sj.Batch]:
        """The same, every instant in a push of its own."""
        ts = self.one_batch.ts.tolist()
        borders = [place for place in range(1, len(ts)) if ts[place] != ts[place - 1]]
        return [self.one_batch.take(slice(a, b)) for a, b in itertools.pairwise([0, *borders, len(ts)])]


# ------------------------------------------------------------------------------------------------------- the laws


def the_engine_does_what_the_twin_does(trial: Trial) -> None:
    """Results and their importance, shed log, what was left out, what is stored, and the counters."""
    if isinstance(trial.case.join.policy, sj.Auto):
        return
    twin, expected = run_twin(trial.case)
    assert len(trial.history) == len(expected)
    for mine, theirs in zip(trial.history, expected, strict=True):
        assert [rows for rows, _ in mine.results] == [rows for rows, _ in theirs.results]
        assert all(
            math.isclose(worth, other, rel_tol=1e-12)
            for (_, worth), (_, other) in zip(mine.results, theirs.results, strict=True)
        ), (mine.results, theirs.results)
        assert mine[1:] == theirs[1:]
    counters = trial.run.engine.counters
    for name, count in (twin.counters | {name: twin.more_counters[name] for name in counted(trial.case)}).items():
        assert counters[name] == count, name


def counted(case: Case) -> set[str]:
    """What is counted besides: where rows may wait, or are compared with parts of windows."""
    join, names = case.join, set()
    if join.cpu is not None or join.dual is not None:
        names |= {"dropped", "probed", "unprobed", "compared", "looked_up"}
    if join.selective is not None:
        names |= {"probed", "partial", "sampled", "compared", "looked_up"}
    return names


def results_are_part_of_the_exact_join(trial: Trial) -> None:
    """Rows without a partner, too: none is given that has one."""
    if trial.is_exact or trial.case.join.how.name == "inner":
        assert rows_of(trial.history) <= trial.exact


def the_logs_say_what_is_missing(trial: Trial) -> None:
    if trial.is_exact:
        assert rows_of(trial.history) + trial.missing == trial.exact


def sure_recall_is_sure(trial: Trial) -> None:
    """Of rows that the join gives alone at least this share was delivered, if none was late."""
    sure = trial.run.engine.sure_recall
    assert (sure is None) == (trial.case.join.how.name == "inner")
    if sure is not None and trial.is_exact and not trial.run.engine.counters["late"]:
        given, exact = (
            sum(n for row, n in rows.items() if -1 in row) for rows in (rows_of(trial.history), trial.exact)
        )
        assert given >= sure * exact - 1e-9


def miniatures_with_other_memories_change_nothing(trial: Trial) -> None:
    """And what they know depends neither on cuts nor on restarts."""
    if trial.case.join.how.name in ("left_semi", "left_anti") or isinstance(trial.case.join.policy, sj.Replay):
        return
    run, again = (Run(trial.case, what_if=FORESEEING) for _ in range(2))
    assert run.whole(trial.batches) == trial.history
    assert again.whole(trial.batches, stops=range(0, len(trial.batches), 2)) == trial.history
    assert run.engine.foreseeing.to_bytes() == again.engine.foreseeing.to_bytes()


def the_same_seed_gives_the_same_output(trial: Trial) -> None:
    assert Run(trial.case).whole(trial.batches) == trial.history


def a_snapshot_between_pushes_changes_nothing(trial: Trial) -> None:
    pushes = range(len(trial.case.pushes))
    stops = pushes if trial.case.combination.also == "snapshot" else [Random(trial.case.seed).choice(pushes)]
    assert Run(trial.case).whole(trial.batches, stops) == trial.history


def the_cap_holds_after_every_instant_and_cuts_there_change_nothing(trial: Trial) -> None:
    """One instant at a time, with a snapshot now and then, gives what one push gives; the cap holds after each.

    What changes on the way, and what a deadline says, belongs to a number of a push: such cases only hold the cap.
    """
    case, run = replace(trial.case, budgets={}, policies={}), Run(trial.case)
    stops = Random(case.seed).sample(range(len(trial.alone)), min(2, len(trial.alone)))
    history = []
    for number, batch in enumerate(trial.alone):
        if number in stops:
            run.stop_and_go_on()
        history.append(run.push(batch))
        if not is_open(case):
            assert_within_cap(case.join.budget, history[-1])
    if case.script is None:
        history.append(run.end())
        whole = Run(case).whole([trial.one_batch])
        assert results_of(history) == results_of(whole)
        assert shed_by(history) == shed_by(whole)
        assert left_by(history) == left_by(whole)
        assert history[-1].residents == whole[-1].residents


def assert_within_cap(budget: sj.Budget | None, told: Told) -> None:
    if budget is not None:
        held = (sum(told.used),) if budget.allocation == "variable" else told.used
        assert all(mine <= cap for mine, cap in zip(held, budget.caps(len(told.used)), strict=True)), (held, budget)


def is_open(case: Case) -> bool:
    """Whether the last instant may still be open after a push: where rows wait, it competes when it closes."""
    return case.join.cpu is not None or case.join.dual is not None


def the_cap_holds_when_the_budget_changes(trial: Trial) -> None:
    """Also when the budget has changed: the new one holds at once."""
    budget, history = trial.case.join.budget, iter(trial.history)
    for number in range(len(trial.case.pushes)):
        changes = number in trial.case.budgets
        budget = trial.case.budgets.get(number, budget)
        for told in itertools.islice(history, 1 + changes):
            if not is_open(trial.case):
                assert_within_cap(budget, told)
    assert_within_cap(budget, trial.history[-1])


def shed_log_and_archive_complete_the_results(trial: Trial) -> None:
    """`shedjoin.quality` finds the exact join, what is missing of it and why, from the archived rows and the logs."""
    if not trial.is_exact:
        return
    history, run = trial.history, trial.run
    shed = sj.ShedLog([log.records() for log in run.logs], run.spec.names)
    left_out = sj.LeftOutLog([log.records() for log in run.left_out], run.spec.names)
    arrivals = Arrivals.pushed(trial.batches, len(run.spec.names))
    assert Counter(lines(exact_rows(arrivals, run.spec, shed=shed))) == trial.completed.punctual
    lost = lines(missing_rows(shed, arrivals, run.spec, left_out=left_out))
    assert lost == sorted(trial.missing.elements())
    assert rows_of(history) + Counter(lost) == trial.exact
    counts = record_counts(shed, arrivals, run.spec, left_out=left_out)
    assert (counts.size, counts.sum()) == (len(shed), len(lost))


def lines(columns: tuple[NDArray[np.int64], ...]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def live_recall_is_exact_while_there_is_room_for_all_rows(trial: Trial) -> None:
    """There is room for all rows: both limits are the recall of the rows that were not late when they came."""
    if trial.case.combination.also != "live recall":
        return
    found = Counter(
        {row: count for row, count in rows_of(trial.history).items() if -1 not in row}
    )  # recall is of pairs
    lost = (Counter(without_limits(trial.case.join, trial.case.pushes, shed_by(trial.history))) - found).total()
    assert trial.run.recall is not None
    now = trial.run.recall.estimate()
    share = found.total() / (found.total() + lost) if lost else 1.0
    assert (now.results, now.missing) == (found.total(), lost)
    assert now.low == now.recall == now.high == share
    assert 0.0 <= now.importance_low <= now.importance <= now.importance_high <= 1.0


LAWS: tuple[Callable[[Trial], None], ...] = (
    the_engine_does_what_the_twin_does,
    what_auto_changes_could_be_changed_by_hand,
    results_are_part_of_the_exact_join,
    the_logs_say_what_is_missing,
    sure_recall_is_sure,
    the_same_seed_gives_the_same_output,
    a_snapshot_between_pushes_changes_nothing,
    the_cap_holds_after_every_instant_and_cuts_there_change_nothing,
    the_cap_holds_when_the_budget_changes,
    shed_log_and_archive_complete_the_results,
    live_recall_is_exact_while_there_is_room_for_all_rows,
    miniatures_with_other_memories_change_nothing,
)


def hold(case: Case) -> None:
    """Hold all laws against a case."""
    trial = Trial(case)
    for law in LAWS:
        law(trial)
