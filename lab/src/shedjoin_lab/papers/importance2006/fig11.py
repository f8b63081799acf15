"""Figure 11: effect of skew when both streams have it alike, M = 200, w = 400 (section 5.2.4)."""

from __future__ import annotations

from shedjoin_lab.experiment import Params, Scale
from shedjoin_lab.papers.importance2006.synthetic import ROWS, all_methods, importance_figure

SKEWS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def parameters(scale: Scale) -> list[Params]:
    """Both streams with the same Zipf parameter and the same popular keys."""
    rows: list[Params] = []
    for skew in (0.0, 1.0) if scale.quick else SKEWS:
        rows += all_methods(
            scale,
            memory=[200],
            rows=[ROWS],
            window=[400],
            warmup=[800],
            domain=[100],
            skew_left=[skew],
            skew_right=[skew],
        )
    return rows


FIGURE = importance_figure(
    "fig11",
    "Importance against the skew of both streams, correlated, M = 200, w = 400",
    parameters,
    x="skew_left",
    x_label="Zipf parameter of both streams",
    share=True,
    minutes=0.4,
)
