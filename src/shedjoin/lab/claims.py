"""The papers' claims: each with the paper's value, ours, and whether it holds; computed from stored rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shedjoin.errors import DataError
from shedjoin.lab.catalogue import find
from shedjoin.lab.experiment import Row
from shedjoin.lab.store import Store

HOLDS = "holds"
FAILS = "does not hold"
UNMEASURED = "not measured yet"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the stored rows say about a claim: our value in words, and whether the claim holds."""

    ours: str
    holds: bool


#: From the rows of the claim's figures, in their order, to what they say.
Check = Callable[..., Finding]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper.

    Parameters
    ----------
    name
        Short, unique within the paper.
    says
        The claim in one sentence.
    paper
        The paper's value.
    figures
        The figures whose rows `check` gets, one list of rows each.
    check
        What our rows say; None for a claim that needs something the project does not have yet.
    why
        Shown with the verdict: the reason found for a claim that does not hold, or what an unmeasured one waits for.
    """

    name: str
    says: str
    paper: str
    figures: tuple[str, ...]
    check: Check | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table of claims."""

    claim: str
    says: str
    paper: str
    ours: str
    verdict: str
    why: str


def evaluate(papers: Sequence[str], store: Store) -> list[Line]:
    """All claims of these papers against what is stored."""
    return [judge(paper, claim, store) for paper in papers for claim in claims_of(paper)]


def claims_of(paper: str) -> tuple[Claim, ...]:
    """The claims written beside a paper's figures."""
    claims: tuple[Claim, ...] = import_module(f"shedjoin.lab.papers.{paper}.claims").CLAIMS
    return claims


def judge(paper: str, claim: Claim, store: Store) -> Line:
    """One claim against what is stored."""
    name = f"{paper}.{claim.name}"
    if claim.check is None:
        return Line(name, claim.says, claim.paper, "", UNMEASURED, claim.why)
    stored: list[list[Row]] = [store.read(find(paper, figure)) for figure in claim.figures]
    missing = [figure for figure, rows in zip(claim.figures, stored, strict=True) if not rows]
    if missing:
        return Line(name, claim.says, claim.paper, "", UNMEASURED, f"run `shedjoin lab run {paper} {missing[0]}`")
    try:
        finding = claim.check(*stored)
    except DataError as reason:
        return Line(name, claim.says, claim.paper, "", UNMEASURED, str(reason))
    return Line(
        name,
        claim.says,
        claim.paper,
        finding.ours,
        HOLDS if finding.holds else FAILS,
        "" if finding.holds else claim.why,
    )


def as_markdown(lines: Sequence[Line]) -> str:
    """The table of claims."""
    header = ("claim", "the paper says", "paper's value", "ours", "verdict", "why")
    table = [header, ("---",) * len(header)]
    table += [(line.claim, line.says, line.paper, line.ours, line.verdict, line.why) for line in lines]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |\n" for row in table
    )


def show(lines: Sequence[Line]) -> None:
    """The table of claims on a terminal."""
    table = Table(show_lines=True)
    for title in ("claim", "the paper says", "paper", "ours", "verdict", "why"):
        table.add_column(title, overflow="fold")
    colours = {HOLDS: "green", FAILS: "red", UNMEASURED: "dim"}
    for line in lines:
        cells = (line.claim, line.says, line.paper, line.ours, line.verdict, line.why)
        table.add_row(*(escape(cell) for cell in cells), style=colours[line.verdict])
    Console().print(table)
