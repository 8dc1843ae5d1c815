"""Decontamination of a synthetic corpus: what is removed, what is kept, and the messages."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from guides.made import decontaminate as made

RECIPE = ["--against", "questions.jsonl", "--measure", "containment"]


@pytest.fixture
def corpus(tmp_path):
    made.make(tmp_path)
    return tmp_path


def kept_ids(folder):
    return [
        json.loads(line)["id"]
        for line in (folder / "kept/train.jsonl").read_text("utf-8").splitlines()
    ]


def test_the_recipe_removes_copies_and_quotes_and_nothing_else(corpus, programs):
    done = programs.run("dedup", "train.jsonl", "-o", "clean", *RECIPE, cwd=corpus)
    assert done.code == 0, done.stderr
    contaminated = made.QUOTED | made.COPIED | made.COPIED_SHORT
    removed = pq.read_table(corpus / "clean/removed.parquet").to_pylist()
    assert {row["doc_id"]: row["kept_id"] for row in removed} == contaminated
    assert all(row["similarity"] == row["containment_kept"] >= 0.8 for row in removed)
    shares = {row["doc_id"]: row["containment_removed"] for row in removed}
    assert all(shares[name] < 0.2 for name in made.QUOTED)
    assert all(shares[name] == 1 for name in made.COPIED)
    assert kept_ids(corpus / "clean") == [
        name for name in made.training() if name not in contaminated
    ]
    assert "30 documents: 24 kept, 6 removed (3 exact), 0 rejected.\n" in done.stdout
    assert "Removed because of --against: 6; the input was not compared with itself." in done.stdout
    assert "warning: 2 of 12 documents of --against have fewer than 5 words" in done.stderr


def test_whole_documents_do_not_show_quotes(corpus, programs):
    arguments = ["--against", "questions.jsonl", "--only-against", "--threshold", "0.5"]
    assert programs.run("dedup", "train.jsonl", "-o", "clean", *arguments, cwd=corpus).code == 0
    removed = pq.read_table(corpus / "clean/removed.parquet").column("doc_id").to_pylist()
    assert removed == sorted(made.COPIED | made.COPIED_SHORT)


def test_without_only_against_similar_training_documents_are_removed_and_counted(corpus, programs):
    arguments = ["--against", "questions.jsonl", "--threshold", "0.5"]
    done = programs.run("dedup", "train.jsonl", "-o", "clean", *arguments, cwd=corpus)
    second = [name for _, name in made.NEAR_DUPLICATES]
    assert not set(second) & set(kept_ids(corpus / "clean"))
    assert (
        "Removed because of --against: 3; because of another document of the input: 2."
        in done.stdout
    )
    report = json.loads((corpus / "clean/report.json").read_text("utf-8"))
    assert (report["removed_against"], report["removed_within"], report["removed"]) == (3, 2, 5)
