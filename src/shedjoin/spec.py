"""JoinSpec: what to join, within which windows, with how much memory, and which tuples stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shedjoin.batch import LATEST, MOST_STREAMS, ROW_BYTES, STREAMS
from shedjoin.budget import Budget
from shedjoin.cpu.admission import admission_of
from shedjoin.cpu.settings import Deadline, Dual, Queue, VirtualCpu
from shedjoin.engine.codes import CUMULATIVE, IMPORTANCE
from shedjoin.engine.graph import Graph, parse
from shedjoin.engine.orders import orders_of
from shedjoin.engine.plan import Index, Orders, Plan
from shedjoin.engine.reordering import Reordering
from shedjoin.errors import SpecError
from shedjoin.plain import only, plain
from shedjoin.policies import POLICIES, KeepAll, Policy, Prob, Prospect
from shedjoin.window import RowWindow, TimeWindow, Window, check_duration
from shedjoin.words import parse_budget, parse_duration, parse_lateness, parse_policy, parse_window, parse_windows

if TYPE_CHECKING:
    from shedjoin.engine.engine import Engine

#: How a window is looked into: an index that grows, no index, or a number of hash buckets.
IndexChoice = str | int
INDEXES = ("auto", "scan")


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A sliding-window join of two or more streams, exact or under a memory budget.

    A result has one tuple of each stream. All conditions hold between them, and when the newest came, every other was in its
    window.

    Parameters
    ----------
    window
        `TimeWindow` or `RowWindow`: one for both of two streams (called left and right), a pair, or a mapping from the names of
        two to 16 streams, in their order, to their windows.
    on
        The name of a column that must be equal in all streams; or predicates: ``"a.x = b.y"``, also with ``<``, ``<=``, ``>``,
        ``>=``, ``!=``, and ``"|a.x - b.y| <= 5"``.
    budget
        The hard cap on stored tuples. None: none, the join is exact.
    policy
        Which tuples stay when memory is short. Default: `KeepAll` without a budget; with one `Prospect` for two streams on a
        key, `Prob` for others.
    importance
        How an output's importance follows from its inputs': min, max, sum, product or mean.
    lateness
        How far a row may lag behind the largest `ts` of its stream and still be joined. `UNLIMITED`: rows are never
        late and never expire; only a budget bounds the memory.
    max_skew
        A stream whose clock lags behind the newest by more than this counts as idle and no longer holds up expiry.
    order
        The join order of three and more streams. ``"auto"``: chosen by the cost model from statistics that are measured while the
        join runs, an order for each origin. A list of all streams: one global order, new tuples first (EAGER and LAZY of
        golab2003). A mapping from each stream to a list of all streams: where its new tuples stand is where it stands itself
        (NAIVE, GENERAL LAZY).
    index
        ``"auto"``: by key, or hash indexes that grow with the windows. ``"scan"``: none, nested loops. A number: this many hash
        buckets. Or a mapping from streams to these (a hybrid join).
    evaluate_every
        0: results come with the tuple that completes them. tau: new tuples are joined in rounds; a result is out at most
        tau after its last tuple. Where memory is short, rounds come early: nothing is shed that waits to be joined.
    expire_every
        How often expired tuples are removed (0: always); default: with every evaluation. They join nothing in any case.
    reordering
        When ``order="auto"`` looks for a better order.
    cpu
        A `VirtualCpu`: rows wait in line until it is free. None: every row is joined when it comes.
    queue
        The bound of that line, and which rows it drops. None: no bound.
    dual
        Dual windows: rows stand in an aux-window before they probe, and some of them are shed.

    Examples
    --------
    >>> spec = JoinSpec(window=TimeWindow(400), budget=Budget(tuples=400))
    >>> spec.policy
    Prospect()
    >>> JoinSpec.from_dict(spec.to_dict()) == spec
    True
    >>> three = JoinSpec({"a": TimeWindow(10), "b": TimeWindow(10), "c": RowWindow(5)})
    >>> three.build().push(a={"key": [1, 2]}, b={"key": [2, 1]}, c={"key": [2, 2]}).rows
    array([[1, 0, 0], [1, 0, 1]])
    """

    window: Window | tuple[Window, Window] | Mapping[str, Window]
    budget: Budget | None = None
    policy: Policy | None = None
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None
    on: str | tuple[str, ...] = "key"
    order: str | tuple[str, ...] | Mapping[str, tuple[str, ...]] = "auto"
    index: IndexChoice | Mapping[str, IndexChoice] = "auto"
    evaluate_every: int = 0
    expire_every: int | None = None
    reordering: Reordering = field(default_factory=Reordering)
    cpu: VirtualCpu | Deadline | None = None
    queue: Queue | None = None
    dual: Dual | None = None

    def __post_init__(self) -> None:
        self._check_windows()
        self._freeze_lists()
        graph = parse(self.on, self.names)
        if self.policy is None:
            keyed = len(self.names) == len(STREAMS) and self._is_keyed(graph)
            _freeze(self, "policy", KeepAll() if self.budget is None else Prospect() if keyed else Prob())
        self._check_memory(graph)
        self._check_times()
        self._check_cpu(graph)
        self._orders()
        self._indexes(graph)

    def _check_windows(self) -> None:
        if isinstance(self.window, Mapping):
            if not 2 <= len(self.window) <= MOST_STREAMS:
                raise SpecError(
                    f"JoinSpec.window must map 2 to {MOST_STREAMS} streams to their windows, not {self.window!r}"
                )
            _freeze(self, "window", dict(self.window))
            for name in self.window:
                if not isinstance(name, str) or not name.isidentifier():
                    raise SpecError(f"JoinSpec.window must name streams by simple words, not {name!r}")
        windows = self.windows
        if len(windows) != len(self.names) or not all(isinstance(one, TimeWindow | RowWindow) for one in windows):
            raise SpecError(
                f"JoinSpec.window must be a TimeWindow or RowWindow, a pair of them, or a mapping from names of streams to them, "
                f"not {self.window!r}"
            )

    def _freeze_lists(self) -> None:
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

    def _check_memory(self, graph: Graph) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise SpecError(f"JoinSpec.budget must be a Budget or None, not {self.budget!r}")
        if not isinstance(self.policy, Policy):
            known = ", ".join(kind.__name__ + "()" for kind in POLICIES.values())
            raise SpecError(f"JoinSpec.policy must be a policy ({known}), not {self.policy!r}")
        if isinstance(self.policy, KeepAll) and self.budget is not None:
            raise SpecError(
                "JoinSpec.policy KeepAll() keeps everything and cannot hold a budget: leave one of the two out"
            )
        streams = len(self.names)
        if isinstance(self.policy, Prospect) and (streams != len(STREAMS) or not self._is_keyed(graph)):
            raise SpecError(
                "JoinSpec.policy must not be Prospect() here: it learns what one other stream brings of a key. Take a policy "
                "such as Prob(), or join two streams on a key"
            )
        tables = getattr(self.policy.estimator, "streams", None) or getattr(self.policy, "streams", None)
        if tables is not None and tables != streams:
            raise SpecError(f"JoinSpec.policy {self.policy!r} is for {tables} streams, but this join has {streams}")
        if self.policy.order().organisation == CUMULATIVE and self.evaluate_every:
            raise SpecError(
                f"JoinSpec.evaluate_every must be 0 with {type(self.policy).__name__}: its priorities grow with the results "
                "of each instant, which lazy evaluation has only later"
            )
        if not isinstance(self.importance, str) or self.importance not in IMPORTANCE:
            raise SpecError(f"JoinSpec.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")
        if self.budget is not None:
            self.budget.caps(streams, ROW_BYTES)

    def _check_times(self) -> None:
        for name in ("lateness", "evaluate_every", "expire_every", "max_skew"):
            value = getattr(self, name)
            if value is not None or name not in ("expire_every", "max_skew"):
                check_duration(f"JoinSpec.{name}", value)
        every, expire = self.evaluate_every, self.expire_every
        if expire is not None and every > 0 and (expire < every or expire % every):
            raise SpecError(
                f"JoinSpec.expire_every must be a multiple of evaluate_every ({every}), not {expire}: what waits to be "
                "joined may still need an expired tuple"
            )
        if not isinstance(self.reordering, Reordering):
            raise SpecError(f"JoinSpec.reordering must be a Reordering, not {self.reordering!r}")

    def _check_cpu(self, graph: Graph) -> None:
        """What limits the CPU, and what waits for it."""
        for name, kind in (("queue", Queue), ("dual", Dual)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise SpecError(f"JoinSpec.{name} must be a {kind.__name__} or None, not {value!r}")
        if self.cpu is not None and not isinstance(self.cpu, VirtualCpu | Deadline):
            raise SpecError(f"JoinSpec.cpu must be a VirtualCpu, a Deadline or None, not {self.cpu!r}")
        if isinstance(self.cpu, Deadline):
            raise SpecError(
                "JoinSpec.cpu=Deadline(...) needs selective=Selective(...): something must give when time is short"
            )
        if self.queue is not None and self.cpu is None:
            raise SpecError("JoinSpec.queue needs cpu=VirtualCpu(...): where nothing is slow, nothing waits")
        if (self.cpu is not None or self.dual is not None) and (self.evaluate_every or self.expire_every):
            raise SpecError(
                "JoinSpec.evaluate_every: A CPU limit is spent probe by probe, and lazy evaluation probes in rounds: leave one "
                "of the two out"
            )
        if self.queue is not None and self.queue.integrated:
            if self.budget is None:
                raise SpecError(
                    "JoinSpec.queue: An integrated queue shares the budget of the memory: give one, or bound the queue by tuples "
                    "or span"
                )
            if self.policy is not None and getattr(self.policy.estimator, "name", None) == "met":
                raise SpecError(
                    "JoinSpec.queue: Met() knows nothing of a row before its probe, so an integrated queue would drop whatever "
                    "waits"
                )
        if self.dual is not None:
            self._check_dual(self.dual, graph)

    def _check_dual(self, dual: Dual, graph: Graph) -> None:
        if len({one.kind for one in self.windows}) != 1:
            raise SpecError(
                "JoinSpec.window: Dual windows need windows of one kind: the aux-window is as long as they are"
            )
        if (dual.front is True or dual.distribution is not None) and (
            len(self.names) != len(STREAMS) or not self._is_keyed(graph)
        ):
            raise SpecError(
                "JoinSpec.dual must give front a share or False here: the best speed is known for two streams on a key"
            )
        if isinstance(self.cpu, VirtualCpu) and dual.follows and not (self.cpu.probe > 0.0 and self.cpu.update > 0.0):
            raise SpecError(
                "JoinSpec.cpu must have costs of a probe and of an update above 0 with dual windows: k_r follows from them"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return tuple(self.window) if isinstance(self.window, Mapping) else STREAMS

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window of each stream."""
        if isinstance(self.window, Mapping):
            return tuple(self.window.values())
        return self.window if isinstance(self.window, tuple) else (self.window,) * len(STREAMS)

    # ---------------------------------------------------------------------------------------------- how it is carried out

    def _is_keyed(self, graph: Graph) -> bool:
        """Whether tuples are stored by a common key, and results come at once."""
        common = len(graph.parts) == 1 and len(graph.parts[0]) == len(self.names) and not graph.thetas
        single = all(len(columns) == 1 for columns in graph.columns)
        first = self.order == "auto" or all(one[0] == origin for origin, one in enumerate(self._orders()))
        return (
            common and single and first and self.index == "auto" and not self.evaluate_every and not self.expire_every
        )

    def _orders(self) -> Orders:
        if isinstance(self.order, str):
            if self.order != "auto":
                raise SpecError(f"JoinSpec.order must be 'auto' or name the streams, not {self.order!r}")
            return orders_of(self.names, self.names)
        return orders_of(self.order, self.names)

    def _indexes(self, graph: Graph) -> tuple[Index, ...]:
        choices = self.index if isinstance(self.index, Mapping) else dict.fromkeys(self.names, self.index)
        unknown = [name for name in choices if name not in self.names]
        if unknown:
            raise SpecError(f"JoinSpec.index speaks of {unknown[0]!r}; the streams are {', '.join(self.names)}")
        indexes: list[Index] = []
        for stream, name in enumerate(self.names):
            choice = choices.get(name, "auto")
            number = isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= 2**20
            if not number and choice not in INDEXES:
                raise SpecError(f"JoinSpec.index must be 'auto', 'scan' or a number of buckets, not {choice!r}")
            equated = graph.equated(stream)
            if choice == "scan" or not equated:
                indexes.append(Index(stream, equated[0] if equated else -1, 1))
            else:
                indexes += [Index(stream, attr, None if choice == "auto" else int(choice)) for attr in equated]
        # Rows of an integrated queue are members of groups that know no buckets.
        shared = self.queue is not None and self.queue.integrated
        return () if self._is_keyed(graph) and not shared else tuple(indexes)

    def plan(self) -> Plan:
        """The plain settings the engine runs by."""
        assert self.policy is not None  # __post_init__ fills it in
        graph = parse(self.on, self.names)
        return Plan.of(
            policy=self.policy,
            windows=self.windows,
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
            admission=admission_of(
                self.windows, self.cpu if isinstance(self.cpu, VirtualCpu) else None, self.queue, self.dual
            ),
        )

    def _reordering(self) -> Reordering | None:
        """With two streams there is one order only: new tuples meet the other window."""
        return self.reordering if self.order == "auto" and len(self.names) > len(STREAMS) else None

    def engine(self, seed: int = 0, **watched: Any) -> Engine:
        """A new engine that may leave out a warm-up, trace what is stored, or only count: see `Engine`."""
        from shedjoin.engine.engine import (
            Engine,  # and with it numba, which takes half a second: a spec alone needs none
        )

        check_seed(seed)
        return Engine(self.plan(), int(seed), reordering=self._reordering(), **watched)

    def build(self, seed: int = 0) -> Engine:
        """A new engine. The same spec, seed and input give the same output."""
        return self.engine(seed)

    def resume(self, snapshot: bytes) -> Engine:
        """Go on from `engine.snapshot()`. Budget, policy and join order may be others; all else must be as it was."""
        from shedjoin.engine.engine import Engine

        return Engine.resume(self.plan(), snapshot, reordering=self._reordering())

    def with_budget(self, budget: Budget | None) -> JoinSpec:
        """The same join within another budget. A join that kept everything gets the default policy."""
        keeps = isinstance(self.policy, KeepAll) and budget is not None
        return replace(self, budget=budget, policy=None if keeps else self.policy)

    # ------------------------------------------------------------------------------------------------------ plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        data: dict[str, Any] = {"window": self._plain_windows()}
        if self.budget is not None:
            data["budget"] = plain(self.budget)
        data["policy"] = plain(self.policy)
        data["importance"] = self.importance
        data["lateness"] = self.lateness
        for name, default in (("max_skew", None), ("on", "key"), ("evaluate_every", 0), ("expire_every", None)):
            if getattr(self, name) != default:
                data[name] = _listed(getattr(self, name))
        for name in ("order", "index"):
            if getattr(self, name) != "auto":
                data[name] = _listed(getattr(self, name))
        if self.reordering != Reordering():
            data["reordering"] = plain(self.reordering)
        for name in ("cpu", "queue", "dual"):
            if getattr(self, name) is not None:
                data[name] = {key: _listed(value) for key, value in plain(getattr(self, name)).items()}
        return data

    def _plain_windows(self) -> Any:
        windows = [{one.kind: one.size} for one in self.windows]
        if isinstance(self.window, Mapping):
            return {"streams": dict(zip(self.names, windows, strict=True))}
        return windows[0] if windows[0] == windows[1] else windows

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JoinSpec:
        """The spec that `to_dict` described, or one in words: "10 minutes" (in microseconds), "20k tuples", "prob"."""
        only("JoinSpec", data, [one.name for one in fields(cls)])
        if "window" not in data:
            raise SpecError("JoinSpec needs a window, such as {'time': 400} or {'row': 400}")
        made: dict[str, Any] = {
            **data,
            "window": _windows(data["window"]),
            "budget": parse_budget(data.get("budget")),
            "policy": parse_policy(data.get("policy")),
            "lateness": parse_lateness(data.get("lateness", 0)),
        }
        if data.get("max_skew") is not None:
            made["max_skew"] = parse_duration(data["max_skew"], argument="max_skew")
        if data.get("reordering") is not None:
            only("reordering", data["reordering"], ["every", "drift"])
            made["reordering"] = Reordering(**data["reordering"])
        for name, kind in (("cpu", VirtualCpu), ("queue", Queue), ("dual", Dual)):
            if data.get(name) is not None:
                made[name] = _settings(name, data[name], kind)
        return cls(**made)


def _settings(name: str, data: Any, kind: type[Any]) -> Any:
    """A CPU, a queue or dual windows from plain data."""
    only(name, data, [one.name for one in fields(kind)])
    try:
        return kind(**data)
    except TypeError as reason:
        raise SpecError(f"{name} does not take these settings: {reason}") from None


def _windows(data: Any) -> Any:
    """One window, a list of two, or a table of streams."""
    if isinstance(data, Mapping) and "streams" in data:
        only("window", data, ["streams"])
        if not isinstance(data["streams"], Mapping):
            raise SpecError(f"window.streams must be a table of streams, not {data['streams']!r}")
        return {name: parse_windows(one, 1)[0] for name, one in data["streams"].items()}
    return parse_window(data)


def _freeze(spec: JoinSpec, name: str, value: Any) -> None:
    object.__setattr__(spec, name, value)


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _listed(one) for name, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, tuple | list) else value


def check_seed(seed: object) -> None:
    """A clear word when a seed is none."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise SpecError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")


def check_pair(what: str, spec: object) -> None:
    """Refuse a join that is not of two streams on a key, for what knows no other."""
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    if len(spec.names) != len(STREAMS) or spec.plan().indexes or spec.plan().admission is not None:
        raise SpecError(f"{what} is for joins of two streams on a key with results at once, not for {spec!r}")


def check_warmup(warmup: Any) -> None:
    """A clear word when a warm-up is no time."""
    whole = isinstance(warmup, int | np.integer) and not isinstance(warmup, bool)
    if warmup is not None and (not whole or abs(warmup) > LATEST):
        raise SpecError(f"warmup must be a whole number within +-2**53, not {warmup!r}")
