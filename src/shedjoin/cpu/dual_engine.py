"""DualEngine: a running join with dual windows (dual2006)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS, Batch
from shedjoin.batch import Table as Columns
from shedjoin.cpu import dual_audit, dual_loop, needs
from shedjoin.cpu import dual_state as ds
from shedjoin.cpu.codes import NEVER
from shedjoin.cpu.dual_speed import Probabilities, Speed, rear_share
from shedjoin.cpu.engine import CHUNK
from shedjoin.cpu.state import SHED_FIELDS
from shedjoin.engine import snapshot
from shedjoin.engine.handle import Handle
from shedjoin.engine.memory import first_random_state
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import shed_record
from shedjoin.engine.running import Running
from shedjoin.errors import InputError
from shedjoin.estimators import Table
from shedjoin.predicates import bitmaps, store

#: Tables and rings begin with this many places.
LEAST = 64


class Settings(Protocol):
    """What the engine asks of a `DualJoin`."""

    @property
    def rear(self) -> bool | float: ...
    @property
    def front(self) -> bool | float: ...
    @property
    def period(self) -> int: ...
    @property
    def timed(self) -> bool: ...
    @property
    def distribution(self) -> Probabilities | None: ...
    @property
    def drop(self) -> str | Table: ...

    def settings(self, *, warmup: int, emit: bool) -> NDArray[Any]: ...
    def signature(self) -> dict[str, Any]: ...
    def speeds(self) -> tuple[float, float]: ...
    def best_speed(self, distribution: Probabilities, rates: Any = ...) -> Speed: ...


class DualEngine(Running):
    """One running join with dual windows. Made by `DualJoin.build` or `DualJoin.resume`."""

    def __init__(self, join: Settings, seed: int = 0, *, warmup: int = NEVER, emit: bool = True) -> None:
        self._join = join
        self._how = join.settings(warmup=warmup, emit=emit)
        self._state = _allocate(join, seed)
        self._waiting = Batch.of()
        self._numbers = np.empty(0, np.int64)
        self._newest = NEVER  # the time of the last row that came
        self._known_speeds: dict[tuple[float, ...], float] = {}

    @classmethod
    def resume(cls, join: Settings, saved: bytes) -> DualEngine:
        """An engine that goes on from a snapshot."""
        engine = cls(join)
        extra = snapshot.decode(saved, engine._state, join.signature())
        _measure(engine._state)
        dual_audit.audit(engine._state)
        bitmaps.renew(engine._state)
        engine._waiting, engine._numbers = dual_audit.read_waiting(extra.get("waiting"))
        engine._newest = dual_audit.read_newest(extra.get("newest", NEVER))
        return engine

    def snapshot(self) -> bytes:
        """The whole state between two pushes, with a version and a checksum."""
        waiting = dual_audit.write_waiting(self._waiting, self._numbers)
        return snapshot.encode(self._state, self._join.signature(), {"waiting": waiting, "newest": self._newest})

    def push(
        self, batch: Batch | None = None, *, left: Columns = None, right: Columns = None, flush: bool = False
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
        self._newest = int(batch.ts[-1]) if len(batch) else self._newest
        stats = {name: total - before[name] for name, total in self._totals().items()}
        columns = [np.concatenate([part[i] for part in pairs]) for i in range(3)]
        return Output((columns[0], columns[1]), columns[2], ShedLog(shed), stats)

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
        # Row windows do not look at times: only what waits has to stay in line.
        last = np.array([self._newest], np.int64) if self._newest != NEVER else batch.ts[:0]
        times = np.concatenate((last if self._join.timed else self._waiting.ts[-1:], batch.ts))
        if (np.diff(times) < 0).any():
            row = int(np.argmax(np.diff(times) < 0))
            raise InputError(f"dual windows need rows in order of ts, but {times[row + 1]} comes after {times[row]}")

    def _run(self, batch: Batch, flush: bool) -> tuple[list[Any], list[NDArray[Any]]]:
        io = self._traffic(batch)
        io["flush"] = int(flush)
        pairs: list[Any] = []
        shed: list[NDArray[Any]] = []
        need = -1
        while need != needs.DONE:
            need = dual_loop.advance(self._how, self._state.for_kernel(), io.for_kernel())
            if need == needs.STORE:
                store.grow(self._state, int(io["part"]), 1)
            elif need == needs.TABLE:
                _grow_histogram(self._state, int(io["wanted"]))
            elif need == needs.RINGS:
                _grow_rings(self._state)
            elif need == needs.ADAPT:
                self._adapt(int(io["now"]))
            if need in (needs.PAIRS, needs.DONE):
                count = int(io["pairs"])
                pairs.append([io.arrays[name][:count].copy() for name in ds.OUT])
                io["pairs"] = 0
                if need == needs.PAIRS and io["out_left_room"] < io["wanted"]:
                    _hold_pairs(io, int(io["wanted"]))
            if need in (needs.SHED, needs.DONE):
                shed.append(io.arrays["out_shed"][: int(io["shed"])].copy().reshape(-1).view(shed_record(2)))
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
            row_chance=_chances(self._join.drop, columns[0], columns[1]),
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
        # Row windows know only the ratio of the rates; time windows hold so many rows, in whatever unit time is.
        about = rates if self._join.timed else rates / rates.sum()
        rounded = [float(f"{max(rate, 1e-3 * float(about.max())):.3g}") for rate in about]
        if self._join.distribution is None:
            chances = self._learned()
            return None if chances is None else self._join.best_speed(chances, tuple(rounded)).rows
        place = tuple(rounded)
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


def _chances(drop: str | Table, stream: NDArray[Any], key: NDArray[np.int64]) -> NDArray[np.float64]:
    """How likely each row's key is in the other stream, by the table of who goes from a full queue."""
    chances = np.zeros(key.size)
    if isinstance(drop, Table):
        for one in range(len(STREAMS)):
            keys, weights = drop.table(1 - one)
            mine = np.flatnonzero((stream == one) & np.isin(key, keys))
            chances[mine] = weights[np.searchsorted(keys, key[mine])]
    return chances


def _hold_pairs(io: Handle, size: int) -> None:
    io.hold(**{name: np.empty(size, kind) for name, kind in ds.OUT.items()})
    io.resize(**dict.fromkeys(ds.OUT, size))


def _allocate(join: Settings, seed: int) -> Handle:
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
