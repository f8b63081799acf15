"""Figure 4: running times of ODJA and ESJA against the window, M/2 = 1 (section 5.1)."""

from __future__ import annotations

from shedjoin_lab.experiment import Params, Scale
from shedjoin_lab.papers.importance2006.timing import WINDOWS, runs, time_figure


def parameters(scale: Scale) -> list[Params]:
    """Every length or window, both methods."""
    return runs(scale, lengths=(5600,), windows=WINDOWS, half=lambda window: 1)


FIGURE = time_figure(
    "fig04",
    "Running time of ODJA and ESJA against the window, M/2 = 1",
    parameters,
    x="window",
    x_label="window w (time units)",
    minutes=0.2,
)
