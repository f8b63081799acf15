"""`shedjoin lab report`: claims, figures and settings as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from shedjoin.errors import DataError
from shedjoin_lab.build import BUILD, builds_in_words
from shedjoin_lab.catalogue import PAPERS
from shedjoin_lab.claims import VERDICTS, Line, claims_of, judge
from shedjoin_lab.experiment import Figure, Row, Scalar
from shedjoin_lab.printed import printed
from shedjoin_lab.report import draw
from shedjoin_lab.store import Store

#: Of a parameter with more values than this, the first and the last are shown.
MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class _Chapter:
    """A figure with the claims that its rows decide."""

    figure: Figure
    rows: list[Row]
    lines: list[Line]
    also: list[str]  # claims that it decides together with a figure before it


def page(papers: Sequence[str], store: Store, say: Callable[[str], None] = lambda text: None) -> str:
    """The whole report. `say` gets a line for each figure that could not be drawn."""
    judged = {(paper, claim.name): judge(paper, claim, store) for paper in papers for claim in claims_of(paper)}
    sections, rows = [], []
    for paper in papers:
        chapters = _chapters(paper, judged, store)
        rows += [row for chapter in chapters for row in chapter.rows]
        shown = "".join(_chapter(chapter, store, say) for chapter in chapters)
        sections.append(f'<section data-paper="{paper}"><h2>{paper}</h2>{shown}</section>')
    counts = "".join(_filter("verdict", verdict, _count(list(judged.values()), verdict)) for verdict in VERDICTS)
    chosen = "".join(_filter("paper", paper, len(claims_of(paper))) for paper in papers)
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>shedjoin lab: claims of the papers</title>'
        f"<style>{style}</style></head><body><header><h1>Claims of the papers</h1>"
        "<p>What five papers on load shedding say, and what the same experiments say here. One rule decides when ours agrees; "
        "a claim holds in part where it holds at some of the places that it speaks of.</p>"
        f'<p class="builds">{escape(builds_in_words(rows))}</p>'
        f'<div class="filters"><div>{counts}</div><div>{chosen}</div>'
        '<input type="search" id="search" placeholder="search claims" aria-label="search claims">'
        '<output id="shown"></output></div></header>'
        f"<main>{''.join(sections)}</main><script>{script}</script></body></html>"
    )


def _asset(name: str) -> str:
    return resources.files("shedjoin_lab").joinpath(name).read_text("utf-8")


def _count(lines: Sequence[Line], verdict: str) -> int:
    return sum(line.verdict == verdict for line in lines)


def _filter(kind: str, value: str, count: int) -> str:
    mark = f' class="badge {_css(value)}"' if kind == "verdict" else ""
    box = f'<input type="checkbox" checked data-{kind}="{escape(value)}">'
    return f"<label>{box}<span{mark}>{escape(value)}</span> {count}</label>"


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _chapters(paper: str, judged: dict[tuple[str, str], Line], store: Store) -> list[_Chapter]:
    """Figures in the paper's order, each claim with the first figure that it is judged by."""
    claims = claims_of(paper)
    return [
        _Chapter(
            figure,
            store.read(figure),
            [judged[paper, one.name] for one in claims if one.figures[0] == figure.name],
            [f"{one.name} ({one.figures[0]})" for one in claims if figure.name in one.figures[1:]],
        )
        for figure in PAPERS[paper]
    ]


def _chapter(chapter: _Chapter, store: Store, say: Callable[[str], None]) -> str:
    figure, rows = chapter.figure, chapter.rows
    claims = "".join(_claim(line) for line in chapter.lines)
    if chapter.also:
        claims += f"<p>Also judges {escape(', '.join(chapter.also))}.</p>"
    return (
        f'<article class="figure"><h3>{escape(figure.name)}: {escape(figure.title)}</h3><div class="beside">'
        f'<div class="claims">{claims or "<p>No claim is judged by it.</p>"}</div>'
        f'<div class="picture">{_picture(figure, rows, store, say)}{_printed(figure, rows)}{_settings(figure, rows, store)}</div>'
        "</div></article>"
    )


def _claim(line: Line) -> str:
    ours = f"<dt>ours</dt><dd>{escape(line.ours)}</dd>" if line.ours else ""
    seeds = f"<dt>seeds that agree</dt><dd>{escape(line.seeds)}</dd>" if line.seeds else ""
    why = f'<p class="why">{escape(line.why)}</p>' if line.why else ""
    verdict = escape(line.verdict)
    return (
        f'<div class="claim" data-verdict="{verdict}"><span class="badge {_css(line.verdict)}">{verdict}'
        f"</span> <strong>{escape(line.says)}</strong><dl><dt>paper</dt><dd>{escape(line.paper)}</dd>{ours}{seeds}</dl>{why}"
        f'<code class="name">{escape(line.claim)}</code></div>'
    )


def _picture(figure: Figure, rows: list[Row], store: Store, say: Callable[[str], None]) -> str:
    if not rows:
        return f"<p>Not run: <code>shedjoin lab run {figure.paper} {figure.name}</code></p>"
    try:
        path = next(path for path in draw(figure, store) if path.suffix == ".svg")
    except (DataError, LookupError, ValueError, ArithmeticError) as reason:
        say(f"not drawn: {figure.paper} {figure.name}: {reason}")
        return f"<p>Not drawn: {escape(str(reason))}</p>"
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(figure.title)}" loading="lazy" src="data:image/svg+xml;base64,{data}">'


def _printed(figure: Figure, rows: list[Row]) -> str:
    """The numbers that the paper prints, beside ours."""
    numbers = printed(figure, rows)
    if not numbers:
        return ""
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in numbers)
    return f"<table><tr><th>printed</th><th>paper</th><th>ours</th></tr>{lines}</table>"


def _settings(figure: Figure, rows: list[Row], store: Store) -> str:
    """A click away: every parameter with its values, seeds, builds and files."""
    if not rows:
        return ""
    names = [name for name in rows[0] if name in _parameters(figure, store)]
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_values(rows, name))}</td></tr>" for name in names)
    lines += f"<tr><th>{BUILD}</th><td>{escape(_values(rows, BUILD))}</td></tr>"
    lines += f"<tr><th>rows</th><td>{len(rows):,} in {figure.paper}/{figure.name}.csv</td></tr>"
    caption = f"<p>{escape(figure.plot.caption)}</p>"
    return f"<details><summary>Settings and seeds</summary>{caption}<table>{lines}</table></details>"


def _parameters(figure: Figure, store: Store) -> set[str]:
    return {name for params in figure.parameters(store.scale(figure)) for name in params}


def _values(rows: list[Row], name: str) -> str:
    found: list[Scalar] = list(dict.fromkeys(row.get(name) for row in rows))
    words = ["none" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in found]
    if len(words) > MOST_VALUES:
        return f"{words[0]} ... {words[-1]} ({len(words)} values)"
    return ", ".join(words)
