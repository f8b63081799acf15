"""Prospect, our own policy, against those of the papers: no paper, but the same kind of figures and claims."""

from shedjoin_lab.papers.prospect import gap, iid, real

FIGURES = tuple(module.FIGURE for module in (gap, real, iid))
