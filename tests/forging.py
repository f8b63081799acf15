"""Forged snapshots: one number of an honest one is changed, the checksum is right again. What becomes of them?

Run as a program (`test_audit` does), so that a forgery that brings the process down fails a test and not the tests. Each must
be refused, or do no harm: what follows must neither read nor write outside the arrays, nor take for ever. Arrays lie between
pages that must not be touched; with the JIT off, places that count from the end are refused as well.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shedjoin as sj
from shedjoin.engine import snapshot
from shedjoin.engine.handle import Handle
from strategies import INTERPRETED, REPRESENTATIVES, Chooser, long_case

#: What follows a forgery may not take for ever.
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
THREE = {"a": sj.TimeWindow(12), "b": sj.RowWindow(9), "c": sj.TimeWindow(15)}
GRAPH = ("a.x = b.x", "b.y = c.y")
SELECTIVE = sj.Selective(basic=3, types=2, period=5, rank_period=7, sample=0.5, fraction=0.5)
CPU, SHARED = sj.VirtualCpu(2.0, probe=0.5, update=0.25), sj.Queue(integrated=True, drop="semantic")
#: Joins of three streams: on a key, and along a join graph.
MANY: dict[str, dict[str, Any]] = {
    "key": {"policy": sj.Prob(sj.InWindow())},
    "key, dgl": {"policy": sj.Dgl()},
    "key, age": {"policy": sj.Age()},
    "exact": {"on": GRAPH},
    "lazy": {"on": GRAPH, "evaluate_every": 4},
    "rand": {"on": GRAPH, "policy": sj.Rand()},
    "simp_prob": {"on": GRAPH, "policy": sj.SimpProb(sj.InMemory())},
    "prob": {"on": GRAPH, "policy": sj.Prob(sj.InWindow())},
    "dimp_prob": {"on": GRAPH, "policy": sj.DimpProb(sj.History())},
    "life": {"on": GRAPH, "policy": sj.Life(sj.CountMin(4, 2))},
    "dgl": {"on": GRAPH, "policy": sj.Dgl(estimator=sj.Decayed(5.0))},
    "age": {"on": GRAPH, "policy": sj.Age(sj.Decayed(5.0))},
    "selective": {"policy": sj.Prob(sj.InWindow()), "selective": SELECTIVE},
    "selective graph": {"on": GRAPH, "selective": SELECTIVE},
    "queue": {"cpu": CPU, "queue": sj.Queue(tuples=4), "policy": sj.Dgl()},
    "semantic queue": {"on": GRAPH, "cpu": CPU, "queue": sj.Queue(span=3, drop="semantic")},
    "integrated queue": {"on": GRAPH, "cpu": CPU, "queue": SHARED, "policy": sj.Prob(sj.InWindow())},
    "integrated queue, rand": {"cpu": CPU, "queue": SHARED, "policy": sj.Rand()},
    "integrated queue, simp_prob": {"cpu": CPU, "queue": SHARED, "policy": sj.SimpProb()},
    "dual": {"window": dict.fromkeys("abc", sj.RowWindow(5)), "cpu": CPU, "dual": sj.Dual(True, 0.2, 5)},
    "dual, life": {"window": dict.fromkeys("abc", sj.TimeWindow(5)), "dual": sj.Dual(0.3, False), "policy": sj.Life()},
}


SETS, NUMBER = sj.Overlap("tags", 1), sj.Theta("number", "<")
#: Joins of two streams on sets and on numbers.
ITEMS: dict[str, dict[str, Any]] = {
    "prob": {"on": SETS, "policy": sj.Prob(sj.InWindow())},
    "selective queue": {"on": SETS, "cpu": CPU, "queue": sj.Queue(tuples=4), "selective": SELECTIVE},
    "semantic queue": {"on": SETS, "cpu": CPU, "queue": sj.Queue(tuples=4, drop="semantic"), "policy": sj.Dgl()},
    "integrated queue": {"on": SETS, "cpu": CPU, "queue": SHARED, "policy": sj.Prob(sj.History())},
    "numbers": {"on": NUMBER, "cpu": CPU, "queue": SHARED, "policy": sj.Life(sj.InWindow())},
}


@dataclass(frozen=True)
class Forged:
    """A join in the midst of its work, and what comes next."""

    name: str
    spec: sj.JoinSpec
    pushes: list[list[dict[str, Any]]]
    seed: int = 0

    def batch(self, engine: sj.Engine, number: int) -> sj.Batch:
        return engine.rows({name: [row[name] for row in self.pushes[number]] for name in self.pushes[number][0]})

    def stopped(self) -> sj.Engine:
        """The engine after half of its pushes."""
        engine = self.spec.build(seed=self.seed)
        for number in range(len(self.pushes) // 2):
            engine.push(self.batch(engine, number))
        return engine


def _pair(chooser: Chooser) -> Forged:
    case = long_case(chooser if chooser.policy != "keep_all" else Chooser("rand"), 3)
    spec = case.spec
    if chooser.policy == "keep_all":
        spec = sj.JoinSpec(spec.window, lateness=spec.lateness)
    columns = ("stream", "key", "ts", "importance", "bytes")
    pushes = [[dict(zip(columns, row, strict=False)) for row in rows] for rows in case.pushes if rows]
    return Forged(str(chooser), spec, pushes, case.seed)


def _many(name: str) -> Forged:
    settings, random = MANY[name], Random(name)
    budget = sj.Budget(tuples=18) if "policy" in settings else None
    spec = sj.JoinSpec(**{"window": THREE, "lateness": 2, "budget": budget, "order": tuple("abc"), **settings})
    values = ("stream", "ts", "x", "y", "key", "importance")
    pushes = []
    for start in range(0, 60, 10):
        lines = [
            (random.randrange(3), start + line // 3 - random.choice((0, 0, 1)), *(random.randrange(4) for _ in "xyk"),
             random.choice((1.0, 2.0)))
            for line in range(30)
        ]  # fmt: skip
        pushes.append([dict(zip(values, line, strict=True)) for line in lines])
    return Forged(f"three streams, {name}", spec, pushes)


def _items(name: str) -> Forged:
    settings, random = ITEMS[name], Random(name)
    budget = sj.Budget(tuples=12) if "policy" in settings else None
    spec = sj.JoinSpec(**{"window": (sj.TimeWindow(12), sj.TimeWindow(9)), "lateness": 2, "budget": budget, **settings})
    pushes = [
        [
            {
                "stream": random.randrange(2),
                "ts": start + line // 3 - random.choice((0, 0, 1)),
                "tags": random.sample(range(6), random.randrange(4)),
                "number": random.uniform(-9.0, 9.0),
                "kind": random.randrange(2),
            }
            for line in range(30)
        ]
        for start in range(0, 60, 10)
    ]
    return Forged(f"two streams, {name}", spec, pushes)


#: Every policy, every estimator, every layout; exact joins too.
JOINS = [
    *(_pair(chooser) for chooser in (*REPRESENTATIVES, Chooser("keep_all"))),
    *map(_many, MANY),
    *map(_items, ITEMS),
]


def forgeries(engine: sj.Engine, random: Random, times: float) -> Iterator[tuple[str, bytes]]:
    """Forged snapshots: each column this many times, or, below 1, with this chance."""
    saved = snapshot.unpack(engine.snapshot())
    for name, column in saved.columns.items():
        parts = column.dtype.names or (None,)
        for part in parts:
            for _ in range(int(times) + (random.random() < times % 1)):
                forged = column.copy()
                numbers = (forged if part is None else forged[part]).reshape(-1)
                if not numbers.size:
                    continue
                said = _forge(numbers, random)
                if part is None:
                    forged = numbers.reshape(column.shape)
                else:
                    forged[part] = numbers.reshape(forged[part].shape)
                columns = {**saved.columns, name: forged}
                yield f"{name} {part or ''}{said}", snapshot.pack(columns, saved.signature, saved.extra)


def _forge(numbers: NDArray[Any], random: Random) -> str:
    """Change one number (or swap two)."""
    at, other = random.randrange(numbers.size), random.randrange(numbers.size)
    old = numbers[at]
    new: Any
    if numbers.dtype.kind == "f":
        new = random.choice((*FLOATS, float(old) * 2, np.nextafter(old, np.inf), numbers[other]))
    else:
        near = (int(old) + 1, int(old) - 1, int(old) ^ 1, int(old) * 2, random.randrange(1024), int(numbers[other]))
        limits = np.iinfo(numbers.dtype)
        new = min(max(random.choice(NUMBERS + near + near), int(limits.min)), int(limits.max))
    swapped = random.random() < 0.2
    numbers[at] = numbers[other] if swapped else new
    if swapped:
        numbers[other] = old
    return f"[{at}]: {old} -> {numbers[at]}"


def run(join: Forged, forged: bytes) -> bool:
    """Go on from a forged snapshot; says whether that was refused."""
    try:
        engine = join.spec.resume(forged)
    except sj.SnapshotError:
        return True
    for number in range(len(join.pushes) // 2, len(join.pushes) // 2 + 2):
        engine.push(join.batch(engine, number))
    if join.spec.budget is not None:
        engine.set_budget(sj.Budget(tuples=4))
    if join.spec.cpu is not None or join.spec.dual is not None:
        engine.flush()
    engine.snapshot()
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


def guard_arrays() -> None:
    """From now on, whatever a handle holds is guarded before kernels see it."""
    wrap = (lambda array: array.copy().view(Strict)) if INTERPRETED else guarded
    kernels = Handle.for_kernel

    def for_kernel(self: Handle) -> Any:
        if not getattr(self, "is_guarded", False):
            self.is_guarded = True  # type: ignore[attr-defined]
            rooms = {name: int(self[f"{name}_room"]) for name in self.arrays}
            self.hold(**{name: wrap(array) for name, array in self.arrays.items() if array.nbytes < 1 << 20})
            self.resize(**rooms)  # some use a part of their arrays
        return kernels(self)

    Handle.for_kernel = for_kernel  # type: ignore[method-assign]


def main(times: float) -> None:
    """Say what is tried before it is tried, and in the end how much was refused."""
    # The system's own way to end a process: it needs no word from Python, which is not asked while a kernel runs.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    tried = refused = 0
    stopped = [(join, join.stopped()) for join in JOINS]
    guard_arrays()
    for join, engine in stopped:
        print(f"{join.name}: as it is", flush=True)
        if run(join, engine.snapshot()):
            raise SystemExit("an honest snapshot was refused")
        for said, forged in forgeries(engine, Random(join.name), times):
            print(f"{join.name}: {said}", flush=True)
            signal.alarm(SECONDS)
            refused += run(join, forged)
            signal.alarm(0)
            tried += 1
    print(f"{refused} of {tried} refused")


if __name__ == "__main__":
    main(float(sys.argv[1]))
