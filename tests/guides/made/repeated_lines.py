"""A small code base, a crawl and a mailbox, whose repeated lines and paragraphs are known."""

from __future__ import annotations

import json
import random
from pathlib import Path

_WORDS = (
    "harbour ferry timetable engine valley signal orbit treaty harvest mirror crystal forest voltage island comet "
    "union reactor glacier ballot magnet tissue canal anchor senate copper lattice monsoon quarry tariff wetland"
).split()
# A line of three of the five source files.
IMPORT = "from project.core.settings import load_settings, save_settings, check_settings, Settings"
BANNER = (
    "We use cookies to improve this site and to show you what you like.\n"
    "By scrolling on you accept that we store them on your device."
)
SIGNATURE = "Ada Harbour, Institute of Ferries, 12 Quay Road, phone 555 0100"
QUOTED = "> Shall we move the meeting about the new timetable to Friday at nine?"
NUM_PAGES = 8
# Pages that share a paragraph of their own: a quote, no boilerplate.
QUOTING = ("page-3", "page-6")


def _prose(seed: str, number: int) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(_WORDS) + str(rng.randrange(100)) for _ in range(number))


def sources() -> dict[str, str]:
    """Source files by name; three begin with the same import."""
    made = {}
    for at in range(1, 6):
        body = f"\n\ndef step_{at}():\n    return {at * at}\n"
        made[f"step_{at}.py.txt"] = f"{IMPORT}\n{body}" if at % 2 else body.lstrip("\n")
    return made


def pages() -> dict[str, str]:
    """Pages by id: the banner is above the text, or below it."""
    made = {}
    for at in range(1, NUM_PAGES + 1):
        name = f"page-{at}"
        own = _prose(name, 30)
        if name in QUOTING:
            own += "\n\n" + _prose("quote", 20)
        made[name] = f"{BANNER}\n\n{own}" if at % 2 else f"{own}\n\n{BANNER}\n"
    return made


def mails() -> dict[str, str]:
    """Mails by id: every one is signed, and answers quote a line."""
    made = {"mail-1": f"Dear all,\n{QUOTED[2:]}\n{SIGNATURE}\n"}
    for at in range(2, 6):
        made[f"mail-{at}"] = f"{QUOTED}\nAnswer {at}: fine.\n{SIGNATURE.upper()}\n"
    return made


def make(folder: Path) -> None:
    """Write the folder code, pages.jsonl and mails.jsonl."""
    (folder / "code").mkdir()
    for name, text in sources().items():
        (folder / "code" / name).write_text(text, "utf-8")
    for name, rows in (("pages", pages()), ("mails", mails())):
        lines = [json.dumps({"id": key, "text": text}) + "\n" for key, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
