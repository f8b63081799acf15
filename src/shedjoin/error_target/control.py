"""Memory that follows the error of a sum.

A pilot runs in parallel: the same join with an eighth of the memory and independent random numbers. After each window its
results say how large the sums of groups are, and which variance they would have with more memory; what it stores says which
memory that takes. Nothing that decides about memory looks at the join's own random numbers, so its sums stay unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shedjoin.batch import ROW_BYTES, Batch
from shedjoin.budget import Budget
from shedjoin.error_target.sums import Groups, Open, Sums
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.estimates import check_level
from shedjoin.policies import Sample
from shedjoin.spec import JoinSpec
from shedjoin.target import progress

if TYPE_CHECKING:  # a driver reads targets, and has no use for engines
    from shedjoin.engine.engine import Engine
    from shedjoin.engine.output import Output

#: The pilot's part of the limit, and the fewest effective rows that it must have of a group.
PILOT, FEWEST = 1 / 8, 8.0
#: Errors are held below this part of what is allowed, and variances are taken to be higher by this many standard errors.
MARGIN, CAUTION = 0.75, 1.0
#: The most that memory shrinks at once, and the least change.
SHRINK, LEAST = 0.7, 0.05
#: Of what is known of sums, this part stays with each window.
FADE = 0.8
#: Results of the pilot are looked at in pieces of this many.
PIECE = 1 << 14
_NAMES = ("by", "sum", "within", "level")
Column = Callable[["Output"], ArrayLike]


@dataclass(frozen=True, slots=True)
class ErrorTarget:
    """How wide the intervals of sums may be.

    Parameters
    ----------
    within
        Half of the usual interval of each group, 1.96 standard errors on each side for a level of 0.95, as a part of its sum over
        the results of one window's time: 0.02 is 2%.
    by
        Names of columns of the results that make groups. None: one group. On Spark only.
    sum
        The column that is summed. None: results are counted. On Spark only.
    level
        Of the intervals.

    Examples
    --------
    >>> ErrorTarget.of({"by": "campaign", "sum": "price", "within": 0.02})
    ErrorTarget(within=0.02, by=('campaign',), sum='price', level=0.95)
    """

    within: float
    by: tuple[str, ...] = ()
    sum: str | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        given = self.within
        if isinstance(given, bool) or not isinstance(given, float | int) or not 0.0 < given < 1.0:
            raise SpecError(f"error: within must be above 0 and below 1, such as 0.02 for 2%, not {given!r}")
        by = (self.by,) if isinstance(self.by, str) else self.by
        if not isinstance(by, tuple | list) or not all(isinstance(name, str) and name for name in by):
            raise SpecError(f"error: by must be a column's name or a list of them, not {self.by!r}")
        if self.sum is not None and not (isinstance(self.sum, str) and self.sum):
            raise SpecError(f"error: sum must be a column's name, not {self.sum!r}")
        check_level(self.level)
        object.__setattr__(self, "by", tuple(by))

    @classmethod
    def of(cls, value: Any) -> ErrorTarget:
        """From a number, a table or an `ErrorTarget`."""
        if isinstance(value, ErrorTarget):
            return value
        if isinstance(value, float) and not isinstance(value, bool):
            return cls(value)
        if not isinstance(value, Mapping) or "within" not in value or not {*value} <= {*_NAMES}:
            raise SpecError(
                f"error must be a table such as {{'by': 'campaign', 'sum': 'price', 'within': 0.02}}, not {value!r}"
            )
        by = value.get("by") or ()
        return cls(
            value["within"], tuple(by) if isinstance(by, list) else by, value.get("sum"), value.get("level", 0.95)
        )

    def to_dict(self) -> dict[str, Any]:
        return {"within": self.within, "by": list(self.by), "sum": self.sum, "level": self.level}


def check_error(spec: JoinSpec) -> None:
    """Refuse joins whose memory cannot follow an error."""
    if spec.budget is None:
        raise SpecError("error: memory needs an upper limit, so give a budget as well")
    if not isinstance(spec.policy, Sample):
        raise SpecError(f"error: only results of Sample() have a known error, not those of {spec.policy!r}")
    if len(spec.names) != 2:
        raise SpecError(f"error: memory follows the error of joins of two streams, not of {len(spec.names)}")
    if _pilot_budget(spec) is None:
        raise SpecError(f"error: an eighth of the budget goes to a pilot, and {spec.budget!r} leaves it no room")


def _pilot_budget(spec: JoinSpec) -> Budget | None:
    assert spec.budget is not None
    part = replace(spec.budget, **{spec.budget.unit: max(int(spec.budget.total * PILOT), 1)})  # type: ignore[arg-type]
    try:
        part.caps(len(spec.names), ROW_BYTES)
    except SpecError:
        return None
    return part


def _pilot_of(spec: JoinSpec, budget: Budget | None) -> JoinSpec:
    """The join of the pilot, which asks nothing else."""
    return replace(spec.with_budget(budget), what_if=None)


@dataclass
class ErrorControl:
    """Holds one join to an error target. Call `follow` after each push.

    Parameters
    ----------
    target
        What is to be held: an `ErrorTarget`, or what `ErrorTarget.of` takes.
    spec
        The join. Its budget is the upper limit of all memory, the pilot's included.
    seed
        That of the join. The pilot's follows from it, and is another one.
    part
        As in `JoinSpec.build`.

    Attributes
    ----------
    share
        The part of the limit that the join itself has now.
    limited
        Whether errors are expected to be beyond the target, and memory cannot grow: the limit stops it.
    error
        The error that is expected of the worst group with the memory of now, as a part of its sum; None: nothing is known yet.
    groups, small
        How many groups are held to the target, and how many have too few rows in the pilot to be.
    """

    target: ErrorTarget
    spec: JoinSpec
    seed: int = 0
    part: tuple[int, int] = (0, 1)
    share: float = field(default=1.0, init=False)
    limited: bool = field(default=False, init=False)
    error: float | None = field(default=None, init=False)
    groups: int = field(default=0, init=False)
    small: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.target = ErrorTarget.of(self.target)
        check_error(self.spec)
        self.share = 1.0 - PILOT
        self._limit = self.spec.budget
        self._memories = len(self._limit.caps(2, ROW_BYTES)) if self._limit is not None else 1
        pilot = _pilot_of(self.spec, _pilot_budget(self.spec))
        self.pilot = pilot.build(seed=(self.seed + 2**63) % 2**64, part=self.part)
        self._sums = Sums(self._memories)
        self._known = Groups.none(self._memories)
        self._windows = 0.0
        self._since: int | None = None

    @property
    def budget(self) -> Budget:
        """What the join may store now."""
        assert self._limit is not None
        return self.part_of(self._limit)

    def part_of(self, limit: Budget) -> Budget:
        """What the join may store of a limit."""
        least = 16 * (1 if limit.unit == "tuples" else ROW_BYTES)
        total = min(max(int(limit.total * self.share), least), limit.total)
        return replace(limit, **{limit.unit: total})  # type: ignore[arg-type]

    def fit(self, limit: Budget) -> None:
        """The limit has changed: the pilot's memory follows it."""
        small = _pilot_budget(self.spec.with_budget(limit))
        if small is not None and limit != self._limit:
            self.pilot.set_budget(small)
            self._limit = limit

    # -------------------------------------------------------------------------------------------------------- to follow

    def follow(
        self, engine: Engine, batch: Batch, group: Column | None = None, value: Column | None = None
    ) -> Output | None:
        """See what was pushed, and change the engine's budget if it is time to. Returned is what had to go.

        Parameters
        ----------
        engine
            The join.
        batch
            The rows of the push, as `Engine.batch` made them.
        group, value
            Of results (an `Output`): the group of each, a whole number, and what is summed. None: one group; results count.
        """
        self.see(batch, group, value)
        return engine.set_budget(self.budget) if self.look() else None

    def see(
        self,
        batch: Batch,
        group: Column | None = None,
        value: Column | None = None,
        *,
        clocks: Sequence[int | None] | None = None,
        arrived: Sequence[int] | None = None,
    ) -> None:
        """Rows as the join gets them; the pilot joins them as well."""
        for out in self.pilot.chunks(batch, limit=PIECE, clocks=clocks, arrived=arrived):
            if not len(out):
                continue
            groups = np.zeros(len(out), np.int64) if group is None else np.asarray(group(out), np.int64)
            values = np.ones(len(out)) if value is None else np.asarray(value(out), np.float64)
            self._sums.add(out.weight, out.stored, values, groups)
        stored = [2 * self.pilot.live(stream) + stream for stream in range(2)]
        self._sums.close(np.concatenate(stored))

    def look(self) -> bool:
        """Whether the share has changed. It may at the end of each window."""
        now, window = progress(self.pilot, self.spec)
        if now is None:
            return False
        if self._since is None:
            self._since = now
        if now - self._since < window:
            return False
        self._sums.close()
        self._known = self._known.plus(self._sums.groups, FADE).lately()
        self._windows = self._windows * FADE + (now - self._since) / window
        self._since = now
        self._sums = Sums(self._memories)
        before, wanted = self.share, self._wanted()
        if abs(wanted / before - 1.0) < LEAST:
            return False
        self.share = max(wanted, before * SHRINK)
        self.error = self._worst(self.share)
        return True

    # -------------------------------------------------------------------------------------------------- which memory

    def _wanted(self) -> float:
        """The least share of the limit that holds the target."""
        known, most = self._known, 1.0 - PILOT
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = np.where(known.square > 0.0, known.whole**2 / known.square, 0.0)
        self._counts = (rows >= FEWEST) & (known.total != 0.0)
        self._stored = self.pilot.inverses()
        self.groups, self.small = int(self._counts.sum()), int((~self._counts).sum())
        self.error = self._worst(self.share)
        self.limited = self._worst(most) > self.target.within
        if self._worst(PILOT) <= MARGIN * self.target.within:
            return PILOT
        low, high = PILOT, most
        for _ in range(20):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._worst(middle) <= MARGIN * self.target.within else (middle, high)
        return high

    def _worst(self, share: float) -> float:
        """Half of the widest interval with this memory, as a part of the sum."""
        if not self._counts.any():
            return 0.0 if not self._known.group.size else np.inf
        assert self._limit is not None
        caps = [int(cap * share) for cap in self._limit.caps(2, ROW_BYTES)]
        ratios = np.array([self._ratio(memory, cap) for memory, cap in enumerate(caps)])
        total = self._known.total[self._counts] / self._windows
        expected, doubt = (one[self._counts] for one in self._known.at(ratios))
        variance = (expected + CAUTION * doubt) / self._windows
        reach = NormalDist().inv_cdf(0.5 + self.target.level / 2.0)
        return float(np.max(reach * np.sqrt(variance) / np.abs(total)))

    def _ratio(self, memory: int, cap: int) -> float:
        """By which factor a memory's threshold is lower than the pilot's: on average as much is stored as there is room for."""
        mine = self._stored.stream == memory if self._memories > 1 else slice(None)
        inverse = np.sort(self._stored.inverse[mine])
        size = np.ones(inverse.size)
        if self._limit is not None and self._limit.unit == "bytes":
            size = self._stored.bytes[mine][np.argsort(self._stored.inverse[mine], kind="stable")].astype(float)
        policy = self.spec.policy
        keep = policy.keep * cap if isinstance(policy, Sample) else 0.0
        whole = size * inverse
        kept = np.clip(keep - (np.cumsum(whole) - whole), 0.0, whole) / np.maximum(whole, 1e-300)
        left, room = size * (1.0 - kept), cap - keep
        if (left * inverse).sum() <= room:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2.0
            stored = float((left * np.minimum(inverse, 1.0 / max(middle, 1e-300))).sum())
            low, high = (low, middle) if stored <= room else (middle, high)
        return high

    # ------------------------------------------------------------------------------------------------- as plain data

    def to_bytes(self) -> bytes:
        """What the control knows, to go on from; with a version and a checksum."""
        columns: dict[str, NDArray[Any]] = {"pilot": np.frombuffer(self.pilot.snapshot(), np.int8)}
        for called, held in (("known", self._known), ("new", self._sums.groups), ("open", self._sums.open)):
            columns |= {f"{called} {name}": column for name, column in held._asdict().items()}
        extra = {
            "share": self.share,
            "limited": self.limited,
            "error": self.error,
            "groups": self.groups,
            "small": self.small,
            "windows": self._windows,
            "since": self._since,
            "limit": None if self._limit is None else self._limit.total,
        }
        from shedjoin.engine import snapshot

        return snapshot.pack(columns, {"memories": self._memories}, extra)

    def load(self, saved: bytes) -> None:
        """Go on from `to_bytes()`; the target may be another one. Call `fit` if the limit is."""
        from shedjoin.engine import snapshot

        signature, extra, columns = snapshot.unpack(saved)
        if signature != {"memories": self._memories}:
            raise SnapshotError("what is saved of the error target is of a join with another allocation of its memory")
        try:
            assert self.spec.budget is not None
            self._limit = replace(self.spec.budget, **{self.spec.budget.unit: int(extra["limit"])})  # type: ignore[arg-type]
            was = _pilot_of(self.spec, _pilot_budget(self.spec.with_budget(self._limit)))
            self.pilot = was.resume(columns["pilot"].tobytes(), part=self.part)
            self._known = Groups(*(columns[f"known {name}"] for name in Groups._fields))
            self._sums.groups = Groups(*(columns[f"new {name}"] for name in Groups._fields))
            self._sums.open = Open(*(columns[f"open {name}"] for name in Open._fields))
            self.share, self.limited = float(extra["share"]), bool(extra["limited"])
            self.error = None if extra["error"] is None else float(extra["error"])
            self.groups, self.small = int(extra["groups"]), int(extra["small"])
            self._windows, self._since = float(extra["windows"]), extra["since"]
        except (KeyError, TypeError, ValueError) as reason:
            raise SnapshotError(f"what is saved of the error target makes no sense: {reason!r}") from None
