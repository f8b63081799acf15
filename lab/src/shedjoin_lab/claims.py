"""The papers' claims: each with the paper's value, ours, and whether it holds; computed from stored rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib import import_module

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shedjoin.errors import DataError
from shedjoin_lab.agreement import FAILS, HOLDS, PARTLY, verdict, where_not
from shedjoin_lab.catalogue import find
from shedjoin_lab.experiment import Row, Scalar
from shedjoin_lab.store import Store

UNTESTABLE = "not testable here"
UNMEASURED = "not measured yet"
VERDICTS = (HOLDS, PARTLY, FAILS, UNTESTABLE, UNMEASURED)
#: What a check runs into where rows are of another kind than it knows.
INCOMPLETE = (LookupError, ValueError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the stored rows say about a claim: our value in words, and at which of the claim's places it holds."""

    ours: str
    places: Mapping[str, bool] | bool

    @property
    def verdict(self) -> str:
        """By the one rule (`agreement`); a claim about one place is a bool."""
        return verdict(self.places if isinstance(self.places, Mapping) else {"": self.places})

    @property
    def where(self) -> str:
        """Where a claim that holds in part does not."""
        return where_not(self.places) if isinstance(self.places, Mapping) and self.verdict == PARTLY else ""


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
        What our rows say.
    why
        Shown with the verdict where the claim does not hold, or holds in part: the reason found.
    untestable
        Why nothing here can decide the claim. Its rows are shown without a verdict.
    """

    name: str
    says: str
    paper: str
    figures: tuple[str, ...]
    check: Check
    why: str = ""
    untestable: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table of claims. `seeds`: how many seeds alone come to this verdict."""

    claim: str
    says: str
    paper: str
    ours: str
    verdict: str
    seeds: str
    why: str


def evaluate(papers: Sequence[str], store: Store) -> list[Line]:
    """All claims of these papers against what is stored."""
    return [judge(paper, claim, store) for paper in papers for claim in claims_of(paper)]


def claims_of(paper: str) -> tuple[Claim, ...]:
    """The claims written beside a paper's figures."""
    claims: tuple[Claim, ...] = import_module(f"shedjoin_lab.papers.{paper}.claims").CLAIMS
    return claims


def judge(paper: str, claim: Claim, store: Store) -> Line:
    """One claim against what is stored."""
    name = f"{paper}.{claim.name}"

    def unmeasured(why: str) -> Line:
        return Line(name, claim.says, claim.paper, "", UNMEASURED, "", why)

    stored: list[list[Row]] = [store.read(find(paper, figure)) for figure in claim.figures]
    missing = [figure for figure, rows in zip(claim.figures, stored, strict=True) if not rows]
    if missing:
        return unmeasured(f"{_commands(paper, missing, store)} first")
    begun = [figure for figure in claim.figures if store.missing(find(paper, figure))]
    if begun:
        return unmeasured(f"rows are missing: {_commands(paper, begun, store)} goes on")
    try:
        finding = claim.check(*stored)
        agreeing = seeds_that_agree(claim.check, stored, finding.verdict)
    except DataError as reason:
        return unmeasured(str(reason))
    except INCOMPLETE as reason:
        return unmeasured(f"{reason}: {_commands(paper, claim.figures, store)} again with --fresh")
    if claim.untestable:
        return Line(name, claim.says, claim.paper, finding.ours, UNTESTABLE, "", claim.untestable)
    why = "" if finding.verdict == HOLDS else "; ".join(part for part in (finding.where, claim.why) if part)
    return Line(name, claim.says, claim.paper, finding.ours, finding.verdict, agreeing, why)


def _commands(paper: str, figures: Sequence[str], store: Store) -> str:
    """What runs these figures."""
    quick = " --quick" if store.quick else ""
    return " and ".join(f"`shedjoin lab run {paper} {figure}{quick}`" for figure in figures)


def seeds_that_agree(check: Check, stored: Sequence[list[Row]], verdict: str) -> str:
    """The verdict again from each seed alone: how many come to the same one. Empty where nothing was left to chance."""
    seeds = {row["seed"] for rows in stored for row in rows}
    if len(seeds) == 1:
        return ""
    verdicts = []
    for seed in seeds:
        try:
            verdicts.append(check(*(of_seed(rows, seed) for rows in stored)).verdict)
        except (DataError, *INCOMPLETE):  # a seed that was not run to its end says nothing
            continue
    return f"{verdicts.count(verdict)} of {len(verdicts)}"


def of_seed(rows: Sequence[Row], seed: Scalar) -> list[Row]:
    """The rows of one seed; what was run with one seed alone, because nothing in it is random, stands for all."""
    seeds: dict[Scalar, set[Scalar]] = {}
    for row in rows:
        seeds.setdefault(row.get("method"), set()).add(row["seed"])
    return [{**row, "seed": seed} for row in rows if row["seed"] == seed or len(seeds[row.get("method")]) == 1]


def as_markdown(lines: Sequence[Line]) -> str:
    """The table of claims."""
    header = ("claim", "the paper says", "paper's value", "ours", "verdict", "seeds that agree", "why")
    table = [header, ("---",) * len(header), *(astuple(line) for line in lines)]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |\n" for row in table
    )


def show(lines: Sequence[Line]) -> None:
    """The table of claims on a terminal."""
    table = Table(show_lines=True)
    for title in ("claim", "the paper says", "paper", "ours", "verdict", "seeds that agree", "why"):
        table.add_column(title, overflow="fold")
    colours = {HOLDS: "green", PARTLY: "yellow", FAILS: "red", UNTESTABLE: "dim", UNMEASURED: "dim"}
    for line in lines:
        table.add_row(*(escape(cell) for cell in astuple(line)), style=colours[line.verdict])
    Console().print(table)
