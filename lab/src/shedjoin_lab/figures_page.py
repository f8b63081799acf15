"""The page of figures: each with what the paper shows and what ours shows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from shedjoin.atomic_file import write_atomic
from shedjoin_lab.claims import UNMEASURED, Claim, claims_of, judge
from shedjoin_lab.experiment import Figure
from shedjoin_lab.printed import printed
from shedjoin_lab.store import Store

#: What no paper has.
OWN = ("prospect", "open", "estimates")

_HEAD = """# Figures

Written by `shedjoin lab plot all --page` from the rows that `shedjoin lab run` stored. [claims.md](claims.md) has the verdicts
and their reasons.
"""


def write_page(figures: Sequence[Figure], store: Store, page: Path) -> None:
    """A section for each figure that is drawn and whose run is finished; pictures are copied to `figures/` beside the page."""
    drawn = [figure for figure in figures if store.path(figure, ".png").exists() and not store.missing(figure)]
    sections = [_section(figure, store, page) for figure in drawn]
    write_atomic(page, lambda file: file.write("\n".join([_HEAD, *sections]).encode()))


def _section(figure: Figure, store: Store, page: Path) -> str:
    name = f"{figure.paper}-{figure.name}.png"
    (page.parent / "figures").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(store.path(figure, ".png"), page.parent / "figures" / name)
    text = f"## {figure.paper}, {figure.name}: {figure.title}\n\n![{figure.paper} {figure.name}](figures/{name})\n\n"
    text += _claims(figure, store) or "No claim is judged by it.\n"
    numbers = printed(figure, store.read(figure))
    if numbers:
        table = [("printed", "the paper", "ours"), ("---",) * 3, *numbers]
        text += "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in table)
    return text


def _claims(figure: Figure, store: Store) -> str:
    """A line for each claim, with the first figure that it is judged by; the others name it."""
    claims = [one for one in claims_of(figure.paper) if figure.name in one.figures]
    told = ""
    for one in claims:
        line = judge(figure.paper, one, store)
        if one.figures[0] == figure.name and line.verdict != UNMEASURED:
            told += f"- {_asked(figure.paper, one)} ({one.paper}). Ours: {line.ours}. **{line.verdict}**\n"
    also = [f"{one.name} ({one.figures[0]})" for one in claims if one.figures[0] != figure.name]
    return told + (f"- Also judges {', '.join(also)}.\n" if also else "")


def _asked(paper: str, claim: Claim) -> str:
    """What a paper claims, or what was asked of what is ours."""
    own = paper in OWN or claim.says.startswith("(ours)")
    return f"{'Asked' if own else 'The paper'}: {claim.says.removeprefix('(ours) ')}"
