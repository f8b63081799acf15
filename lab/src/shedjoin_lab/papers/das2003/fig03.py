"""Figure 3: effect of memory, window 400 (section 4.1)."""

from __future__ import annotations

from shedjoin_lab.papers.das2003.synthetic import memory_sweep

FIGURE = memory_sweep(
    "fig03",
    "Output against memory, window 400, Zipf 1",
    window=400,
    domain=50,
    skew=1.0,
    methods=("OPT", "PROB", "LIFE", "RAND"),
    as_share=False,
)
