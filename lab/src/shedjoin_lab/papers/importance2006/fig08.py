"""Figure 8: effect of tuple lifetime, M = 200 (section 5.2.1)."""

from __future__ import annotations

from typing import Any

from shedjoin_lab.experiment import Params, Scale, grid
from shedjoin_lab.papers.importance2006.synthetic import ROWS, UNCORRELATED, all_methods, importance_figure

WINDOWS = (200, 300, 400, 500, 600, 700, 800)


def parameters(scale: Scale) -> list[Params]:
    """Counting starts at twice the largest window for all, so that windows can be compared."""
    windows = (200, 800) if scale.quick else WINDOWS
    warmup = [2 * max(WINDOWS)]
    fixed: dict[str, Any] = {"rows": [ROWS], "warmup": warmup, "domain": [100], **UNCORRELATED}
    uneven = {**fixed, "importance_of": ["ten_times_rare_high"], "seed": range(scale.seeds)}
    return [
        *all_methods(scale, memory=[200], window=windows, **fixed),
        *grid(method=["OPT"], memory=[200], window=(200, 800), **uneven),
    ]


FIGURE = importance_figure(
    "fig08",
    "Importance against window, M = 200, Zipf 1 and 0, domain 100",
    parameters,
    x="window",
    x_label="window w (time units)",
    share=False,
    minutes=0.3,
)
