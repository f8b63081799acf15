"""Figure 11: domain size 200 (section 4.4)."""

from __future__ import annotations

from shedjoin_lab.papers.das2003.synthetic import memory_sweep

FIGURE = memory_sweep(
    "fig11",
    "Output as a share of OPT against memory, domain 200",
    window=400,
    domain=200,
    skew=1.0,
    methods=("OPT", "PROB", "RAND"),
    as_share=True,
)
