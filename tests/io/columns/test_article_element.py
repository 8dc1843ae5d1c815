"""The element around what an extractor kept of a page."""

from __future__ import annotations

from lxml.html import fromstring

from neardup.io.columns import main_content
from neardup.io.columns.article_element import article_text

FIRST = "The ferry to the island leaves at nine from the second pier of the harbour."
SECOND = "Its captain has crossed the bay more than ten thousand times in forty years."
THIRD = "In winter the boat is pulled ashore, where two brothers scrape and paint it."
CONTENTS = '<ul class="toc"><li><a href="#1">1. The ferry</a></li><li><a href="#2">2. The boat</a></li></ul>'
CHAPTER = (
    f"<div class='chapter'>{CONTENTS}<h2>1. The ferry</h2><p>{FIRST}</p><p>{SECOND}</p>"
    f"<h2>2. The boat</h2><div><p>{THIRD}</p><pre>paint  --red\n  hull</pre></div></div>"
)
STRAY = "This site is kept by volunteers, who are glad about every letter that you write to them."


def page_of(body):
    return fromstring(f"<html><body>{body}</body></html>")


def test_headings_and_sections_that_the_extractor_dropped_are_back():
    found = article_text(page_of(CHAPTER), f"{FIRST}\n{SECOND}\n{THIRD}")
    expected = ["1. The ferry", FIRST, SECOND, "2. The boat", THIRD, "paint  --red", "hull"]
    assert found.split("\n") == expected


def test_stray_paragraph_of_the_template_goes():
    paragraphs = [f"{number}. {FIRST} {SECOND} {THIRD}" for number in range(9)]
    article = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    page = page_of(f"<div>{article}</div><div><p>{STRAY}</p></div>")
    found = article_text(page, "\n".join([*paragraphs, STRAY]))
    assert found.split("\n") == paragraphs


def test_lists_of_links_are_no_part_of_the_article():
    found = article_text(page_of(CHAPTER), f"{FIRST}\n{SECOND}\n{THIRD}")
    assert found.count("2. The boat") == 1


def test_element_with_far_more_text_than_was_kept_is_not_taken():
    comments = "".join(f"<p>Comment {number}: {STRAY}</p>" for number in range(9))
    page = page_of(f"<div><p>{FIRST}</p><p>{SECOND}</p>{comments}</div>")
    assert article_text(page, f"{FIRST}\n{SECOND}") == ""


def test_text_that_is_not_in_the_page_has_no_element():
    assert article_text(page_of(CHAPTER), STRAY) == ""
    assert article_text(page_of(""), "") == ""


def test_scripts_comments_and_forms_are_no_text():
    hidden = "<script>let x = 1;</script><!-- a note --><form>Your name<button>Send</button></form>"
    page = page_of(f"<div><p>{FIRST}</p>{hidden}<p>{SECOND}</p></div>")
    assert article_text(page, f"{FIRST}\n{SECOND}").split("\n") == [FIRST, SECOND]


def test_chapter_of_a_handbook_keeps_every_heading_and_section():
    """Trafilatura alone leaves out headings named like this, and what it takes for a remark at the end."""
    title = "<div class='titlepage'><h2 class='title'>{}</h2></div>"
    sections = "".join(
        f"<div class='section'>{title.format(f'14.{n}. Question {n}')}<p>{n}. {FIRST} {SECOND}</p></div>"
        for n in range(1, 6)
    )
    navigation = "<div class=navheader><a href=x>Next</a></div>"
    page = f"<html><body>{navigation}<div class=chapter>{sections}</div></body></html>"
    found = main_content.main_text(page)
    for n in range(1, 6):
        assert f"14.{n}. Question {n}" in found
        assert f"{n}. {FIRST}" in found
    assert "Next" not in found
