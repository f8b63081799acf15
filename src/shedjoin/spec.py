"""JoinSpec: the description of a join: streams, conditions, windows, memory and policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shedjoin.batch import LATEST, MOST_STREAMS, ROW_BYTES, STREAMS
from shedjoin.budget import Budget
from shedjoin.cpu.admission import admission_of
from shedjoin.cpu.settings import Deadline, Dual, Queue, Selective, VirtualCpu
from shedjoin.engine.codes import FOLLOWING, IMPORTANCE, SAME
from shedjoin.engine.graph import Graph, of_columns, parse
from shedjoin.engine.orders import orders_of
from shedjoin.engine.plan import Index, Orders, Plan
from shedjoin.engine.reordering import Reordering
from shedjoin.engine.where import parse_where
from shedjoin.errors import SpecError
from shedjoin.estimators import Met, Table
from shedjoin.join_type import TYPES, check_how, check_matches
from shedjoin.meaning import GRAPH, KEY, Dials, check_meaning, why_not
from shedjoin.parse import (
    parse_budget,
    parse_duration,
    parse_interval,
    parse_lateness,
    parse_policy,
    parse_window,
    parse_windows,
)
from shedjoin.plain_dict import made_of, make_estimator, only, plain
from shedjoin.policies import POLICIES, Auto, KeepAll, Policy, Prob, Prospect, SimpProb
from shedjoin.predicates import PREDICATES, Predicate
from shedjoin.what_if import WhatIf, what_if_of
from shedjoin.window import RowWindow, TimeWindow, Window, check_duration, check_interval, interval_windows

if TYPE_CHECKING:
    from shedjoin.auto import Foresight, Trials
    from shedjoin.engine.engine import Engine

#: How a window is searched: an index that grows, no index, or a number of hash buckets.
IndexChoice = str | int
INDEXES = ("auto", "scan")


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A sliding-window join of two or more streams, exact or under a memory budget.

    A result has one tuple of each stream. All conditions hold between them, and when the newest arrived, every other
    was in its window.

    Parameters
    ----------
    window
        `TimeWindow` or `RowWindow`: one for both of two streams (called left and right), a pair, or a mapping from the names of
        two to 16 streams, in their order, to their windows.
    between
        Instead of `window`: (low, high) for two streams that join iff low <= right.ts - left.ts <= high, as in SQL. Both may be
        negative. A row is kept only while it can still find a partner.
    on
        The name of a column that must be equal in all streams; or predicates: ``"a.x = b.y"``, also with ``<``, ``<=``, ``>``,
        ``>=``, ``!=``, and ``"|a.x - b.y| <= 5"``. For two streams also a predicate on numbers or sets: `Band`, `Theta`, `Equal`,
        `SameSet`, `Subset`, `Superset`, `Overlap`, `InnerProduct`.
    where
        A further condition on the rows of a result: ``"left.bid < right.price AND (right.open OR NOT left.strict)"``, with
        SQL's logic for nulls. It has comparisons of columns of whole numbers, as in `on`, also ``<=>``; boolean columns (true if
        not 0); AND, OR, NOT, IS NULL, IS TRUE, IS FALSE. Compute comparisons with constants in advance, as a column.
    budget
        The hard cap on stored tuples. None: no cap, the join is exact.
    policy
        Which tuples stay when the budget is exceeded. Default: `KeepAll` without a budget. With a budget: `Prospect` for two
        streams on a key, `SimpProb(Met())` for other predicates between two streams, else `Prob`.
        A policy without a budget evicts nothing until `Engine.set_budget` sets one. (On Spark it is refused.)
    importance
        How the importance of a result is computed from its rows: min, max, sum, product or mean.
    lateness
        How far a row may lag behind the largest `ts` of its stream without missing results. Later rows join only rows that are
        still stored. `UNLIMITED`: rows are never late and never expire; only a budget bounds the memory.
    max_skew
        A stream that lags behind the newest clock by more than this is treated as idle: expiry does not wait for it.
    order
        The join order of three and more streams. ``"auto"``: the cost model chooses an order for each origin, from statistics
        that are measured while the join runs. A list of all streams: one global order, new tuples first (EAGER and LAZY of
        golab2003). A mapping from each stream to a list of all streams: its new tuples take the position of the stream itself
        (NAIVE, GENERAL LAZY).
    index
        ``"auto"``: by key, or hash indexes that grow with the windows. ``"scan"``: none, nested loops. A number: this many hash
        buckets. Or a mapping from streams to these (a hybrid join).
    evaluate_every
        0: a result is delivered with the tuple that completes it. tau: new tuples are joined in rounds; a result is delivered
        at most tau after its last tuple. If memory is full, a round runs early: no waiting tuple is shed.
    expire_every
        How often expired tuples are removed (0: always); default: with every evaluation. They never join.
    reordering
        When ``order="auto"`` searches for a better order.
    selective
        Compare rows with only the most profitable part of the windows when the CPU is too slow. None: always with all.
    cpu
        A `VirtualCpu`: rows wait in a queue until it is free. A `Deadline`: every push should end in time; needs `selective`.
        None: every row is joined when it arrives.
    queue
        The bound of that queue, and which rows it drops. None: no bound.
    dual
        Dual windows: rows wait in an aux-window before they probe, and some of them are shed.
    counted_elsewhere
        For a join with row windows that is split by key over several engines. Rows have their numbers in the whole stream
        (`Batch.numbered`), and windows count the rows of all engines. Results and the shed log have these numbers too.
        Together such engines give the results of one, if the rows of a push are in time order and each push ends with the
        clocks and the number of rows of the whole. `Prospect` is not available for them; the default policy is `Prob`.

    how
        The join type, by Spark's names: inner, left_semi, left_anti, left_outer, right_outer, full_outer. A row without a partner
        is delivered when it leaves its window, and only if it certainly has none: see docs/semantics.md. Joins of three and
        more streams are inner, left_semi or left_outer.
    matches
        A number for each stream, or None: its rows leave once they have found that many partners, such as an order that is paid
        once. The join is exact if no row has more partners than that.
    what_if
        Estimate the recall of other memory sizes (`Engine.what_if`), with miniatures of the join. None: off.

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

    window: Window | tuple[Window, Window] | Mapping[str, Window] | None = None
    budget: Budget | None = None
    policy: Policy | None = None
    importance: str = "min"
    lateness: int = 0
    max_skew: int | None = None
    on: str | tuple[str, ...] | Predicate = "key"
    order: str | tuple[str, ...] | Mapping[str, tuple[str, ...]] = "auto"
    index: IndexChoice | Mapping[str, IndexChoice] = "auto"
    evaluate_every: int = 0
    expire_every: int | None = None
    reordering: Reordering = field(default_factory=Reordering)
    selective: Selective | None = None
    cpu: VirtualCpu | Deadline | None = None
    queue: Queue | None = None
    dual: Dual | None = None
    counted_elsewhere: bool = False
    between: tuple[int, int] | None = None
    where: str | None = None
    how: str = "inner"
    matches: tuple[int | None, ...] | None = None
    what_if: WhatIf | None = None

    def __post_init__(self) -> None:
        self._check_windows()
        _freeze(self, "how", check_how("JoinSpec.how", self.how))
        _freeze(self, "matches", check_matches("JoinSpec.matches", self.matches, len(self.names)))
        self._freeze_lists()
        graph = self._graph()
        if self.where is not None:
            parse_where(self.where, self.names)
        if self.policy is None:
            _freeze(self, "policy", self._default_policy(graph))
        self._check_kinds()
        self._check_times()
        self._check_cpu()
        self._check_counts()
        check_meaning("JoinSpec", self._dials(graph))
        self._check_memory()
        self._check_waiting()
        self._orders()
        self._indexes(graph)

    def _graph(self) -> Graph:
        if not isinstance(self.on, Predicate):
            return parse(self.on, self.names)
        check_meaning("JoinSpec", Dials(streams=len(self.names), condition=self.on.name))
        return of_columns(*self.on.columns, equal=self.on.code == SAME)

    def _default_policy(self, graph: Graph) -> Policy:
        return KeepAll() if self.budget is None else self._fitting_policy(graph)

    def _fitting_policy(self, graph: Graph) -> Policy:
        """The default policy of a join of this kind."""
        if isinstance(self.on, Predicate) and self.on.code != SAME:
            return SimpProb(Met())
        keyed = len(self.names) == len(STREAMS) and self._is_keyed(graph) and not self.counted_elsewhere
        return Prospect() if keyed else Prob()

    def _first_policy(self, graph: Graph) -> Policy:
        assert self.policy is not None  # __post_init__ fills it in
        if not isinstance(self.policy, Auto):
            return self.policy
        first = self._fitting_policy(graph)
        return first if why_not(self._dials_by(graph, first)) is None else Prob()

    @property
    def first_policy(self) -> Policy:
        """The first policy of the join: `policy`, or the first one of `Auto`."""
        return self._first_policy(self._graph())

    def _check_windows(self) -> None:
        if self.between is not None:
            if self.window is not None:
                raise SpecError("JoinSpec.between replaces the window: leave one of the two out")
            _freeze(self, "between", check_interval("JoinSpec.between", self.between))
            return
        if self.window is None:
            raise SpecError(
                "JoinSpec.window must be given, such as TimeWindow(400), or between=(low, high): both are None"
            )
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
        if not isinstance(self.on, str | Predicate):
            if not isinstance(self.on, list | tuple):
                raise SpecError(
                    f"on must name a column, list predicates between streams, or be one such as Band(...), not {self.on!r}"
                )
            _freeze(self, "on", tuple(self.on))
        if isinstance(self.order, Mapping):
            _freeze(self, "order", {name: tuple(order) for name, order in self.order.items()})
        elif not isinstance(self.order, str):
            if not isinstance(self.order, list | tuple):
                raise SpecError(
                    f"order must be a word, an order of the streams or one for each of them, not {self.order!r}"
                )
            _freeze(self, "order", tuple(self.order))

    def _check_kinds(self) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise SpecError(f"JoinSpec.budget must be a Budget or None, not {self.budget!r}")
        if not isinstance(self.policy, Policy):
            known = ", ".join(kind.__name__ + "()" for kind in POLICIES.values())
            raise SpecError(f"JoinSpec.policy must be a policy ({known}), not {self.policy!r}")
        if self.what_if is not None and not isinstance(self.what_if, WhatIf):
            raise SpecError(f"JoinSpec.what_if must be a WhatIf or None, not {self.what_if!r}")
        if not isinstance(self.importance, str) or self.importance not in IMPORTANCE:
            raise SpecError(f"JoinSpec.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")

    def _check_memory(self) -> None:
        assert self.policy is not None  # __post_init__ fills it in
        streams = len(self.names)
        tables = getattr(self.policy.estimator, "streams", None) or getattr(self.policy, "streams", None)
        if tables is not None and tables != streams:
            raise SpecError(f"JoinSpec.policy {self.policy!r} is for {tables} streams, but this join has {streams}")
        if self.policy.estimator is not None:
            for stream in range(streams):
                self.policy.estimator.table(stream)  # has whole-number keys
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

    def _check_cpu(self) -> None:
        for name, kind in (("selective", Selective), ("queue", Queue), ("dual", Dual)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise SpecError(f"JoinSpec.{name} must be a {kind.__name__} or None, not {value!r}")
        if self.cpu is not None and not isinstance(self.cpu, VirtualCpu | Deadline):
            raise SpecError(f"JoinSpec.cpu must be a VirtualCpu, a Deadline or None, not {self.cpu!r}")

    def _check_waiting(self) -> None:
        """What a queue that drops by a table needs, and dual windows in front of a slow CPU."""
        dual, cpu = self.dual, self.cpu
        if isinstance(cpu, VirtualCpu) and dual is not None and dual.follows and not (cpu.probe > 0 and cpu.update > 0):
            raise SpecError(
                "JoinSpec.cpu must have costs of a probe and of an update above 0 with dual windows: k_r follows from them"
            )
        table = self.queue.drop if self.queue is not None else None
        if isinstance(table, Table) and (self.policy is None or self.policy.estimator not in (None, table)):
            raise SpecError(
                f"JoinSpec.policy must use the same Table as the queue, or no estimator, not {self.policy!r}"
            )
        if isinstance(table, Table) and table.streams != len(self.names):
            raise SpecError(
                f"JoinSpec.queue drops by a Table of {table.streams} streams, but this join has {len(self.names)}"
            )

    def _check_counts(self) -> None:
        if not isinstance(self.counted_elsewhere, bool):
            raise SpecError(f"JoinSpec.counted_elsewhere must be True or False, not {self.counted_elsewhere!r}")
        if not self.counted_elsewhere:
            return
        if not any(isinstance(window, RowWindow) for window in self.windows):
            raise SpecError("JoinSpec.counted_elsewhere is for row windows: time windows do not count rows")
        if self.evaluate_every:
            raise SpecError("JoinSpec.evaluate_every must be 0 with counted_elsewhere: results come at once")
        if isinstance(self.policy, Prospect):
            raise SpecError(
                "JoinSpec.policy must not be Prospect() with counted_elsewhere: it learns nothing from rows that went to other "
                "engines. Take a policy such as Prob()"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams, in their order."""
        return tuple(self.window) if isinstance(self.window, Mapping) else STREAMS

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window of each stream."""
        if self.between is not None:
            return interval_windows(*self.between)
        assert self.window is not None  # __post_init__ has looked
        if isinstance(self.window, Mapping):
            return tuple(self.window.values())
        return self.window if isinstance(self.window, tuple) else (self.window,) * len(STREAMS)

    # ---------------------------------------------------------------------------------------------- how it is carried out

    def _is_keyed(self, graph: Graph) -> bool:
        """Whether tuples are stored by a common key, and results come at once."""
        if self.policy is not None and isinstance(self.policy.estimator, Met):
            return False  # tuples of one key have different priorities
        first = self.order == "auto" or all(one[0] == origin for origin, one in enumerate(self._orders()))
        at_once = not self.evaluate_every and not self.expire_every
        return self._has_common_key(graph) and first and self.index == "auto" and at_once

    def _has_common_key(self, graph: Graph) -> bool:
        """Whether one column of each stream must be equal in all of them, and nothing else is asked."""
        common = len(graph.parts) == 1 and len(graph.parts[0]) == len(self.names) and not graph.thetas
        return common and all(len(columns) == 1 for columns in graph.columns)

    def _dials(self, graph: Graph) -> Dials:
        """The settings that `shedjoin.meaning` checks."""
        return self._dials_by(graph, self._first_policy(graph))

    def _dials_by(self, graph: Graph, policy: Policy) -> Dials:
        estimator = getattr(policy.estimator, "name", None)
        cpu, queue = getattr(self, "cpu", None), getattr(self, "queue", None)
        return Dials(
            streams=len(self.names),
            condition=getattr(self.on, "name", KEY if self._has_common_key(graph) else GRAPH),
            windows=frozenset(window.kind for window in self.windows),
            budget=self.budget is not None,
            policy=policy.name,
            estimator=estimator,
            follows_results=policy.order().organisation in FOLLOWING or estimator == "met",
            lazy=self.evaluate_every > 0,
            cpu=None if cpu is None else "deadline" if isinstance(cpu, Deadline) else "virtual",
            queue=None if queue is None else "integrated" if queue.integrated else queue.drop,
            selective=getattr(self, "selective", None) is not None,
            dual=getattr(self, "dual", None) is not None,
            how=self.how,
            what_if=self.what_if is not None,
            best_speed=self.dual is not None and (self.dual.front is True or self.dual.distribution is not None),
        )

    def _orders(self) -> Orders:
        if isinstance(self.order, str):
            if self.order != "auto":
                raise SpecError(f"JoinSpec.order must be 'auto' or name the streams, not {self.order!r}")
            return orders_of(self.names, self.names)
        return orders_of(self.order, self.names)

    @property
    def _has_lists(self) -> bool:
        """Whether a predicate finds partners by lists of items or buckets."""
        return isinstance(self.on, Predicate) and self.on.code != SAME and self.index == "auto" and self.on.indexable

    def _indexes(self, graph: Graph) -> tuple[Index, ...]:
        if isinstance(self.on, Predicate) and self.on.code != SAME:
            if self.index not in INDEXES:
                raise SpecError(f"JoinSpec.index must be 'auto' or 'scan' with a predicate, not {self.index!r}")
            return ()
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

    @property
    def counts_partners(self) -> bool:
        """Whether it matters how many partners a row finds."""
        return self.how != "inner" or self.matches is not None

    def plan(self, part: tuple[int, int] = (0, 1)) -> Plan:
        """The plain settings of the engine."""
        _check_part(part, self.on)
        if part[1] > 1 and (isinstance(self.cpu, VirtualCpu) or self.dual is not None):
            raise SpecError(
                f"part must be (0, 1) with a VirtualCpu or dual windows, not {part!r}: one CPU serves one join"
            )
        if part[1] > 1 and self.counts_partners:
            raise SpecError(
                f"part must be (0, 1) with how={self.how!r} and matches={self.matches!r}, not {part!r}: of the partners of its "
                "rows, a part of a join sees only some"
            )
        graph = self._graph()
        return Plan.of(
            policy=self._first_policy(graph),
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
            on=self.on if isinstance(self.on, Predicate) else None,
            where=None if self.where is None else parse_where(self.where, self.names),
            lists=self._has_lists,
            part=part,
            selective=self.selective,
            deadline=self.cpu.seconds if isinstance(self.cpu, Deadline) else None,
            counted_elsewhere=self.counted_elsewhere,
            how=TYPES[self.how],
            matches=self.matches,
            dials=self._dials(graph),
            admission=admission_of(
                self.windows, self.cpu if isinstance(self.cpu, VirtualCpu) else None, self.queue, self.dual
            ),
        )

    def _reordering(self) -> Reordering | None:
        """With two streams there is one order only: new tuples meet the other window."""
        return self.reordering if self.order == "auto" and len(self.names) > len(STREAMS) else None

    def engine(self, seed: int = 0, *, part: tuple[int, int] = (0, 1), **watched: Any) -> Engine:
        """A new engine that may leave out a warm-up, trace what is stored, or only count: see `Engine`."""
        from shedjoin.engine.engine import (
            Engine,  # this imports numba, which takes half a second: a spec alone needs none
        )

        check_seed(seed)
        plan = self.plan(part)
        beside: dict[str, Any] = self._beside(plan, int(seed))
        return Engine(plan, int(seed), reordering=self._reordering(), **beside, **watched)

    def _beside(self, plan: Plan, seed: int) -> dict[str, Any]:
        """What runs beside the join."""
        return {"trying": self._trying(plan, seed), "foreseeing": self._foreseeing(plan, seed)}

    def _foreseeing(self, plan: Plan, seed: int) -> Foresight | None:
        """The miniatures with other memories."""
        if self.what_if is None:
            return None
        from shedjoin.auto import Foresight

        return Foresight(self.what_if, self.first_policy, plan, seed)

    def _trying(self, plan: Plan, seed: int) -> Trials | None:
        """What `Auto` tries beside the join."""
        if not isinstance(self.policy, Auto):
            return None
        from shedjoin.auto import Trials

        return Trials(self.policy, self.first_policy, plan, seed)

    def build(self, seed: int = 0, *, part: tuple[int, int] = (0, 1)) -> Engine:
        """A new engine. The same spec, seed and input give the same output.

        `part=(k, n)`: the k-th of n engines that split a join on a predicate between them (SplitJoin). Each is pushed all rows,
        in the same order. Each row is stored in one engine and probes all, so that together they give every pair once.
        """
        return self.engine(seed, part=part)

    def resume(self, snapshot: bytes, *, part: tuple[int, int] = (0, 1)) -> Engine:
        """Continue from `engine.snapshot()`. Budget, policy and join order may differ; all other settings must be the same."""
        from shedjoin.engine.engine import Engine

        plan = self.plan(part)
        return Engine.resume(plan, snapshot, reordering=self._reordering(), **self._beside(plan, 0))

    def with_budget(self, budget: Budget | None) -> JoinSpec:
        """The same join with another budget. A join without a budget gets the default policy."""
        if budget == self.budget:
            return self
        keeps = isinstance(self.policy, KeepAll) and budget is not None
        return replace(self, budget=budget, policy=None if keeps else self.policy)

    # ------------------------------------------------------------------------------------------------------ plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        data: dict[str, Any] = {}
        if self.between is not None:
            data["between"] = list(self.between)
        else:
            data["window"] = self._plain_windows()
        if self.budget is not None:
            data["budget"] = plain(self.budget)
        data["policy"] = plain(self.policy)
        data["importance"] = self.importance
        data["lateness"] = self.lateness
        for name, default in (
            ("max_skew", None),
            ("on", "key"),
            ("where", None),
            ("evaluate_every", 0),
            ("expire_every", None),
        ):
            if getattr(self, name) != default:
                data[name] = _listed(getattr(self, name))
        if isinstance(self.on, Predicate):
            data["on"] = plain(self.on)
        for name in ("order", "index"):
            if getattr(self, name) != "auto":
                data[name] = _listed(getattr(self, name))
        if self.reordering != Reordering():
            data["reordering"] = plain(self.reordering)
        for name in ("selective", "cpu", "queue", "dual"):
            if getattr(self, name) is not None:
                data[name] = plain(getattr(self, name))
        if self.cpu is not None:
            data["cpu"]["name"] = next(name for name, kind in CPUS.items() if isinstance(self.cpu, kind))
        if self.counted_elsewhere:
            data["counted_elsewhere"] = True
        if self.how != "inner":
            data["how"] = self.how
        if self.matches is not None:
            data["matches"] = [number or 0 for number in self.matches]  # TOML knows no null
        if self.what_if is not None:
            data["what_if"] = plain(self.what_if)
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
        if "window" not in data and "between" not in data:
            raise SpecError("JoinSpec needs a window, such as {'time': 400} or {'row': 400}, or between = [low, high]")
        made: dict[str, Any] = {
            **data,
            "budget": parse_budget(data.get("budget")),
            "policy": parse_policy(data.get("policy")),
            "lateness": parse_lateness(data.get("lateness", 0)),
        }
        if data.get("window") is not None:
            made["window"] = _windows(data["window"])
        if data.get("between") is not None:
            made["between"] = parse_interval(data["between"])
        if isinstance(data.get("on"), Mapping):
            made["on"] = parse_predicate(data["on"])
        if data.get("max_skew") is not None:
            made["max_skew"] = parse_duration(data["max_skew"], argument="max_skew")
        if data.get("cpu") is not None:
            made["cpu"] = _cpu(data["cpu"])
        kinds: dict[str, type[Any]] = {"reordering": Reordering, "selective": Selective, "queue": Queue, "dual": Dual}
        for name, kind in kinds.items():
            if data.get(name) is not None:
                made[name] = made_of(kind, name, _with_table(data[name]))
        if data.get("what_if") is not None:
            made["what_if"] = what_if_of(data["what_if"])
        if data.get("matches") is not None:
            made["matches"] = [number or None for number in data["matches"]]
        return cls(**made)


#: What limits the CPU, by name.
CPUS: dict[str, type[VirtualCpu] | type[Deadline]] = {"deadline": Deadline, "virtual": VirtualCpu}


def _with_table(settings: Any) -> Any:
    """Settings of a queue, with the table that it may ask."""
    if isinstance(settings, Mapping) and isinstance(settings.get("drop"), Mapping):
        return {**settings, "drop": make_estimator(settings["drop"])}
    return settings


def _cpu(data: Any) -> VirtualCpu | Deadline:
    if not isinstance(data, Mapping) or data.get("name") not in CPUS:
        raise SpecError(f"cpu must be a table with a name, one of {', '.join(CPUS)}, not {data!r}")
    settings = {name: value for name, value in data.items() if name != "name"}
    return made_of(CPUS[data["name"]], "cpu", settings)


def _windows(data: Any) -> Any:
    """One window, a list of two, or a table of streams."""
    if isinstance(data, Mapping) and "streams" in data:
        only("window", data, ["streams"])
        if not isinstance(data["streams"], Mapping):
            raise SpecError(f"window.streams must be a table of streams, not {data['streams']!r}")
        return {name: parse_windows(one, 1)[0] for name, one in data["streams"].items()}
    return parse_window(data)


def parse_predicate(data: Mapping[str, Any]) -> Predicate:
    """The predicate that `to_dict` described: its name and its settings."""
    name = data.get("name")
    if name not in PREDICATES:
        raise SpecError(f"on.name must be one of {', '.join(PREDICATES)}, not {name!r}")
    return made_of(PREDICATES[name], f"on ({name})", {field: value for field, value in data.items() if field != "name"})


def _freeze(spec: JoinSpec, name: str, value: Any) -> None:
    object.__setattr__(spec, name, value)


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _listed(one) for name, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, tuple | list) else value


def _check_part(part: Any, on: Any) -> None:
    whole = isinstance(part, tuple) and len(part) == 2 and all(type(one) is int for one in part)
    if not whole or not 0 <= part[0] < part[1]:
        raise SpecError(f"part must be (which, of how many), such as (0, 2) and (1, 2), not {part!r}")
    if part[1] > 1 and (not isinstance(on, Predicate) or on.code == SAME):
        raise SpecError(f"part must be (0, 1) for a join on keys, not {part!r}: split its rows by key instead")


def check_seed(seed: object) -> None:
    """Refuse invalid seeds."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise SpecError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")


def check_pair(what: str, spec: object) -> None:
    """Refuse a join that is not of two streams on a key, for what knows no other."""
    if not isinstance(spec, JoinSpec):
        raise SpecError(f"spec must be a JoinSpec, not {type(spec).__name__}")
    if len(spec.names) != len(STREAMS) or not spec.plan().keyed or spec.plan().admission is not None:
        raise SpecError(f"{what} is for joins of two streams on a key with results at once, not for {spec!r}")


def check_unconditional(what: str, spec: JoinSpec) -> None:
    """Refuse a join with a condition, for what knows its rows by their keys alone."""
    if spec.where is not None:
        raise SpecError(f"{what} counts partners by their keys, so it is for joins without where, not for {spec!r}")


def check_inner(what: str, spec: JoinSpec) -> None:
    """Refuse a join that gives more or less than pairs, for what knows nothing else."""
    if spec.counts_partners:
        raise SpecError(f"{what} is for inner joins whose rows stay until their windows end, not for {spec!r}")


def check_whole_windows(what: str, spec: JoinSpec) -> None:
    """Refuse a join that compares rows with parts of windows, for what does not read the log of what was left out."""
    if spec.selective is not None:
        raise SpecError(f"{what} is for joins that compare rows with whole windows, not for {spec!r}")


def check_warmup(warmup: Any) -> None:
    """Refuse invalid warm-ups."""
    whole = isinstance(warmup, int | np.integer) and not isinstance(warmup, bool)
    if warmup is not None and (not whole or abs(warmup) > LATEST):
        raise SpecError(f"warmup must be a whole number within +-2**53, not {warmup!r}")
