"""gedik2007: CPU load shedding for binary stream joins (B. Gedik, K.-L. Wu, P. S. Yu, L. Liu, KAIS 2007)."""

from shedjoin_lab.papers.gedik2007 import (
    burst,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    news,
)

FIGURES = tuple(
    module.FIGURE
    for module in (
        fig05,
        fig06,
        fig07,
        fig08,
        fig09,
        fig10,
        fig11,
        fig12,
        fig13,
        fig14,
        fig15,
        fig16,
        fig17,
        news,
        burst,
    )
)
