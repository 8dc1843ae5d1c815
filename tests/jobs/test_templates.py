"""A run warns if most removed documents share only a template, and not if they are edited copies."""

from __future__ import annotations

import json
import random

import pytest

import neardup

WORDS = [f"word{number}" for number in range(5000)]
WARNING = "share little but a template with the kept document"


def draw(rng, count):
    return [rng.choice(WORDS) for _ in range(count)]


def pages_of(rng, num_templates, num_pages):
    """Pages of 30 to 40 words of their own between the 300 words of a template."""
    templates = [draw(rng, 300) for _ in range(num_templates)]
    return [
        " ".join(template[:100] + draw(rng, rng.randint(30, 40)) + template[100:])
        for template in templates
        for _ in range(num_pages)
    ]


def edited_copies(rng, count, edits):
    text = draw(rng, 300)
    copies = []
    for _ in range(count):
        copy = list(text)
        for _ in range(edits):
            copy[rng.randrange(300)] = rng.choice(WORDS)
        copies.append(" ".join(copy))
    return copies


@pytest.mark.parametrize("settings", [{}, {"method": "lsh"}, {"pairs": True, "threads": 1}])
def test_pages_of_templates_cause_a_warning_with_a_hint(tmp_path, settings):
    texts = pages_of(random.Random(1), 2, 15)
    with pytest.warns(UserWarning, match=WARNING):
        report = neardup.deduplicate(texts, threshold=0.7, **settings)
    assert report.num_removed == 28
    (warning,) = report.warnings
    assert warning.startswith(f"28 of 28 removed documents, in 2 clusters, {WARNING}; ")
    assert warning.endswith(
        "pass the template in `ignore`, or compare web pages with html=True and html_content='main'"
    )
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    with pytest.warns(UserWarning, match=WARNING):
        from_files = neardup.deduplicate(path, out=tmp_path / "out", threshold=0.7, **settings)
    assert from_files.warnings == neardup.load(tmp_path / "out").warnings == report.warnings


def test_following_the_hint_keeps_the_pages(tmp_path):
    rng = random.Random(2)
    template = draw(rng, 300)
    (tmp_path / "template.txt").write_text(" ".join(template))
    texts = [" ".join([*template, *draw(rng, 35)]) for _ in range(15)]
    report = neardup.deduplicate(texts, threshold=0.7, ignore=tmp_path / "template.txt")
    assert (report.num_removed, report.warnings) == (0, ())


@pytest.mark.parametrize("edits", [1, 3, 6])
def test_edited_copies_are_not_a_template(edits):
    report = neardup.deduplicate(edited_copies(random.Random(edits), 40, edits), threshold=0.6)
    assert report.num_removed > 30
    assert report.warnings == ()


def test_licences_with_other_names_and_years_are_not_a_template():
    rng = random.Random(5)
    body = " ".join(draw(rng, 160))
    texts = [
        f"Copyright {1990 + year} {' '.join(draw(rng, 2))} and others. {body}" for year in range(40)
    ]
    report = neardup.deduplicate(texts)
    assert (report.num_removed, report.warnings) == (39, ())


def test_a_template_behind_few_removals_causes_no_warning():
    rng = random.Random(6)
    texts = [*pages_of(rng, 1, 12), *edited_copies(rng, 60, 2)]
    report = neardup.deduplicate(texts, threshold=0.7)
    assert (report.num_removed, report.warnings) == (70, ())


def test_vectors_and_sets_of_items_have_no_template():
    vectors = [[1.0, 2.0, float(number) / 1000] for number in range(30)]
    assert neardup.deduplicate(vectors, measure="cosine").warnings == ()
    items = [[*range(100), *range(1000 * number, 1000 * number + 20)] for number in range(1, 30)]
    report = neardup.deduplicate(items=items, threshold=0.6)
    assert report.num_removed > 20
    assert report.warnings == ()
