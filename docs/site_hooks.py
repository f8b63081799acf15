"""What the site changes on its pages: figures open large, and links out of the documentation become plain text."""

from __future__ import annotations

import re
from typing import Any

FIGURE = re.compile(r"(?<!\[)!\[([^]]*)\]\(([^)]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    depth = page.file.src_uri.count("/")  # files of the repository that are no pages lie above docs/
    outside = re.compile(r"\[([^]]+)\]\((?:\.\./){" + str(depth + 1) + r"}[^)]*\)")
    return FIGURE.sub(r"[![\1](\2)](\2)", outside.sub(r"`\1`", markdown))
