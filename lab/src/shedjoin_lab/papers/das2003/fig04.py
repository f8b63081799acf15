"""Figure 4: effect of memory, window 800 (section 4.1)."""

from __future__ import annotations

from shedjoin_lab.papers.das2003.synthetic import memory_sweep

FIGURE = memory_sweep(
    "fig04",
    "Output against memory, window 800, Zipf 1",
    window=800,
    domain=50,
    skew=1.0,
    methods=("OPT", "PROB", "LIFE", "RAND"),
    as_share=False,
)
