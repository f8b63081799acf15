"""MultiJoinSpec: joins of n streams, on a common attribute or along a join graph."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from shedjoin.batch import ROW_BYTES, Table
from shedjoin.budget import Budget
from shedjoin.engine.codes import CUMULATIVE, IMPORTANCE
from shedjoin.engine.nway.graph import Graph, parse
from shedjoin.engine.nway.orders import orders_of
from shedjoin.engine.nway.output import MultiShedLog
from shedjoin.engine.nway.plan import Index, NPlan, Orders
from shedjoin.engine.nway.state import MOST
from shedjoin.engine.nway.statistics import Reordering
from shedjoin.engine.state import NEVER
from shedjoin.errors import SpecError
from shedjoin.plain import only, plain
from shedjoin.policies import POLICIES, KeepAll, Policy, Prob, Prospect
from shedjoin.spec import check_seed, check_warmup
from shedjoin.window import RowWindow, TimeWindow, Window, check_duration
from shedjoin.words import parse_budget, parse_policy, parse_windows

if TYPE_CHECKING:
    from shedjoin.engine.nway.engine import MultiEngine

#: How a window is looked into: an index that grows, no index, or so many hash buckets.
IndexChoice = str | int
INDEXES = ("auto", "scan")


@dataclass(frozen=True, slots=True)
class MultiJoinSpec:
    """A sliding-window join of n streams, exact or under a memory budget.

    A result has one tuple of each stream. All predicates hold between them, and when the newest came, every other was in its
    window. docs/nway.md has the details.

    Parameters
    ----------
    windows
        The streams by name, in their order, and the window of each.
    on
        The name of a column that must be equal in all streams; or predicates: ``"a.x = b.y"``, also with ``<``, ``<=``, ``>``,
        ``>=``, ``!=``, and ``"|a.x - b.y| <= 5"``.
    order
        ``"auto"``: chosen by the cost model from statistics that are measured while the join runs, an order for each origin.
        A list of all streams: one global order, new tuples first (EAGER and LAZY of golab2003). A mapping from each stream
        to a list of all streams: where its new tuples stand is where it stands itself (NAIVE, GENERAL LAZY).
    index
        ``"auto"``: hash indexes that grow with the windows. ``"scan"``: none, nested loops. A number: so many hash
        buckets. Or a mapping from streams to these (a hybrid join).
    evaluate_every
        0: results come with the tuple that completes them. tau: new tuples are joined in rounds; a result is out at most
        tau after its last tuple.
    expire_every
        How often expired tuples are removed (0: always); default: with every evaluation. They join nothing in any case.
    budget, policy, importance, lateness, max_skew
        As in `JoinSpec`. Where memory is short, lazy evaluation comes early: nothing is shed that waits to be joined.
    reordering
        When ``order="auto"`` looks for a better order.

    Examples
    --------
    >>> spec = MultiJoinSpec(windows={"a": TimeWindow(10), "b": TimeWindow(10), "c": RowWindow(5)}, on="key")
    >>> engine = spec.build()
    >>> engine.push({"a": {"key": [1, 2]}, "b": {"key": [2, 1]}, "c": {"key": [2, 2]}}).rows
    array([[1, 0, 0], [1, 0, 1]])
    >>> MultiJoinSpec.from_dict(spec.to_dict()) == spec
    True
    """

    windows: Mapping[str, Window]
    on: str | tuple[str, ...]
    order: str | tuple[str, ...] | Mapping[str, tuple[str, ...]] = "auto"
    index: IndexChoice | Mapping[str, IndexChoice] = "auto"
    evaluate_every: int = 0
    expire_every: int | None = None
    budget: Budget | None = None
    policy: Policy | None = None
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None
    reordering: Reordering = field(default_factory=Reordering)

    def __post_init__(self) -> None:
        self._check_windows()
        _freeze(self, "windows", dict(self.windows))
        if not isinstance(self.on, str):
            if not isinstance(self.on, list | tuple):
                raise SpecError(f"on must name a column or list predicates between streams, not {self.on!r}")
            _freeze(self, "on", tuple(self.on))
        if isinstance(self.order, Mapping):
            _freeze(self, "order", {name: tuple(order) for name, order in self.order.items()})
        elif not isinstance(self.order, str):
            if not isinstance(self.order, list | tuple):
                raise SpecError(
                    f"order must be a word, an order of the streams or one for each of them, not {self.order!r}"
                )
            _freeze(self, "order", tuple(self.order))
        if self.policy is None:
            _freeze(self, "policy", KeepAll() if self.budget is None else Prob())
        graph = parse(self.on, self.names)
        self._check_memory()
        self._check_times()
        self._orders()
        self._indexes(graph)

    def _check_windows(self) -> None:
        windows = self.windows
        if not isinstance(windows, Mapping) or not 2 <= len(windows) <= MOST:
            raise SpecError(f"MultiJoinSpec.windows must map 2 to {MOST} streams to their windows, not {windows!r}")
        for name, window in windows.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise SpecError(f"MultiJoinSpec.windows must name streams by simple words, not {name!r}")
            if not isinstance(window, TimeWindow | RowWindow):
                raise SpecError(f"MultiJoinSpec.windows[{name!r}] must be a TimeWindow or RowWindow, not {window!r}")

    def _check_memory(self) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise SpecError(f"MultiJoinSpec.budget must be a Budget or None, not {self.budget!r}")
        if not isinstance(self.policy, Policy):
            known = ", ".join(kind.__name__ + "()" for kind in POLICIES.values())
            raise SpecError(f"MultiJoinSpec.policy must be a policy ({known}), not {self.policy!r}")
        if isinstance(self.policy, KeepAll) and self.budget is not None:
            raise SpecError(
                "MultiJoinSpec.policy KeepAll() keeps everything and cannot hold a budget: leave one of the two out"
            )
        if isinstance(self.policy, Prospect):
            raise SpecError(
                "MultiJoinSpec.policy must not be Prospect(), which learns what one other stream brings: use JoinSpec for two "
                "streams, or a policy such as Prob()"
            )
        tables = getattr(self.policy.estimator, "streams", None) or getattr(self.policy, "streams", None)
        if tables is not None and tables != len(self.windows):
            raise SpecError(
                f"MultiJoinSpec.policy {self.policy!r} is for {tables} streams, but there are {len(self.windows)}"
            )
        if self.budget is not None:
            self.budget.caps(len(self.windows), ROW_BYTES)
        if self.policy.order().organisation == CUMULATIVE and self.evaluate_every:
            raise SpecError(
                f"MultiJoinSpec.evaluate_every must be 0 with {type(self.policy).__name__}: its priorities grow with the results "
                "of each instant, which lazy evaluation has only later"
            )
        if self.importance not in IMPORTANCE:
            raise SpecError(f"MultiJoinSpec.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")

    def _check_times(self) -> None:
        for name in ("lateness", "evaluate_every", "expire_every", "max_skew"):
            value = getattr(self, name)
            if value is not None or name not in ("expire_every", "max_skew"):
                check_duration(f"MultiJoinSpec.{name}", value)
        every, expire = self.evaluate_every, self.expire_every
        if expire is not None and every > 0 and (expire < every or expire % every):
            raise SpecError(
                f"MultiJoinSpec.expire_every must be a multiple of evaluate_every ({every}), not {expire}: what waits to be "
                "joined may still need an expired tuple"
            )
        if not isinstance(self.reordering, Reordering):
            raise SpecError(f"MultiJoinSpec.reordering must be a Reordering, not {self.reordering!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return tuple(self.windows)

    def _orders(self) -> Orders:
        if isinstance(self.order, str):
            if self.order != "auto":
                raise SpecError(f"MultiJoinSpec.order must be 'auto' or name the streams, not {self.order!r}")
            return orders_of(self.names, self.names)
        return orders_of(self.order, self.names)

    def _indexes(self, graph: Graph) -> tuple[Index, ...]:
        choices = self.index if isinstance(self.index, Mapping) else dict.fromkeys(self.names, self.index)
        unknown = [name for name in choices if name not in self.names]
        if unknown:
            raise SpecError(f"MultiJoinSpec.index speaks of {unknown[0]!r}; the streams are {', '.join(self.names)}")
        indexes: list[Index] = []
        for stream, name in enumerate(self.names):
            choice = choices.get(name, "auto")
            number = isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= 2**20
            if not number and choice not in INDEXES:
                raise SpecError(f"MultiJoinSpec.index must be 'auto', 'scan' or a number of buckets, not {choice!r}")
            equated = graph.equated(stream)
            if choice == "scan" or not equated:
                indexes.append(Index(stream, equated[0] if equated else -1, 1))
            else:
                indexes += [Index(stream, attr, None if choice == "auto" else int(choice)) for attr in equated]
        return tuple(indexes)

    def plan(self) -> NPlan:
        """The plain settings the engine runs by."""
        assert self.policy is not None  # __post_init__ fills it in
        graph = parse(self.on, self.names)
        return NPlan.of(
            policy=self.policy,
            windows=tuple(self.windows.values()),
            names=self.names,
            graph=graph,
            indexes=self._indexes(graph),
            orders=self._orders(),
            budget=self.budget,
            importance=self.importance,
            lateness=self.lateness,
            max_skew=self.max_skew,
            evaluate_every=self.evaluate_every,
            expire_every=self.evaluate_every if self.expire_every is None else self.expire_every,
        )

    def _reordering(self) -> Reordering | None:
        return self.reordering if self.order == "auto" else None

    def build(self, seed: int = 0) -> MultiEngine:
        """A new engine. The same spec, seed and input give the same output."""
        from shedjoin.engine.nway.engine import MultiEngine

        check_seed(seed)
        return MultiEngine(self.plan(), seed, reordering=self._reordering())

    def resume(self, snapshot: bytes) -> MultiEngine:
        """Go on from `engine.snapshot()`. The budget and the order may be others; everything else must be as it was."""
        from shedjoin.engine.nway.engine import MultiEngine

        return MultiEngine.resume(self.plan(), snapshot, reordering=self._reordering())

    def with_budget(self, budget: Budget | None) -> MultiJoinSpec:
        """The same join within another budget. A join that kept everything gets the default policy."""
        keeps = isinstance(self.policy, KeepAll) and budget is not None
        return replace(self, budget=budget, policy=None if keeps else self.policy)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        data: dict[str, Any] = {
            "windows": {name: {window.kind: window.size} for name, window in self.windows.items()},
            "on": self.on if isinstance(self.on, str) else list(self.on),
            "order": _listed(self.order),
            "index": dict(self.index) if isinstance(self.index, Mapping) else self.index,
            "policy": plain(self.policy),
            "reordering": plain(self.reordering),
        }
        for name in ("evaluate_every", "expire_every", "importance", "lateness", "max_skew"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        if self.budget is not None:
            data["budget"] = plain(self.budget)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MultiJoinSpec:
        """The spec that `to_dict` described. Policies and estimators may be names, a budget a number of tuples."""
        only("MultiJoinSpec", data, [one.name for one in fields(cls)])
        for name in ("windows", "on"):
            if name not in data:
                raise SpecError(f"MultiJoinSpec needs {name}")
        made: dict[str, Any] = dict(data)
        if not isinstance(data["windows"], Mapping):
            raise SpecError(f"MultiJoinSpec.windows must be a table of streams, not {data['windows']!r}")
        made["windows"] = {name: parse_windows(one, 1)[0] for name, one in data["windows"].items()}
        made["budget"] = parse_budget(data.get("budget"))
        made["policy"] = parse_policy(data.get("policy"))
        if data.get("reordering") is not None:
            only("reordering", data["reordering"], ["every", "drift"])
            made["reordering"] = Reordering(**data["reordering"])
        return cls(**made)


def _freeze(spec: MultiJoinSpec, name: str, value: Any) -> None:
    object.__setattr__(spec, name, value)


def _listed(order: Any) -> Any:
    if isinstance(order, Mapping):
        return {name: list(one) for name, one in order.items()}
    return order if isinstance(order, str) else list(order)


@dataclass(frozen=True, slots=True)
class MultiRun:
    """What came of a simulation: counts after the warm-up, the shed log, the engine's counters."""

    spec: MultiJoinSpec
    matches: int
    importance: float
    results: int
    shed: MultiShedLog
    peak_tuples: int
    counters: dict[str, int]
    orders: dict[str, tuple[str, ...]]
    seconds: float


def simulate_multi(
    spec: MultiJoinSpec, tables: Mapping[str, Table], *, warmup: int | None = None, seed: int = 0
) -> MultiRun:
    """Run n whole streams through a join and count.

    Examples
    --------
    >>> spec = MultiJoinSpec(windows={"a": TimeWindow(3), "b": TimeWindow(3), "c": TimeWindow(3)}, on="key")
    >>> simulate_multi(spec, dict.fromkeys("abc", {"key": [1, 2, 1, 1]})).matches
    16
    """
    from shedjoin.engine.nway.engine import MultiEngine

    if not isinstance(spec, MultiJoinSpec):
        raise SpecError(f"spec must be a MultiJoinSpec, not {type(spec).__name__}")
    check_seed(seed)
    check_warmup(warmup)
    engine = MultiEngine(
        spec.plan(), seed, reordering=spec._reordering(), warmup=NEVER if warmup is None else int(warmup), emit=False
    )
    batch = engine.batch(tables)
    begin = time.perf_counter()
    shed = engine.push(batch).shed
    engine.flush()
    seconds = time.perf_counter() - begin
    counters = engine.counters
    return MultiRun(
        spec=spec,
        matches=counters["matches"],
        importance=engine.matched_importance,
        results=counters["results"],
        shed=shed,
        peak_tuples=counters["peak_tuples"],
        counters=counters,
        orders=engine.orders,
        seconds=seconds,
    )
