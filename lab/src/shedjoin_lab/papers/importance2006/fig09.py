"""Figure 9: effect of memory, w = 400 (section 5.2.2)."""

from __future__ import annotations

from shedjoin_lab.experiment import Params, Scale
from shedjoin_lab.papers.importance2006.synthetic import ROWS, UNCORRELATED, all_methods, importance_figure

MEMORY = (100, 200, 300, 400, 500, 600, 700, 800)


def parameters(scale: Scale) -> list[Params]:
    """From the lowest memory of the experiment, 100, to what exact needs."""
    sizes = [100, 400] if scale.quick else list(MEMORY)
    return all_methods(scale, memory=sizes, rows=[ROWS], window=[400], warmup=[800], domain=[100], **UNCORRELATED)


FIGURE = importance_figure(
    "fig09",
    "Importance against memory, w = 400, Zipf 1 and 0, domain 100",
    parameters,
    x="memory",
    x_label="memory M (tuples; exact needs 800)",
    share=False,
    minutes=0.2,
)
