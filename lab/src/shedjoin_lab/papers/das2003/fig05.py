"""Figure 5: uniform input, where no online method can do better than chance (section 4.2)."""

from __future__ import annotations

from shedjoin_lab.papers.das2003.synthetic import memory_sweep

FIGURE = memory_sweep(
    "fig05",
    "Output against memory, window 400, uniform keys",
    window=400,
    domain=50,
    skew=0.0,
    methods=("OPT", "PROB", "LIFE", "RAND"),
    as_share=False,
)
