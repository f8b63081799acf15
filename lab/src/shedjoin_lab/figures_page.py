"""The page of figures: each with what the paper shows and what ours shows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from shedjoin.atomic_file import write_atomic
from shedjoin_lab.claims import UNMEASURED, Line, claims_of, judge
from shedjoin_lab.experiment import Figure
from shedjoin_lab.printed import printed
from shedjoin_lab.store import Store

_HEAD = """# Figures

Written by `shedjoin lab plot all --page` from the rows that `shedjoin lab run` stored. [claims.md](claims.md) has the verdicts
and their reasons.
"""


def write_page(figures: Sequence[Figure], store: Store, page: Path) -> None:
    """A section for each figure that is drawn; pictures are copied to `figures/` beside the page."""
    sections = [_section(figure, store, page) for figure in figures if store.path(figure, ".png").exists()]
    write_atomic(page, lambda file: file.write("\n".join([_HEAD, *sections]).encode()))


def _section(figure: Figure, store: Store, page: Path) -> str:
    name = f"{figure.paper}-{figure.name}.png"
    (page.parent / "figures").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(store.path(figure, ".png"), page.parent / "figures" / name)
    lines = [judge(figure.paper, one, store) for one in claims_of(figure.paper) if figure.name in one.figures]
    judged = [line for line in lines if line.verdict != UNMEASURED]
    text = f"## {figure.paper}, {figure.name}: {figure.title}\n\n![{figure.paper} {figure.name}](figures/{name})\n\n"
    if judged:
        text += f"The paper: {_sentence([_paper(line) for line in judged])}\n\n"
        text += f"Ours: {_sentence([f'{line.ours} ({line.verdict})' for line in judged])}\n"
    else:
        text += "The paper has no claim that is judged by it.\n"
    numbers = printed(figure, store.read(figure))
    if numbers:
        table = [("printed", "the paper", "ours"), ("---",) * 3, *numbers]
        text += "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in table)
    return text


def _paper(line: Line) -> str:
    return f"{line.says} ({line.paper})"


def _sentence(parts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(parts)) + "."
