"""Figure 5: Front-shedding: DUAL against rear-shedding alone, W = 400, Zipf 1 (section 5)."""

from __future__ import annotations

from shedjoin_lab.papers.dual2006.speeds import against_speed

FIGURE = against_speed(
    "fig05",
    "Front-shedding: DUAL against rear-shedding alone, W = 400, Zipf 1",
    window=400,
    skew=1.0,
    methods=("DUAL", "REAR"),
    minutes=0.1,
)
