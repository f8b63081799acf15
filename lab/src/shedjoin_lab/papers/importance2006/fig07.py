"""Figure 7: memory of ODJA and ESJA against the length of the streams, w = 100, M/2 = 1 (section 5.1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from shedjoin.errors import EnvironmentProblem
from shedjoin.plots.plot import Panel, Plot
from shedjoin_lab.experiment import Figure, Params, Row, Scale
from shedjoin_lab.import_paths import IMPORT_PATHS
from shedjoin_lab.papers.importance2006.timing import LENGTHS, METHODS_TIMED, runs
from shedjoin_lab.summary import number

METHODS_MEASURED = (*METHODS_TIMED, "ODJA, two instants")
FOOTPRINT = "shedjoin_lab.papers.importance2006.footprint"


def parameters(scale: Scale) -> list[Params]:
    """Every length, both methods."""
    return runs(scale, lengths=LENGTHS, windows=(100,), half=lambda window: 1, methods=METHODS_MEASURED, nodes=560_000)


def measure(params: Params, data: Path | None) -> list[Row]:
    """In a process of its own, for what other runs left in memory would be counted or used again."""
    del data
    path = os.pathsep.join(filter(None, (*IMPORT_PATHS, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", FOOTPRINT, json.dumps(params)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EnvironmentProblem(f"memory could not be measured: {done.stderr.strip().splitlines()[-1]}")
    return [{**params, **json.loads(done.stdout)}]


def _drawn(rows: list[Row]) -> list[Row]:
    return [{**row, "megabytes": number(row, "top_kilobytes") / 1000} for row in rows]


FIGURE = Figure(
    paper="importance2006",
    name="fig07",
    title="Memory of ODJA and ESJA against the length of the streams, M/2 = 1",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="rows",
        x_label="N (tuples of each stream)",
        panels=(Panel("memory", "megabytes", "most memory in use above the start (MB)", log_y=True),),
        caption="Resident memory of a process of its own, less what it had before the streams were read. "
        "Domain, skew and window were lost with the figure: 100, Zipf 1 and 0, 100.",
    ),
    derive=_drawn,
    minutes=4.0,
)
