"""Figure 7: Output against speed, W = 800, Zipf 1 (section 5)."""

from __future__ import annotations

from shedjoin_lab.papers.dual2006.speeds import against_speed

FIGURE = against_speed("fig07", "Output against speed, W = 800, Zipf 1", window=800, skew=1.0)
