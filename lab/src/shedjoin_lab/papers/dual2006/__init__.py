"""dual2006: dual windows, front- and rear-shedding for row-window joins on a slow CPU."""

from shedjoin_lab.papers.dual2006 import fig05, fig06, fig07, fig08, fig09

FIGURES = tuple(module.FIGURE for module in (fig05, fig06, fig07, fig08, fig09))
