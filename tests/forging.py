"""Forged snapshots: one number of an honest one is changed, the checksum is right again. What becomes of them?

Run as a program (`test_audit` does), so that a forgery that brings the process down fails a test and not the tests. Each must
be refused, or do no harm: what follows must neither read nor write outside the arrays, nor take for ever. Arrays lie between
pages that nobody may touch; with the JIT off, places that count from the end are refused as well.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from naive import Row
from shedjoin.engine import memory, snapshot
from shedjoin.engine.handle import Handle
from strategies import INTERPRETED, REPRESENTATIVES, Case, Chooser, batch, go_on, long_case

#: Every policy, every estimator; the exact join too.
FORGED = [*REPRESENTATIVES, Chooser("keep_all")]
SECONDS = 20

NUMBERS = (
    -(2**63),
    -(2**62),
    -(2**31),
    -1024,
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    64,
    1023,
    1024,
    1025,
    2**31 - 1,
    2**53,
    2**63 - 1,
)
FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.0, -1.0, 5e-324, 1e308, 2.0**62)


#: More than there is room for, in two instants: everything has to grow.
MANY_ROWS = batch([Row(i % 2, i // 4, 10**6 + i // 1500, 1.0, 100) for i in range(3000)])


def case_of(chooser: Chooser, number: int = 3) -> Case:
    """A join in the midst of its work."""
    case = long_case(chooser if chooser.policy != "keep_all" else Chooser("rand"), number)
    if chooser.policy == "keep_all":
        return Case(sj.JoinSpec(case.spec.window, lateness=case.spec.lateness), case.rows, case.cuts)
    return case


def stopped(case: Case) -> tuple[sj.Engine, int]:
    """An engine after half of its pushes, and the number of the next."""
    engine = case.spec.build(seed=case.seed)
    half = len(case.pushes) // 2
    go_on(engine, case, 0, half)
    return engine, half


def encoded(engine: sj.Engine) -> bytes:
    """A snapshot of whatever is there, with the checksum of what is there."""
    return snapshot.encode(engine._state, engine._plan.signature(), {"pending": []})


def fields(state: Handle) -> list[tuple[str, str | None]]:
    """Everything that can be changed: numbers of the record, arrays, and the fields of arrays of records."""
    named = [(name, None) for name in state.record.dtype.names or () if not name.endswith("_at")]
    for array in state.arrays:
        parts = state.arrays[array].dtype.names
        named += [(array, part) for part in parts if part != "unused"] if parts else [(array, "")]
    return named


def column(state: Handle, name: str, part: str | None) -> NDArray[Any]:
    if part is None:
        return state.record[name][0:1]
    return state.arrays[name][part] if part else state.arrays[name]


def places(state: Handle, fresh: Handle, name: str, part: str | None) -> NDArray[np.int64]:
    """Which of a field's numbers to change: those that were used, where there are such."""
    mine = column(state, name, part)
    if part is None:
        return np.arange(mine.size)
    new = fresh.arrays[name]
    changed = state.arrays[name] != new if state.arrays[name].shape == new.shape else np.ones(mine.shape, np.bool_)
    changed = np.broadcast_to(changed.reshape(changed.shape + (1,) * (mine.ndim - changed.ndim)), mine.shape)
    used = np.flatnonzero(changed)
    return used if used.size else np.arange(mine.size)


def forge(state: Handle, fresh: Handle, random: Random, name: str, part: str | None) -> tuple[str, Any]:
    """Change one number of a field (or swap two); returns what was done and how to undo it."""
    numbers = column(state, name, part)
    before = numbers.copy()
    some = places(state, fresh, name, part)
    at, other = (np.unravel_index(int(random.choice(some)), numbers.shape) for _ in range(2))
    old = numbers[at]
    kind = numbers.dtype.kind
    new: Any
    if kind == "f":
        new = random.choice((*FLOATS, float(old) * 2, np.nextafter(old, np.inf), numbers[other]))
    else:
        near = (int(old) + 1, int(old) - 1, int(old) ^ 1, int(old) * 2, random.randrange(1024), int(numbers[other]))
        new = random.choice(NUMBERS + near + near)
        limits = np.iinfo(numbers.dtype)
        new = min(max(new, int(limits.min)), int(limits.max))
    swapped = random.random() < 0.2
    numbers[at] = numbers[other] if swapped else new
    if swapped:
        numbers[other] = old

    def undo() -> None:
        numbers[...] = before

    where = f"{name}.{part}" if part else name
    return f"{where}[{', '.join(map(str, at))}]: {old} -> {numbers[at]}", undo


def forgeries(engine: sj.Engine, random: Random, times: float) -> Iterator[tuple[str, bytes]]:
    """Forged snapshots: each field so many times, or, below 1, with this chance."""
    state = engine._state
    fresh = memory.allocate(engine._plan, engine._how, 0)
    for name, part in fields(state):
        for _ in range(int(times) + (random.random() < times % 1)):
            said, undo = forge(state, fresh, random, name, part)
            forged = encoded(engine)
            undo()
            yield said, forged


def run(case: Case, forged: bytes, first: int, *, grow: bool) -> bool:
    """Go on from a forged snapshot; says whether that was refused."""
    try:
        engine = case.spec.resume(forged)
    except sj.SnapshotError:
        return True
    for rows in case.pushes[first : first + 2]:
        engine.push(batch(rows))
    if grow and not isinstance(case.spec.policy, sj.Replay):
        engine.push(MANY_ROWS)
    if case.spec.budget is not None:
        engine.set_budget(sj.Budget(tuples=4))
    return False


class Strict(np.ndarray[Any, Any]):
    """An array in which no place counts from the end."""

    def __getitem__(self, at: Any) -> Any:
        for place in at if isinstance(at, tuple) else (at,):
            if isinstance(place, int | np.integer) and place < 0:
                raise IndexError(f"place {place} is negative")
        return super().__getitem__(at)


def guarded(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that ends (and, when it fills whole pages, begins) at a page that must not be touched."""
    page = mmap.PAGESIZE
    pages = -(-max(array.nbytes, 1) // page)
    space = mmap.mmap(-1, (pages + 2) * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(space))
    for guard in (start, start + (pages + 1) * page):
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0):
            raise OSError("a page cannot be protected")
    copy = np.frombuffer(space, np.uint8, array.nbytes, (pages + 1) * page - array.nbytes)
    copy = copy.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def strict(array: NDArray[Any]) -> NDArray[Any]:
    return array.copy().view(Strict)


def main(times: float) -> None:
    """Say what is tried before it is tried, and in the end how much was refused."""
    # The system's own way to end a process: it needs no word from Python, which is not asked while a kernel runs.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    memory.aligned = strict if INTERPRETED else guarded
    tried = refused = 0
    for chooser in FORGED:
        case = case_of(chooser)
        engine, first = stopped(case)
        print(f"{chooser}: as it is", flush=True)
        if run(case, encoded(engine), first, grow=not INTERPRETED):
            raise SystemExit("an honest snapshot was refused")
        for said, forged in forgeries(engine, Random(str(chooser)), times):
            print(f"{chooser}: {said}", flush=True)
            signal.alarm(SECONDS)
            refused += run(case, forged, first, grow=not INTERPRETED and tried % 8 == 0)
            signal.alarm(0)
            tried += 1
    print(f"{refused} of {tried} refused")


if __name__ == "__main__":
    main(float(sys.argv[1]))
