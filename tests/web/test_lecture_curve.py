"""The S-curve to play with, beside the lecture, opened from disk in Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neardup.theory.plan import curve_threshold, s_curve

PAGE = Path(__file__).parents[2] / "docs" / "lecture-s-curve.html"
LECTURE = PAGE.with_name("lecture.md").read_text("utf-8")


@pytest.fixture(scope="module")
def curve(browser):
    page = browser.new_page()
    page.requests = []
    page.problems = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text))
    page.goto(PAGE.as_uri())
    yield page
    page.close()


def move(page, **values):
    for name, value in values.items():
        page.evaluate(
            "([id, value]) => { const slider = document.getElementById(id);"
            " slider.value = value; slider.dispatchEvent(new Event('input')); }",
            [name, value],
        )


def test_its_curve_is_that_of_the_library(curve):
    for bands, rows in ((20, 5), (1, 1), (9, 13), (64, 32)):
        for similarity in (0, 0.05, 0.3, 0.8, 0.999, 1):
            arguments = [similarity, bands, rows]
            found = curve.evaluate("([s, b, r]) => foundChance(s, b, r)", arguments)
            missed = curve.evaluate("([s, b, r]) => missedChance(s, b, r)", arguments)
            assert found == pytest.approx(s_curve(similarity, bands, rows), rel=1e-9)
            assert found + missed == pytest.approx(1, abs=1e-12)
        thumb = curve.evaluate("([b, r]) => ruleOfThumb(b, r)", [bands, rows])
        assert thumb == pytest.approx(curve_threshold(bands, rows))


def test_sliders_change_the_figures_and_the_picture(curve):
    move(curve, bands=20, rows=5, threshold=0.8)
    assert "100 slots. A pair at 0.80 is found with 99.96 %: one in 2,809" in curve.inner_text(
        "#summary"
    )
    assert "at 0.30 becomes a candidate with 4.75 %" in curve.inner_text("#summary")
    before = curve.get_attribute(".curve", "d")
    move(curve, bands=15)
    assert "75 slots. A pair at 0.80 is found with 99.74 %: one in 386" in curve.inner_text(
        "#summary"
    )
    assert curve.get_attribute(".curve", "d") != before
    line = curve.get_attribute(".threshold", "x1")
    move(curve, threshold=0.5)
    assert curve.get_attribute(".threshold", "x1") != line


def test_a_preset_sets_all_three_sliders_and_stays_marked_until_one_moves(curve):
    curve.click("text=exercise 7: 10 x 10")
    values = {name: curve.input_value(f"#{name}") for name in ("bands", "rows", "threshold")}
    assert values == {"bands": "10", "rows": "10", "threshold": "0.8"}
    assert "(1/b)^(1/r) = 0.794" in curve.text_content("#picture")
    pressed = "button[aria-pressed=true]"
    assert curve.inner_text(pressed) == "exercise 7: 10 x 10"
    move(curve, rows=9)
    assert curve.locator(pressed).count() == 0


def test_it_asks_nothing_of_the_network_and_makes_no_error(curve):
    assert curve.requests == [PAGE.as_uri()]
    assert curve.problems == []
    assert re.findall(r"(?:src|href)=\"(?!lecture\.md)", PAGE.read_text("utf-8")) == []


def test_text_is_readable_in_both_themes(curve):
    for scheme in ("light", "dark"):
        curve.emulate_media(color_scheme=scheme)
        ink, paper = (
            sum(map(int, re.findall(r"\d+", color)[:3]))
            for color in curve.evaluate(
                "() => { const style = getComputedStyle(document.body);"
                " return [style.color, style.backgroundColor]; }"
            )
        )
        assert abs(ink - paper) > 450
        assert (ink < paper) == (scheme == "light")


def test_nothing_is_cut_off_on_a_phone(curve):
    curve.set_viewport_size({"width": 360, "height": 700})
    assert curve.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_the_lecture_links_it():
    assert "(lecture-s-curve.html)" in LECTURE
