"""Figure 10: effect of domain size, M = 200, w = 400 (section 5.2.3)."""

from __future__ import annotations

from shedjoin_lab.experiment import Params, Scale
from shedjoin_lab.papers.importance2006.synthetic import ROWS, UNCORRELATED, all_methods, importance_figure

#: The paper's sizes were lost with its figure.
DOMAINS = (50, 100, 200, 400, 800, 1600)


def parameters(scale: Scale) -> list[Params]:
    """Everything but the domain as in Figure 9."""
    domains = (50, 400) if scale.quick else DOMAINS
    return all_methods(scale, memory=[200], rows=[ROWS], window=[400], warmup=[800], domain=domains, **UNCORRELATED)


FIGURE = importance_figure(
    "fig10",
    "Importance against domain size, M = 200, w = 400, Zipf 1 and 0",
    parameters,
    x="domain",
    x_label="domain size (different keys)",
    share=True,
    log_x=True,
    minutes=0.1,
)
