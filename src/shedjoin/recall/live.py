"""Live recall of any join: chooses the estimator that fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shedjoin.batch import STREAMS, Batch
from shedjoin.engine.output import Output
from shedjoin.errors import SpecError
from shedjoin.recall.estimate import RecallEstimate
from shedjoin.recall.estimator import Estimator
from shedjoin.recall.many import MultiRecall
from shedjoin.recall.pairs import PairRecall
from shedjoin.recall.sampled import SampledRecall
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow


class LiveRecall:
    """Estimates recall while a join runs, from a bounded sample of the rows.

    Two streams on a key have `PairRecall`. More streams on one column within time windows have `MultiRecall`. All other joins
    have `SampledRecall`: predicates, join graphs, selective processing, queues, slow CPUs, dual windows, lazy evaluation.

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

    def __init__(
        self,
        spec: JoinSpec,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        *,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        if not isinstance(spec, JoinSpec):
            raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
        self.estimator: Estimator = estimator_of(spec)(spec, seed, rows, level, recent, part)

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
        self.estimator.follow(batch, out, clocks, arrived)

    def begin(self, batch: Batch) -> None:
        """Begin a push whose output comes in pieces: `followed` has them."""
        self.estimator.begin(batch)

    def followed(
        self,
        batch: Batch,
        pieces: Iterable[Output],
        clocks: Sequence[int | None] = (),
        arrived: Sequence[int] | None = None,
    ) -> Iterator[Output]:
        """The pieces of a push as they come (`Engine.chunks`), after `begin`. Take them all.

        `clocks` and `arrived` are what the engine was told with the push.
        """
        return self.estimator.followed(batch, pieces, clocks, arrived)

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start. With `recent`, older pushes have less weight."""
        return self.estimator.estimate(recent=recent)

    def sums(self) -> dict[str, float]:
        """The sums behind the estimate, with the names of `LIVE_COLUMNS`. The sums of shards can be added."""
        return self.estimator.sums()

    @property
    def remembered(self) -> int:
        """The number of rows in the sample."""
        return self.estimator.remembered

    def to_bytes(self) -> bytes:
        """The estimator between two pushes as bytes, with a version and a checksum."""
        return self.estimator.to_bytes()

    def load(self, data: bytes) -> None:
        """Go on from `to_bytes()`. Nothing may have been followed yet."""
        self.estimator.load(data)

    @classmethod
    def from_bytes(
        cls,
        spec: JoinSpec,
        data: bytes,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        *,
        part: tuple[int, int] = (0, 1),
    ) -> LiveRecall:
        """Restore an estimator from `to_bytes()`. The budget, the level and the half-life may have changed."""
        live = cls(spec, seed, rows, level, recent, part=part)
        live.load(data)
        return live


def estimator_of(spec: JoinSpec) -> type[Estimator]:
    """The estimator that fits a join."""
    plan = spec.plan()
    if spec.selective is not None or plan.admission is not None or spec.evaluate_every:
        return SampledRecall
    if len(spec.names) == len(STREAMS):
        return PairRecall if plan.keyed else SampledRecall
    by_time = all(isinstance(window, TimeWindow) for window in spec.windows)
    return MultiRecall if isinstance(spec.on, str) and by_time else SampledRecall
