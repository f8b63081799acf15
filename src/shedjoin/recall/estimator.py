"""What all estimators of live recall have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from shedjoin.batch import STREAMS, Batch
from shedjoin.engine.output import Output, ShedLog
from shedjoin.errors import InputError, SpecError
from shedjoin.recall.estimate import RecallEstimate, check_level, combine
from shedjoin.spec import JoinSpec, check_seed

#: Decayed counts are rescaled when a pair found now counts this many times as much as one in the first push.
LARGEST_WEIGHT = 2.0**100


class Estimator(ABC):
    """Estimates the recall of a join from a bounded sample of its rows. `LiveRecall` has the parameters."""

    #: The default of `rows`, and the least.
    ROWS: ClassVar[int] = 4096
    LEAST_ROWS: ClassVar[int] = 16

    def __init__(
        self,
        spec: JoinSpec,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        check_seed(seed)
        most = self.ROWS if rows is None else rows
        if isinstance(most, bool) or not isinstance(most, int) or not self.LEAST_ROWS <= most <= 2**24:
            raise SpecError(f"rows must be a whole number from {self.LEAST_ROWS} to 2**24, not {rows!r}")
        check_level(level)
        if isinstance(recent, bool) or not isinstance(recent, int | float) or not 0.1 <= recent < 1e9:
            raise SpecError(f"recent must be a number of pushes from 0.1 to 1e9, not {recent!r}")
        spec.plan(part)  # refuses a part of a join that is not split like this
        self._most, self._level, self._half_life = most, float(level), float(recent)

    def follow(
        self,
        batch: Batch,
        out: Output,
        clocks: Sequence[int | None] = (),
        arrived: Sequence[int] | None = None,
    ) -> None:
        """Update the estimate with a push, its output, and what the engine was told with it."""
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
        """The pieces of a push as they come, after `begin`; the estimate follows them."""
        logs: list[ShedLog] = []
        late = 0
        names: Sequence[str] = STREAMS
        for out in pieces:
            self.deliver(out)
            if len(out.shed):
                logs.append(out.shed)
            late += out.stats["late"]
            names = out.names
            yield out
        self.set_clocks(clocks, arrived)
        self.watch(batch, one_log(logs, names), late)

    def begin(self, batch: Batch) -> None:  # noqa: B027 - not all estimators look at rows this early
        """Begin a push. Its output follows: `followed`, or `deliver` for each piece, then `set_clocks` and `watch`."""

    @abstractmethod
    def deliver(self, out: Output) -> None:
        """Count the results of one piece of output."""

    def set_clocks(  # noqa: B027 - the rows that are watched may say enough
        self, clocks: Sequence[int | None], arrived: Sequence[int] | None = None
    ) -> None:
        """What the engine is told with a push: the clocks and numbers of rows of the streams as a whole."""

    @abstractmethod
    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """Process the rows of a push, its shed log and its number of late rows, after `deliver` has counted its results."""

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start. With `recent`, older pushes have less weight."""
        return combine([self.sums()], self._level, recent=recent)

    @abstractmethod
    def sums(self) -> dict[str, float]:
        """The sums behind the estimate, with the names of `LIVE_COLUMNS`. The sums of shards can be added."""

    @property
    @abstractmethod
    def remembered(self) -> int:
        """The number of rows in the sample."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The estimator between two pushes as bytes, with a version and a checksum."""

    @abstractmethod
    def load(self, data: bytes) -> None:
        """Go on from `to_bytes()`, with an estimator that has not begun."""

    @classmethod
    def from_bytes(
        cls,
        spec: JoinSpec,
        data: bytes,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
    ) -> Self:
        """Restore an estimator from `to_bytes()`. The budget, the level and the half-life may have changed."""
        live = cls(spec, seed, rows, level, recent)
        live.load(data)
        return live


def one_log(logs: Sequence[ShedLog], names: Sequence[str]) -> ShedLog:
    """The logs of the pieces of a push as one. Most pushes have one: its records are put together once."""
    return logs[0] if len(logs) == 1 else ShedLog((piece for log in logs for piece in log._pieces.parts), names)
