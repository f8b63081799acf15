"""What a join takes is known without its kernels: `explain` looks at joins that it does not run."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import shedjoin as sj
from shedjoin.engine.footprint import empty_bytes

window = sj.TimeWindow(10)
specs = [sj.JoinSpec(window, on=sj.Band("x", within=1.0)), sj.JoinSpec(window, selective=sj.Selective(basic=2, rate=False))]
print([empty_bytes(spec.plan()) > 1000 for spec in specs])
"""


def test_it_needs_no_kernels() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "[True, True]\n", done.stderr
