"""The tables of a report: loaded once on first use; a missing one raises an error with a hint."""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import NotStoredError
from neardup.report import count_below, summarise_clusters

TABLES = ("kept", "removed", "clusters", "rejected", "pairs")
REMOVED = pa.table(
    {
        "doc_id": ["b", "c", "e", "f", "g"],
        "kept_id": ["a", "a", "d", "d", "d"],
        "similarity": [0.9, 0.85, 1.0, 0.7, 0.95],
    }
)


class Loader:
    """Returns the tables it has and records the requests."""

    def __init__(self, **tables):
        self.tables = tables
        self.asked = []

    def __call__(self, name):
        self.asked.append(name)
        return self.tables.get(name)


def report_with(load, **changes):
    base = neardup.deduplicate(["one two three", "four five six"])
    return dataclasses.replace(base, load=load, **changes)


def test_a_table_is_loaded_once_on_first_use():
    load = Loader(**dict.fromkeys(TABLES, REMOVED))
    report = report_with(load)
    assert load.asked == []
    for name in TABLES:
        assert getattr(report, name) is getattr(report, name) is REMOVED
    assert load.asked == list(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_was_not_stored_is_an_error_with_a_hint(name):
    with pytest.raises(NotStoredError, match="this run") as error:
        getattr(report_with(Loader()), name)
    assert error.value.hint


def test_a_report_is_printed_and_counted_without_loading_a_table():
    load = Loader()
    report = report_with(load, largest=())
    assert str(report)
    assert repr(report)
    assert report.duplicate_ratio == 0
    assert report.as_dict()["largest_clusters"] == []
    assert load.asked == []


def test_precomputed_largest_clusters_are_written():
    largest = ({"cluster_id": "a", "documents": 3, "weakest_id": "b", "similarity": 0.9},)
    assert report_with(Loader(), largest=largest).as_dict()["largest_clusters"] == list(largest)
    counted = report_with(Loader(removed=REMOVED)).as_dict()["largest_clusters"]
    assert [(row["cluster_id"], row["documents"], row["weakest_id"]) for row in counted] == [
        ("d", 4, "f"),
        ("a", 3, "c"),
    ]


def test_reports_of_one_run_are_equal_however_their_tables_are_loaded():
    report = report_with(Loader())
    assert dataclasses.replace(report, load=Loader(kept=REMOVED)) == report


def test_at_threshold_of_a_list_of_pairs_is_an_error():
    report = report_with(Loader(pairs=REMOVED), select_again=None)
    with pytest.raises(NotStoredError, match="no selection to repeat") as error:
        report.at_threshold(0.9)
    assert "at 0.9" in error.value.hint


def test_the_largest_clusters_come_first_ties_by_number():
    numbers, sizes, weakest = summarise_clusters(
        np.array([7, 3, 7, 5, 3, 7]), np.array([0.9, 0.8, 0.7, 1.0, 0.9, 0.7]), 2
    )
    assert numbers.tolist() == [7, 3]
    assert sizes.tolist() == [4, 3]
    assert weakest.tolist() == [2, 1]


@pytest.mark.parametrize("n", [0, 1, 3, 100])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_summarised_as_in_plain_python(seed, n):
    rng = random.Random(seed)
    clusters = [rng.randrange(12) for _ in range(60)]
    similarities = [rng.choice([0.8, 0.85, 0.9, 1.0]) for _ in clusters]
    members = defaultdict(list)
    for place, number in enumerate(clusters):
        members[number].append(place)
    expected = [
        (number, len(places) + 1, min(places, key=lambda place: (similarities[place], place)))
        for number, places in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    found = summarise_clusters(np.array(clusters), np.array(similarities), n)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected[:n]


def test_without_removed_documents_there_are_no_clusters():
    empty = summarise_clusters(np.empty(0, np.int64), np.empty(0, np.float64), 10)
    assert [column.size for column in empty] == [0, 0, 0]


def test_documents_below_the_threshold_are_counted():
    assert count_below(REMOVED, 0.9) == 2
    assert count_below(REMOVED.slice(0, 0), 0.9) == 0


def test_a_report_of_pairs_does_not_speak_of_removed_documents(tmp_path):
    texts = ["one two three four five six", "one two three four five six!", "other words are here"]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    listed = neardup.find_pairs(texts)
    from_file = neardup.find_pairs(path, lines=True, out=tmp_path / "pairs.jsonl")
    for report in (
        listed,
        from_file,
        neardup.load(tmp_path / "pairs.jsonl"),
        listed.at_threshold(0.9),
    ):
        assert str(report).startswith("3 documents: 1 pair; ")
        shown = report._repr_html_()
        assert "removed" not in f"{report}{shown}"
        assert "<th>similarity</th>" in shown
    assert "1 removed" in str(neardup.deduplicate(texts, pairs=True))
    assert listed.num_removed == 1


def test_an_explanation_is_one_line():
    texts = {"a": "one two three four five six", "b": "one two three four five six!", "c": "x y z"}
    report = neardup.deduplicate(texts)
    assert repr(neardup.explain(report, "b")) == (
        "<Explanation: b was removed: a was kept, jaccard 1.0000>"
    )
    assert str(neardup.explain(report, "a")) == "a was kept, and 1 removed for it: b (1.0000)"
    assert str(neardup.explain(report, "c")) == (
        "c was kept: It is not similar to any document before it"
    )
