import json

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

FOUND = [("a", "b"), ("a", "d"), ("b", "d")]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_pairs_writes_the_format_of_the_extension(run, pages, tmp_path, ending):
    out = tmp_path / f"pairs.{ending}"
    finished = run("pairs", pages.name, "-o", out.name)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith(
        "5 documents: 3 pairs with similarity >= 0.8; 1 rejected, see "
    )
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    else:
        rows = (
            pq.read_table(out) if ending == "parquet" else pyarrow.csv.read_csv(out)
        ).to_pylist()
    assert [(row["doc_a"], row["doc_b"]) for row in rows] == FOUND
    assert (tmp_path / f"pairs.{ending}.report.json").exists()
    assert (tmp_path / f"pairs.{ending}.rejected.jsonl").read_text("utf-8").count("\n") == 1


def test_a_finished_run_lists_its_stored_pairs(run, pages, tmp_path):
    run("dedup", pages.name, "-o", "out", "--pairs")
    finished = run("pairs", "out", "-o", "pairs.jsonl")
    assert finished.returncode == 0, finished.stderr
    rows = map(json.loads, (tmp_path / "pairs.jsonl").read_text("utf-8").splitlines())
    assert [(row["doc_a"], row["doc_b"]) for row in rows] == FOUND


def test_a_run_without_stored_pairs_says_how_to_store_them(run, pages):
    run("dedup", pages.name, "-o", "out")
    finished = run("pairs", "out", "-o", "pairs.jsonl")
    assert finished.returncode == 1
    assert "pairs" in finished.stderr.partition("hint:")[2]


def test_an_unknown_extension_is_wrong_usage(run, pages):
    finished = run("pairs", pages.name, "-o", "pairs.xlsx")
    assert finished.returncode == 2
    assert ".parquet" in finished.stderr


def test_containment_pairs_have_both_shares(run, tmp_path):
    lines = [{"id": "book", "text": "a b c d e f g h"}, {"id": "quote", "text": "c d e f"}]
    (tmp_path / "pages.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), "utf-8"
    )
    finished = run(
        "pairs", "pages.jsonl", "-o", "pairs.jsonl", "--measure", "containment", "--size", "2"
    )
    assert finished.returncode == 0, finished.stderr
    [row] = map(json.loads, (tmp_path / "pairs.jsonl").read_text("utf-8").splitlines())
    assert list(row)[:3] == ["doc_a", "doc_b", "similarity"]
    assert (row["similarity"], row["containment_a"], row["containment_b"]) == (1.0, 3 / 7, 1.0)


def test_dedup_by_containment_says_to_list_pairs(run, pages, tmp_path):
    finished = run("dedup", pages.name, "-o", "out", "--measure", "containment")
    assert finished.returncode == 2
    assert "neardup pairs" in finished.stderr.partition("hint:")[2]
    assert not (tmp_path / "out").exists()
