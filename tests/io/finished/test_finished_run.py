"""Finished runs: tables, kept documents and settings are loaded as the run wrote them."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.errors import DataError, NotStoredError
from neardup.io import records
from neardup.io.documents.discover import find_files
from neardup.io.finished import finished_run
from neardup.io.finished.run_folders import kept_of_runs
from neardup.io.finished.stored_report import read_report
from neardup.io.storage.workspace import is_finished

GOLDEN = Path(__file__).parent / "golden"
WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
PAGE = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "station"])
OTHER = "nothing like the others at all, not a bit of it"


def write_rows(path, rows):
    lines = [json.dumps(row, ensure_ascii=False) if isinstance(row, dict) else row for row in rows]
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def pages(tmp_path):
    rows = [
        {"id": "a", "text": PAGE},
        {"id": "b", "text": NEAR},
        "{broken",
        {"id": "c", "text": OTHER},
    ]
    return write_rows(tmp_path / "pages.jsonl", [*rows, {"id": "d", "text": PAGE}])


def run_on(*paths, out, **settings):
    return neardup.deduplicate(list(paths), out=out, **settings)


def test_a_restored_report_is_the_report_of_the_run(tmp_path, pages):
    report = run_on(pages, out=tmp_path / "out", pairs=True, threshold=0.7)
    restored = finished_run.restore(tmp_path / "out")
    assert restored.as_dict() == report.as_dict()
    assert restored.plan == report.plan
    for name in ("kept", "removed", "clusters", "rejected", "pairs"):
        assert getattr(restored, name).equals(getattr(report, name)), name
    assert restored.kept.to_pylist() == [
        {"doc_id": "a", "id": "a", "text": PAGE},
        {"doc_id": "c", "id": "c", "text": OTHER},
    ]
    assert restored.rejected.column("row").to_pylist() == [3]


def test_stored_settings_are_restored(tmp_path, pages):
    settings = {
        "threshold": 0.7,
        "keep": "longest",
        "text_column": ("text", "id"),
        "seed": 7,
        "size": 2,
    }
    run_on(pages, out=tmp_path / "out", **settings)
    config = read_report(tmp_path / "out").settings()
    assert config == Config(**settings)


def test_chosen_bands_and_rows_are_those_of_the_restored_plan(tmp_path, pages):
    report = run_on(pages, out=tmp_path / "out", bands=20, rows=3)
    assert finished_run.restore(tmp_path / "out").plan == report.plan


def test_missing_stored_pairs_are_reported(tmp_path, pages):
    run_on(pages, out=tmp_path / "out")
    assert finished_run.load_table(tmp_path / "out", "pairs") is None
    with pytest.raises(NotStoredError):
        _ = finished_run.restore(tmp_path / "out").pairs


def test_kept_documents_have_the_ids_that_other_tables_use(tmp_path):
    path = write_rows(tmp_path / "k.jsonl", [{"text": PAGE}, {"text": NEAR}, "", {"text": OTHER}])
    report = run_on(path, out=tmp_path / "out")
    assert report.kept.to_pylist() == [
        {"doc_id": "k.jsonl:1", "text": PAGE},
        {"doc_id": "k.jsonl:4", "text": OTHER},
    ]


@pytest.mark.parametrize("keep", ["first", "last", "longest"])
@pytest.mark.parametrize("seed", range(4))
def test_kept_documents_have_their_own_ids_even_if_ids_repeat(tmp_path, keep, seed):
    rng = random.Random(seed)
    texts = [f"{rng.choice([PAGE, NEAR, OTHER])} {'!' * number}" for number in range(12)]
    names = [rng.choice("xyz") for _ in texts]
    path = write_rows(
        tmp_path / "k.jsonl", [{"id": n, "text": t} for n, t in zip(names, texts, strict=True)]
    )
    report = run_on(path, out=tmp_path / "out", keep=keep)
    name_of = dict(zip(texts, names, strict=True))
    assert report.num_kept == report.kept.num_rows == 2
    for row in report.kept.to_pylist():
        assert row["doc_id"] == name_of[row["text"]]


def test_kept_documents_of_all_formats_have_their_columns_in_input_order(tmp_path):
    write_rows(tmp_path / "b.jsonl", [{"id": "1", "text": PAGE}, {"id": "2", "text": "short one"}])
    pq.write_table(
        pa.table({"id": [3, 4], "body": [OTHER, NEAR], "more": [1, 2]}), tmp_path / "a.parquet"
    )
    (tmp_path / "c.txt").write_text("a text file of its own")
    (tmp_path / "d.txt").write_text(PAGE)
    report = run_on(
        *(tmp_path / name for name in ("b.jsonl", "a.parquet", "c.txt", "d.txt")),
        out=tmp_path / "out",
    )
    assert report.kept.to_pylist() == [
        {"doc_id": "1", "id": "1", "text": PAGE, "body": None, "more": None},
        {"doc_id": "2", "id": "2", "text": "short one", "body": None, "more": None},
        {"doc_id": "3", "id": "3", "text": None, "body": OTHER, "more": 1},
        {
            "doc_id": "c.txt",
            "id": None,
            "text": "a text file of its own",
            "body": None,
            "more": None,
        },
    ]
    files = finished_run.kept_files(tmp_path / "out")
    assert [file.rpartition("/")[2] for file in files] == ["b.jsonl", "a.parquet", "c.txt"]


ROWS = [
    {"doc_id": "own", "text": PAGE, "tags": ["x"], "page": {"lang": "en"}},
    {"doc_id": "other", "text": PAGE, "tags": [], "page": None},
    {"doc_id": "last", "text": OTHER, "tags": None, "page": {"lang": "de"}},
]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "arrow", "csv"])
def test_kept_has_the_columns_of_the_source_whatever_the_format(tmp_path, form):
    path = tmp_path / f"rows.{form}"
    plain = [{"doc_id": row["doc_id"], "text": row["text"]} for row in ROWS]
    if form == "jsonl":
        write_rows(path, ["", ROWS[0], "{broken", *ROWS[1:]])
    elif form == "json":
        path.write_text(json.dumps(ROWS), "utf-8")
    elif form == "csv":
        path.write_text(
            "doc_id,text\n" + "".join(f'{row["doc_id"]},"{row["text"]}"\n\n' for row in plain),
            "utf-8",
        )
    else:
        table = pa.Table.from_pylist(ROWS)
        (pq.write_table if form == "parquet" else pyarrow.feather.write_feather)(table, path)
    kept = run_on(path, out=tmp_path / "out", format="json" if form == "json" else None).kept
    names = [name.replace("rows.", f"rows.{form}:") for name in ("rows.1", "rows.3")]
    if form == "jsonl":
        names = ["rows.jsonl:2", "rows.jsonl:5"]
    elif form == "csv":
        names = ["rows.csv:1", "rows.csv:5"]
    columns = [
        {"doc_id_": row.pop("doc_id")} | row for row in map(dict, plain if form == "csv" else ROWS)
    ]
    assert kept.to_pylist() == [
        {"doc_id": name} | columns[at] for name, at in zip(names, (0, 2), strict=True)
    ]
    assert neardup.load(tmp_path / "out").kept.equals(kept)
    by_id = run_on(
        path, out=tmp_path / "by_id", id_column="doc_id", format="json" if form == "json" else None
    ).kept
    assert by_id.column_names == ["doc_id", *kept.column_names[2:]]
    assert by_id.column("doc_id").to_pylist() == ["own", "last"]


def test_a_column_of_kept_without_a_common_type_is_text(tmp_path):
    a = write_rows(
        tmp_path / "a.jsonl", [{"text": PAGE, "n": 1, "m": 1}, {"text": OTHER, "n": "two", "m": 2}]
    )
    b = write_rows(
        tmp_path / "b.jsonl", [{"text": "another text that is like no other", "n": None, "m": [3]}]
    )
    kept = run_on(a, b, out=tmp_path / "out").kept
    assert kept.select(["n", "m"]).to_pylist() == [
        {"n": "1", "m": "1"},
        {"n": "two", "m": "2"},
        {"n": None, "m": "[3]"},
    ]


@pytest.mark.parametrize(("setting", "word"), [("mark", "mark=True"), ("dry_run", "dry_run=True")])
def test_a_run_without_separate_kept_rows_is_an_error(tmp_path, pages, setting, word):
    run_on(pages, out=tmp_path / "out", **{setting: True})
    with pytest.raises(DataError) as error:
        kept_of_runs([str(tmp_path / "out")])
    assert word in str(error.value)


def test_a_folder_that_is_not_a_run_is_named(tmp_path):
    with pytest.raises(DataError, match="is not a finished run") as error:
        read_report(tmp_path)
    assert str(tmp_path) in str(error.value)
    (tmp_path / "report.json").write_text("{torn")
    with pytest.raises(DataError, match="was not written by neardup"):
        read_report(tmp_path)
    assert not is_finished(tmp_path)


@pytest.mark.parametrize(
    "name", ["pairs.parquet", "pairs.jsonl", "pairs.csv", "PAIRS.CSV", "PAIRS.PARQUET"]
)
@pytest.mark.parametrize("odd", ["a", "a\u2028b\u0085", 'comma, "quote"\nand line'])
def test_pairs_are_loaded_from_every_kind_of_file(tmp_path, name, odd):
    path = write_rows(
        tmp_path / "pages.jsonl", [{"id": odd, "text": PAGE}, {"id": "b", "text": NEAR}, "{broken"]
    )
    report = neardup.find_pairs(path, out=tmp_path / name, threshold=0.7)
    expected = [odd, "b", "pages.jsonl", 1, "pages.jsonl", 2]
    [pair] = report.pairs.to_pylist()
    assert [
        pair[key] for key in ("doc_a", "doc_b", "file_a", "row_a", "file_b", "row_b")
    ] == expected
    assert 0.7 <= pair["similarity"] < 1
    assert report.rejected.column("row").to_pylist() == [3]
    assert finished_run.load_pairs(tmp_path / name, "removed") is None
    if name.lower().endswith("csv"):
        with (tmp_path / name).open(newline="") as stream:
            assert next(csv.DictReader(stream))["doc_a"] == odd


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("part_bytes", [50, 1 << 20])
def test_a_row_of_a_file_is_read_by_its_number(pages, monkeypatch, number, part_bytes):
    monkeypatch.setattr(records, "PART_BYTES", part_bytes)
    monkeypatch.setattr(records, "BATCH_BYTES", part_bytes // 2)
    [file] = find_files([str(pages)], Config())
    expected = {1: PAGE, 2: NEAR, 5: PAGE}[number]
    assert finished_run.read_row(file, number, Config()) == expected


@pytest.mark.parametrize("number", [0, 3, 6])
def test_a_row_that_is_not_a_document_is_an_error(pages, number):
    [file] = find_files([str(pages)], Config())
    with pytest.raises(DataError, match=f"no document in row {number}"):
        finished_run.read_row(file, number, Config())


# A run of the format fast-2: invisible characters separated words


@pytest.fixture
def fast_2(tmp_path, monkeypatch):
    """A copy of a run that was written before invisible characters were dropped, beside its input."""
    shutil.copytree(GOLDEN / "fast-2", tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    report = json.loads(Path("out/report.json").read_text("utf-8"))
    modified = int(report["inputs"][0]["modified"])
    os.utime("pages.jsonl", ns=(modified, modified))
    return Path("out")


def test_an_older_run_is_read_explained_and_audited_as_it_was_computed(fast_2):
    report = neardup.load(fast_2)
    assert report.signature_format.startswith("fast-2 word-2 ")
    stored = {
        frozenset((row["doc_a"], row["doc_b"])): row["similarity"]
        for row in report.pairs.to_pylist()
    }
    assert stored[frozenset(("zero width", "joined"))] == 1
    assert stored[frozenset(("hyphens", "no hyphens"))] < 1
    explained = neardup.explain(fast_2, "joined")
    assert explained.comparison.jaccard == 1
    assert neardup.explain(fast_2, "no hyphens").comparison.jaccard < 1
    audit = neardup.audit(fast_2)
    assert (audit.recall, audit.pairs) == (1, len(stored))
    assert report.at_threshold(0.9).num_removed == 2


def test_explain_compares_the_documents_of_a_current_run_without_their_invisible_characters(fast_2):
    assert (fast_2.parent / "pages.jsonl").exists()
    report = neardup.deduplicate("pages.jsonl", out="new", size=2, threshold=0.5)
    assert report.signature_format.startswith("fast-3 word-2 ")
    assert neardup.explain("new", "no hyphens").comparison.jaccard == 1
    assert neardup.explain("new", "composed").comparison.jaccard < 1
