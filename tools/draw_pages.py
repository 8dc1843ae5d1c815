"""Take the screenshots of docs/images: the page of a run in Chromium.

    python tools/draw_pages.py licences.parquet

Needs the packages of the group dev, and Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import neardup
from neardup.web.report_file import write_html
from neardup.web.run_view import RunView

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
from support.chromium import FLAGS, find_chromium  # noqa: E402

HEIGHTS = {"overview": 1040, "cluster": 1120, "pair": 860}
PICTURES = (("overview", "light"), ("overview", "dark"), ("cluster", "light"), ("pair", "light"))


def views_of(report: neardup.Report) -> dict[str, str]:
    """Return the fragment of every view: of a cluster with a heat map, and of its weakest member."""
    run = RunView(report)
    number = next(at for at, size in enumerate(run.clusters.sizes) if size == 12)
    key = run.clusters.keys[number]
    weakest = run.removals.keys[run.clusters.members(number)[-1]]
    return {"overview": "", "cluster": f"cluster/{key}", "pair": f"pair/{key}/{weakest}"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        paths = [Path(path) for path in sys.argv[1:]]
        report = neardup.deduplicate(paths, out=Path(folder, "licences"), pairs=True, audit=True)
        page_path = Path(folder, "report.html")
        write_html(report, page_path)
        browser = driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        views = views_of(report)
        for name, scheme in PICTURES:
            page = browser.new_page(
                color_scheme=scheme, viewport={"width": 1120, "height": HEIGHTS[name]}
            )
            page.goto(f"file://{page_path}#/{views[name]}")
            page.wait_for_selector("main h1")
            page.wait_for_timeout(300)
            if name == "cluster":
                page.evaluate("document.getElementById('members').scrollIntoView()")
            page.screenshot(path=IMAGES / f"page-{name}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
