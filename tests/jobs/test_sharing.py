"""`find_pairs` with passages and without a threshold: who copied what from whom, however little of it."""

from __future__ import annotations

import json
import random
from itertools import combinations

import pyarrow.parquet as pq
import pytest

import neardup
from neardup.jobs import sharing
from support import passages as oracle


def essays(num_essays=12, seed=3):
    """Essays of their own words, of which some have 40 edited words of an earlier one."""
    rng = random.Random(seed)
    texts = []
    for number in range(num_essays):
        words = [f"{word}of{number}" for word in oracle.prose(rng, 400)]
        if number % 3 == 2:
            source = texts[number - 2]
            copied = oracle.edited(source[100:140], rng, 0.1)
            words[200:200] = copied
        texts.append(words)
    return [" ".join(words) for words in texts]


def named(report):
    return [(row["doc_a"], row["doc_b"]) for row in report.pairs.to_pylist()]


def sharing_pairs(texts, **settings):
    """Every two texts that share a passage, by comparing each with each."""
    return [
        (a, b)
        for a, b in combinations(range(len(texts)), 2)
        if neardup.passages(texts[a], texts[b], **settings)
    ]


def test_essays_that_copied_a_paragraph_with_edits_are_listed_with_it():
    texts = essays()
    report = neardup.find_pairs(texts, passages=True, edits=True)
    assert named(report) == [(0, 2), (3, 5), (6, 8), (9, 11)]
    assert named(report) == sharing_pairs(texts, edits=True)
    for row in report.pairs.to_pylist():
        assert row["similarity"] < 0.1
        [passage] = row["passages"]
        assert passage["words"] >= 25
    assert "shares a passage of at least 18 words" in report.plan.finding()


@pytest.mark.parametrize("min_words", [1, 2, 3, 8, 20])
def test_without_edits_every_pair_that_shares_a_run_of_words_is_listed(min_words):
    rng = random.Random(min_words)
    texts = [
        " ".join(f"w{rng.randrange(12 if min_words > 3 else 90)}" for _ in range(rng.randrange(60)))
        for _ in range(14)
    ]
    texts[5:5] = [texts[3], "", texts[1][: len(texts[1]) // 2]]
    report = neardup.find_pairs(texts, passages=True, min_words=min_words)
    expected = sharing_pairs(texts, min_words=min_words)
    assert named(report) == expected
    assert expected


def test_a_paragraph_that_very_many_have_is_found_with_the_first_of_them(monkeypatch):
    monkeypatch.setattr(sharing, "_FIRST_DOCUMENTS", 3)
    rng = random.Random(8)
    copied = oracle.prose(rng, 60)
    texts = [
        " ".join([f"{word}of{number}" for word in oracle.prose(rng, 50)] + copied)
        for number in range(9)
    ]
    found = named(neardup.find_pairs(texts, passages=True, edits=True))
    assert found == [(a, b) for a, b in combinations(range(9), 2) if a < 3]
    # Without edits, all.
    assert len(named(neardup.find_pairs(texts, passages=True))) == 9 * 8 // 2


def test_common_phrases_alone_are_no_pair():
    rng = random.Random(4)
    phrase = "on the other hand it is the case that".split()
    texts = [
        " ".join([*oracle.prose(rng, 5), *phrase, *(f"w{number}x{at}" for at in range(300))])
        for number in range(6)
    ]
    report = neardup.find_pairs(texts, passages=True, edits=True)
    assert report.num_pairs == 0
    assert report.pairs.num_rows == 0


def test_a_threshold_or_a_measure_asks_for_similar_pairs():
    texts = [*essays(6), essays(6)[0]]
    assert named(neardup.find_pairs(texts, passages=True, edits=True, threshold=0.8)) == [(0, 6)]
    contained = neardup.find_pairs(texts, passages=True, edits=True, measure="containment")
    assert named(contained) == [(0, 6)]
    assert contained.plan.shared_words is None


def write_essays(path, texts):
    rows = [{"id": f"e{at}", "text": text, "course": "ab"[at > 5]} for at, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_files_give_the_same_bytes_whatever_the_threads_and_are_loaded_again(tmp_path):
    texts = essays()
    path = write_essays(tmp_path / "essays.jsonl", texts)
    written = set()
    for threads in (1, 3):
        out = tmp_path / f"pairs-{threads}.parquet"
        report = neardup.find_pairs(path, out=out, passages=True, edits=True, threads=threads)
        written.add(out.read_bytes())
    assert len(written) == 1
    assert report.num_pairs == 4
    table = pq.read_table(out)
    assert table.column("doc_b").to_pylist() == ["e2", "e5", "e8", "e11"]
    again = neardup.load(out)
    assert again.plan.finding() == report.plan.finding()
    assert again.pairs.equals(report.pairs)


def test_references_and_groups_limit_the_pairs(tmp_path):
    texts = essays()
    old = write_essays(tmp_path / "old.jsonl", texts[:4])
    new = write_essays(tmp_path / "new.jsonl", texts[4:])
    settings = {"passages": True, "edits": True}
    both = neardup.find_pairs(new, against=old, **settings)
    # texts 0 and 2 are both references; 3 and 5 are across, the others within the input
    assert [(row["file_a"], row["file_b"]) for row in both.pairs.to_pylist()] == [
        ("old.jsonl", "new.jsonl"),
        ("new.jsonl", "new.jsonl"),
        ("new.jsonl", "new.jsonl"),
    ]
    across = neardup.find_pairs(new, against=old, only_against=True, **settings)
    assert [row["doc_a"] for row in across.pairs.to_pylist()] == ["e3"]
    moved = [*texts[:2], texts[11], *texts[3:11], texts[2]]
    path = write_essays(tmp_path / "all.jsonl", moved)
    assert ("e0", "e11") in named(neardup.find_pairs(path, **settings))
    grouped = named(neardup.find_pairs(path, group_column="course", **settings))
    assert grouped == [("e3", "e5"), ("e6", "e8")]
