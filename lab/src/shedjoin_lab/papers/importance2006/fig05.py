"""Figure 5: running times of ODJA and ESJA against the length of the streams, M/2 = w - 1 (section 5.1)."""

from __future__ import annotations

from shedjoin_lab.experiment import Params, Scale
from shedjoin_lab.papers.importance2006.timing import LENGTHS, runs, time_figure


def parameters(scale: Scale) -> list[Params]:
    """Every length or window, both methods."""
    return runs(scale, lengths=LENGTHS, windows=(100,), nodes=160_000, half=lambda window: window - 1)


FIGURE = time_figure(
    "fig05",
    "Running time of ODJA and ESJA against the length of the streams, M/2 = w - 1",
    parameters,
    x="rows",
    x_label="N (tuples of each stream)",
    minutes=0.3,
)
