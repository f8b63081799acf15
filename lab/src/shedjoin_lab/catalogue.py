"""Every figure of every paper, by name."""

from __future__ import annotations

from shedjoin.errors import SpecError
from shedjoin_lab.experiment import Figure
from shedjoin_lab.papers import das2003, dual2006, estimates, gedik2007, golab2003, importance2006, prospect
from shedjoin_lab.papers import open as open_questions

PAPERS: dict[str, tuple[Figure, ...]] = {
    "das2003": das2003.FIGURES,
    "importance2006": importance2006.FIGURES,
    "golab2003": golab2003.FIGURES,
    "dual2006": dual2006.FIGURES,
    "gedik2007": gedik2007.FIGURES,
    "prospect": prospect.FIGURES,
    "open": open_questions.FIGURES,
    "estimates": estimates.FIGURES,
}


def find(paper: str, name: str) -> Figure:
    """The figure of that name."""
    for figure in figures(paper):
        if figure.name == name:
            return figure
    known = ", ".join(figure.name for figure in figures(paper))
    raise SpecError(f"{paper} has no figure {name!r}; it has {known}")


def figures(paper: str) -> tuple[Figure, ...]:
    """All figures of a paper."""
    if paper not in PAPERS:
        raise SpecError(f"no paper {paper!r}; there are {', '.join(PAPERS)}")
    return PAPERS[paper]
