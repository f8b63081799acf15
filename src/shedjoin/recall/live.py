"""Live recall of any join. `LiveRecall` chooses the right estimator, and has the common code of all estimators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch
from shedjoin.engine.codes import UNKNOWN
from shedjoin.engine.output import Output, ShedLog
from shedjoin.errors import InputError, SpecError
from shedjoin.meaning import Dials, check_meaning
from shedjoin.recall import saved
from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, check_level, combine
from shedjoin.row_numbers import RowNumbers
from shedjoin.spec import JoinSpec, check_seed
from shedjoin.window import TimeWindow

#: Decayed counts are rescaled when a result found now counts this many times as much as one in the first push.
LARGEST_WEIGHT = 2.0**100


class LiveRecall:
    """Estimates recall while a join runs, from a bounded sample of the rows.

    Two streams on a key have `PairRecall`. More streams on one column within time windows have `MultiRecall`. All other joins
    have `SampledRecall`: predicates, join graphs, selective processing, queues, slow CPUs, dual windows, lazy evaluation.
    `LiveRecall(spec)` makes the one that fits.

    Parameters
    ----------
    spec
        The join whose recall is estimated.
    seed
        The seed of the sample. Shards of one join need different seeds; with equal seeds their errors do not cancel out.
    rows
        The largest number of rows in the sample. None: 4096, and 131,072 for `MultiRecall`, whose rows take 32 bytes each.
    level
        The level of the confidence limits.
    recent
        The half-life of the recent estimate, in pushes that bring rows.
    part
        As in `JoinSpec.build`: for one of several engines that split a join on a predicate between them.
    drops
        Whether rows are dropped before the engine gets them. The batches that are followed then have all rows, in those that are
        pushed dropped ones are null, and their results count as missing. `SampledRecall` follows such joins.

    Examples
    --------
    >>> import shedjoin as sj
    >>> spec = sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=2), sj.Simp(), on=sj.Band("x", within=1))
    >>> engine, live = spec.build(), LiveRecall(spec)
    >>> batch = engine.batch({"left": {"x": [1, 5, 2, 9]}, "right": {"x": [2, 8, 4, 1]}})
    >>> live.follow(batch, engine.push(batch))
    >>> now = live.estimate()
    >>> now.results, now.missing, now.low == now.recall == now.high
    (3, 2.0, True)
    """

    #: The default of `rows`, and the least.
    ROWS: ClassVar[int] = 4096
    LEAST_ROWS: ClassVar[int] = 16

    _signature: dict[str, Any]
    _recent_weight = 1.0  # of a result found now, in the decayed counts; 1 before the first push
    _since: NDArray[np.int64] | None = None  # rows of each stream that came before the estimate began

    def __new__(cls, spec: JoinSpec, *args: Any, **settings: Any) -> Self:
        if not isinstance(spec, JoinSpec):
            raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
        fits = estimator_of(spec, drops=settings.get("drops", False)) if cls is LiveRecall else cls
        return super().__new__(fits)  # type: ignore[return-value]

    def __init__(
        self,
        spec: JoinSpec,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        part: tuple[int, int] = (0, 1),
        *,
        drops: bool = False,
    ) -> None:
        check_meaning("LiveRecall", Dials(how=spec.how, recall=True))
        spec = replace(spec, how="inner", matches=None)  # recall is of the pairs
        self._check(spec)
        check_seed(seed)
        most = self.ROWS if rows is None else rows
        if isinstance(most, bool) or not isinstance(most, int) or not self.LEAST_ROWS <= most <= 2**24:
            raise SpecError(f"rows must be a whole number from {self.LEAST_ROWS} to 2**24, not {rows!r}")
        check_level(level)
        if isinstance(recent, bool) or not isinstance(recent, int | float) or not 0.1 <= recent < 1e9:
            raise SpecError(f"recent must be a number of pushes from 0.1 to 1e9, not {recent!r}")
        spec.plan(part)  # refuses a part of a join that is not split like this
        self._most, self._level, self._half_life = most, float(level), float(recent)
        self._drops = drops
        self._counts_elsewhere = spec.counted_elsewhere
        self._start(spec, seed, part)
        settings = {"estimator": type(self).__name__, **self._settings(spec), "seed": seed, "rows": most, "part": part}
        settings |= {"drops": True} if drops else {}
        self._signature = json.loads(json.dumps(settings))

    # ------------------------------------------------------------------------------------- what each estimator has

    def _check(self, spec: JoinSpec) -> None:
        """Refuse a join that this estimator cannot follow."""

    if TYPE_CHECKING:  # what each estimator has; `LiveRecall(spec)` makes one of them, so this class is not abstract

        def _start(self, spec: JoinSpec, seed: int, part: tuple[int, int]) -> None:
            """Make the state."""
            ...

        def deliver(self, out: Output) -> None:
            """Count the results of one piece of output."""
            ...

        def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
            """Process the rows of a push, its shed log and its number of late rows, after `deliver` has counted its results."""
            ...

        def _sums(self) -> tuple[NDArray[np.float64], list[float]]:
            """Of results, importance, both decayed: delivered, sums of z, (1 - p) z^2, (1 - p) z^3; then shed, unit, late."""
            ...

        @property
        def remembered(self) -> int:
            """The number of rows in the sample."""
            ...

        def _arrays(self) -> dict[str, NDArray[Any]]:
            """The arrays to save. The names are part of the format."""
            ...

        def _numbers(self) -> list[Any]:
            """The numbers to save."""
            ...

        def _restore(self, arrays: Mapping[str, NDArray[Any]], numbers: list[Any], snapshot: bytes) -> None:
            """Go on from what was saved."""
            ...

    def _settings(self, spec: JoinSpec) -> dict[str, Any]:
        """The settings that must not change between saving and loading."""
        return {
            "window": [[window.kind, window.size] for window in spec.windows],
            **{name: getattr(spec, name) for name in ("importance", "lateness", "max_skew", "counted_elsewhere")},
        }

    def _begin(self, batch: Batch) -> None:
        """Begin a push."""

    def drop(self, rows: int) -> None:
        """Count rows of the push that were dropped before the engine got them."""
        if rows:
            raise InputError(
                f"{rows} rows were dropped before the engine: make the estimate with LiveRecall(spec, drops=True)"
            )

    def set_clocks(self, clocks: Sequence[int | None], arrived: Sequence[int] | None = None) -> None:
        """What the engine is told with a push: the clocks and numbers of rows of the streams as a whole."""

    def _snapshot(self) -> bytes:
        """Other bytes to save."""
        return b""

    # ------------------------------------------------------------------------------------------------------- pushes

    def start_at(self, arrived: Sequence[int], clocks: Sequence[int | None]) -> None:
        """Follow an engine that has already run. The estimate covers results of rows that all arrive from now on.

        `arrived` and `clocks` are the engine's. The missed results of earlier rows are not known, so a result of an earlier
        row counts neither as delivered nor as missing.

        Examples
        --------
        >>> import shedjoin as sj
        >>> engine = sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=4), sj.Prob()).build()
        >>> _ = engine.push({"left": {"key": [1, 2]}, "right": {"key": [1, 2]}})
        >>> live = LiveRecall(sj.JoinSpec(sj.TimeWindow(3), sj.Budget(tuples=4), sj.Prob()))
        >>> live.start_at(engine.arrived, engine.clocks)
        >>> batch = engine.batch({"left": {"key": [1], "ts": [2]}, "right": {"key": [1], "ts": [2]}})
        >>> live.follow(batch, engine.push(batch))
        >>> live.estimate().results
        1
        """
        self._since = np.array(arrived, np.int64)
        self.set_clocks(clocks, [0] * len(arrived) if self._counts_elsewhere else None)

    def begin(self, batch: Batch) -> None:
        """Begin a push. Its output follows: `followed`, or `deliver` for each piece, then `set_clocks` and `watch`."""
        self._begin(self._renumbered(batch))

    def _renumbered(self, batch: Batch) -> Batch:
        """The rows of a push by the numbers that they have here."""
        if self._since is None or batch.numbers is None:
            return batch
        numbers = RowNumbers(batch.numbers.seq - self._since[batch.stream], batch.numbers.arrived - self._since)
        return replace(batch, numbers=numbers)

    def _later(self, out: Output) -> Output:
        """The results and records of rows that came since the estimate began, by the numbers that they have here."""
        if self._since is None:
            return out
        new = np.ones(len(out), np.bool_)
        for column, since in zip(out.columns, self._since.tolist(), strict=True):
            new &= column >= since
        columns = tuple(column[new] - since for column, since in zip(out.columns, self._since.tolist(), strict=True))
        return replace(out, columns=columns, importance=out.importance[new], shed=self._later_log(out.shed))

    def _later_log(self, log: ShedLog) -> ShedLog:
        assert self._since is not None
        if not len(log):
            return log
        records = log.records()
        records["seq"] -= self._since[records["stream"]]
        records["seen"] = np.maximum(records["seen"] - self._since, 0)
        return ShedLog([records[records["seq"] >= 0]], log._names)

    def follow(
        self,
        batch: Batch,
        out: Output,
        clocks: Sequence[int | None] = (),
        arrived: Sequence[int] | None = None,
    ) -> None:
        """Update the estimate with a push: call it after every `engine.push(batch)` with its output.

        `clocks` and `arrived` are what the engine was told with the push. After a change of the budget or a flush, call
        ``follow(Batch.of(), out)`` with its output.
        """
        if not isinstance(out, Output):
            raise InputError(f"out must be the Output of a push, not {type(out).__name__}")
        if out.importance.size != out.stats["results"]:
            raise InputError(
                f"out has {out.importance.size} of {out.stats['results']} results: "
                "recall needs an engine that emits all of them"
            )
        self.begin(batch)
        for _ in self.followed(batch, [out], clocks, arrived):
            pass

    def followed(
        self,
        batch: Batch,
        pieces: Iterable[Output],
        clocks: Sequence[int | None] = (),
        arrived: Sequence[int] | None = None,
    ) -> Iterator[Output]:
        """The pieces of a push as they come (`Engine.chunks`), after `begin`. Take them all."""
        logs: list[ShedLog] = []
        late = 0
        names: Sequence[str] = STREAMS
        for out in pieces:
            mine = self._later(_pairs_of(out))
            self.deliver(mine)
            shed = _shed_of(mine.shed)
            if len(shed):
                logs.append(shed)
            late += out.stats["late"]
            names = out.names
            yield out
        if arrived is not None and self._since is not None:
            arrived = (np.array(arrived, np.int64) - self._since).tolist()
        self.set_clocks(clocks, arrived)
        self.watch(self._renumbered(batch), one_log(logs, names), late)

    # ------------------------------------------------------------------------------------------------- the estimate

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start. With `recent`, older pushes have less weight."""
        return combine([self.sums()], self._level, recent=recent)

    def sums(self) -> dict[str, float]:
        """The sums behind the estimate, with the names of `LIVE_COLUMNS`. The sums of shards can be added."""
        sums, others = self._sums()
        sums[2:] /= self._recent_weight ** np.array([1, 1, 2, 3])
        return dict(zip(LIVE_COLUMNS, map(float, [*sums.reshape(-1), *others]), strict=True))

    # ----------------------------------------------------------------------------------------------------- as bytes

    def to_bytes(self) -> bytes:
        """The estimator between two pushes as bytes, with a version and a checksum."""
        head = {"signature": self._signature, "numbers": self._numbers()}
        head |= {} if self._since is None else {"since": self._since.tolist()}
        return saved.to_bytes(head, self._arrays(), self._snapshot())

    def load(self, data: bytes) -> None:
        """Go on from `to_bytes()`, with an estimator that has not begun."""
        head, arrays, snapshot = saved.from_bytes(data, self._arrays())
        saved.check_signature(head["signature"], self._signature)
        self._since = np.array(head["since"], np.int64) if "since" in head else None
        self._restore(arrays, head["numbers"], snapshot)

    @classmethod
    def from_bytes(
        cls,
        spec: JoinSpec,
        data: bytes,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        part: tuple[int, int] = (0, 1),
        *,
        drops: bool = False,
    ) -> Self:
        """Restore an estimator from `to_bytes()`. The budget, the level and the half-life may have changed."""
        live = cls(spec, seed, rows, level, recent, part, drops=drops)
        live.load(data)
        return live


def _pairs_of(out: Output) -> Output:
    """The results that are pairs: recall is that of the inner join."""
    alone = np.zeros(len(out), np.bool_)
    for column in out.columns:
        alone |= column < 0
    if not alone.any():
        return out
    columns = tuple(column[~alone] for column in out.columns)
    return replace(out, columns=columns, importance=out.importance[~alone])


def _shed_of(log: ShedLog) -> ShedLog:
    """The records of rows that were shed: what expired, as far as is known without a partner, cost no pair."""
    unknown = log.why == UNKNOWN
    return ShedLog([log.records()[~unknown]], log._names) if unknown.any() else log


def estimator_of(spec: JoinSpec, *, drops: bool = False) -> type[LiveRecall]:
    """The estimator that fits a join. `drops`: rows are dropped before the engine gets them."""
    from shedjoin.recall.many import MultiRecall  # these are made of `LiveRecall`
    from shedjoin.recall.pairs import PairRecall
    from shedjoin.recall.sampled import SampledRecall

    plan = spec.plan()
    if (
        drops
        or spec.where is not None
        or spec.selective is not None
        or plan.admission is not None
        or spec.evaluate_every
    ):
        return SampledRecall
    if len(spec.names) == len(STREAMS):
        # `Met` stores each tuple by itself. The policy may change while the estimate goes on, so it does not matter here.
        return PairRecall if replace(spec, policy=None).plan().keyed else SampledRecall
    by_time = all(isinstance(window, TimeWindow) for window in spec.windows)
    return MultiRecall if isinstance(spec.on, str) and by_time else SampledRecall


def one_log(logs: Sequence[ShedLog], names: Sequence[str]) -> ShedLog:
    """The logs of the pieces of a push as one. Most pushes have one: its records are put together once."""
    return logs[0] if len(logs) == 1 else ShedLog((piece for log in logs for piece in log._pieces.parts), names)
