"""Where the time of a policy goes, by function and by instruction.

Numba's machine code has no line numbers, and virtual machines have no counters of cache misses. But a timer can ask where
the processor is: an instruction that waits for memory, or for a branch that was guessed wrong, is found there often. Needs a C
compiler, objdump and nm (Debian: gcc, binutils).
"""

from __future__ import annotations

import argparse
import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import codegen
from policies import EXACT_WINDOW, policies, workload

import shedjoin as sj
from shedjoin.engine import loop
from shedjoin.engine.engine import Engine

HERE = Path(__file__).parent
#: A sample every so many nanoseconds.
EVERY = 1_000_000


class Part(NamedTuple):
    """A function in the machine code."""

    first: int
    size: int
    symbol: str

    @property
    def name(self) -> str:
        """Module and function, out of a mangled name like _ZN8shedjoin6engine4heap6removeB3v31B68c8..."""
        found = re.match(r"_ZN8shedjoin6engine((?:\d+[a-z_]+)+)B", self.symbol)
        return ".".join(re.findall(r"\d+([a-z_]+)", found[1])) if found else self.symbol[:60]


def sampler(directory: Path) -> Any:
    """The C part, compiled."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None or shutil.which("objdump") is None or shutil.which("nm") is None:
        sys.exit("profile_kernel needs a C compiler, objdump and nm (Debian: apt install gcc binutils)")
    library = directory / "sampler.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, HERE / "sampler.c", "-lrt"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.start.argtypes = [ctypes.c_long]
    loaded.noted.restype = ctypes.POINTER(ctypes.c_ulong)
    return loaded


def keep_machine_code(kept: dict[str, bytes]) -> None:
    """Numba forgets the machine code that it loads from its cache: note it on the way."""
    library = codegen.JITCodeLibrary
    load = library._unserialize.__func__

    def loading(cls: Any, code: Any, state: Any) -> Any:
        name, kind, data = state
        if kind == "object":
            kept[name] = data[0]
        return load(cls, code, state)

    library._unserialize = classmethod(loading)


def parts_of(machine_code: Path) -> list[Part]:
    lines = subprocess.run(["nm", "-S", "-n", machine_code], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in lines.splitlines()]
    return [Part(int(w[0], 16), int(w[1], 16), w[3]) for w in words if len(w) == 4 and w[2] in "TtWw"]


def instructions_of(machine_code: Path) -> dict[int, str]:
    lines = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", machine_code], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^\s*([0-9a-f]+):\t([^<\n]*)", lines, re.MULTILINE)
    return {int(place, 16): text.strip() for place, text in found}


def sample(spec: sj.JoinSpec, batch: Any, rounds: int, lib: Any) -> tuple[list[int], float]:
    """Where the processor was, and the CPU time of a round."""
    places: list[int] = []
    took = 0.0
    Engine(spec.plan(), 0, emit=False).push(batch)  # loads the kernels
    for _ in range(rounds):
        engine = Engine(spec.plan(), 0, emit=False)
        if lib.start(EVERY) != 0:
            sys.exit("this system has no timers of CPU time")
        begin = time.process_time()
        engine.push(batch)
        took += time.process_time() - begin
        count = lib.stop()
        places += lib.noted()[:count]
    return places, took / rounds


def mapped_at(place: int, maps: list[tuple[int, int, str]]) -> str:
    return next((Path(name).name or "?" for first, end, name in maps if first <= place < end), "?")


def maps_of_process() -> list[tuple[int, int, str]]:
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        first, end = (int(part, 16) for part in words[0].split("-"))
        found.append((first, end, words[5] if len(words) > 5 else ""))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", help="as in docs/benchmarks.md, e.g. 'DGL', 'PROB (History)' or 'exact'")
    parser.add_argument(
        "--memory", type=int, default=100_000, help="tuples (default 100,000); the windows hold twice as many"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="tuples a stream (default 1,000,000)")
    parser.add_argument(
        "--rounds", type=int, default=4, help="runs that are sampled, 1 sample a millisecond (default 4)"
    )
    parser.add_argument(
        "--instructions",
        type=int,
        default=20,
        help="so many are shown, with the two before each (default 20)",
    )
    args = parser.parse_args()
    for name in ("memory", "rows", "rounds", "instructions"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, not {getattr(args, name)}")
    batch, table = workload(args.rows)
    exact = sj.JoinSpec(window=sj.TimeWindow(EXACT_WINDOW))
    window, budget = sj.TimeWindow(args.memory), sj.Budget(tuples=args.memory, allocation="fixed")
    known = {"exact": exact} | {
        name: sj.JoinSpec(window=window, budget=budget, policy=policy)
        for name, policy in policies(table, args.memory, args.rows).items()
    }
    if args.policy not in known:
        parser.error(f"there is no policy {args.policy!r}; those of the benchmark are {', '.join(known)}")
    # Another process compiles what is not compiled yet, so that here the machine code comes from the disk.
    make = "import shedjoin as sj; sj.JoinSpec(sj.TimeWindow(2), {}).build().push(left={{'key': [1]}}, right={{'key': [1]}})"
    plain = args.policy == "exact"
    subprocess.run([sys.executable, "-c", make.format("None" if plain else "sj.Budget(tuples=2)")], check=True)
    kept: dict[str, bytes] = {}
    keep_machine_code(kept)
    entry = loop.advance_plain if plain else loop.advance_pair
    name_of_entry = entry.__name__
    with tempfile.TemporaryDirectory() as name:
        places, took = sample(known[args.policy], batch, args.rounds, sampler(Path(name)))
        if name_of_entry not in kept:
            sys.exit("the kernels were compiled, not loaded: numba's cache cannot be written (see NUMBA_CACHE_DIR)")
        machine_code = Path(name) / "kernel.o"
        machine_code.write_bytes(kept[name_of_entry])
        parts, instructions = parts_of(machine_code), instructions_of(machine_code)
    report(entry, places, took / len(batch) * 1e9, parts, instructions, args.instructions)


def report(
    entry: Any, places: list[int], cost: float, parts: list[Part], instructions: dict[int, str], many: int
) -> None:
    """By function, then the hottest instructions, each after the two before it; a sample falls on the one behind that waits."""
    if len(places) < 100:
        sys.exit(f"{len(places)} samples say nothing: take more --rows or --rounds")
    (compiled,) = entry.overloads.values()
    where = compiled.library.codegen._engine
    base = next(at - part.first for part in parts if (at := where.get_function_address(part.symbol)))
    maps = maps_of_process()
    starts = [part.first for part in parts]
    functions: Counter[str] = Counter()
    hot: Counter[tuple[int, str]] = Counter()
    for place in places:
        at = place - base
        part = parts[max(bisect(starts, at) - 1, 0)]
        if part.first <= at < part.first + part.size:
            functions[part.name] += 1
            hot[at, part.name] += 1
        else:
            functions[mapped_at(place, maps)] += 1
    print(f"{cost:.0f} ns a tuple, {len(places)} samples\n")
    for name, count in functions.most_common(15):
        print(f"{count / len(places) * cost:8.1f} ns  {name}")
    order = sorted(instructions)
    for (at, name), count in hot.most_common(many):
        here = order.index(at)
        print(f"\n{count / len(places):6.1%}  {name}")
        print("\n".join(f"        {instructions[place]}" for place in order[max(here - 2, 0) : here + 1]))


if __name__ == "__main__":
    main()
