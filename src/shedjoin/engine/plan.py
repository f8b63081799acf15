"""Plan: what a spec boils down to, in numbers and arrays that kernels take."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import ROW_BYTES, Batch, Checked, TableLike
from shedjoin.budget import Budget
from shedjoin.engine.admission import Admission
from shedjoin.engine.codes import (
    AGE,
    AGE_STEPS,
    BAND,
    DROP_SEMANTIC,
    FIRST_OF_SETS,
    FOLLOWING,
    IMPORTANCE,
    INDEXED,
    ITEMS,
    KEEP,
    KEY,
    KEYED,
    LEARNED,
    LIFE,
    LOGSUM,
    MET,
    NO_PREDICATE,
    PRODUCT,
    ROW,
    SAME,
    SAMPLE,
    SCHEDULE,
    SETTINGS_RECORD,
    SUM,
    TABLE,
    TIME,
    Order,
    Weigher,
)
from shedjoin.engine.graph import EQUAL, FLIPPED, Graph
from shedjoin.engine.records import CHECK_RECORD, NONE, STEP_RECORD, WORK_RECORD
from shedjoin.engine.where import PASSED, Formula, Jump, Test, Where, program, streams_of
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.join_type import PAIRS, TYPES, JoinType
from shedjoin.meaning import KEY as ONE_KEY
from shedjoin.meaning import Dials, check_meaning
from shedjoin.window import Window

FAR = 2.0**63
#: The number of cells of a filter of shed rows.
FEWEST_CELLS, MOST_CELLS = 1 << 10, 1 << 16
#: For each origin, the order in which its new tuples meet the windows.
Orders = tuple[tuple[int, ...], ...]
Tables = tuple[NDArray[np.int64], NDArray[np.float64]]


class EstimatorLike(Protocol):
    """What the engine asks of an estimator."""

    def weigher(self) -> Weigher: ...
    def table(self, stream: int) -> Tables | None: ...


class PredicateLike(Protocol):
    """What the engine asks of a predicate."""

    @property
    def code(self) -> int: ...
    @property
    def bound(self) -> float: ...
    def interleaved(
        self,
        tables: Mapping[str, TableLike],
        names: Sequence[str],
        start: Sequence[int],
        *,
        kinds: bool = False,
        checked: Sequence[Checked] | None = None,
    ) -> Batch: ...
    def in_order(self, table: TableLike, *, kinds: bool = False, checked: Sequence[Checked] | None = None) -> Batch: ...


@runtime_checkable
class PolicyLike(Protocol):
    """What the engine asks of a policy."""

    @property
    def estimator(self) -> EstimatorLike | None: ...
    def order(self) -> Order: ...
    def schedule(self) -> tuple[NDArray[np.int64], ...] | None: ...


@runtime_checkable
class SelectiveLike(Protocol):
    """What the engine asks of the settings of selective processing."""

    @property
    def basic(self) -> int: ...
    @property
    def rate(self) -> bool: ...
    @property
    def correlation(self) -> bool: ...
    @property
    def direction(self) -> bool: ...
    @property
    def types(self) -> int: ...
    @property
    def period(self) -> int: ...
    @property
    def rank_period(self) -> int: ...
    @property
    def boost(self) -> float: ...
    @property
    def sample(self) -> float: ...
    @property
    def fraction(self) -> float: ...


def check_order(order: Order, schedule: object) -> None:
    """See that kernels know what to do with an order; they would not say."""
    what = f"the policy's order {order!r}"
    if order.organisation not in range(KEEP, AGE + 1) or order.combine not in (SUM, PRODUCT, LOGSUM):
        raise SpecError(f"{what} has an organisation or a way to combine that there is not: see shedjoin.engine.codes")
    if (order.organisation == SCHEDULE) != (schedule is not None):
        raise SpecError(f"{what} and its schedule() do not fit: SCHEDULE needs one, and nothing else takes one")
    if not all(math.isfinite(number) for number in order) or not (order.gain >= 0 and 0 < order.loss <= 1):
        raise SpecError(f"{what} must have finite numbers, a gain of at least 0 and a loss above 0 and at most 1")
    if (
        order.organisation == KEY
        and order.combine == PRODUCT
        and (order.importance not in (0, 1) or order.matches != 1 or order.life != 0)
    ):
        raise SpecError(
            f"{what}: KEY with PRODUCT is importance (0 or 1) x matches (1); for other exponents combine by LOGSUM"
        )
    if order.organisation == LIFE and order[1:5] != (PRODUCT, 0, 1, 1):
        raise SpecError(f"{what}: LIFE is matches x life, and has no other numbers")
    if order.organisation == AGE and order[1:5] not in ((PRODUCT, 0, 0, 0), (PRODUCT, 0, 1, 0)):
        raise SpecError(f"{what}: AGE is what ages say, or that x matches (1), and has no other numbers")


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a window: on one attribute (-1: none), with a number of buckets (None: it grows)."""

    stream: int
    attr: int
    buckets: int | None


@dataclass(frozen=True)
class Plan:
    """The engine's own view of a join.

    Attributes
    ----------
    graph
        The predicates of a join graph; None: all streams share a key.
    indexes
        Of a join graph; empty in the keyed layout.
    on
        A predicate of two streams; None: streams are joined along the graph.
    lists
        Whether a predicate has lists of items or buckets. Otherwise windows are scanned.
    part
        (k, n): of n engines that split the join between them this is the k-th.
    where
        What else must hold between the rows of a result.
    selective, deadline
        The part of the windows that rows are compared with, and the seconds that a push may take.
    counted_elsewhere
        Whether rows come with their numbers, because other engines have rows of the same streams.
    how, matches
        What the join gives beside pairs, and after how many partners rows of a stream leave.
    dials
        The settings as the list of what has no meaning looks at them.
    """

    names: tuple[str, ...]
    windows: tuple[Window, ...]
    graph: Graph
    indexes: tuple[Index, ...]
    orders: Orders
    budget: Budget | None
    order: Order
    weigher: Weigher
    tables: tuple[Tables | None, ...]
    schedule: tuple[NDArray[np.int64], ...] | None
    importance: str
    lateness: int
    max_skew: int | None
    evaluate_every: int = 0
    expire_every: int = 0
    on: PredicateLike | None = None
    lists: bool = False
    part: tuple[int, int] = (0, 1)
    selective: SelectiveLike | None = None
    deadline: float | None = None
    counted_elsewhere: bool = False
    admission: Admission | None = None
    where: Where | None = None
    how: JoinType = TYPES["inner"]
    matches: tuple[int | None, ...] | None = None
    dials: Dials = field(default_factory=Dials)

    @classmethod
    def of(cls, *, policy: PolicyLike, windows: tuple[Window, ...], **settings: Any) -> Plan:
        estimator = policy.estimator
        admission: Admission | None = settings.get("admission")
        if estimator is None and admission is not None:
            estimator = admission.table
        order, schedule = policy.order(), policy.schedule()
        check_order(order, schedule)
        streams = range(len(windows))
        return cls(
            windows=windows,
            order=order,
            # Policies that ask no estimator still need weights to read: an empty table.
            weigher=estimator.weigher() if estimator is not None else Weigher(TABLE),
            tables=tuple(estimator.table(stream) if estimator is not None else None for stream in streams),
            schedule=schedule,
            **settings,
        )

    @property
    def streams(self) -> int:
        return len(self.windows)

    @property
    def keyed(self) -> bool:
        """Whether tuples are stored by a common key."""
        return not self.indexes and self.predicate is None

    @property
    def predicate(self) -> PredicateLike | None:
        """A predicate that is more than equality: equal values and equal sets are stored by a key."""
        return None if self.on is None or self.on.code == SAME else self.on

    @property
    def alone(self) -> bool:
        """Whether each tuple is a group: hardly two have the same chance."""
        return self.predicate is not None or self.weigher.code == MET

    @property
    def counts_keys(self) -> bool:
        """Whether keys with stored rows can count against a budget: rows are stored by them, and by nothing else."""
        return self.keyed and self.admission is None and self.order.organisation != SAMPLE

    @property
    def kinds(self) -> list[int]:
        return [TIME if window.kind == "time" else ROW for window in self.windows]

    @property
    def parts(self) -> tuple[dict[int, int], ...]:
        """What values are of: sets of attributes that must all be equal, for each the attribute of each stream in it.

        The values of a predicate are buckets of numbers; or items, and one that every row has.
        """
        if self.predicate is None:
            return self.graph.parts
        return ({0: 0, 1: 0},) * (1 if self.predicate.code < FIRST_OF_SETS else 2)

    def factors(self, stream: int) -> int:
        """How many weights make the chance of a tuple."""
        return self.graph.factors(stream) if self.predicate is None else 1

    @property
    def attributes(self) -> int:
        """How many attributes a row has room for, by which it is joined."""
        return max(1, *(len(columns) for columns in self.graph.columns))

    @property
    def width(self) -> int:
        """The same with the numbers that the condition looks at."""
        return self.attributes + (0 if self.where is None else self.where.width)

    @property
    def checked(self) -> tuple[Checked, ...] | None:
        """What is read of rows for the condition."""
        return None if self.where is None else self.where.checked(self.attributes)

    def with_policy(self, policy: PolicyLike, budget: Budget | None) -> Plan:
        """The same join by another policy, with the budget that it has now."""
        mine = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("order", "weigher", "tables", "schedule"):
            del mine[name]
        return Plan.of(policy=policy, **mine).laid_out()._with_dials(policy, budget is not None)

    def _with_dials(self, policy: PolicyLike, budget: bool) -> Plan:
        """The same with the policy among the dials. Refuses a policy that has no meaning for this join, as `JoinSpec` does."""
        estimator = getattr(policy.estimator, "name", None)
        follows = self.order.organisation in FOLLOWING or estimator == "met"
        dials = replace(
            self.dials, policy=getattr(policy, "name", ""), estimator=estimator, follows_results=follows, budget=budget
        )
        check_meaning("Engine", dials)
        if self.counted_elsewhere and self.weigher.code == LEARNED:
            raise SpecError(
                "policy must not be Prospect() with counted_elsewhere: it learns nothing from rows that went elsewhere"
            )
        return replace(self, dials=dials)

    def laid_out(self) -> Plan:
        """The same join, with an index of each window if tuples of one key have different priorities."""
        if self.weigher.code != MET or not self.keyed:
            return self
        return replace(self, indexes=self._own_indexes())

    def as_asked(self) -> Plan:
        """The same join without the indexes that `laid_out` gave it."""
        at_once = not self.evaluate_every and not self.expire_every
        first = all(order[0] == origin for origin, order in enumerate(self.orders))
        by_key = self.dials.condition == ONE_KEY and at_once and first and self.indexes == self._own_indexes()
        return replace(self, indexes=()) if by_key and self.weigher.code == MET else self

    def _own_indexes(self) -> tuple[Index, ...]:
        return tuple(Index(stream, 0, None) for stream in range(self.streams))

    def caps(self, budget: Budget | None) -> tuple[int, ...]:
        """The caps of a budget, in its unit; empty without one."""
        if budget is None:
            return ()
        if self.order.organisation == KEEP:
            raise SpecError(
                "budget: KeepAll() keeps everything and cannot hold one: call set_policy first, such as set_policy(Prob())"
            )
        if budget.keys is not None and self.admission is not None:
            raise SpecError("budget: keys has no meaning where rows wait for a CPU or in an aux-window: leave it out")
        return budget.caps(self.streams, ROW_BYTES)

    def settings(self, budget: Budget | None, *, warmup: int, trace_every: int, emit: bool) -> NDArray[Any]:
        """What kernels are told, as one record."""
        order, weigher, kinds = self.order, self.weigher, self.kinds
        factors = [self.factors(stream) for stream in range(self.streams)]
        values = dict(
            streams=self.streams,
            layout=KEYED if self.keyed else INDEXED if self.predicate is None else ITEMS,
            predicate=NO_PREDICATE if self.predicate is None else self.predicate.code,
            bound=0.0 if self.predicate is None else self.predicate.bound,
            lists=int(self.lists),
            part=self.part[0],
            of_parts=self.part[1],
            alone=int(self.alone),
            width=self.width,
            spots=max(1, *(sum(index.stream == stream for index in self.indexes) for stream in range(self.streams))),
            parts=len(self.parts),
            organisation=order.organisation,
            combine=order.combine,
            follows=int(order.organisation in FOLLOWING),
            importance=order.importance,
            matches=order.matches,
            life=order.life,
            gain=order.gain,
            log_loss=math.log(order.loss),
            keep=order.keep,
            floor=self._least_matches(),
            fifo=int(self._oldest_is_lowest()),
            estimator=weigher.code,
            half_life=weigher.half_life,
            # Products of weights must stay within the range of floats.
            fold_at=float(512 // max(1, *factors)),
            sketch_width=weigher.width,
            depth=weigher.depth,
            by_rows=int(TIME not in kinds),
            span=float(self._span()),
            lateness=self.lateness,
            max_skew=-1 if self.max_skew is None else self.max_skew,
            output_importance=IMPORTANCE[self.importance],
            memories=len(self.caps(budget)),
            by_bytes=int(budget is not None and budget.unit == "bytes"),
            row_bytes=0 if budget is None else budget.row_bytes,
            key_bytes=budget.key_bytes if budget is not None and self.counts_keys else 0,
            keys_kept=NONE if budget is None or budget.keys is None else budget.keys,
            warmup=warmup,
            trace_every=trace_every,
            emit=int(emit),
            evaluate_every=self.evaluate_every,
            expire_every=self.expire_every,
            limited=int(self.evaluate_every > 0 or (self.expire_every > 0 and ROW in kinds)),
            counted_elsewhere=int(self.counted_elsewhere),
            weighed=int(
                self.keyed or order.organisation in (KEY, LIFE) or self._asks_estimator() or self._asks_histograms()
            ),
            shared_key=int(self._shares_key()),
            where=int(self.where is not None),
            counts_work=int(self.selective is not None or self.admission is not None),
            **({} if self.admission is None else self.admission.settings(TIME not in kinds)),
        )
        record = np.zeros(1, SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        record["kind"][0, : self.streams] = kinds
        record["window"][0, : self.streams] = [window.size for window in self.windows]
        record["range"][0, : self.streams] = [window.range for window in self.windows]
        record["factors"][0, : self.streams] = factors
        record["age_step"][0, : self.streams] = [max(1, -(-window.size // AGE_STEPS)) for window in self.windows]
        for name, value in self._selection().items():
            record[name] = value
        self._set_partners(record)
        return record

    def _set_partners(self, record: NDArray[Any]) -> None:
        """What is counted of partners, as kernels read it."""
        how, streams = self.how, range(self.streams)
        judged, most = [stream in how.judged for stream in streams], self.most
        every = self.weigher.code == MET and how.gives != PAIRS
        record["counts"] = int(any(judged) or any(most))
        record["gives"] = how.gives
        record["gives_unmatched"] = int(bool(how.preserved))
        record["counted"][0, : self.streams] = [
            every or one or limit > 0 for one, limit in zip(judged, most, strict=True)
        ]
        record["judged"][0, : self.streams] = judged
        record["most"][0, : self.streams] = most
        for name, values in self._filters().items():
            record[name][0, : self.streams] = values

    @property
    def most(self) -> list[int]:
        """After how many partners rows of each stream leave; 0: there is no limit. Semi and anti joins ask for the first."""
        given = self.matches or (None,) * self.streams
        ends_at_first = self.how.gives != PAIRS
        return [1 if stream == 0 and ends_at_first else number or 0 for stream, number in enumerate(given)]

    def _filters(self) -> dict[str, list[int]]:
        """Which filter has the shed rows of each stream, by which attribute, and where a judged row has that."""
        columns = {name: [NONE] * self.streams for name in ("filter", "shed_attr", "asked_attr")}
        wanted = [one for one in range(self.streams) if any(other != one for other in self.how.judged)]
        for number, stream in enumerate(wanted):
            judged = next(one for one in self.how.judged if one != stream)
            columns["filter"][stream] = number
            part = next((part for part in self.parts if stream in part and judged in part), None)
            if self.predicate is None and part is not None:
                columns["shed_attr"][stream], columns["asked_attr"][stream] = part[stream], part[judged]
        return columns

    def filter_shape(self, budget: Budget | None) -> tuple[int, int]:
        """How many filters of shed rows there are, and how many cells each has."""
        columns = self._filters()
        filters = sum(number != NONE for number in columns["filter"])
        named = self.predicate is not None and (self.predicate.code == BAND or self.predicate.code >= FIRST_OF_SETS)
        by_value = named or any(attr != NONE for attr in columns["shed_attr"])
        return max(filters, 1), filter_cells(budget) if filters and by_value else 1

    def filter_bytes(self, budget: Budget | None) -> int:
        """What the filters of shed rows take; nothing where no row is judged."""
        filters, cells = self.filter_shape(budget)
        return 8 * filters * cells if self.how.judged else 0

    def _selection(self) -> dict[str, float]:
        """The settings of selective processing, as kernels read them."""
        one = self.selective
        if one is None:
            return {}
        ages, ahead = self.ages()
        return dict(
            basic=one.basic,
            ages=ages,
            ahead=ahead,
            rate=int(one.rate),
            correlation=int(one.correlation),
            direction=int(one.direction),
            types=one.types,
            kinds=max(one.types, 1),
            rate_every=one.period,
            rank_every=one.rank_period,
            boost=one.boost,
            sample=one.sample,
            follows_rate=int(self.admission is not None and self.admission.capacity > 0.0),
        )

    def ages(self) -> tuple[int, int]:
        """How many ages a basic window may have, and how many of them lie ahead of the probing row."""
        if self.selective is None:
            return 1, 0
        ahead = -(-max(window.size for window in self.windows) // self.selective.basic)
        return 2 * ahead + 1, ahead

    def _asks_estimator(self) -> bool:
        return self.weigher != Weigher(TABLE) or any(table is not None for table in self.tables)

    def _asks_histograms(self) -> bool:
        """Whether rows that wait are weighed by the values that are stored, or will be."""
        return self.admission is not None and (self.admission.dual or self.admission.drop == DROP_SEMANTIC)

    def _shares_key(self) -> bool:
        """Whether all streams share one key, and nothing else matters."""
        graph = self.graph
        common = len(graph.parts) == 1 and len(graph.parts[0]) == self.streams and not graph.thetas
        return common and all(len(columns) == 1 for columns in graph.columns)

    def _least_matches(self) -> float:
        """By how many partners a tuple is sampled at least: one, or as many as the rarest value that a table knows."""
        if all(table is None for table in self.tables):
            return 1.0
        least = [1.0 if table is None else min(table[1][table[1] > 0].tolist(), default=1.0) for table in self.tables]
        others = ([one for number, one in enumerate(least) if number != stream] for stream in range(self.streams))
        return min(math.prod(one) for one in others)

    def _span(self) -> int:
        """How long a window is by the clock of Prospect: time, or where windows are of rows, the rows of all streams."""
        lengths = [window.range for window in self.windows if window.kind == "time"]
        return max(lengths) if lengths else sum(window.range for window in self.windows)

    def _oldest_is_lowest(self) -> bool:
        """Whether, inside a group, the order of arrival is the policy's order."""
        order = self.order
        if self.alone:
            return order.organisation == LIFE or (order.organisation == KEY and not order.importance and not order.life)
        if self.admission is not None and self.admission.integrated:
            return False  # rows that wait are in their groups before others that are stored
        if order.organisation == LIFE:
            return TIME not in self.kinds  # rows may be late
        return order.organisation == KEY and order.importance == 0.0 and order.life == 0.0

    def meaning(self) -> dict[str, Any]:
        """What results are: it must be the same for a snapshot to be resumed."""
        graph = self.graph
        return {
            "streams": list(self.names),
            "window": [[window.kind, window.size] for window in self.windows],
            "on": [
                list(map(list, graph.columns)),
                [
                    [one.left, one.left_attr, one.op, one.right, one.right_attr, one.band]
                    for one in (*graph.equalities, *graph.thetas)
                ],
            ],
            "predicate": None if self.on is None else [self.on.code, self.on.bound],
            **({} if self.where is None else {"where": self.where.text}),
            "part": list(self.part),
            "importance": self.importance,
            "lateness": self.lateness,
            "max_skew": self.max_skew,
            "evaluate_every": self.evaluate_every,
            "expire_every": self.expire_every,
            "selective": None if self.selective is None else self._selection(),
            "counted_elsewhere": self.counted_elsewhere,
            "how": self.how.name,
            "matches": self.most,
            "cpu, queue and dual windows": None if self.admission is None else self.admission.meaning(),
        }

    def signature(self) -> dict[str, Any]:
        """What must be the same for the arrays of an engine to be of use to another."""
        return {
            **self.meaning(),
            "index": [[index.stream, index.attr, index.buckets] for index in self.indexes],
            "policy": list(self.order),
            "estimator": list(self.weigher),
            "estimator table": [fingerprint(table) for table in self.tables],
            "schedule": fingerprint(self.schedule),
        }

    def check_change(self, was: dict[str, Any]) -> None:
        """See that a join that ran by the policy of a signature can go on by this one."""
        reason = self._refuses(was)
        if reason is not None:
            raise SnapshotError(
                f"the policy cannot change like this while the join runs: {reason}. Build the join anew"
            )

    def _refuses(self, was: dict[str, Any]) -> str | None:
        """Why a join cannot go on by this policy; None if it can."""
        schedule = fingerprint(self.schedule)
        if schedule is not None and schedule != was["schedule"]:
            return "it is another schedule, and what left by the old one is gone"
        if self.admission is not None and self.has_another_estimator(was):
            return "it has another estimator, which has not seen the rows that wait for the CPU"
        return None

    def has_another_estimator(self, was: dict[str, Any]) -> bool:
        """Whether the estimator is not the one of a signature, so that what that one has learned is of no use."""
        if not self._asks_estimator():
            return False
        weigher = Weigher(*was["estimator"])
        tables = [fingerprint(table) for table in self.tables]
        return self.weigher.code != weigher.code or self.weigher[2:] != weigher[2:] or tables != was["estimator table"]

    # ------------------------------------------------------------------------------------------------- join orders

    def steps(self, orders: Orders) -> tuple[NDArray[Any], NDArray[Any]]:
        """The loops of each origin's order, and the predicates that are looked at in them."""
        if self.predicate is not None:  # whose probes begin with the new tuple, whatever was asked for
            orders = ((0, 1), (1, 0))
        steps = np.zeros(self.streams**2, STEP_RECORD)
        checks: list[tuple[int, ...]] = []

        def add(step: Any, order: tuple[int, ...], formulas: list[Formula]) -> None:
            tests: list[Jump] = []
            begin, first = len(checks), program(formulas, tests)
            step["first_check"] = first if first < 0 else first + begin
            step["checks"] = int(first != PASSED)
            checks.extend(self._check(one, order, begin) for one in tests)

        for origin, order in enumerate(orders):
            fresh_at = order.index(origin)
            for level, stream in enumerate(order):
                step = steps[origin * self.streams + level]
                step["stream"] = stream
                step["fresh"] = int(stream == origin)
                step["limited"] = int(level > fresh_at)
                step["by_bucket"] = 1
                step["shared"] = int(self.keyed and level == 1 and fresh_at == 0)
                if not self.indexes:
                    add(step, order, self._conditions(order, level))
                    continue
                attr, source = self._way_in(order, level)
                step["index"] = self._index_on(stream, attr)
                step["by_bucket"] = int(source is not None)
                if source is not None:
                    step["source_level"], step["source_attr"] = source
                if level == 1 and fresh_at == 0 and source is not None:
                    step["shared"] = int(step["index"] == self._shared_index(origin, stream))
                residual = self._residual(order, level, attr if source is not None else None)
                add(step, order, [*residual, *self._conditions(order, level)])
        return steps, np.array(checks or [(0,) * len(CHECK_RECORD.names or ())], CHECK_RECORD)

    def _check(self, jump: Jump, order: tuple[int, ...], first: int) -> tuple[int, ...]:
        """A test as a `CHECK_RECORD`, in a list that begins there. What is bound first comes first."""
        op, left, attr, right, other_attr, number = jump.test
        yes, no = (to if to < 0 else to + first for to in (jump.yes, jump.no))
        level, other_level = order.index(left), order.index(right)
        if level > other_level:
            op, level, attr, other_level, other_attr = FLIPPED[op], other_level, other_attr, level, attr
        return op, level, attr, other_level, other_attr, number, yes, no

    def _conditions(self, order: tuple[int, ...], level: int) -> list[Formula]:
        """The parts of the condition that can be decided when this level is bound, and not before."""
        if self.where is None or level == 0:
            return []
        found = []
        for formula in self.where.formulas:
            levels = [order.index(stream) for stream in streams_of(formula)]
            if max([1, *levels]) == level:
                found.append(self._placed(formula))
        return found

    def _placed(self, formula: Formula) -> Formula:
        """The same of numbers as they stand in a row."""
        if not isinstance(formula, Test):
            return type(formula)(tuple(map(self._placed, formula.parts)))
        assert self.where is not None
        attr, other = (
            self.attributes + self.where.attribute(stream, attr)
            for stream, attr in ((formula.left, formula.attr), (formula.right, formula.other_attr))
        )
        return formula._replace(attr=attr, other_attr=other)

    def _shared_index(self, origin: int, other: int) -> int:
        """The index of a window on the first value that a row of another stream shares with its tuples; -1: none."""
        part = next((part for part in self.parts if origin in part and other in part), None)
        if part is None:
            return NONE
        return next(
            (
                number
                for number, index in enumerate(self.indexes)
                if (index.stream, index.attr) == (other, part[other]) and index.buckets != 1
            ),
            NONE,
        )

    def work(self) -> NDArray[Any]:
        """How the work of a probe is counted, by origin and other stream."""
        ways = np.zeros(self.streams**2, WORK_RECORD)
        for origin in range(self.streams):
            for other in range(self.streams):
                way = ways[origin * self.streams + other]
                way["index"] = NONE if origin == other else self._shared_index(origin, other)
                shared = [part[origin] for part in self.parts if origin in part and other in part]
                way["attr"] = shared[0] if shared else 0
        return ways

    def _equal_to_bound(self, order: tuple[int, ...], level: int) -> dict[int, tuple[int, int]]:
        """For each attribute of a level's stream that a bound one must equal: (level, attribute) of that one."""
        stream = order[level]
        found: dict[int, tuple[int, int]] = {}
        for above, other in enumerate(order[:level]):
            for one in self.graph.equalities:
                if {one.left, one.right} == {stream, other}:
                    _, mine, _, theirs = one.seen_from(stream)
                    found.setdefault(mine, (above, theirs))
        return found

    def _way_in(self, order: tuple[int, ...], level: int) -> tuple[int, tuple[int, int] | None]:
        """The attribute by whose index a window is looked into, and whose value is looked for; None: the whole window."""
        bound = self._equal_to_bound(order, level)
        for index in self.indexes:
            if index.stream == order[level] and index.attr in bound:
                return index.attr, bound[index.attr]
        return -1, None

    def _index_on(self, stream: int, attr: int) -> int:
        mine = [number for number, index in enumerate(self.indexes) if index.stream == stream]
        return next((number for number in mine if self.indexes[number].attr == attr), mine[0])

    def _residual(self, order: tuple[int, ...], level: int, by: int | None) -> list[Formula]:
        """What the index does not see to."""
        stream = order[level]
        checks: list[Formula] = []
        for mine, (above, theirs) in self._equal_to_bound(order, level).items():
            if mine != by:
                checks.append(Test(EQUAL, stream, mine, order[above], theirs))
        # One attribute may have to equal several of another stream.
        for above, other in enumerate(order[:level]):
            for one in self.graph.equalities:
                if {one.left, one.right} == {stream, other}:
                    _, mine, _, theirs = one.seen_from(stream)
                    if self._equal_to_bound(order, level)[mine] != (above, theirs) and self._doubled(other):
                        checks.append(Test(EQUAL, stream, mine, other, theirs))
            for one in self.graph.thetas:
                if {one.left, one.right} == {stream, other}:
                    op, mine, _, theirs = one.seen_from(stream)
                    checks.append(Test(op, stream, mine, other, theirs, one.band))
        return checks

    def _doubled(self, stream: int) -> bool:
        """Whether two attributes of a stream must be equal because both must equal a third."""
        ends = [one.seen_from(stream) for one in self.graph.equalities if stream in (one.left, one.right)]
        pairs = [(other, theirs) for _, _, other, theirs in ends]
        return len(set(pairs)) < len(pairs)


def filter_cells(budget: Budget | None) -> int:
    """Cells of a filter of shed rows: four for each tuple of the budget, within bounds. Without one only late rows are shed."""
    tuples = 0 if budget is None else budget.total if budget.unit == "tuples" else budget.total // ROW_BYTES
    wanted = min(max(4 * tuples, FEWEST_CELLS), MOST_CELLS)
    return 1 << (wanted - 1).bit_length()


def fingerprint(arrays: tuple[NDArray[Any], ...] | None) -> str | None:
    """A short name for the contents of some arrays."""
    if arrays is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()
