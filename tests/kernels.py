"""Compile all kernels once, on two cores, so that tests find them on disk: `python tests/kernels.py`."""

from __future__ import annotations

import subprocess
import sys

PIECES = (
    # two streams with live recall, n streams
    "import shedjoin as sj; from shedjoin.quality import LiveRecall;"
    "r = {'key': [1, 2], 'ts': [0, 1]}; b = sj.Batch.of(r, r);"
    "s = sj.JoinSpec(window=sj.TimeWindow(2), budget=sj.Budget(tuples=2)); e = s.build();"
    "LiveRecall(s).follow(b, e.push(b)); s.resume(e.snapshot());"
    "n = sj.MultiJoinSpec(windows=dict.fromkeys('abc', sj.TimeWindow(9)), on='key', budget=sj.Budget(tuples=9));"
    "n.build().push(dict.fromkeys('abc', r))",
    # other predicates, dual windows
    "import shedjoin as sj;"
    "r = {'ts': [0, 1], 'key': [1, 2], 'y': [[1], [2]]}; w = sj.TimeWindow(9);"
    "sj.PredicateJoin(w, sj.Equal('key')).build().push(left=r, right=r);"
    "sj.PredicateJoin(w, sj.Overlap('y', at_least=1)).build().push(left=r, right=r);"
    "d = sj.DualJoin(sj.RowWindow(2), cpu=sj.VirtualCpu(capacity=1.0, probe=1.0, update=1.0), queue=3, period=5).build();"
    "r.pop('y'); d.push(left=r, right=r);"
    "q = sj.SharedQueue([sj.PredicateJoin(w, sj.Equal('key'))] * 2, sj.VirtualCpu(capacity=50.0), sj.Queue(tuples=10));"
    "q.push(left=r, right=r, flush=True)",
)


def main() -> int:
    running = [subprocess.Popen([sys.executable, "-c", piece]) for piece in PIECES]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main())
