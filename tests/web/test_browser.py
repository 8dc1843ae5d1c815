"""The page in a real Chromium, opened from disk: every view, and that hostile documents stay texts."""

from __future__ import annotations

import csv
import io
import json
import random
from importlib import resources
from pathlib import Path

import pytest

import neardup
from support import long_ids
from support.browser_tab import Tab, until
from support.made_run import SETTINGS, data_of, documents, with_data

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def keys(report_path):
    """The keys of the documents, by id."""
    data = data_of(report_path.read_text("utf-8"))
    return dict(zip(data["documents"]["id"], data["documents"]["key"], strict=True))


def test_the_overview_states_the_promise_and_lists_rejected_rows_first(tab, report):
    page = tab.open()
    share = round(100 * report.num_removed / report.documents)
    assert page.inner_text("h1") == (
        f"{report.num_removed} of {report.documents} documents are near-duplicates ({share} %)"
    )
    assert report.plan.finding() in page.inner_text(".lead")
    first = page.query_selector("main > *")
    assert "1 row of" in first.inner_text()
    assert page.locator(".chart svg").count() == 4
    identical = report.removed.column("similarity").to_pylist().count(1)
    assert page.inner_text(".keys").split("\n") == [
        f"kept {report.num_kept}",
        *([f"identical {identical}"] if identical else []),
        f"edited {report.num_removed - identical}",
        "rejected 1",
    ]
    assert "Removed text: 10 MB of 20 MB." in page.inner_text(".measured")


def test_the_slider_shows_what_at_threshold_counts(tab, report):
    page = tab.open()
    for threshold in (0.6, 0.8, 0.95, 1.0):
        page.fill("#threshold", str(round((threshold - 0.6) * 100)))
        again = report.at_threshold(threshold)
        said = page.inner_text("#at-threshold")
        assert said.startswith(
            f"At {threshold:.2f}: {again.num_removed} removed, {again.num_kept} kept"
        )
        assert f"{again.num_pairs} pair" in said


def test_the_histogram_can_show_pairs(tab):
    page = tab.open()
    page.click("button:text-is('pairs')")
    assert page.get_attribute("button:text-is('pairs')", "aria-pressed") == "true"
    assert "found pairs by similarity" in page.get_attribute(".chart svg >> nth=0", "aria-label")


def test_clusters_are_listed_sorted_and_filtered(tab):
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    assert page.inner_text(".virtual-row >> nth=0").split()[0] == "6"
    page.click("button:has-text('weakest')")
    until(page, "location.hash.includes('sort=weakest')")
    page.wait_for_selector("[data-row]")
    weakest = [float(text) for text in page.locator(".virtual-row .figure").all_inner_texts()]
    assert weakest == sorted(weakest)
    page.fill("input[type=search]", "long-0")
    until(page, "document.querySelectorAll('[data-row]').length === 1")
    assert page.inner_text("[data-row]") == "long-0"
    page.fill("input[type=search]", "no such words")
    page.wait_for_selector("text=No cluster matches.")


def test_a_hundred_thousand_rows_scroll_and_few_are_built(browser, report_path, tmp_path):
    text = report_path.read_text("utf-8")
    data = data_of(text)
    first = data["clusters"][0]
    data["clusters"] = [
        [first[0], 100_002 - number, first[2], first[3]] for number in range(100_000)
    ]
    (tmp_path / "many.html").write_text(with_data(text, data), "utf-8")
    tab = Tab(browser, f"file://{tmp_path / 'many.html'}")
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    page.evaluate("document.querySelector('.virtual').scrollTop = 50000 * 44")
    until(
        page,
        "[...document.querySelectorAll('.virtual-row')].some((row) => row.innerText.startsWith('50,00'))",
    )
    assert page.locator(".virtual-row").count() < 60
    tab.close()


def test_a_cluster_shows_members_heat_map_and_what_they_share(tab, keys):
    page = tab.open(f"cluster/{keys['ferry-0']}")
    assert page.inner_text("h1") == "ferry-0"
    assert page.locator("#members ~ .scroll tbody tr").count() == 5
    assert page.locator("a.cell").count() == 30
    label = page.get_attribute("a.cell >> nth=0", "aria-label")
    assert label.startswith("ferry-0 and ferry-1: ")
    texts = [text for name, text in documents().items() if name.startswith("ferry")]
    sets = [set(neardup.shingles(text, size=2, seed=SETTINGS["seed"]).tolist()) for text in texts]
    told = f"{len(set.intersection(*sets))} of the {len(sets[0])} shingles of the kept text are in all 6 documents"
    assert told in page.inner_text("main")
    shared = page.inner_text(".text .shared >> nth=0")
    assert all(
        shared.split()[0] in text for name, text in documents().items() if name.startswith("ferry")
    )


def test_a_pair_shows_what_differs_and_what_is_shared(tab, keys):
    page = tab.open(f"pair/{keys['ferry-0']}/{keys['ferry-3']}")
    texts = documents()
    compared = neardup.compare(texts["ferry-0"], texts["ferry-3"], size=2, seed=SETTINGS["seed"])
    figures = page.locator(".figures dd").all_inner_texts()
    assert float(figures[0]) == pytest.approx(compared.jaccard, abs=1e-4)
    assert f"{compared.shared} of {compared.shingles_a} shingles" in figures
    assert figures[2] == f"{compared.containment_a:.1%}".replace("%", " %")
    changed = set(page.locator("ins.new").all_inner_texts())
    assert {word.strip() for part in changed for word in part.split()} == set(
        texts["ferry-3"].split()
    ) - set(texts["ferry-0"].split())
    assert page.inner_text("#columns ~ .scroll tbody tr").split() == ["lang", "en", "en"]
    assert [side_of(page, side) for side in "ab"] == [texts["ferry-0"], texts["ferry-3"]]


def side_of(page, side):
    """The text of one side of a pair as it is shown."""
    return "".join(page.locator(f"[data-side={side}]").all_text_contents())


def test_the_names_of_a_pair_are_its_heading_and_its_neighbours_are_linked(tab, keys):
    page = tab.open(f"pair/{keys['ferry-0']}/{keys['ferry-3']}")
    assert page.inner_text("h1") == "ferry-0 and ferry-3"
    assert page.title() == "ferry-0 and ferry-3 · clean"
    page.click("text=next pair")
    page.wait_for_selector("h1:has-text('ferry-4')")
    page.click("text=previous pair")
    page.click("text=previous pair")
    page.wait_for_selector("h1:has-text('ferry-2')")


def test_keys_step_through_the_differences(tab, keys):
    page = tab.open(f"pair/{keys['ferry-0']}/{keys['ferry-3']}")
    assert page.inner_text(".steps .figure") == "3 differences"
    for key, told in (("n", 1), ("n", 2), ("n", 3), ("n", 3), ("p", 2)):
        page.keyboard.press(key)
        until(
            page, f"document.querySelector('.steps .figure').innerText === 'difference {told} of 3'"
        )
        assert page.locator("del.is-current").count() == 1
        assert page.locator("ins.is-current").count() == 1


def test_long_texts_say_what_is_left_out(tab, keys):
    page = tab.open(f"pair/{keys['long-0']}/{keys['long-1']}")
    assert page.locator(".cut-here").count() == 2
    assert page.inner_text(".cut-here >> nth=0") == (
        "Cut here: 50,000 characters of a text of 10 MB; 1 word left out."
    )
    assert page.inner_text(".cut-note") == (
        "Only the beginnings of these texts are compared here: "
        "1 word on the left and 2 words on the right are left out."
    )
    assert page.inner_text("#columns ~ .scroll tbody tr").split() == ["lang", "en", "en"]


def test_only_differences_folds_equal_words_until_they_are_opened(tab, keys):
    page = tab.open(f"pair/{keys['long-0']}/{keys['long-1']}")
    assert page.is_checked(".switch input")
    assert "equal words" in page.inner_text(".aligned")
    short = len(side_of(page, "a"))
    page.click(".fold")
    assert len(side_of(page, "a")) > 10 * short
    page.uncheck(".switch input")
    assert len(side_of(page, "a")) == 50_000


def test_hidden_characters_are_spelled(tab, keys):
    page = tab.open(f"document/{keys['bidi ' + chr(0x202E) + 'gpj']}")
    spelled = page.locator(".text .hidden-character").all_inner_texts()
    assert spelled == ["U+202E", "U+202C", "U+001B", "U+200F", "U+FEFF"]
    assert page.locator("h1 .hidden-character").inner_text() == "U+202E"
    assert "\u202e" not in page.inner_text("main")


def test_search_finds_ids_and_words_and_says_why(tab, keys, report):
    page = tab.open("search")
    page.fill("#search", "ferry-3")
    page.wait_for_selector("a[data-row]")
    assert page.inner_text("a[data-row]") == "ferry-3"
    page.fill("#search", " ".join(documents()["alone-3"].split()[20:24]))
    until(page, "document.querySelector('a[data-row]')?.innerText === 'alone-3'")
    page.fill("#search", "nowhere to be found")
    page.wait_for_selector("text=No document found.")
    page = tab.open(f"document/{keys['ferry-3']}")
    answer = neardup.explain(report, "ferry-3")
    said = page.inner_text("#why")
    assert answer.kept_id in said
    assert f"it has a similarity of {int(answer.similarity * 1e4) / 1e4:.4f} to" in said
    kept = neardup.explain(report, "alone-3")
    assert (
        tab.open(f"document/{keys['alone-3']}")
        .inner_text("#why")
        .startswith(f"Kept. {kept.reason}, and nothing")
    )


def test_removals_are_judged_by_keys_undone_and_exported_with_the_estimate(tab, report, tmp_path):
    drawn = neardup.review(report)
    page = tab.open("review")
    page.wait_for_selector(".aligned")
    total = len(drawn.removals)
    assert page.inner_text("#queue") == f"Is it right? Check {total} removals"
    review = drawn
    for at, key in enumerate("ynyyyyyyyyyy"[:total]):
        page.keyboard.press(key)
        until(page, f"document.querySelector('#estimate').innerText.startsWith('{at + 1} of')")
        review = review.judge(at, key == "y")
    told = page.inner_text("#estimate")
    assert f"{review.judged - 1} right, 1 wrong" in told
    interval = f"95 % interval {review.low:.2f} to {review.high:.2f}"
    assert f"precision {review.precision:.2f}, {interval}" in told
    decisions = json.loads(export(page, "Export JSON"))
    estimate = decisions["review"]
    for name in ("precision", "low", "high"):
        assert estimate[name] == pytest.approx(getattr(review, name), abs=1e-9)
    assert [one["id"] for one in decisions["decisions"]] == [drawn.removals[1].doc_id]
    (tmp_path / "decisions.json").write_text(json.dumps(decisions), "utf-8")
    source = Path(report.inputs[0]["path"])
    again = neardup.deduplicate(source, decisions=tmp_path / "decisions.json", **SETTINGS)
    assert again.decisions == {"kept": 1, "removed": 0, "unmatched": 0}
    for at in range(review.judged - 1, -1, -1):
        page.keyboard.press("u")
        until(page, f"document.querySelector('#estimate').innerText.startsWith('{at} of')")
    page.wait_for_selector("text=No document is marked yet.")


def export(page, label):
    with page.expect_download() as downloading:
        page.click(f"text={label}")
    return downloading.value.path().read_text("utf-8")


def test_marks_are_kept_undone_exported_and_honoured_by_a_run(tab, keys, report, tmp_path):
    page = tab.open(f"pair/{keys['ferry-0']}/{keys['ferry-3']}")
    page.click(".side >> nth=1 >> [data-mark]")
    page = tab.open("document/" + str(keys["alone-3"]))
    page.click("[data-mark]")
    page = tab.open(f"document/{keys['ferry-4']}")
    page.click("[data-mark]")
    page.reload()
    page = tab.open("review")
    assert page.locator(".decisions tbody tr").count() == 3
    page.click("button:has-text('Undo')")
    assert page.locator(".decisions tbody tr").count() == 2
    decisions = json.loads(export(page, "Export JSON"))
    assert decisions["neardup_decisions"] == 1
    assert [
        (one["decision"], one["id"], one["file"], one["row"]) for one in decisions["decisions"]
    ] == [
        ("keep", "ferry-3", "pages.jsonl", 4),
        ("remove", "alone-3", "pages.jsonl", keys["alone-3"] + 1),
    ]
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.wait_for_selector("text=No document is marked yet.")
    (tmp_path / "decisions.json").write_text(json.dumps(decisions), "utf-8")
    again = neardup.deduplicate(
        Path(report.inputs[0]["path"]), decisions=tmp_path / "decisions.json", **SETTINGS
    )
    assert again.decisions == {"kept": 1, "removed": 1, "unmatched": 0}
    assert "ferry-3" not in again.removed.column("doc_id").to_pylist()
    assert "alone-3" in again.removed.column("doc_id").to_pylist()


def test_an_exported_table_holds_no_formula(tab, keys):
    page = tab.open(f"document/{keys['=1+1,' + chr(34) + 'x' + chr(34)]}")
    page.click("[data-mark]")
    page = tab.open("review")
    rows = list(csv.DictReader(io.StringIO(export(page, "Export CSV"))))
    assert [row["id"] for row in rows] == ['\'=1+1,"x"']


def test_hostile_documents_stay_texts(tab, keys):
    for view in (
        "",
        "clusters",
        f"cluster/{keys['</script><b>bold']}",
        f"document/{keys['</script><b>bold']}",
        "search?search=script",
    ):
        page = tab.open(view)
        page.wait_for_timeout(50)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main b, main script").count() == 0
    assert "<script>window.hacked" in tab.open(f"document/{keys['</script><b>bold']}").inner_text(
        ".text"
    )


def test_a_link_opens_its_view_and_an_unknown_one_says_so(tab):
    assert tab.open("pair/0/3").inner_text("h1") == "ferry-0 and ferry-3"
    tab.page.reload()
    tab.page.wait_for_selector("h1:has-text('ferry-3')")
    assert "There is no such view." in tab.open("nothing").inner_text("main")
    assert "not in this report" in tab.open("cluster/999999").inner_text("main")
    assert "no such view" in tab.open("pair/x/1").inner_text("main")


def test_the_keyboard_moves_opens_and_helps(browser, report_path):
    tab = Tab(browser, f"file://{report_path}")  # of its own: what has the focus matters
    page = tab.open()
    page.keyboard.press("c")
    page.wait_for_selector("[data-row]")
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        until(page, f"document.activeElement === document.querySelectorAll('[data-row]')[{place}]")
    page.keyboard.press("Enter")
    until(page, "location.hash.startsWith('#/cluster/')")
    page.keyboard.press("?")
    assert page.is_visible("dialog")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    until(page, "document.activeElement.id === 'search'")
    page.keyboard.type("jk?")
    assert page.input_value("#search") == "jk?"
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, report_path, keys, scheme):
    tab = Tab(browser, f"file://{report_path}", color_scheme=scheme)
    views = [
        "",
        "clusters",
        f"cluster/{keys['ferry-0']}",
        f"pair/{keys['ferry-0']}/{keys['ferry-3']}",
        f"document/{keys['ferry-3']}",
        "search?search=ferry",
        "review",
    ]
    for view in views:
        page = tab.open(view)
        page.wait_for_timeout(50)
        page.evaluate(AXE)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        serious = [
            (one["id"], one["nodes"][0]["html"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], view
    tab.close()


def test_every_view_fits_into_400_pixels(browser, report_path, keys):
    tab = Tab(browser, f"file://{report_path}", viewport={"width": 400, "height": 800})
    for view in (
        "",
        "clusters",
        f"cluster/{keys['ferry-0']}",
        f"pair/{keys['ferry-0']}/{keys['ferry-3']}",
        "search?search=b",
        "review",
    ):
        page = tab.open(view)
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, view
    tab.close()


def test_the_theme_changes_and_print_hides_controls(tab):
    page = tab.open()
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.click("text=Theme: auto")
    page.click("text=Theme: light")
    assert page.evaluate(colour) != before
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    assert page.is_visible("h1")


def test_the_matrix_of_sources_has_the_numbers_of_the_table_and_opens_clusters(browser, tmp_path):
    pages = {f"new:{number}": f"these are the words of page {number % 9}" for number in range(30)}
    pages |= {f"old:{number}": f"these are the words of page {number}" for number in range(12)}
    report = neardup.deduplicate(pages)
    (tmp_path / "run.html").write_text(report.to_html(by="id"), "utf-8")
    sources = report.sources(by="id")
    tab = Tab(browser, f"file://{tmp_path / 'run.html'}")
    page = tab.open()
    assert page.inner_text("#whence") == sources.sentence()
    shown = page.locator(".matrix tbody tr").all_inner_texts()
    rows = {line.split()[0]: line.split()[1:] for line in shown}
    for row in sources.table.to_pylist():
        told = rows[row["source"]]
        assert told[:2] == [str(row["documents"]), f"{100 * row['removed_share']:.0f}"]
    cells = {one["source"]: str(one["removed"]) for one in sources.cells.to_pylist()}
    assert {name: line[3] for name, line in rows.items()} == cells
    label = page.get_attribute(".matrix a >> nth=1", "aria-label")
    assert label == "9 documents removed from old because of new"
    page.click(".matrix a >> nth=1")
    page.wait_for_selector(
        "text=Only clusters with a document of old that was removed because of one of new."
    )
    page.wait_for_selector("text=9 clusters")
    tab.close()


def test_print_shows_charts_in_light_colours(browser, report_path):
    tab = Tab(browser, f"file://{report_path}", color_scheme="dark")
    page = tab.open()
    page.emulate_media(media="print")
    colours = (
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert page.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(17, 17, 17)"]
    assert page.evaluate(
        "[...document.querySelectorAll('.chart svg')].every((one) => one.getBoundingClientRect().width > 200)"
    )
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    assert page.evaluate("document.documentElement.scrollHeight") < 2000
    tab.close()


def test_the_overview_of_components_and_of_containment_says_what_holds(browser, tmp_path):
    base = documents()["ferry-0"]
    texts = [base, f"{base} and more words", base, documents()["alone-1"]]
    chains = neardup.deduplicate(texts, cluster="components")
    (tmp_path / "old.jsonl").write_text(json.dumps({"text": base}) + "\n", "utf-8")
    settings = {"measure": "containment", "threshold": 0.9, "against": tmp_path / "old.jsonl"}
    (tmp_path / "new.jsonl").write_text(json.dumps({"text": texts[1]}) + "\n", "utf-8")
    inside = neardup.deduplicate(tmp_path / "new.jsonl", **settings)
    tab = Tab(browser, f"file://{tmp_path / 'page.html'}")
    shown = []
    for report in (chains, inside):
        (tmp_path / "page.html").write_text(report.to_html(), "utf-8")
        tab.page.goto("about:blank")
        shown.append(tab.open().inner_text("main"))
    tab.close()
    assert "connected to the kept one by a chain" in shown[0]
    assert "1 of 1 document contain another (100 %)" in shown[1]
    assert "contains at least 0.9 of the shingles of the document" in shown[1]
    assert "contained whole 1" in shown[1]
    assert not any("Every removed document is at least" in words for words in shown)


def test_a_run_that_removed_nothing_says_so(browser, tmp_path):
    report = neardup.deduplicate([documents()["alone-1"], documents()["alone-2"]])
    (tmp_path / "none.html").write_text(report.to_html(), "utf-8")
    tab = Tab(browser, f"file://{tmp_path / 'none.html'}")
    page = tab.open()
    assert page.inner_text("h1") == "Nothing was removed from 2 documents"
    assert "very removed document" not in page.inner_text("main")
    tab.close()


def test_causes_of_removal_are_counted_apart(browser, tmp_path):
    base = documents()["ferry-0"]
    for name, texts in (
        ("old", [base]),
        ("new", [base, documents()["alone-1"], documents()["alone-1"]]),
    ):
        rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / f"{name}.jsonl").write_text(rows, "utf-8")
    report = neardup.deduplicate(tmp_path / "new.jsonl", against=tmp_path / "old.jsonl")
    (tmp_path / "against.html").write_text(report.to_html(), "utf-8")
    tab = Tab(browser, f"file://{tmp_path / 'against.html'}")
    assert tab.open().inner_text(".causes") == (
        "1 because of a reference document (--against), 1 because of another document of the input."
    )
    tab.close()


def test_the_page_cuts_texts_into_shingles_as_the_library_does(tab):
    chance = random.Random(3)
    letters = [
        "a",
        "É",
        "ß",
        "ς",
        "7",
        "٣",
        "中",
        "文",
        "ก",
        "ា",
        "한",
        " ",
        " ",
        " ",
        "-",
        "_",
        ".",
        "\n",
        "e\u0301",
        "x",
        "ナ",
        "\u00ad",
        "\ufeff",
    ]
    page = tab.open()
    script = page.evaluate("document.querySelector('script:not([type])').textContent")
    start = script.index("// Texts: words and shingles")
    page.evaluate(
        script[start : script.index("// Where the page gets its data")]
        + "\nwindow.findShingles = findShingles; undefined"
    )
    for unit in ("word", "char"):
        for size in (1, 3):
            texts = ["".join(chance.choices(letters, k=chance.randrange(40))) for _ in range(60)]
            settings = {
                "unit": unit,
                "size": size,
                "fold_numbers": False,
                "fold_accents": False,
                "form": "NFC",
            }
            counts = page.evaluate(
                "([texts, settings]) => texts.map((text) => "
                "new Set(findShingles(text, settings).map((one) => one.key)).size)",
                [texts, settings],
            )
            assert counts == [len(neardup.shingles(text, unit=unit, size=size)) for text in texts]


def test_difference_behind_the_cut_of_long_texts_is_shown(browser, tmp_path):
    words = [f"word{number}" for number in range(9000)]
    changed = [f"more{number}" for number in range(40)]
    texts = {"a": " ".join(words), "b": " ".join([*words[:8000], *changed, *words[8000:]])}
    report = neardup.deduplicate(texts, threshold=0.9)
    (tmp_path / "cut.html").write_text(report.to_html(), "utf-8")
    tab = Tab(browser, f"file://{tmp_path / 'cut.html'}")
    for link, tag, other in (("pair/0/1", "ins", "del"), ("pair/1/0", "del", "ins")):
        page = tab.open(link)
        page.wait_for_selector(".aligned")
        assert page.locator(other).count() == 0
        assert "".join(page.locator(tag).all_inner_texts()).split() == changed
        assert page.locator(".aligned .left-out").all_inner_texts() == [
            "… 7,976 equal words not stored here …",
            "… 976 equal words not stored here …",
        ]
        assert page.locator(".cut-note").count() == 0
    tab.close()


def test_very_long_and_hostile_ids_are_cut_and_can_be_copied(browser, tmp_path):
    report = neardup.load(long_ids.make_run(tmp_path))
    (tmp_path / "ids.html").write_text(report.to_html(), "utf-8")
    data = data_of((tmp_path / "ids.html").read_text("utf-8"))
    assert data["documents"]["id"] == list(long_ids.IDS)
    assert max(len(row["weakest_id"]) for row in data["info"]["largest"]) <= 1001
    tab = Tab(browser, f"file://{tmp_path / 'ids.html'}")
    long_ids.check_views(tab)
    tab.close()
