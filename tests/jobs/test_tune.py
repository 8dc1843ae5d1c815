"""tune: the threshold between planted copies and unrelated documents, counted exactly, the same for any threads."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import neardup
from guides.made import records_with_typos
from neardup.errors import ConfigError
from neardup.jobs import tune as job
from support import oracles

COLUMNS = ["name", "address", "phone"]


@pytest.fixture(scope="module")
def contacts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contacts")
    records_with_typos.make(folder)
    return folder / "contacts.csv"


@pytest.fixture(scope="module")
def found(contacts):
    return neardup.tune(contacts, text_column=COLUMNS)


def essays(num=60):
    """Texts of their own words, of which every third has a passage of another one."""
    rng = random.Random(3)
    texts = [" ".join(f"w{rng.randrange(4000)}" for _ in range(200)) for _ in range(num)]
    for at in range(0, num - 1, 3):
        texts[at + 1] = " ".join(texts[at].split()[:80] + texts[at + 1].split()[:160])
    return texts


def test_the_threshold_separates_records_with_typos_from_other_people(found, contacts):
    assert (found.unit, found.size) in {("char", 3), ("char", 5)}
    pairs = neardup.find_pairs(contacts, text_column=COLUMNS, **found.settings).pairs
    truth = {
        tuple(line.split(",")[::-1])
        for line in (contacts.parent / "truth.csv").read_text("utf-8").splitlines()[1:]
    }
    assert (
        set(zip(*(pairs.column(f"doc_{side}").to_pylist() for side in "ab"), strict=True)) == truth
    )
    assert found.certainty > 0.9
    assert any("columns are compared as one text" in words for words in found.advice)


def test_the_histogram_counts_what_plain_sets_count():
    texts = essays(30)
    found = neardup.tune(texts, unit="word", size=3)
    sets = [oracles.shingles(text, size=3) for text in texts]
    values = [
        len(a & b) / len(a | b)
        for at, a in enumerate(sets)
        for other, b in enumerate(sets)
        if at != other and a & b
    ]
    edges = [*found.histogram.column("low").to_pylist(), 2.0]
    expected = np.histogram([value for value in values if value >= edges[0]], edges)[0]
    assert found.histogram.column("pairs").to_pylist() == expected.tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_does_not_change_the_result(found, contacts, threads):
    again = neardup.tune(contacts, text_column=COLUMNS, threads=threads)
    assert json.dumps(again.as_dict()) == json.dumps(found.as_dict())


def test_examples_lie_on_both_sides_of_the_threshold(found):
    above = [pair.similarity for pair in found.examples if pair.is_above]
    below = [pair.similarity for pair in found.examples if not pair.is_above]
    assert len(above) == len(below) == job.NUM_EXAMPLES
    assert min(above) >= found.threshold > max(below)
    assert all(pair.text_a and pair.text_b for pair in found.examples)


def test_unrelated_documents_have_no_valley():
    rng = random.Random(5)
    texts = [" ".join(f"w{rng.randrange(300)}" for _ in range(40)) for _ in range(80)]
    found = neardup.tune(texts)
    assert found.threshold is None
    assert "no valley" in found.verdict()
    assert "threshold" not in found.settings


def test_containment_finds_passages_in_texts():
    found = neardup.tune(essays(), measure="containment", unit="word", size=3)
    assert found.measure == "containment"
    assert found.threshold < 0.5
    pairs = neardup.find_pairs(essays(), **found.settings).pairs
    assert pairs.num_rows == 20


def test_sets_of_items_are_tuned_without_unit_and_size():
    rng = random.Random(2)
    baskets = [rng.sample(range(500), 20) for _ in range(60)]
    baskets += [basket[:18] + rng.sample(range(500, 600), 2) for basket in baskets[:30]]
    found = neardup.tune(items=baskets)
    assert (found.unit, len(found.candidates)) == ("items", 1)
    assert 0.1 < found.threshold < 0.8
    assert found.settings == {"threshold": found.threshold}


def test_an_expensive_input_is_compared_in_part(contacts, monkeypatch):
    monkeypatch.setattr(job, "MAX_SECONDS", 0.004)
    found = neardup.tune(contacts, text_column=COLUMNS)
    assert found.part < 1
    assert not all(one.is_searched for one in found.candidates)
    assert any("not tried" in words for words in found.advice)


def test_what_is_given_is_not_varied():
    texts = essays(12)
    assert {one.unit for one in neardup.tune(texts, unit="char").candidates} == {"char"}
    compared = neardup.tune(texts, size=4).candidates
    assert {(one.unit, one.size) for one in compared} == {("word", 4), ("char", 4)}


def test_groups_are_not_compared_with_each_other():
    texts = essays(30)
    rows = [{"text": text, "own": str(at % 3)} for at, text in enumerate(texts)]
    found = neardup.tune(rows, group_column="own", unit="word", size=3)
    assert sum(found.histogram.column("pairs").to_pylist()) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measure": "cosine"}, "tune compares texts and sets"),
        ({"engine": "spark"}, "tune runs on this machine"),
        ({"against": "old.jsonl"}, "`against` does not apply to tune"),
        ({"sample": 3}, "`sample`"),
    ],
)
def test_what_cannot_be_tuned_is_an_error(settings, message):
    with pytest.raises(ConfigError, match=message):
        neardup.tune(["a b c", "a b d"], **settings)


def test_documents_without_words_have_nothing_to_tune():
    found = neardup.tune(["", "  ", "!"], unit="word", size=1)
    assert (found.threshold, found.sample) == (None, 0)


def test_a_notebook_shows_the_histogram(found):
    shown = found._repr_html_()
    assert shown.count("<rect") == found.histogram.num_rows
    assert "separation" in shown


def test_copies_of_one_document_have_no_valley():
    tuning = neardup.tune([" ".join(f"w{at}" for at in range(40))] * 60)
    assert tuning.threshold is None
