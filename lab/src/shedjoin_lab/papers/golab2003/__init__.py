"""golab2003: Processing Sliding Window Multi-Joins in Continuous Queries over Data Streams (L. Golab, M. T. Ozsu, VLDB 2003)."""

from shedjoin_lab.papers.golab2003 import (
    fig02,
    fig03,
    fig04a,
    fig04b,
    flights,
    ships,
    table3,
    table8,
    tables567,
)

FIGURES = tuple(module.FIGURE for module in (table3, fig02, fig03, tables567, table8, fig04a, fig04b, flights, ships))
