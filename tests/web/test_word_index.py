"""Search by words: which documents are found, in which texts, and what is reported while the index is being built."""

from __future__ import annotations

import random
import sqlite3

import pytest

import neardup
from neardup.web.run_view import RunView
from neardup.web.served_run import ServedRun
from neardup.web.text_store import TextStore
from neardup.web.word_index import WordIndex
from support.made_run import documents

# What occurs in queries and documents alike: words, beginnings of others, and what separates them.
VOCABULARY = ["tea", "teapot", "Milk", "milk2", "café", "zwei", "АБВ", "naïve", "x"]


def find(texts, wanted):
    index = WordIndex()
    index.add(range(len(texts)), texts)
    found = index.find(index.parse(wanted)).tolist()
    index.close()
    return found


def test_a_document_is_found_if_it_has_every_word_and_the_last_one_may_be_unfinished():
    chance = random.Random(5)
    texts = [" ".join(chance.choices(VOCABULARY, k=chance.randrange(6))) for _ in range(200)]
    index = WordIndex()
    index.add(range(len(texts)), texts)
    for _ in range(60):
        words = chance.sample(VOCABULARY, chance.randrange(1, 4))
        end = chance.choice(["", " "])
        asked = " ".join(words) + end
        whole, last = (words, "") if end else (words[:-1], words[-1].lower())
        expected = [
            key
            for key, text in enumerate(texts)
            if {word.lower() for word in whole} <= set(text.lower().split())
            and any(
                word.startswith(last) for word in text.lower().split() or [""] if word or not last
            )
        ]
        assert index.find(index.parse(asked)).tolist() == expected, asked
    index.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The résumé, they said", "RESUME"),
        ("the resume", "résumé"),
        ("snake_case and kebab-case", "snake"),
        ("snake_case and kebab-case", "kebab case and"),
        ("全文検索の仕組み", "検索"),
        ("全文検索の仕組み", "み"),
        ("全文検索の仕組み in SQLite", "sqlite 仕組み"),
        ("การค้นหา", "ค้น"),
        ("42nd street", "42nd"),
    ],
)
def test_words_of_any_script_are_found(text, wanted):
    assert find(["something else", text], wanted) == [1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("検査と捜索", "検索"),
        ("teapot", "tea "),
        ("tea", "teapot"),
        ("anything", ""),
        ("anything", "</>"),
        ("tea", "pot"),
    ],
)
def test_other_words_are_not_found(text, wanted):
    assert find([text], wanted) == []


@pytest.mark.parametrize(
    "wanted", ['tea" OR "milk', "tea OR milk", "text:tea", "tea*", "NEAR(tea milk)", "-tea", "'"]
)
def test_a_query_is_words_and_not_the_language_of_the_index(wanted):
    texts = ["tea", "milk", "text tea", "tea or milk", "near tea milk"]
    words = set("".join(letter if letter.isalpha() else " " for letter in wanted.lower()).split())
    expected = [key for key, text in enumerate(texts) if words and words <= set(text.split())]
    assert find(texts, wanted) == expected


@pytest.fixture
def served(report):
    opened = ServedRun(report)
    yield opened
    opened.close()


def test_a_word_behind_ten_megabytes_is_found(served):
    served._texts.read()
    found = served.search("deepword")
    assert [row["id"] for row in found["rows"]] == ["long-0", "long-1"]
    assert (found["total"], found["num_ids"], found["num_texts"]) == (2, 24, 24)
    listed = served.clusters(offset=0, limit=9, sort="size", search="deepword")
    assert [row["id"] for row in listed["rows"]] == ["long-0"]


def test_before_the_texts_are_indexed_ids_are_searched_and_the_answer_says_so(served):
    found = served.search("ferry-3")
    assert [row["id"] for row in found["rows"]] == ["ferry-3"]
    assert (found["num_ids"], found["num_texts"]) == (24, 0)
    assert served.info()["texts"]["search"] == {"indexed": 0, "documents": 0, "error": None}


def test_while_it_is_being_built_the_index_answers_for_what_it_has(served, monkeypatch):
    parts = []
    add = WordIndex.add

    def ask_after(index, keys, texts):
        add(index, keys, texts)
        parts.append(served.search("x2"))

    served._texts.batch_bytes = 1000
    monkeypatch.setattr(WordIndex, "add", ask_after)
    served._texts.read()
    numbers = [part["num_texts"] for part in parts]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert len(numbers) > 5
    assert served.info()["texts"]["search"]["indexed"] == 24


def test_without_an_index_ids_are_found_and_the_reason_is_reported(served, monkeypatch):
    def fail(*_):
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr("neardup.web.text_store.WordIndex", fail)
    served._texts.read()
    texts_info = served.info()["texts"]
    assert texts_info["state"] == "here"
    assert texts_info["search"]["error"] == "the word index cannot be built: no such module: fts5"
    assert [row["id"] for row in served.search("ferry-3")["rows"]] == ["ferry-3"]


def test_an_excerpt_shows_the_word_that_was_found():
    text = "first words " + "between " * 100 + "needle and what follows"
    report = neardup.deduplicate({"a": text, "b": "another text altogether here"})
    served = ServedRun(report)
    served._texts.read()
    row = served.search("needle")["rows"][0]
    assert row["text"].startswith("… ")
    assert "needle and what" in row["text"]
    assert served.search("first")["rows"][0]["text"].startswith("first words between")
    assert len(row["text"]) <= 162
    served.close()


def test_closing_while_the_index_is_being_built_is_silent(report, monkeypatch):
    store = TextStore(RunView(report))
    add = WordIndex.add

    def close_first(index, keys, texts):
        store.close()
        add(index, keys, texts)

    monkeypatch.setattr(WordIndex, "add", close_first)
    store.read()
    assert store.index_error is None


def test_the_words_of_the_made_run_are_found_as_plain_python_finds_them(served):
    served._texts.read()
    for name, text in list(documents().items())[:6]:
        words = text.split()[10:14]
        expected = [
            other for other, found in documents().items() if set(words) <= set(found.split())
        ]
        assert name in expected
        assert [row["id"] for row in served.search(" ".join(words) + " ")["rows"]] == expected


def test_invisible_characters_split_no_word():
    texts = ["Die Donau\u00addampf\u00adschiff\u00adfahrt", "Die Donau dampf"]
    assert find(texts, "donaudampfschifffahrt ") == [0]
    assert find(texts, "donau\u200bdampf\u00adschiff") == [0]
    assert find(texts, "dampf ") == [1]
