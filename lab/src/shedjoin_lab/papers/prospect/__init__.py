"""Prospect, our own policy, against those of the papers: no paper, but the same kind of figures and claims."""

from shedjoin_lab.papers.prospect import auto, gap, iid, real

FIGURES = (*(module.FIGURE for module in (gap, real, iid, auto)), auto.REAL_FIGURE)
