"""DualJoin: an equi-join on a slow CPU that looks ahead before it probes (dual2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch, Table
from shedjoin.cpu import dual_audit, dual_loop
from shedjoin.cpu import dual_state as ds
from shedjoin.cpu.dual_speed import Speed, best_speed, partners, rear_share
from shedjoin.cpu.engine import CHUNK, first_random_state
from shedjoin.cpu.settings import DROPS, VirtualCpu
from shedjoin.cpu.state import NEVER, SHED_FIELDS
from shedjoin.engine import snapshot
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.engine.handle import Handle
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.running import Running
from shedjoin.engine.state import SHED_RECORD
from shedjoin.errors import InputError, SpecError
from shedjoin.predicates import bitmaps, store
from shedjoin.window import RowWindow, TimeWindow

Probabilities = tuple[Sequence[float], Sequence[float]]
#: Values whose probabilities are learned from the histograms get at least this long a table.
LEAST = 64


@dataclass(frozen=True, slots=True)
class DualJoin:
    """A sliding-window equi-join on a virtual CPU, with dual windows: rear-shedding and front-shedding.

    Parameters
    ----------
    window
        `RowWindow` as in the paper, or `TimeWindow`; one for both streams, or a pair of one kind.
    cpu
        Costs of an update (a row comes into the windows and leaves them) and of a probe, and the capacity.
    rear
        Rear-shedding: rows with few partners enter without a probe. A number from 0 to 1 fixes the share k_r; True follows
        the speeds; False probes always.
    front
        Front-shedding: beyond the best speed V_opt, rows are dropped by lot before the queue. A number from 0 to 1 fixes k_f.
    queue
        How many rows may wait. None: no bound.
    drop
        Who goes from a full queue: ``"random"``, or ``"semantic"``: the row with the fewest partners in the histogram.
    distribution
        How likely each value is in each stream, for V_opt. None: learned from the window-histograms.
    period
        How often speeds are measured and k_r, k_f set, in the unit of `ts`.
    importance
        As in `JoinSpec`.

    Notes
    -----
    A row window holds the last rows that were let in: front-shedding makes the streams thinner. Rows must be in order of time.
    Results come when a row leaves the aux-window, one window after its arrival.

    References
    ----------
    dual2006, sections 2 to 4; time windows and different speeds are its future work.
    """

    window: RowWindow | TimeWindow | tuple[RowWindow, RowWindow] | tuple[TimeWindow, TimeWindow]
    cpu: VirtualCpu | None = None
    rear: bool | float = True
    front: bool | float = True
    queue: int | None = None
    drop: str = "random"
    distribution: Probabilities | None = None
    period: int = 100
    importance: str = "min"

    def __post_init__(self) -> None:
        windows = self.windows
        kinds = {type(one) for one in windows}
        if len(windows) != len(STREAMS) or len(kinds) != 1 or not kinds <= {RowWindow, TimeWindow}:
            raise SpecError(
                f"DualJoin.window must be a RowWindow or TimeWindow, or a pair of one kind, not {self.window!r}"
            )
        if self.cpu is not None and not isinstance(self.cpu, VirtualCpu):
            raise SpecError(f"DualJoin.cpu must be a VirtualCpu or None, not {self.cpu!r}")
        for name in ("rear", "front"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (isinstance(value, int | float) and 0.0 <= value <= 1.0):
                raise SpecError(f"DualJoin.{name} must be True, False or a share from 0 to 1, not {value!r}")
        if self.cpu is not None and not (self.cpu.probe > 0.0 and self.cpu.update > 0.0):
            raise SpecError("DualJoin.cpu must have costs of a probe and of an update above 0: k_r follows from them")
        if self.queue is not None and (
            isinstance(self.queue, bool) or not isinstance(self.queue, int) or self.queue < 1
        ):
            raise SpecError(f"DualJoin.queue must be a whole number of at least 1 or None, not {self.queue!r}")
        if self.drop not in DROPS:
            raise SpecError(f"DualJoin.drop must be one of {', '.join(DROPS)}, not {self.drop!r}")
        if isinstance(self.period, bool) or not isinstance(self.period, int) or self.period < 1:
            raise SpecError(f"DualJoin.period must be a whole number of at least 1, not {self.period!r}")
        if self.importance not in IMPORTANCE:
            raise SpecError(f"DualJoin.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")
        if self.distribution is not None:
            partners(*self.distribution, 1)

    @property
    def windows(self) -> tuple[Any, ...]:
        """The window of each stream."""
        return self.window if isinstance(self.window, tuple) else (self.window,) * len(STREAMS)

    @property
    def timed(self) -> bool:
        return isinstance(self.windows[0], TimeWindow)

    def build(self, seed: int = 0, *, warmup: int | None = None, emit: bool = True) -> DualEngine:
        """A new engine. `warmup` and `emit` as for `PredicateJoin.build`."""
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise SpecError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")
        return DualEngine(self, seed, warmup=NEVER if warmup is None else warmup, emit=emit)

    def resume(self, saved: bytes) -> DualEngine:
        """Go on from `engine.snapshot()`."""
        return DualEngine.resume(self, saved)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML or JSON job files; `from_dict` reads it."""
        windows = [{one.kind: one.size} for one in self.windows]
        data: dict[str, Any] = {"window": windows[0] if windows[0] == windows[1] else windows}
        if self.cpu is not None:
            data["cpu"] = {field.name: getattr(self.cpu, field.name) for field in fields(self.cpu)}
        if self.distribution is not None:
            data["distribution"] = [[float(chance) for chance in one] for one in self.distribution]
        for name in ("rear", "front", "queue", "drop", "period", "importance"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DualJoin:
        """The join that `to_dict` described."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in data if name not in known] if isinstance(data, Mapping) else [data]
        if unknown or "window" not in data:
            raise SpecError(f"DualJoin needs a window and knows the settings {', '.join(known)}, not {unknown}")
        made: dict[str, Any] = dict(data)
        window = data["window"]
        made["window"] = tuple(map(_window, window)) if isinstance(window, list | tuple) else _window(window)
        try:
            if data.get("cpu") is not None:
                made["cpu"] = VirtualCpu(**data["cpu"])
        except TypeError as reason:
            raise SpecError(f"cpu does not take these settings: {reason}") from None
        if data.get("distribution") is not None:
            made["distribution"] = tuple(data["distribution"])
        return cls(**made)

    def speeds(self) -> tuple[float, float]:
        """(V_j, V_w): probes and updates that the CPU can do in a time unit."""
        if self.cpu is None:
            raise SpecError("DualJoin.cpu must be given to know speeds")
        return self.cpu.capacity / self.cpu.probe, self.cpu.capacity / self.cpu.update

    def best_speed(self, distribution: Probabilities, rates: Sequence[float] = (1.0, 1.0)) -> Speed:
        """V_opt for streams of these values and rates (rows of each in a time unit; for row windows only their ratio counts)."""
        probes, updates = self.speeds()
        sizes = [one.size * (rate if self.timed else 1.0) for one, rate in zip(self.windows, rates, strict=True)]
        chances = [
            partners(distribution[stream], distribution[1 - stream], sizes[1 - stream], timed=self.timed)
            for stream in range(len(STREAMS))
        ]
        return best_speed(chances, probes, updates, rates)

    def settings(self, *, warmup: int, emit: bool) -> NDArray[Any]:
        """What kernels are told, as one record."""
        values: dict[str, Any] = dict(
            size0=self.windows[0].size,
            size1=self.windows[1].size,
            timed=int(self.timed),
            rear=int(self.rear is not False),
            front=int(self.front is not False),
            queue_cap=self.queue or 0,
            semantic=int(self.queue is not None and self.drop == "semantic"),
            period=self.period if self.cpu is not None else 0,
            warmup=warmup,
            emit=int(emit),
            output_importance=IMPORTANCE[self.importance],
        )
        if self.cpu is not None:
            values |= dict(capacity=self.cpu.capacity, probe_cost=self.cpu.probe, update_cost=self.cpu.update)
        record = np.zeros(1, ds.SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        return record

    def signature(self) -> dict[str, Any]:
        """What must be the same for a snapshot to be resumed."""
        return {"dual windows": repr(self)}


def _window(data: Any) -> RowWindow | TimeWindow:
    if not isinstance(data, Mapping) or len(data) != 1 or not set(data) <= {"row", "time"}:
        raise SpecError(f"window must be {{'row': rows}} or {{'time': length}}, not {data!r}")
    return RowWindow(data["row"]) if "row" in data else TimeWindow(data["time"])


class DualEngine(Running):
    """One running join with dual windows. Made by `DualJoin.build` or `DualJoin.resume`."""

    def __init__(self, join: DualJoin, seed: int = 0, *, warmup: int = NEVER, emit: bool = True) -> None:
        self._join = join
        self._how = join.settings(warmup=warmup, emit=emit)
        self._state = _allocate(join, seed)
        self._waiting = Batch.of()
        self._numbers = np.empty(0, np.int64)
        self._known_speeds: dict[tuple[float, ...], float] = {}

    @classmethod
    def resume(cls, join: DualJoin, saved: bytes) -> DualEngine:
        """An engine that goes on from a snapshot."""
        engine = cls(join)
        extra = snapshot.decode(saved, engine._state, join.signature())
        _measure(engine._state)
        dual_audit.audit(engine._state)
        bitmaps.renew(engine._state)
        engine._waiting, engine._numbers = dual_audit.read_waiting(extra.get("waiting"))
        return engine

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        waiting = dual_audit.write_waiting(self._waiting, self._numbers)
        return snapshot.encode(self._state, self._join.signature(), {"waiting": waiting})

    def push(
        self, batch: Batch | None = None, *, left: Table = None, right: Table = None, flush: bool = False
    ) -> Output:
        """Run rows through the join, as `Engine.push` does; `flush` also empties the queue and the aux-windows."""
        if batch is None:
            batch = Batch.of(left, right, start=self.arrived)
        elif left is not None or right is not None:
            raise InputError("push takes either a batch or tables for left and right, not both")
        elif not isinstance(batch, Batch):
            raise InputError(f"push takes a Batch, or tables as left= and right=, not {type(batch).__name__}")
        self._check_order(batch)
        before = self._totals()
        pairs, shed = self._run(batch, flush)
        stats = {name: total - before[name] for name, total in self._totals().items()}
        columns = [np.concatenate([part[i] for part in pairs]) for i in range(3)]
        return Output(columns[0], columns[1], columns[2], ShedLog(shed), stats)

    def flush(self) -> Output:
        """Let what waits, and what stands in the aux-windows, go through the join."""
        return self.push(Batch.of(), flush=True)

    @property
    def arrived(self) -> tuple[int, int]:
        """Rows of each stream so far."""
        left, right = self._state["arrived"]
        return int(left), int(right)

    @property
    def shares(self) -> tuple[float, float]:
        """k_r and k_f: what is shed at the rear and at the front."""
        return float(self._state["rear"]), float(self._state["front"])

    @property
    def reached(self) -> int | None:
        """The time of the last row that has left the aux-windows: results are complete up to there."""
        return None if self._state["instant"] == NEVER else int(self._state["instant"])

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the beginning."""
        return self._totals()

    @property
    def matched_importance(self) -> float:
        """Summed importance of the results so far (after the warm-up)."""
        return float(self._state["importance_sum"])

    @property
    def worked(self) -> float:
        """Units of work that the virtual CPU has done."""
        return float(self._state["worked"])

    def _totals(self) -> dict[str, int]:
        return {name: int(self._state[name]) for name in ds.COUNTERS}

    def _check_order(self, batch: Batch) -> None:
        times = np.concatenate((self._waiting.ts[-1:], batch.ts))
        if (np.diff(times) < 0).any():
            row = int(np.argmax(np.diff(times) < 0))
            raise InputError(f"dual windows need rows in order of ts, but {times[row + 1]} comes after {times[row]}")

    def _run(self, batch: Batch, flush: bool) -> tuple[list[Any], list[NDArray[Any]]]:
        io = self._traffic(batch)
        io["flush"] = int(flush)
        pairs: list[Any] = []
        shed: list[NDArray[Any]] = []
        need = -1
        while need != dual_loop.DONE:
            need = dual_loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
            if need == dual_loop.NEED_STORE:
                store.grow(self._state, int(io["part"]), 1)
            elif need == dual_loop.NEED_TABLE:
                _grow_histogram(self._state, int(io["wanted"]))
            elif need == dual_loop.NEED_RINGS:
                _grow_rings(self._state)
            elif need == dual_loop.NEED_ADAPT:
                self._adapt(int(io["now"]))
            if need in (dual_loop.NEED_PAIRS, dual_loop.DONE):
                count = int(io["pairs"])
                pairs.append([io.arrays[name][:count].copy() for name in ds.OUT])
                io["pairs"] = 0
                if need == dual_loop.NEED_PAIRS and io["out_left_room"] < io["wanted"]:
                    _hold_pairs(io, int(io["wanted"]))
            if need in (dual_loop.NEED_SHED, dual_loop.DONE):
                shed.append(io.arrays["out_shed"][: int(io["shed"])].copy().reshape(-1).view(SHED_RECORD))
                io["shed"] = 0
        self._keep_waiting(io, batch)
        return pairs, shed

    def _traffic(self, batch: Batch) -> Handle:
        """Rows that waited and new ones, and the buffers for what comes of them."""
        waiting, new = len(self._waiting), len(batch)
        numbers = np.empty(new, np.int64)
        for stream in range(len(STREAMS)):
            mine = batch.stream == stream
            numbers[mine] = self.arrived[stream] + np.arange(int(mine.sum()))
            self._state["arrived"][stream] += int(mine.sum())
        # A null meets nothing, and takes no room in a window.
        there = ~batch.null
        batch, numbers = batch.take(np.flatnonzero(there)), numbers[there]
        self._state["null"] += new - len(batch)
        new = len(batch)
        columns = [
            np.concatenate((getattr(self._waiting, name), getattr(batch, name)))
            for name in ("stream", "key", "ts", "importance", "null")
        ]
        self._numbers = np.concatenate((self._numbers, numbers))
        self._waiting = Batch(
            columns[0], columns[1], columns[4], columns[2], columns[3], np.ones(waiting + new, np.int64)
        )
        io = Handle(ds.IO_RECORD)
        io.hold(
            row_stream=columns[0],
            row_key=columns[1],
            row_ts=columns[2],
            row_number=self._numbers,
            row_importance=columns[3],
            line=np.concatenate((np.arange(waiting), np.zeros(new + 1, np.int64))),
            out_shed=np.empty((CHUNK, SHED_FIELDS), np.int64),
        )
        io.resize(**{name: array.shape[0] for name, array in io.arrays.items()})
        _hold_pairs(io, CHUNK if self._how[0]["emit"] else 1)
        io["at"], io["end"], io["line_to"] = waiting, waiting + new, waiting
        return io

    def _keep_waiting(self, io: Handle, batch: Batch) -> None:
        line = io.arrays["line"][int(io["line_from"]) : int(io["line_to"])]
        self._waiting, self._numbers = self._waiting.take(line), self._numbers[line]

    def _adapt(self, now: int) -> None:
        """Measure the streams' speeds; set k_r and k_f by them."""
        join, st = self._join, self._state
        elapsed = now - int(st["last_adapt"])
        first = st["last_adapt"] == NEVER
        came = st["came"].astype(np.float64)
        st["last_adapt"], st["next_adapt"], st["came"] = now, now + join.period, 0
        if first or came.sum() == 0:
            return
        rates = came / elapsed
        probes, updates = join.speeds()
        entering = float(rates.sum())
        if join.front is True:
            best = self._best_speed(rates)
            if best is not None:
                st["front"] = max(0.0, 1.0 - best / entering)
                entering = min(entering, best)
        elif join.front is not False:
            entering *= 1.0 - join.front
        if join.rear is True:
            st["rear"] = rear_share(entering, probes, updates)

    def _best_speed(self, rates: NDArray[np.float64]) -> float | None:
        """V_opt at these rates, computed once for rates that are about the same; None while nothing is known of the values."""
        rounded = np.maximum(np.round(rates / (1.0 if self._join.timed else rates.sum()), 2), 1e-3)
        if self._join.distribution is None:
            chances = self._learned()
            return None if chances is None else self._join.best_speed(chances, tuple(rounded)).rows
        place = tuple(rounded.tolist())
        if place not in self._known_speeds:
            self._known_speeds[place] = self._join.best_speed(self._join.distribution, place).rows
        return self._known_speeds[place]

    def _learned(self) -> Probabilities | None:
        """How often values are in the window-histograms; None while one of them is empty."""
        keys, tags, counts = (self._state.arrays[name] for name in ds.HIST)
        values = np.unique(keys[tags != 0])
        tables = []
        for stream in range(len(STREAMS)):
            mine = (tags == stream + 1) & (counts > 0)
            if not mine.any():
                return None
            table = np.zeros(values.size)
            table[np.searchsorted(values, keys[mine])] = counts[mine]
            tables.append(table.tolist())
        return tables[0], tables[1]


def _hold_pairs(io: Handle, size: int) -> None:
    io.hold(**{name: np.empty(size, kind) for name, kind in ds.OUT.items()})
    io.resize(**dict.fromkeys(ds.OUT, size))


def _allocate(join: DualJoin, seed: int) -> Handle:
    """The empty windows of a new join."""
    st = Handle(ds.STATE_RECORD)
    store.allocate(st, NEVER)
    st.hold(**{name: np.zeros(LEAST, kind) for name, kind in {**ds.AUX, **ds.HIST}.items()})
    st.hold(**{name: np.zeros((len(STREAMS), LEAST), kind) for name, kind in ds.RINGS.items()})
    st.hold(tree=np.zeros((len(STREAMS), LEAST), np.int64))
    _measure(st)
    st["random"] = first_random_state(seed)
    st["next_adapt"] = st["last_adapt"] = st["instant"] = NEVER
    st["rear"] = 0.0 if isinstance(join.rear, bool) else join.rear
    st["front"] = 0.0 if isinstance(join.front, bool) else join.front
    return st


def _measure(st: Handle) -> None:
    store.measure(st)
    names = (*ds.AUX, *ds.HIST, *ds.RINGS, "tree")
    st.resize(**{name: st.arrays[name].shape[-1] for name in names})


def _grow_rings(st: Handle) -> None:
    """Twice the room for the aux-window and the values in order; what is there keeps its order."""
    old, size = st.arrays["aux_key"].size, int(st["aux_to"] - st["aux_from"])
    places = np.arange(int(st["aux_from"]), int(st["aux_to"]))
    for name, kind in ds.AUX.items():
        array = np.zeros(2 * old, kind)
        array[places % (2 * old)] = st.arrays[name][places % old]
        st.hold(**{name: array})
    assert size < 2 * old
    ring = st.arrays["ring_key"].shape[1]
    for name, kind in ds.RINGS.items():
        wide = np.zeros((len(STREAMS), 2 * ring), kind)
        for stream in range(len(STREAMS)):
            places = np.arange(int(st["ring_from"][stream]), int(st["ring_to"][stream]))
            wide[stream, places % (2 * ring)] = st.arrays[name][stream, places % ring]
        st.hold(**{name: wide})
    _plant_trees(st, 2 * ring)
    _measure(st)


def _plant_trees(st: Handle, size: int) -> None:
    """The Fenwick trees over expected partners, anew."""
    trees = np.zeros((len(STREAMS), size), np.int64)
    places = np.arange(int(st["aux_from"]), int(st["aux_to"])) % st.arrays["aux_key"].size
    for stream in range(len(STREAMS)):
        mine = places[st.arrays["aux_stream"][places] == stream]
        counts = np.bincount(st.arrays["aux_expected"][mine] + 1, minlength=size)
        sums = np.concatenate(([0], np.cumsum(counts)))
        nodes = np.arange(1, size)
        trees[stream, 1:] = sums[nodes + 1] - sums[nodes + 1 - (nodes & -nodes)]
    st.hold(tree=trees)


def _grow_histogram(st: Handle, wanted: int) -> None:
    """A larger table without values that are no longer counted."""
    keys, tags, counts = (st.arrays[name] for name in ds.HIST)
    alive = np.flatnonzero(counts * (tags != 0))
    size = LEAST
    while size < 4 * (alive.size + wanted + 8):
        size *= 2
    old = [(int(keys[at]), int(tags[at]) - 1, int(counts[at])) for at in alive]
    st.hold(**{name: np.zeros(size, kind) for name, kind in ds.HIST.items()})
    st["hist_used"] = 0
    _measure(st)
    columns = np.array(old, np.int64).reshape(-1, 3)
    dual_loop.refill(st.for_kernel(), columns)
