"""Compile all kernels once, on two cores, so that tests find them on disk: `python tests/kernels.py`."""

from __future__ import annotations

import subprocess
import sys

TWO = "import shedjoin as sj; r = {'key': [1, 2], 'ts': [0, 1]};"
PIECES = (
    # two streams, live recall
    TWO + "from shedjoin.quality import LiveRecall; from shedjoin import Batch;"
    "s = sj.JoinSpec(window=sj.TimeWindow(2), budget=sj.Budget(tuples=2)); e = s.build(); b = Batch.of(r, r);"
    "LiveRecall(s).follow(b, e.push(b)); s.resume(e.snapshot())",
    # other predicates, dual windows, n streams
    "import shedjoin as sj;"
    "w = sj.TimeWindow(9); r = {'ts': [0, 1], 'x': [1, 2]};"
    "sj.PredicateJoin(w, sj.Equal('x')).build().push(left=r, right=r);"
    "sj.PredicateJoin(w, sj.Overlap('y', at_least=1)).build().push(left={'ts': [0], 'y': [[1]]}, right={'ts': [0], 'y': [[1]]});"
    "t = {'ts': [0], 'key': [1]}; m = sj.MultiJoinSpec(windows=dict.fromkeys('abc', w), on='key').build();"
    "m.push(dict.fromkeys('abc', t));"
    "d = sj.DualJoin(sj.RowWindow(2), cpu=sj.VirtualCpu(capacity=1.0, probe=1.0, update=1.0), queue=3, period=5).build();"
    "d.push(left=t, right=t)",
)


def main() -> int:
    running = [subprocess.Popen([sys.executable, "-c", piece]) for piece in PIECES]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main())
