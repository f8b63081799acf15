"""DualJoin: an equi-join on a slow CPU that looks ahead before it probes (dual2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import STREAMS
from shedjoin.cpu import dual_codes as codes
from shedjoin.cpu.codes import NEVER
from shedjoin.cpu.dual_speed import Probabilities, Speed, best_speed, partners
from shedjoin.cpu.settings import DROPS, VirtualCpu, check_whole
from shedjoin.engine.codes import IMPORTANCE
from shedjoin.errors import SpecError
from shedjoin.estimators import Table
from shedjoin.window import RowWindow, TimeWindow

if TYPE_CHECKING:
    from shedjoin.cpu.dual_engine import DualEngine

_DROP_CODES = {"random": codes.DROP_RANDOM, "semantic": codes.DROP_COUNTED}


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
        Who goes from a full queue: ``"random"``: any row. ``"semantic"``: the row with the fewest partners in the histogram.
        A `Table`: the row whose key is the least likely in the other stream (PROB with a table that is known). Among equals, any.
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
    drop: str | Table = "random"
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
        if self.queue is not None:
            check_whole("DualJoin", "queue", self.queue, 1)
        known = self.drop.streams == len(STREAMS) if isinstance(self.drop, Table) else self.drop in DROPS
        if not known:
            raise SpecError(
                f"DualJoin.drop must be one of {', '.join(DROPS)} or a Table of two streams, not {self.drop!r}"
            )
        check_whole("DualJoin", "period", self.period, 1)
        if self.importance not in IMPORTANCE:
            raise SpecError(f"DualJoin.importance must be one of {', '.join(IMPORTANCE)}, not {self.importance!r}")
        if self.distribution is not None:
            partners(*_pair("distribution", self.distribution), 1)

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
        from shedjoin.cpu.dual_engine import DualEngine

        return DualEngine(self, seed, warmup=NEVER if warmup is None else warmup, emit=emit)

    def resume(self, saved: bytes) -> DualEngine:
        """Go on from `engine.snapshot()`."""
        from shedjoin.cpu.dual_engine import DualEngine

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
        if isinstance(self.drop, Table):  # JSON and TOML know only text as keys
            sides = {"left": self.drop.left, "right": self.drop.right}
            data["drop"] = {side: {str(key): chance for key, chance in table.items()} for side, table in sides.items()}
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
            made["distribution"] = _pair("distribution", data["distribution"])
        if isinstance(data.get("drop"), Mapping):
            made["drop"] = _table(data["drop"])
        return cls(**made)

    def speeds(self) -> tuple[float, float]:
        """(V_j, V_w): probes and updates that the CPU can do in a time unit."""
        if self.cpu is None:
            raise SpecError("DualJoin.cpu must be given to know speeds")
        return self.cpu.capacity / self.cpu.probe, self.cpu.capacity / self.cpu.update

    def best_speed(self, distribution: Probabilities, rates: Sequence[float] = (1.0, 1.0)) -> Speed:
        """V_opt for streams of these values and rates (rows of each in a time unit; for row windows only their ratio counts)."""
        probes, updates = self.speeds()
        distribution, rates = _pair("distribution", distribution), _pair("rates", rates)
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
            drop=_DROP_CODES.get(str(self.drop), codes.DROP_TABLE) if self.queue is not None else codes.DROP_RANDOM,
            period=self.period if self.cpu is not None else 0,
            warmup=warmup,
            emit=int(emit),
            output_importance=IMPORTANCE[self.importance],
        )
        if self.cpu is not None:
            values |= dict(capacity=self.cpu.capacity, probe_cost=self.cpu.probe, update_cost=self.cpu.update)
        record = np.zeros(1, codes.SETTINGS_RECORD)
        for name, value in values.items():
            record[name] = value
        return record

    def signature(self) -> dict[str, Any]:
        """What must be the same for a snapshot to be resumed."""
        # A table's words are too few to tell it from another.
        known = {}
        if isinstance(self.drop, Table):
            parts = [part.tobytes() for stream in range(len(STREAMS)) for part in self.drop.table(stream)]
            known["drop"] = blake2b(b"".join(parts), digest_size=16).hexdigest()
        return {"dual windows": repr(self), **known}


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    """What is told of both streams."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str) or len(value) != len(STREAMS):
        raise SpecError(f"{name} must have one part for each of two streams, not {value!r}")
    return value[0], value[1]


def _window(data: Any) -> RowWindow | TimeWindow:
    if not isinstance(data, Mapping) or len(data) != 1 or not set(data) <= {"row", "time"}:
        raise SpecError(f"window must be {{'row': rows}} or {{'time': length}}, not {data!r}")
    return RowWindow(data["row"]) if "row" in data else TimeWindow(data["time"])


def _table(data: Mapping[str, Any]) -> Table:
    try:
        left, right = ({int(key): chance for key, chance in data[side].items()} for side in ("left", "right"))
        return Table(left, right)
    except (KeyError, ValueError, AttributeError):
        raise SpecError(f"drop must be a name, or give left and right keys their chances, not {data!r}") from None
