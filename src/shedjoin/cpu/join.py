"""PredicateJoin: a window join on any predicate, under a CPU budget and a memory budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from shedjoin.batch import ROW_BYTES
from shedjoin.budget import Budget
from shedjoin.cpu import codes
from shedjoin.cpu.plan import Plan
from shedjoin.cpu.settings import Deadline, Queue, Selective, VirtualCpu
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.errors import SpecError
from shedjoin.policies import Policy, Rand, Simp, SimpProb
from shedjoin.predicates import PREDICATES, Predicate
from shedjoin.predicates.codes import INDEXES
from shedjoin.window import TimeWindow, check_duration

if TYPE_CHECKING:
    from shedjoin.cpu.engine import PredicateEngine

STREAMS = 2
#: What makes the priority of a stored tuple, for each policy that needs no key.
POLICIES: dict[type[Policy], tuple[int, int]] = {
    Rand: (codes.RANDOM, codes.BY_IMPORTANCE),
    Simp: (codes.LOWEST, codes.BY_IMPORTANCE),
    SimpProb: (codes.LOWEST, codes.BY_MATCHES),
}


@dataclass(frozen=True, slots=True)
class PredicateJoin:
    """A sliding-window join of two streams on any predicate.

    Parameters
    ----------
    window
        `TimeWindow`; one for both streams, or a pair.
    predicate
        `Equal`, `Band`, `Theta`, `SameSet`, `Subset`, `Superset`, `Overlap` or `InnerProduct`.
    index
        ``"lists"`` (time-ordered lists of items, values or buckets), ``"scan"``, or None: lists where they help.
    selective
        Compare rows with the most profitable part of the windows when the CPU is short. None: always with all.
    cpu
        `VirtualCpu` for experiments, `Deadline` for production. None: as fast as it goes.
    queue
        What happens to rows that the virtual CPU is too slow for. None: they wait.
    budget, policy
        The hard cap on stored tuples and who stays: `Rand`, `Simp` or `SimpProb` (importance times the partners met on
        arrival, the default).
    importance, lateness, max_skew
        As in `JoinSpec`.

    Examples
    --------
    >>> from shedjoin.predicates import Overlap
    >>> join = PredicateJoin(TimeWindow(10), Overlap("words", at_least=2))
    >>> out = join.build().push(left={"words": [[1, 2, 3], [4]]}, right={"words": [[2, 3], [1, 4]]})
    >>> out.left, out.right
    (array([0]), array([0]))
    """

    window: TimeWindow | tuple[TimeWindow, TimeWindow]
    predicate: Predicate
    index: str | None = None
    selective: Selective | None = None
    cpu: VirtualCpu | Deadline | None = None
    queue: Queue | None = None
    budget: Budget | None = None
    policy: Policy | None = None
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None

    def __post_init__(self) -> None:
        windows = self.window if isinstance(self.window, tuple) else (self.window,) * STREAMS
        if len(windows) != STREAMS or not all(isinstance(one, TimeWindow) for one in windows):
            raise SpecError(f"PredicateJoin.window must be a TimeWindow, or a pair of them, not {self.window!r}")
        if not isinstance(self.predicate, Predicate):
            known = ", ".join(kind.__name__ for kind in PREDICATES.values())
            raise SpecError(f"PredicateJoin.predicate must be a predicate ({known}), not {self.predicate!r}")
        self._check_index()
        _check_kind("selective", self.selective, Selective)
        _check_kind("cpu", self.cpu, VirtualCpu, Deadline)
        _check_kind("queue", self.queue, Queue)
        _check_kind("budget", self.budget, Budget)
        if self.importance not in IMPORTANCE:
            raise SpecError(f"PredicateJoin.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")
        check_duration("PredicateJoin.lateness", self.lateness)
        if self.max_skew is not None:
            check_duration("PredicateJoin.max_skew", self.max_skew)
        self._check_cpu()
        self._check_memory()

    def _check_index(self) -> None:
        if self.index is None:
            object.__setattr__(self, "index", "lists" if self.predicate.indexable else "scan")
        if self.index not in INDEXES:
            raise SpecError(f"PredicateJoin.index must be one of {', '.join(INDEXES)} or None, not {self.index!r}")
        if self.index == "lists" and not self.predicate.indexable:
            raise SpecError(f"PredicateJoin.index must be 'scan': lists cannot serve {type(self.predicate).__name__}")

    def _check_cpu(self) -> None:
        if self.queue is not None and not isinstance(self.cpu, VirtualCpu):
            raise SpecError("PredicateJoin.queue needs cpu=VirtualCpu(...): where nothing is slow, nothing waits")
        if isinstance(self.cpu, Deadline) and self.selective is None:
            raise SpecError(
                "PredicateJoin.cpu=Deadline(...) needs selective=Selective(...): something must give when time is short"
            )
        if self.queue is not None and self.queue.drop == "semantic" and self.index == "scan":
            raise SpecError("Queue.drop='semantic' needs an index: its lists are the statistics")
        if self.queue is not None and self.queue.integrated and self.budget is None:
            raise SpecError("Queue.integrated needs a budget that queue and memory share")

    def _check_memory(self) -> None:
        if self.policy is not None and self.budget is None:
            raise SpecError("PredicateJoin.policy says who stays within a budget: give one")
        if self.budget is None:
            return
        if self.budget.unit != "tuples":
            raise SpecError("PredicateJoin.budget must be in tuples: Budget(tuples=...)")
        if self.policy is None:
            object.__setattr__(self, "policy", SimpProb())
        if type(self.policy) not in POLICIES:
            known = ", ".join(kind.__name__ + "()" for kind in POLICIES)
            raise SpecError(f"PredicateJoin.policy must be one of {known}, which need no key, not {self.policy!r}")
        if self.policy not in [kind() for kind in POLICIES]:
            name = type(self.policy).__name__
            raise SpecError(
                f"PredicateJoin.policy must be {name}() without settings, not {self.policy!r}: partners are those met on arrival"
            )
        self.budget.caps(STREAMS, ROW_BYTES)
        if self.queue is not None and self.queue.integrated and self.budget.allocation != "variable":
            raise SpecError("Queue.integrated needs Budget(..., allocation='variable'): there is one order for all")

    @property
    def windows(self) -> tuple[TimeWindow, TimeWindow]:
        """The window of each stream."""
        return self.window if isinstance(self.window, tuple) else (self.window, self.window)

    def build(
        self, seed: int = 0, *, warmup: int | None = None, emit: bool = True, part: tuple[int, int] = (0, 1)
    ) -> PredicateEngine:
        """A new engine. The same join, seed and input give the same output (without a deadline).

        `warmup`: results before this time are neither given nor counted as matches. `emit=False` counts without giving pairs.
        `part=(k, n)`: the k-th of n engines that split the join between them (SplitJoin). Each is pushed all rows, in the same
        order; each row is stored in one engine and probes all, so that together they give every pair once.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise SpecError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")
        from shedjoin.cpu.engine import PredicateEngine

        return PredicateEngine(self.plan(part), seed, warmup=codes.NEVER if warmup is None else warmup, emit=emit)

    def resume(self, snapshot: bytes, *, part: tuple[int, int] = (0, 1)) -> PredicateEngine:
        """Go on from `engine.snapshot()`. The budget may be another one; everything else must be as it was."""
        from shedjoin.cpu.engine import PredicateEngine

        return PredicateEngine.resume(self.plan(part), snapshot)

    def with_budget(self, budget: Budget | None) -> PredicateJoin:
        """The same join within another memory budget."""
        return replace(self, budget=budget, policy=self.policy if budget is not None else None)

    def plan(self, part: tuple[int, int] = (0, 1)) -> Plan:
        """The plain settings the engine runs by."""
        _check_part(part)
        windows = self.windows
        victim, priority = (
            POLICIES[type(self.policy)] if self.policy is not None else (codes.NO_ONE, codes.BY_IMPORTANCE)
        )
        if self.queue is not None and self.queue.integrated:
            victim, priority = codes.LOWEST, codes.BY_STATISTICS
        assert self.index is not None  # __post_init__ fills it in
        return Plan(
            predicate=self.predicate,
            index=self.index,
            sizes=(windows[0].length, windows[1].length),
            selective=self.selective,
            cpu=self.cpu if isinstance(self.cpu, VirtualCpu) else None,
            queue=self.queue,
            budget=self.budget,
            victim=victim,
            priority=priority,
            importance=self.importance,
            lateness=self.lateness,
            max_skew=self.max_skew,
            deadline=self.cpu.seconds if isinstance(self.cpu, Deadline) else None,
            part=part,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        windows = self.window if isinstance(self.window, tuple) else (self.window,)
        times = [{"time": one.length} for one in windows]
        data: dict[str, Any] = {"window": times[0] if len(times) == 1 else times}
        data["predicate"] = {"name": self.predicate.name, **_settings(self.predicate)}
        for name in ("selective", "queue", "budget"):
            if getattr(self, name) is not None:
                data[name] = _settings(getattr(self, name))
        if self.cpu is not None:
            data["cpu"] = {"name": _CPUS[type(self.cpu)], **_settings(self.cpu)}
        if self.policy is not None:
            data["policy"] = self.policy.name
        data |= {"index": self.index, "importance": self.importance, "lateness": self.lateness}
        if self.max_skew is not None:
            data["max_skew"] = self.max_skew
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PredicateJoin:
        """The join that `to_dict` described."""
        _only("PredicateJoin", data, [field.name for field in fields(cls)])
        for name in ("window", "predicate"):
            if name not in data:
                raise SpecError(f"PredicateJoin needs a {name}")
        made: dict[str, Any] = dict(data)
        window = data["window"]
        made["window"] = tuple(map(_window, window)) if isinstance(window, list | tuple) else _window(window)
        made["predicate"] = _named("predicate", data["predicate"], PREDICATES)
        for name, kind in (("selective", Selective), ("queue", Queue), ("budget", Budget)):
            if data.get(name) is not None:
                made[name] = _made(name, kind, data[name])
        if data.get("cpu") is not None:
            made["cpu"] = _named("cpu", data["cpu"], {name: kind for kind, name in _CPUS.items()})
        if data.get("policy") is not None:
            made["policy"] = _named("policy", {"name": data["policy"]}, {kind.name: kind for kind in POLICIES})
        return cls(**made)


def _check_part(part: Any) -> None:
    whole = isinstance(part, tuple) and len(part) == 2 and all(type(one) is int for one in part)
    if not whole or not 0 <= part[0] < part[1]:
        raise SpecError(f"part must be (which, of how many), such as (0, 2) and (1, 2), not {part!r}")


_CPUS: dict[type, str] = {VirtualCpu: "virtual", Deadline: "deadline"}


def _check_kind(name: str, value: Any, *kinds: type) -> None:
    if value is not None and not isinstance(value, kinds):
        known = " or a ".join(kind.__name__ for kind in kinds)
        raise SpecError(f"PredicateJoin.{name} must be a {known} or None, not {value!r}")


def _settings(part: Any) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None
    }


def _only(what: str, data: Any, known: list[str]) -> None:
    if not isinstance(data, Mapping):
        raise SpecError(f"{what} must be a table of settings, not {data!r}")
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        raise SpecError(f"{what} has no setting {unknown[0]!r}; it has {', '.join(known)}")


def _window(data: Any) -> TimeWindow:
    _only("window", data, ["time"])
    if "time" not in data:
        raise SpecError("window must be {'time': length}")
    return TimeWindow(data["time"])


def _made(what: str, kind: type, settings: Any) -> Any:
    _only(what, settings, [field.name for field in fields(kind)])
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    try:
        return kind(**settings)
    except TypeError as reason:
        raise SpecError(f"{what} does not take these settings: {reason}") from None


def _named(what: str, data: Any, registry: Mapping[str, type[Any]]) -> Any:
    if not isinstance(data, Mapping) or data.get("name") not in registry:
        raise SpecError(f"{what} must be a table with a name, one of {', '.join(registry)}, not {data!r}")
    settings = {name: value for name, value in data.items() if name != "name"}
    return _made(what, registry[data["name"]], settings)
