"""SharedQueue: several joins behind one queue, on one slow CPU (das2003's modular model)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from shedjoin.batch import Table
from shedjoin.cpu import needs, shared_loop
from shedjoin.cpu.engine import CHUNK, PredicateEngine
from shedjoin.cpu.join import PredicateJoin
from shedjoin.cpu.rows import Rows
from shedjoin.cpu.settings import Queue, VirtualCpu
from shedjoin.engine.handle import Handle
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.running import Running
from shedjoin.errors import SnapshotError, SpecError

_LENGTH = struct.Struct("<Q")


class SharedQueue(Running):
    """Joins of the same two streams that share a queue and a CPU. Every row that is processed is processed by all of them.

    Parameters
    ----------
    joins
        Each with its own predicate, windows, memory and selective processing, but without `cpu` and `queue`.
    cpu
        The CPU that all share.
    queue
        The queue that all share. With ``drop="semantic"`` a row counts what the statistics of all joins say of it, summed.
    seed
        For queues and policies that draw lots.

    Examples
    --------
    >>> from shedjoin import Band, Equal, TimeWindow
    >>> joins = [PredicateJoin(TimeWindow(9), Equal("x")), PredicateJoin(TimeWindow(5), Band("x", within=1))]
    >>> shared = SharedQueue(joins, VirtualCpu(capacity=50.0), Queue(tuples=10))
    >>> outs = shared.push(left={"x": [1, 2]}, right={"x": [2, 3]}, flush=True)
    >>> [len(out) for out in outs]
    [1, 3]
    """

    def __init__(
        self, joins: Sequence[PredicateJoin], cpu: VirtualCpu, queue: Queue | None = None, *, seed: int = 0
    ) -> None:
        self._joins = _placed(joins, cpu, queue)
        self._engines = [join.build(seed + k) for k, join in enumerate(self._joins)]

    @property
    def engines(self) -> tuple[PredicateEngine, ...]:
        """The running joins, to be looked at: rows come in through `push` here."""
        return tuple(self._engines)

    def push(self, *, left: Table = None, right: Table = None, flush: bool = False) -> list[Output]:
        """Run rows through all joins, as `PredicateEngine.push` does; one output for each."""
        engines = self._engines
        arrived = engines[0].arrived
        tables = [Rows.of(join.predicate, left, right, start=arrived) for join in self._joins]
        before = [engine._totals() for engine in engines]
        made = [engine._traffic(rows, CHUNK) for engine, rows in zip(engines, tables, strict=True)]
        ios = [io for io, _ in made]
        settings = np.concatenate([engine._how for engine in engines])
        states = _together([engine._state for engine in engines])
        traffics = _together(ios)
        ios[0]["flush"] = int(flush)
        pairs: list[list[Any]] = [[] for _ in engines]
        shed: list[list[Any]] = [[] for _ in engines]
        need = -1
        while need != needs.DONE:
            need = shared_loop.advance(settings, states, traffics, len(engines))
            served = range(len(engines)) if need == needs.DONE else (int(ios[0]["who"]),)
            for k in served:
                engines[k]._serve(need, ios[k], pairs[k], shed[k])
        for engine, (io, rows) in zip(engines, made, strict=True):
            engine._keep_waiting(io, rows, ios[0])
            engine._state["in_queue"][:] = engines[0]._state["in_queue"]
        return [_output(engine, pairs[k], shed[k], before[k]) for k, engine in enumerate(engines)]

    def flush(self) -> list[Output]:
        """Process what still waits in the queue."""
        return self.push(flush=True)

    def snapshot(self) -> bytes:
        """All joins and the queue, each part with a version and a checksum."""
        parts = [engine.snapshot() for engine in self._engines]
        return b"".join(_LENGTH.pack(len(part)) + part for part in parts)

    @classmethod
    def resume(cls, joins: Sequence[PredicateJoin], cpu: VirtualCpu, queue: Queue | None, saved: bytes) -> SharedQueue:
        """Go on from `snapshot()`."""
        shared = cls(joins, cpu, queue)
        parts, at = [], 0
        while at + _LENGTH.size <= len(saved):
            (size,) = _LENGTH.unpack_from(saved, at)
            at += _LENGTH.size
            parts.append(saved[at : at + size])
            at += size
        if len(parts) != len(shared._joins) or at != len(saved):
            raise SnapshotError(
                f"the snapshot is of {len(parts)} joins behind one queue, or cut short; there are {len(joins)}"
            )
        shared._engines = [join.resume(part) for join, part in zip(shared._joins, parts, strict=True)]
        return shared


def _placed(joins: Sequence[PredicateJoin], cpu: VirtualCpu, queue: Queue | None) -> list[PredicateJoin]:
    """The joins as they are on the CPU that they share."""
    if not joins or not all(isinstance(join, PredicateJoin) for join in joins):
        raise SpecError(f"SharedQueue.joins must be PredicateJoins, at least one, not {joins!r}")
    if not isinstance(cpu, VirtualCpu):
        raise SpecError(f"SharedQueue.cpu must be a VirtualCpu, not {cpu!r}")
    if queue is not None and (not isinstance(queue, Queue) or queue.integrated):
        raise SpecError(
            f"SharedQueue.queue must be a modular Queue or None, not {queue!r}: an integrated one has one memory"
        )
    if any(join.cpu is not None or join.queue is not None for join in joins):
        raise SpecError("SharedQueue.joins must have neither cpu nor queue of their own: they share one of each")
    return [replace(join, cpu=cpu, queue=queue) for join in joins]


def _output(engine: PredicateEngine, pairs: list[Any], shed: list[Any], before: dict[str, int]) -> Output:
    stats = {name: total - before[name] for name, total in engine._totals().items()}
    columns = [np.concatenate([part[i] for part in pairs]) for i in range(3)]
    return Output((columns[0], columns[1]), columns[2], ShedLog(shed), stats)


def _together(handles: list[Handle]) -> Any:
    """Handles whose records stand side by side, as a kernel for several joins takes them."""
    records = np.concatenate([handle.record for handle in handles])
    for k, handle in enumerate(handles):
        handle.record = records[k : k + 1]
    return handles if numba.config.DISABLE_JIT else records
