"""The missing results, from the logs and the inputs: exact, and without running the join again.

Two streams on a key whose rows were compared with whole windows have a quick way: `ranges` finds what is missing alone. For
all other joins the exact join is made piece by piece (`exact`), and the logs say of each result whether it was delivered
(`causes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shedjoin.batch import STREAMS, Batch, TableLike
from shedjoin.engine.codes import DROPPED
from shedjoin.engine.output import LeftOutLog, ShedLog
from shedjoin.errors import InputError, SpecError
from shedjoin.quality import by_type
from shedjoin.quality.arrivals import Arrivals, Integers, check_log
from shedjoin.quality.causes import NONE, Causes
from shedjoin.quality.exact import ExactJoin
from shedjoin.quality.ranges import exact_pairs, losses, pairs_of, pairs_with_records, partner_counts
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow

INNER = "inner"


def missing_results(
    shed: ShedLog,
    left: TableLike,
    right: TableLike,
    spec: JoinSpec,
    *,
    more: Sequence[TableLike] = (),
    left_out: LeftOutLog | None = None,
    warmup: int | None = None,
) -> tuple[Integers, ...]:
    """The missing results of the exact join, including those of late rows, as row numbers of each stream.

    Of a join that gives rows without a partner, the run must have ended (`Engine.end`; `simulate` sees to it): rows that are
    still stored are neither given nor logged. The number of a missing side is -1.

    Parameters
    ----------
    shed
        The shed log of the whole run.
    left, right
        The inputs of that run, as `simulate` or `Engine.push` had them.
    spec
        Its specification.
    more
        The third stream and those after it.
    left_out
        The skipped comparisons (`Output.left_out`), for joins with `selective` or `dual`.
    warmup
        Leave out results produced (at the latest of their times) before this.

    Examples
    --------
    >>> from shedjoin import Band, Budget, Rand, TimeWindow
    >>> spec = JoinSpec(TimeWindow(9), on=Band("x", within=0.5), budget=Budget(tuples=2), policy=Rand())
    >>> left, right = {"x": [1.0, 5.0, 2.0]}, {"x": [7.0, 8.0, 1.5]}
    >>> out = spec.build(seed=0).push(left=left, right=right)
    >>> out.rows.tolist(), missing_results(out.shed, left, right, spec)
    ([[2, 2]], (array([0]), array([2])))
    """
    return missing_rows(shed, arrivals_of(spec, (left, right, *more)), spec, left_out=left_out, warmup=warmup)


def missing_counts(
    shed: ShedLog,
    left: TableLike,
    right: TableLike,
    spec: JoinSpec,
    *,
    more: Sequence[TableLike] = (),
    left_out: LeftOutLog | None = None,
    warmup: int | None = None,
) -> Integers:
    """How many results each record of the shed log cost.

    A result counts once: for the first stream whose row was dropped, else for the first whose row had left before another came,
    else for the first whose row came late, when another had expired, else for its newest row, which left another out.
    """
    return record_counts(shed, arrivals_of(spec, (left, right, *more)), spec, left_out=left_out, warmup=warmup)


def exact_results(
    left: TableLike,
    right: TableLike,
    spec: JoinSpec,
    *,
    more: Sequence[TableLike] = (),
    shed: ShedLog | None = None,
    warmup: int | None = None,
) -> tuple[Integers, ...]:
    """The exact join of the inputs, late rows included.

    `shed` is for dual windows of rows alone: those count the rows that were let in, so that their exact join depends on what
    was dropped.

    Examples
    --------
    >>> from shedjoin.window import TimeWindow
    >>> exact_results({"key": [1, 1, 1, 3, 2]}, {"key": [2, 3, 1, 1, 3]}, JoinSpec(TimeWindow(3)))
    (array([0, 1, 1, 2, 2, 3, 3]), array([2, 2, 3, 2, 3, 1, 4]))
    """
    return exact_rows(arrivals_of(spec, (left, right, *more)), spec, shed=shed, warmup=warmup)


def missing_rows(
    shed: ShedLog,
    arrivals: Arrivals,
    spec: JoinSpec,
    *,
    left_out: LeftOutLog | None = None,
    warmup: int | None = None,
) -> tuple[Integers, ...]:
    """`missing_results` of what arrived."""
    _checked(shed, spec, left_out)
    if spec.how != INNER:
        return _missing_by_type(shed, arrivals, spec, left_out, warmup)[0]
    if is_by_ranges(spec):
        return pairs_of(losses(shed, arrivals, spec.windows, warmup))
    return _judged(shed, arrivals, spec, left_out, warmup)[0]


def record_counts(
    shed: ShedLog,
    arrivals: Arrivals,
    spec: JoinSpec,
    *,
    left_out: LeftOutLog | None = None,
    warmup: int | None = None,
) -> Integers:
    """`missing_counts` of what arrived."""
    counts = np.zeros(len(_checked(shed, spec, left_out)), dtype=np.int64)
    if spec.how != INNER:
        return np.bincount(_missing_by_type(shed, arrivals, spec, left_out, warmup)[1], minlength=counts.size)
    if is_by_ranges(spec):
        for loss in losses(shed, arrivals, spec.windows, warmup):
            counts[loss.record] += loss.ranges.counts()
        return counts
    return np.bincount(_judged(shed, arrivals, spec, left_out, warmup)[1], minlength=counts.size)


def exact_rows(
    arrivals: Arrivals, spec: JoinSpec, *, shed: ShedLog | None = None, warmup: int | None = None
) -> tuple[Integers, ...]:
    """`exact_results` of what arrived."""
    how = by_type.type_of(spec)
    if how.name != INNER:
        partners, pairs = _all_pairs(arrivals, spec)
        rows = by_type.exact(how, pairs, partners)
        some = by_type.since(how, arrivals, rows, warmup)
        return _in_order([tuple(column[some] for column in rows)], len(rows))
    if is_by_ranges(spec):
        return exact_pairs(arrivals, spec.windows, warmup)
    if _counts_let_in(spec):
        if shed is None:
            raise InputError("shed must be the ShedLog of a run: dual windows of rows count the rows that were let in")
        arrivals = _let_in(arrivals, shed)
    found = [_numbers(arrivals, _since(arrivals, result, warmup)) for result in ExactJoin(arrivals, spec).results()]
    return _in_order(found, len(arrivals.streams))


def _all_pairs(arrivals: Arrivals, spec: JoinSpec) -> tuple[dict[int, Integers], tuple[Integers, ...]]:
    """The pairs of the exact join, where they are results, and how many each judged row has."""
    how = by_type.type_of(spec)
    pieces: Iterator[tuple[Integers, ...]]
    pieces = iter([exact_pairs(arrivals, spec.windows)]) if is_by_ranges(spec) else ExactJoin(arrivals, spec).results()
    partners, kept = by_type.count_all(pieces, how.judged, arrivals)
    return partners, _in_order(kept, len(arrivals.streams))


def _missing_by_type(
    shed: ShedLog, arrivals: Arrivals, spec: JoinSpec, left_out: LeftOutLog | None, warmup: int | None
) -> tuple[tuple[Integers, ...], Integers]:
    """What is missing of a join that gives more than pairs, and the record that each result is put down to."""
    how = by_type.type_of(spec)
    if is_by_ranges(spec):
        partners = {stream: partner_counts(arrivals, spec.windows, stream) for stream in how.judged}
        lost = by_type.Missing(*pairs_with_records(losses(shed, arrivals, spec.windows)), partners)
    else:
        partners, _ = by_type.count_all(ExactJoin(arrivals, spec).results(), how.judged, arrivals)
        lost = by_type.Missing(*_judged(shed, arrivals, spec, left_out, None), partners)
    rows, records = by_type.missing(how, lost, shed, arrivals)
    some = by_type.since(how, arrivals, rows, warmup)
    order = np.lexsort([column[some] for column in rows][::-1])
    return tuple(column[some][order] for column in rows), records[some][order]


def is_by_ranges(spec: JoinSpec) -> bool:
    """Whether what is missing can be found without the exact join."""
    graph = spec.plan().graph
    keyed = len(spec.names) == len(STREAMS) and len(graph.equalities) == 1 and not graph.thetas
    return keyed and spec.where is None and spec.selective is None and spec.dual is None


def _judged(
    shed: ShedLog, arrivals: Arrivals, spec: JoinSpec, left_out: LeftOutLog | None, warmup: int | None
) -> tuple[tuple[Integers, ...], Integers]:
    """The missing results, and the record of the shed log that each is put down to."""
    rows = [arrivals.rows(stream) for stream in arrivals.streams]
    causes = Causes.of(shed, left_out or LeftOutLog((), spec.names), spec.windows, rows)
    if _counts_let_in(spec):
        arrivals = _let_in(arrivals, shed)
    found, records = [], []
    for result in ExactJoin(arrivals, spec).results():
        some = _since(arrivals, result, warmup)
        record = causes.records(arrivals, some)
        found.append(_numbers(arrivals, tuple(rows[record != NONE] for rows in some)))
        records.append(record[record != NONE])
    columns = [np.concatenate([np.empty(0, np.int64), *(piece[one] for piece in found)]) for one in range(len(rows))]
    order = np.lexsort(columns[::-1])
    return tuple(column[order] for column in columns), np.concatenate([np.empty(0, np.int64), *records])[order]


def _checked(shed: object, spec: JoinSpec, left_out: object) -> ShedLog:
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    if not isinstance(shed, ShedLog):
        raise InputError(f"shed must be the ShedLog of a run, not {type(shed).__name__}")
    if left_out is not None and not isinstance(left_out, LeftOutLog):
        raise InputError(f"left_out must be the LeftOutLog of a run, not {type(left_out).__name__}")
    if left_out is None and (spec.selective is not None or spec.dual is not None):
        raise InputError("left_out must be given for a join with selective or dual: what rows were not compared with")
    return shed


def arrivals_of(spec: JoinSpec, tables: Sequence[TableLike]) -> Arrivals:
    """The tables of all streams, as one push of them arrives."""
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    if len(tables) != len(spec.names):
        raise InputError(f"more must have the tables of {len(spec.names) - 2} streams, not of {len(tables) - 2}")
    plan, named = spec.plan(), dict(zip(spec.names, tables, strict=True))
    if plan.on is not None:
        batch = plan.on.interleaved(named, spec.names, (0,) * len(tables), checked=plan.checked)
    else:
        columns = dict(zip(spec.names, plan.graph.columns, strict=True))
        batch = Batch.of_streams(named, columns, checked=plan.checked)
    return Arrivals.pushed([batch], len(tables))


def _counts_let_in(spec: JoinSpec) -> bool:
    """Whether row windows count the rows that were let in, as dual2006 has it."""
    return spec.dual is not None and any(isinstance(window, RowWindow) for window in spec.windows)


def _let_in(arrivals: Arrivals, shed: ShedLog) -> Arrivals:
    """Without the rows that were dropped."""
    check_log("shed", shed, [arrivals.rows(stream) for stream in arrivals.streams])
    kept = [np.ones(arrivals.rows(stream), np.bool_) for stream in arrivals.streams]
    for stream, mask in enumerate(kept):
        mask[shed.seq[(shed.stream == stream) & (shed.why == DROPPED)]] = False
    return arrivals.only(kept)


def _since(arrivals: Arrivals, result: tuple[Integers, ...], warmup: int | None) -> tuple[Integers, ...]:
    """The results that were produced at a time or later."""
    if warmup is None:
        return result
    latest = np.max([arrivals.ts[stream][rows] for stream, rows in enumerate(result)], axis=0)
    return tuple(rows[latest >= warmup] for rows in result)


def _numbers(arrivals: Arrivals, result: tuple[Integers, ...]) -> tuple[Integers, ...]:
    return tuple(arrivals.number[stream][rows] for stream, rows in enumerate(result))


def _in_order(pieces: Sequence[tuple[Integers, ...]], streams: int) -> tuple[Integers, ...]:
    """All pieces, by the row numbers of the first stream, then of the second, ..."""
    columns = [np.concatenate([np.empty(0, np.int64), *(piece[one] for piece in pieces)]) for one in range(streams)]
    order = np.lexsort(columns[::-1])
    return tuple(column[order] for column in columns)
