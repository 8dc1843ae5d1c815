"""A crawl of six sites: 360 articles, each on the template of its site, and 40 mirrors on the template of another."""

from __future__ import annotations

import json
from pathlib import Path

from support import web_pages


def make(folder: Path) -> None:
    """Write the pages as JSON Lines, and the template of the first site as a page without an article."""
    pages, _ = web_pages.crawl()
    lines = [json.dumps({"url": url, "text": page}) for url, page in pages]
    (folder / "crawl.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
