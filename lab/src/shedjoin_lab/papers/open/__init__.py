"""What the papers left open, and what this system makes of it: no paper, but the same kind of figures and claims."""

from shedjoin_lab.papers.open import archive, index, shared, top

FIGURES = tuple(module.FIGURE for module in (archive, shared, index, top))
