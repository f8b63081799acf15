"""Counts from a join that sheds: how far off they are, and whether their intervals hold. No paper, but figures like theirs."""

from shedjoin_lab.papers.estimates import accuracy, against_uniform, coverage, real

FIGURES = (accuracy.FIGURE, against_uniform.FIGURE, coverage.FIGURE, real.FIGURE)
