"""Figure 10: domain size 50 (section 4.4)."""

from __future__ import annotations

from shedjoin_lab.papers.das2003.synthetic import memory_sweep

FIGURE = memory_sweep(
    "fig10",
    "Output as a share of OPT against memory, domain 50",
    window=400,
    domain=50,
    skew=1.0,
    methods=("OPT", "PROB", "RAND"),
    as_share=True,
)
