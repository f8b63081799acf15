"""das2003: Approximate Join Processing Over Data Streams (A. Das, J. Gehrke, M. Riedewald, SIGMOD 2003)."""

from shedjoin_lab.papers.das2003 import (
    fig03,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fixed_vs_variable,
)

FIGURES = tuple(
    module.FIGURE for module in (fig03, fig04, fig05, fig06, fixed_vs_variable, fig07, fig08, fig09, fig10, fig11)
)
