"""importance2006: window join approximation over data streams with importance semantics (CIKM 2006)."""

from shedjoin_lab.papers.importance2006 import (
    dgl_constants,
    estimators,
    fig02,
    fig03,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    table1,
)

FIGURES = tuple(
    module.FIGURE
    for module in (
        fig02,
        fig03,
        fig04,
        fig05,
        fig06,
        fig07,
        fig08,
        fig09,
        fig10,
        fig11,
        table1,
        dgl_constants,
        estimators,
    )
)
