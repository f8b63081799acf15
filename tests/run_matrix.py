"""`make matrix`: hold the laws against combinations in which any four settings meet, and write docs/matrix.md.

python tests/run_matrix.py                                        these, on two cores
python tests/run_matrix.py --more 5000 --seed 3                   and others by lot
python tests/run_matrix.py 2-key-time-tuples-fixed-rand --seed 7  one, with the traceback where a law breaks
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from random import Random

from matrix import Combination, covering, draw, named, random_ones
from matrix_laws import hold
from matrix_page import Failure, page, survey

PAGE = Path(__file__).parent.parent / "docs" / "matrix.md"
#: Combinations that a process takes at a time.
CHUNK = 50
#: Seconds between two lines on the progress.
EVERY = 10.0


def attempts(some: Sequence[Combination], seed: int) -> list[Failure]:
    """The combinations that break a law."""
    warnings.simplefilter("ignore", RuntimeWarning)  # without the compiler numpy remarks on wrapped hashes
    failures = []
    for one in some:
        try:
            hold(draw(one, seed))
        except Exception as reason:
            last = traceback.extract_tb(reason.__traceback__)[-1]
            said = str(reason).splitlines()[0][:200] if str(reason) else last.line
            failures.append(Failure(one, seed, f"{last.name}: {type(reason).__name__}: {said}".replace("|", "/")))
    return failures


def parts(some: Sequence[Combination]) -> Iterator[list[Combination]]:
    """The combinations in a random order, so that the time left can be told."""
    rest = iter(Random(0).sample(some, len(some)))
    while part := list(islice(rest, CHUNK)):
        yield part


def run(some: Sequence[Combination], seed: int, jobs: int) -> list[Failure]:
    failures: list[Failure] = []
    begin = said = time.monotonic()
    done = 0
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(attempts, part, seed): len(part) for part in parts(some)}
        for future in as_completed(running):
            done += running[future]
            for failure in future.result():
                failures.append(failure)
                print(f"{failure.combination} --seed {failure.seed}: {failure.what}", flush=True)
            now = time.monotonic()
            if now - said > EVERY or done == len(some):
                said, rate = now, done / (now - begin)
                left = (len(some) - done) / rate / 60
                print(
                    f"{done:,} of {len(some):,}, {len(failures)} break a law, {rate:.1f} a second, {left:.0f} minutes left",
                    flush=True,
                )
    return failures


def repeat(names: Sequence[str], seed: int) -> None:
    """Run combinations by name; an error shows all of its traceback."""
    for name in names:
        try:
            one = named(name)
        except (KeyError, ValueError):
            sys.exit(f"there is no combination {name!r}: docs/matrix.md has the values, in the order of a name")
        if one.why_not is not None:
            sys.exit(f"{name} has no meaning: {one.why_not.sentence}")
        hold(draw(one, seed))
        print(f"{name} --seed {seed}: all laws hold")


def main() -> None:
    parser = argparse.ArgumentParser(description="Hold the laws against every combination of settings.")
    parser.add_argument("names", nargs="*", help="combinations to repeat; none: all")
    parser.add_argument("--seed", type=int, default=0, help="of the input that is drawn for a combination")
    parser.add_argument("--meet", type=int, default=4, help="how many dials there are of which any values meet")
    parser.add_argument("--more", type=int, default=0, help="run this many others by lot")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is written")
    told = parser.parse_args()
    if told.names:
        repeat(told.names, told.seed)
        return
    print(f"looking for combinations in which any values of {told.meet} dials meet", flush=True)
    some = covering(told.meet, told.seed)
    others = (next(random_ones({}, Random(f"{told.seed} {number}"))) for number in range(told.more))
    some = list(dict.fromkeys([*some, *others]))
    failures = run(some, told.seed, told.jobs)
    how = f"In this run any values of {told.meet} dials occur together, if they can, and {told.more:,} combinations were drawn"
    how += f" by lot; seed {told.seed}{', the JIT off' * (os.environ.get('NUMBA_DISABLE_JIT') == '1')}."
    found = survey(some, failures)
    told.page.write_text(page(found, how))
    print(f"wrote {told.page}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
