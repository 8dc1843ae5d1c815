"""Three days of a news crawl: every day repeats pages of the days before, some of them edited; and an earlier week."""

from __future__ import annotations

import json
import random
from pathlib import Path

DAYS = ("monday", "tuesday", "wednesday")
_PLACES = "harbour station market library museum theatre airport stadium hospital school bridge tunnel".split()
_WORDS = (
    "council residents traffic budget report winter repair volunteers evening opening historic private public plan "
    "meeting project garden river quarter decision delay visitors ticket contract engineer survey festival morning "
    "weather support neighbours building street yellow minister figures record season number summer question answer"
).split()


def _page(place: str, day: str) -> str:
    rng = random.Random(f"{place} {day}")
    return f"News from the {place}: " + " ".join(rng.choice(_WORDS) for _ in range(120)) + "."


def _edited(page: str) -> str:
    """Yesterday's page with a new first line and another last word: similarity 0.95."""
    return f"Updated. {page[:-1]} again."


def make(folder: Path) -> None:
    """Write an archive, and a file of four new pages per day; later days repeat a page and edit another."""
    archive = [_page(place, f"earlier {day}") for day in range(5) for place in _PLACES]
    archive.extend([_edited(page) for page in archive[:20]])
    (folder / "archive.jsonl").write_text(
        "".join(
            json.dumps({"id": f"archive-{at}", "text": text}) + "\n"
            for at, text in enumerate(archive, 1)
        ),
        "utf-8",
    )
    before: list[str] = []
    for number, day in enumerate(DAYS):
        pages = [_page(place, day) for place in _PLACES[4 * number : 4 * number + 4]]
        again = [before[0], _edited(before[1])] if before else []
        lines = [
            json.dumps({"id": f"{day}-{at}", "text": text})
            for at, text in enumerate([*pages, *again], 1)
        ]
        (folder / f"{day}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        before = pages
