"""Very long and hostile ids: a corpus of them, and what every view of the page must do with them."""

from __future__ import annotations

import json

import neardup

TEXT = " ".join(f"word{number}" for number in range(40))
MEGABYTE = "m" * 2**20 + "-end"
IDS = (
    "k" * 4090 + "-4 KB",
    MEGABYTE,
    "</script><img src=x onerror='window.hacked = 1'>" * 90,
    "\u202egpj.exe\u2066\x1b[2J\x00\n\t" * 400,
    "two\nlines",
    "x" + "\U0001f600" * 300,
)
# As they are listed: the beginning and the end, hidden characters spelled out, no half of a
# surrogate pair.
SHOWN = {
    IDS[0]: "k" * 64 + "…" + "k" * 19 + "-4 KB",
    MEGABYTE: "m" * 64 + "…" + "m" * 20 + "-end",
    IDS[4]: "twoU+000Alines",
    IDS[5]: "x" + "\U0001f600" * 31 + "…" + "\U0001f600" * 12,
}
HIDDEN = ("\u202e", "\u2066", "\x1b", "\x00", "\n", "\t")


def make_run(folder):
    """Write the corpus and the run, one cluster of all documents; return the folder of the run."""
    lines = [
        json.dumps({"id": name, "text": f"{TEXT} {number}"}) for number, name in enumerate(IDS)
    ]
    (folder / "pages.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    neardup.deduplicate(folder / "pages.jsonl", out=folder / "clean", threshold=0.8)
    return folder / "clean"


def check_views(tab, widths=(400, 1200)):
    """Check every view in a narrow and in a wide window, then that whole ids can be copied."""
    views = (
        "",
        "clusters",
        "cluster/0",
        "pair/0/1",
        "pair/2/3",
        *(f"document/{key}" for key in range(len(IDS))),
    )
    for width in widths:
        tab.page.set_viewport_size({"width": width, "height": 800})
        for view in (*views, "search?search=word0", "review"):
            page = tab.open(view)
            if view != "review":
                page.wait_for_selector("main .id")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            assert page.evaluate("window.hacked") is None
            assert page.locator("main img").count() == 0
            _check_ids(page, view)
    _check_copies(tab)


def _check_ids(page, view):
    shown = page.locator(".id").all_text_contents()
    # 64 + 24 characters, each of which may be spelled as U+202E.
    assert max(map(len, shown), default=0) <= 88 * 6 + 1, view
    titles = page.evaluate(
        "[...document.querySelectorAll('[title], [aria-label]')]"
        ".flatMap((one) => [one.title || '', one.ariaLabel || ''])"
    )
    assert not any(character in text for text in (*shown, *titles) for character in HIDDEN), view
    assert max(map(len, titles)) <= 4096 * 6 + 1


def _check_copies(tab):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for key, name in enumerate(IDS):
        page = tab.open(f"document/{key}")
        if name in SHOWN:
            assert page.text_content("h1 .id") == SHOWN[name]
        if name == IDS[0]:
            assert page.get_attribute("h1 .id", "title") == name
        if len(name) <= 100:
            assert page.locator(".whole-id").count() == 0
            continue
        page.click(".whole-id summary")
        page.click("text=Copy the whole id")
        page.wait_for_selector("text=Copied")
        assert page.evaluate("navigator.clipboard.readText()") == name
        assert len(page.text_content(".whole-id .text")) <= 6 * 50_000
