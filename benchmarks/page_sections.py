"""Pages with generated sections, each between `<!-- mark -->` and `<!-- end -->`. Everything else is written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def check_sections(page: Path, marks: Iterable[str]) -> None:
    """Find out before a long measurement, not after it."""
    text = page.read_text()
    for mark in marks:
        if len(_section(mark).findall(text)) != 1:
            raise SystemExit(f"{page} must have one section between <!-- {mark} --> and <!-- end -->")


def write_section(page: Path, mark: str, section: str) -> None:
    """Replace what stands between the marks."""
    new = section.strip("\n")
    page.write_text(_section(mark).sub(lambda match: match[1] + new + match[2], page.read_text()))


def _section(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)", re.DOTALL)
