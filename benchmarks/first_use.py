"""CPU seconds of the first use of a join on a machine, and of the next: python benchmarks/first_use.py ../before/src src

Builds take turns. Each round has an empty directory for kernels (NUMBA_CACHE_DIR) and two new processes: the first compiles, the
second loads from the disk. Python has compiled the sources before, as an installed package has them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

JOINS = {
    "exact": "sj.JoinSpec(sj.TimeWindow(2))",
    "pair": "sj.JoinSpec(sj.TimeWindow(2), sj.Budget(tuples=2))",
}
PROGRAM = "import shedjoin as sj; {join}.build().push(left={{'key': [1]}}, right={{'key': [1]}})"


def seconds(environment: dict[str, str], program: str) -> float:
    """CPU time of a process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(source: Path, join: str, sources: str) -> tuple[float, float]:
    """The first use and the next. Compiled sources are kept in the directory `sources`."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    known |= {"PYTHONPATH": str(source.resolve()), "PYTHONPYCACHEPREFIX": sources}
    seconds(known, "import shedjoin.engine.engine, numba.np.arraymath, pandas")
    with tempfile.TemporaryDirectory() as kernels:
        known["NUMBA_CACHE_DIR"] = kernels
        program = PROGRAM.format(join=JOINS[join])
        return seconds(known, program), seconds(known, program)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("builds", type=Path, nargs="+", help="src directories")
    parser.add_argument("--join", choices=JOINS, default="exact", help="exact, or a pair under a budget")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as sources:
        for _ in range(args.rounds):
            for source in args.builds:
                first, again = measure(source, args.join, sources)
                print(f"{source}: {args.join}, first use {first:.2f} s, from the disk {again:.2f} s", flush=True)


if __name__ == "__main__":
    main()
