"""The main content of pages: by trafilatura within bounds, by the rules of resiliparse beyond them."""

from __future__ import annotations

import importlib.metadata
import random
import subprocess
import sys
import time

import pytest

from neardup.config import Config
from neardup.errors import MissingExtraError
from neardup.io.columns import main_content
from neardup.measures.jaccard import signature_format

SENTENCE = "The ferry to the island leaves at nine from the second pier, and comes back at noon."
ARTICLE = "".join(f"<p>{SENTENCE} This is paragraph {number}.</p>" for number in range(8))
TEMPLATE = '<div class="navigation"><ul><li><a href="/">Home</a></li><li><a href="/news">News</a></li></ul></div>'
TEASERS = "".join(
    f'<div class="teaser"><a href="/{number}">Another story about harbour number {number}</a></div>'
    for number in range(9)
)
PAGE = f"<html><body>{TEMPLATE}<main><h1>Ferries</h1>{ARTICLE}</main><div class='related'>{TEASERS}</div></body></html>"


def test_main_content_leaves_template_and_teasers_out():
    text = main_content.main_text(PAGE)
    assert text.count(SENTENCE) == 8
    assert "Home" not in text
    assert "Another story" not in text
    assert "Another story" in main_content.visible_text(PAGE)


@pytest.mark.parametrize(
    "page", ["<ul><li>one two<li>three four</ul>", "<nav><a href=/>one two three four</a></nav>"]
)
def test_page_without_main_content_has_all_its_text(page):
    assert main_content.main_text(page).split() != []
    assert "three four" in " ".join(main_content.main_text(page).split())


def test_a_notice_alone_is_no_main_content(monkeypatch):
    found = {}
    _, load = main_content._trafilatura()
    for size in (main_content.MIN_CHARACTERS - 1, main_content.MIN_CHARACTERS):

        def extract(*_, size=size, **__):
            return "x" * size

        with monkeypatch.context() as patch:
            patch.setattr(main_content, "_trafilatura", lambda extract=extract: (extract, load))
            found[size] = main_content.main_text(PAGE) == "x" * size
    assert list(found.values()) == [False, True]


def test_page_of_too_many_tags_or_characters_is_left_to_the_rules(monkeypatch):
    asked = []
    monkeypatch.setattr(main_content, "_trafilatura", lambda: (None, asked.append))
    tags = "<b>x</b>" * (main_content.MAX_TAGS // 2)
    main_content.main_text(tags)
    assert asked == [tags]
    main_content.main_text(f"{tags}<p>more")
    main_content.main_text("x" * (main_content.MAX_CHARACTERS + 1))
    assert asked == [tags]


def test_deeply_nested_page_is_left_to_the_rules(monkeypatch):
    asked = []
    _, load = main_content._trafilatura()
    extract = lambda tree, **_: asked.append(tree)  # noqa: E731
    monkeypatch.setattr(main_content, "_trafilatura", lambda: (extract, load))
    for depth, number in ((main_content.MAX_DEPTH // 2, 1), (main_content.MAX_DEPTH, 1)):
        nested = "<div>" * depth + SENTENCE + "</div>" * depth
        main_content.main_text(f"<html><body>{nested}</body></html>")
        assert len(asked) == number


def test_error_of_the_extractor_leaves_the_page_to_the_rules(monkeypatch):
    def fail(page, **_):
        raise RecursionError(page[:1])

    monkeypatch.setattr(main_content, "_trafilatura", lambda: (fail, str))
    assert SENTENCE in main_content.main_text(PAGE)


HOSTILE = {
    "nested": "<div>",
    "paragraphs": "<p>a b c d",
    "tables": "<table><tr><td>",
    "lists": "<ul><li>item one two three",
    "nested lists": f"{'<ul><li>one two three' * 40}{'</li></ul>' * 40}",
    "nested tables": f"{'<table><tr><td>a' * 20}{'</td></tr></table>' * 20}",
    "nested quotes": f"{'<blockquote><p>a' * 40}{'</p></blockquote>' * 40}",
    "headings": "<h1>x</h1>",
    "named": "<div id='post-content' class='article'>x y z </div>",
    "angles": "<",
    "entities": "&#x41;&amp;",
    "comments": "<!--",
    "scripts": "<script>",
    "quotes": "<blockquote>a b",
    "nul": "\0a<p>",
    "spaces": "  \n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_page_takes_bounded_time_and_gives_text(name):
    part = HOSTILE[name]
    page = part * min(4000, 200_000 // len(part))
    began = time.process_time()
    main_content.main_text(page).encode()
    assert time.process_time() - began < 5


@pytest.mark.parametrize("extract", [main_content.main_text, main_content.visible_text])
@pytest.mark.parametrize("part", ["<div>", "<ul><li>"])
def test_page_of_100_kb_that_only_opens_elements_takes_a_moment(extract, part):
    page = f"<p>{part * 20_000}{SENTENCE}"
    began = time.process_time()
    assert SENTENCE in extract(page)
    assert time.process_time() - began < 2


def test_long_lists_and_tables_without_end_tags_are_not_deep():
    page = f"<div><ul>{'<li>one' * 1500}</ul><table>{'<tr><td>two<br>' * 1500}</table></div>"
    assert not main_content._is_nested_deeply(page)
    assert main_content._is_nested_deeply("<b>" * 1001)


@pytest.mark.long
@pytest.mark.slow("extracts pages of the largest permitted size")
@pytest.mark.parametrize("name", HOSTILE)
def test_largest_hostile_page_takes_bounded_time(name):
    part = HOSTILE[name]
    number = main_content.MAX_CHARACTERS // len(part)
    if "<" in part:
        number = min(number, main_content.MAX_TAGS // part.count("<"))
    began = time.process_time()
    main_content.main_text(part * number).encode()
    assert time.process_time() - began < 20


def test_random_bytes_in_place_of_markup_are_no_error():
    rng = random.Random(1)
    for _ in range(40):
        page = list(PAGE)
        for _ in range(60):
            page[rng.randrange(len(page))] = chr(
                rng.choice([0, 1, 0x3C, 0x3E, 0x22, 0x26, 0x7F, 0xFFFE, 0x1F600])
            )
        main_content.main_text("".join(page)).encode()


PROGRAM = """
import hashlib, sys
from neardup.io.columns.main_content import main_text
page = sys.stdin.read()
text = [main_text(page), main_text(page)]
print(hashlib.sha256(repr(text).encode()).hexdigest(), text[0] == text[1])
"""


def test_same_page_gives_the_same_text_in_every_process_and_prints_nothing():
    found = []
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=PAGE + "<p \0><!--",
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append((done.stdout, done.stderr))
    assert found[0] == found[1]
    assert found[0][0].endswith(" True\n")
    assert found[0][1] == ""


def test_version_of_the_extractor_is_part_of_the_format(monkeypatch):
    config = Config(html=True)
    before = signature_format(config)
    version = importlib.metadata.version("trafilatura")
    assert f"html-main trafilatura-{version} resiliparse-" in before
    assert before.endswith(" rules-2")
    monkeypatch.setattr(main_content.importlib.metadata, "version", lambda name: f"{name}-next")
    assert signature_format(config) != before
    assert signature_format(Config(html=True, html_content="all")).endswith("html-all")


@pytest.mark.parametrize(
    ("module", "package"),
    [("trafilatura", "trafilatura"), ("resiliparse.extract.html2text", "resiliparse")],
)
def test_missing_package_is_named(module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=f"needs the package {package}") as raised:
        main_content.versions()
    assert "neardup[html]" in raised.value.hint
