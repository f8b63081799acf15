"""Figure 6: Output against speed, W = 400, Zipf 1 (section 5)."""

from __future__ import annotations

from shedjoin_lab.papers.dual2006.speeds import against_speed

FIGURE = against_speed("fig06", "Output against speed, W = 400, Zipf 1", window=400, skew=1.0)
