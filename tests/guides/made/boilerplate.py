"""A small crawl with boilerplate, training pages with leaks, source files with licence headers; with known truth."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WORDS = (
    "harbour ferry timetable engine valley signal orbit treaty harvest mirror crystal forest voltage island comet "
    "union reactor glacier ballot magnet tissue canal anchor senate copper lattice monsoon quarry tariff wetland"
).split()
COOKIES = (
    "We use cookies to improve this site, to measure how it is used, and to show you what you like. "
    "By closing this banner, scrolling this page, or continuing to browse in any other way, you accept "
    "that we and our partners store them on your device."
)
LICENCE = (
    "# Licensed under the Example License, Version 2 (the License); you may not use this file except\n"
    "# in compliance with the License. Unless required by law or agreed to in writing, software is\n"
    "# distributed on an AS IS basis, without warranties or conditions of any kind, express or implied.\n"
)
NUM_PAGES = 12
# Pages that quote a paragraph of another page, and are not boilerplate.
QUOTING = {"page-07": "page-02", "page-11": "page-05"}
# Training documents in which a test item was planted, and one that has only half of it.
LEAKED = {"train-3": "item-1", "train-6": "item-2"}
HALF = "train-8"


def _prose(seed: str, number: int) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(_WORDS) + str(rng.randrange(100)) for _ in range(number))


def pages() -> dict[str, str]:
    """Pages by id: an own text, with the banner above or below, and some with a quoted paragraph."""
    made = {}
    for at in range(1, NUM_PAGES + 1):
        name = f"page-{at:02}"
        own = _prose(name, 60)
        if name in QUOTING:
            own += "\n\n" + _prose(QUOTING[name], 60)
        made[name] = f"{COOKIES}\n\n{own}" if at % 2 else f"{own}\n\n{COOKIES}"
    return made


def items() -> dict[str, str]:
    """Items of a benchmark."""
    return {f"item-{at}": _prose(f"item-{at}", 30) for at in range(1, 4)}


def training() -> dict[str, str]:
    """Training documents, some with an item inside."""
    made = {f"train-{at}": _prose(f"train-{at}", 80) for at in range(1, 10)}
    for name, item in LEAKED.items():
        words = made[name].split()
        made[name] = " ".join([*words[:40], items()[item], *words[40:]])
    made[HALF] += " " + " ".join(items()["item-3"].split()[:12])
    return made


def make(folder: Path) -> None:
    """Write pages.jsonl, items.jsonl, train.jsonl and the folder code."""
    for name, rows in (("pages", pages()), ("items", items()), ("train", training())):
        lines = [json.dumps({"id": key, "text": text}) + "\n" for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    (folder / "code").mkdir()
    for at in range(4):
        body = f"VALUE{at} = {at * at}\nprint(VALUE{at})\n"
        (folder / "code" / f"step_{at}.py.txt").write_text(LICENCE + "\n" + body, "utf-8")
