"""The page in a real browser: `make test-page`. It needs Playwright and Debian's Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from outputs import write_batch, write_query

from shedjoin.dashboard.server import Dashboard

pytestmark = pytest.mark.page
NAMES = ["ads", "empty", "stopped", "broken"]
MANY = 10_000
#: Pixels of a canvas that are not transparent, and how many colours they have.
INK = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
  return colours.size;
}"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, now = tmp_path_factory.mktemp("outputs"), datetime.now(UTC)
    change = {"at": (now - timedelta(seconds=300)).isoformat(), "what": "policy: Prob() -> Prospect()"}
    write_query(folder / "ads", 60, shards=4, changes=(change,))
    write_query(folder / "empty", 0)
    write_query(folder / "stopped", 20, ended=now - timedelta(hours=5))
    write_query(folder / "broken", 20)
    (folder / "broken" / "metrics" / "batch=7" / "part-0.parquet").write_text("no parquet")
    return folder


@pytest.fixture(scope="module")
def url(outputs: Path) -> Iterator[str]:
    with Dashboard([outputs / name for name in NAMES]) as page:
        yield page.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path is not None, "Chromium is missing: apt-get install chromium"
    with sync_playwright() as play:
        # Chromium's sandbox does not work for root.
        chromium = play.chromium.launch(executable_path=path, chromium_sandbox=os.getuid() != 0)
        yield chromium
        chromium.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A window of a desktop in which any error fails the test."""
    with_errors: list[str] = []
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.on("pageerror", lambda problem: with_errors.append(str(problem)))
    tab.on("console", lambda said: with_errors.append(said.text) if is_error(said) else None)
    tab.on(
        "request",
        lambda asked: None if "127.0.0.1" in asked.url or asked.url == "data:," else with_errors.append(asked.url),
    )
    yield tab
    tab.close()
    assert with_errors == []


def is_error(said: Any) -> bool:
    """Whether the browser complains, of anything but that the dashboard has ended."""
    return said.type == "error" and "ERR_CONNECTION_REFUSED" not in said.text


def show(tab: Any, url: str, name: str) -> None:
    tab.goto(f"{url}#{NAMES.index(name)}")
    tab.wait_for_function("name => document.getElementById('name').textContent === name", arg=name)


def titles(tab: Any) -> list[str]:
    return [figure.get_attribute("data-chart") for figure in tab.query_selector_all("figure")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn(tab: Any, url: str, scheme: str) -> None:
    tab.emulate_media(color_scheme=scheme)
    show(tab, url, "ads")
    tab.wait_for_selector("figure canvas")
    assert titles(tab) == [
        "Recall", "Memory by stream", "Memory by shard", "Rates", "Shed, by reason", "Late rows, and rows without a partner",
        "Micro-batches",
    ]  # fmt: skip
    for canvas in tab.query_selector_all("figure canvas"):
        assert canvas.evaluate(INK) > 3
    assert tab.inner_text("#events").endswith("policy: Prob() -> Prospect()")
    assert len(tab.query_selector_all("#bars .bar")) == 4
    assert "4K tuples" in tab.inner_text("#tiles")
    back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(246, 247, 249)", "dark": "rgb(20, 23, 27)"}[scheme]


def test_hover_tells_the_figures_of_a_moment(tab: Any, url: str) -> None:
    show(tab, url, "ads")
    tab.wait_for_selector("figure canvas")
    tab.check("input[value=batch]")
    tab.wait_for_selector("figure .u-legend")
    over = tab.query_selector("figure[data-chart='Memory by stream'] .u-over")
    box = over.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for chart in ("Memory by stream", "Recall"):  # all charts tell of the same micro-batch
        place = f"figure[data-chart='{chart}'] .u-legend .u-series:first-child .u-value"
        assert tab.inner_text(place) in ("29", "30")


def test_a_page_on_a_phone_needs_no_sideways_scrolling(tab: Any, url: str) -> None:
    tab.set_viewport_size({"width": 360, "height": 740})
    show(tab, url, "ads")
    tab.wait_for_selector("figure canvas")
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    assert all(figure.bounding_box()["width"] > 300 for figure in tab.query_selector_all("figure"))


def test_an_empty_query_says_so(tab: Any, url: str) -> None:
    show(tab, url, "empty")
    assert tab.inner_text("#state") == "No micro-batch is finished yet."
    assert titles(tab) == []
    assert not tab.is_visible("#tiles")


def test_a_stopped_query_says_so(tab: Any, url: str) -> None:
    show(tab, url, "stopped")
    tab.wait_for_selector("figure canvas")
    assert tab.inner_text("#state") == (
        "No news: the last micro-batch 19 ended 5 hours ago. The query waits for input, or has stopped."
    )


def test_a_broken_file_is_named(tab: Any, url: str) -> None:
    show(tab, url, "broken")
    tab.wait_for_selector("figure canvas")
    assert "batch=7" in tab.inner_text("#notes")
    assert "The charts leave this micro-batch out." in tab.inner_text("#notes")


def test_ten_thousand_micro_batches(tab: Any, tmp_path: Path) -> None:
    """Few points, and then only news; the page goes on by itself."""
    with Dashboard([write_query(tmp_path, MANY)]) as page:
        look_at_many(tab, page.url, tmp_path)


def look_at_many(tab: Any, url: str, folder: Path) -> None:
    tab.goto(url)
    tab.wait_for_function(
        "number => document.getElementById('tiles').textContent.includes(number)", arg="number 9,999", timeout=300_000
    )
    assert tab.evaluate("state.points.length") <= 1024
    assert tab.evaluate("state.points.reduce((all, point) => all + point.batches, 0)") == MANY
    assert tab.inner_text("#width") == "One point is 16 micro-batches."
    with tab.expect_response(lambda answer: "/query/" in answer.url) as told:
        pass
    assert len(told.value.json()["series"]["points"]) == 1
    write_batch(folder, MANY)
    tab.wait_for_function("() => state.points.at(-1).batch === 10000")
    tab.check("input[value=recent]")
    tab.wait_for_function("() => state.points.length === 600 && state.points.at(-1).batch === 10000")


def test_a_dashboard_that_ends_and_comes_back(tab: Any, outputs: Path) -> None:
    with Dashboard([outputs / "ads"]) as page:
        port = int(page.url.rpartition(":")[2].strip("/"))
        show(tab, page.url, "ads")
        tab.wait_for_selector("figure canvas")
    tab.wait_for_function("() => document.getElementById('state').textContent.includes('does not answer')")
    with Dashboard([outputs / "ads"], port=port):
        tab.wait_for_function("() => !document.getElementById('state').textContent.includes('does not answer')")
