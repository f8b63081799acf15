"""Figure 8: Output against speed, W = 400, uniform keys (section 5)."""

from __future__ import annotations

from shedjoin_lab.papers.dual2006.speeds import against_speed

FIGURE = against_speed("fig08", "Output against speed, W = 400, uniform keys", window=400, skew=0.0)
