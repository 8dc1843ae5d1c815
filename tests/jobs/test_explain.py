"""Why a finished run kept or removed a document, from its tables and the texts of its input."""

from __future__ import annotations

import json

import pytest

import neardup
from neardup.errors import DataError
from neardup.jobs.explain import find_verdict, read_texts

WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
PAGE = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "station"])
OTHER = "nothing like the others at all, not a bit of it"


@pytest.fixture
def run(tmp_path):
    """Two files; the id `twin` is removed twice, both in favour of `a`."""
    files = {
        "one.jsonl": [("a", PAGE), ("b", NEAR), ("twin", PAGE)],
        "two.jsonl": [("c", OTHER), ("twin", NEAR), (None, PAGE)],
    }
    for name, rows in files.items():
        lines = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in rows]
        (tmp_path / name).write_text("\n".join(lines), "utf-8")
    out = tmp_path / "out"
    neardup.deduplicate([tmp_path / name for name in files], out=out, threshold=0.7, size=3)
    return out


def verdict(run, doc_id, file=None, row=None):
    return find_verdict(run, doc_id, file=file, row=row)


def test_an_explanation_names_the_kept_document_and_both_rows(run):
    found = verdict(run, "b")
    assert (found.file, found.row, found.kept_id, found.kept_file, found.kept_row) == (
        "one.jsonl",
        2,
        "a",
        "one.jsonl",
        1,
    )
    assert found.similarity == neardup.compare(PAGE, NEAR, size=3).jaccard
    assert found.members == ()
    assert found.config.threshold == 0.7


def test_a_document_without_an_id_is_found_by_file_and_row(run):
    assert verdict(run, "two.jsonl:3").kept_id == "a"


def test_a_kept_document_lists_all_documents_removed_for_it(run):
    found = verdict(run, "a")
    near = neardup.compare(PAGE, NEAR, size=3).jaccard
    assert found.kept_id is None
    assert found.members == (("b", near), ("twin", 1.0), ("twin", near), ("two.jsonl:3", 1.0))


def test_a_document_without_a_near_duplicate_represents_only_itself(run):
    found = verdict(run, "c")
    assert (found.kept_id, found.members) == (None, ())


def test_equal_ids_are_distinguished_by_file_and_row(run):
    with pytest.raises(DataError, match="2 removed documents are named 'twin'") as error:
        verdict(run, "twin")
    assert "one.jsonl row 3, two.jsonl row 2" in str(error.value)
    assert "`file`" in error.value.hint
    assert verdict(run, "twin", file="one.jsonl").similarity == 1.0
    assert verdict(run, "twin", row=2).file == "two.jsonl"


def test_an_unknown_document_is_an_error_with_near_names(run):
    with pytest.raises(DataError, match=r"no document of .* is named 'twim'") as error:
        verdict(run, "twim")
    assert "twin" in error.value.hint
    with pytest.raises(DataError) as error:
        verdict(run, "#########")
    assert error.value.hint.startswith("ids look like a, b, twin")


def test_an_explanation_holds_both_texts_and_compares_them_as_the_run_did(run):
    found = neardup.api.explain(run, "b")
    assert (found.text, found.kept_text) == (NEAR, PAGE)
    assert found.comparison == neardup.compare(NEAR, PAGE, size=3, threshold=0.7, passages=True)
    assert [passage.words for passage in found.comparison.passages] == [18]
    assert found.comparison.jaccard == found.similarity
    assert neardup.api.explain(run, "a").text is None


def test_a_text_is_read_from_the_file_it_came_in(run):
    config = verdict(run, "b").config
    assert read_texts(run, [("two.jsonl", 1)], config).texts == [OTHER]
    with pytest.raises(DataError, match="does not record the path"):
        read_texts(run, [("three.jsonl", 1)], config)


def test_a_missing_input_is_reported(run):
    (run.parent / "one.jsonl").unlink()
    with pytest.raises(DataError, match=r"row 2 of .*one\.jsonl cannot be read") as error:
        neardup.api.explain(run, "b")
    assert "restore them" in error.value.hint


def test_a_folder_without_tables_is_not_a_finished_run(run):
    (run / "clusters.parquet").unlink()
    with pytest.raises(DataError, match="a table is missing"):
        verdict(run, "b")
