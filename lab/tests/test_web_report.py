"""The HTML report: one file, every claim in it once, nothing fetched from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shedjoin_lab.agreement import PARTLY
from shedjoin_lab.catalogue import find
from shedjoin_lab.claims import claims_of
from shedjoin_lab.experiment import Row, Scale, identity
from shedjoin_lab.figures_page import write_page
from shedjoin_lab.report import draw
from shedjoin_lab.store import ID, Store
from shedjoin_lab.web_report import page


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Table 8, in which hash joins are the paper's and nested loops are not."""
    figure, store = find("golab2003", "table8"), Store(tmp_path)
    rows: list[Row] = [
        {ID: identity(params), **params, "rate": 100.0 if params["buckets"] == 1 else 900.0, "build": "1.0+<b>"}
        for params in figure.parameters(Scale(seeds=2))
    ]
    store.add(figure, rows)
    return store


def test_the_report_is_one_file_with_every_claim_once(store: Store) -> None:
    text = page(["golab2003"], store)
    names = re.findall(r'<code class="name">golab2003\.([^<]*)</code>', text)
    assert sorted(names) == sorted(claim.name for claim in claims_of("golab2003"))
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "data:image/svg+xml;base64," in text
    assert "1.0+&lt;b&gt;" in text, "what rows hold is not markup"
    assert "1,614 / 333 = 4.85" in text
    assert "shedjoin lab run golab2003 fig02" in text


def test_settings_are_named_with_their_values(store: Store) -> None:
    text = page(["golab2003"], store)
    assert "<th>tau</th><td>0, 5, 10</td>" in text
    assert "<th>seed</th><td>0, 1</td>" in text


def test_the_page_of_figures_says_what_the_paper_shows_and_what_ours(store: Store, tmp_path: Path) -> None:
    figure = find("golab2003", "table8")
    draw(figure, store)
    write_page([figure, find("golab2003", "fig02")], store, tmp_path / "docs" / "figures.md")
    text = (tmp_path / "docs" / "figures.md").read_text()
    assert (tmp_path / "docs" / "figures" / "golab2003-table8.png").exists()
    assert text.count("\n## ") == 1
    assert "The paper: The best plan is about" in text
    assert PARTLY not in text.split("Ours: ")[0]
    assert "| NLJ, tau 0: best / worst plan | 1,614 / 333 = 4.85 | 100 / 100 = 1.00 |" in text


def test_a_figure_whose_run_is_not_finished_is_not_on_the_page(store: Store, tmp_path: Path) -> None:
    figure = find("golab2003", "table8")
    rows = store.read(figure)
    store.clear(figure)
    store.add(figure, rows[:-1])
    draw(figure, store)
    write_page([figure], store, tmp_path / "docs" / "figures.md")
    assert "table8" not in (tmp_path / "docs" / "figures.md").read_text()
