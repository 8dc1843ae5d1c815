"""The outputs of a run: tables, report, and their consistency."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import NearDupError
from support import corpora, oracles
from support.corpora import EVERY_PAIR, NEAR, OTHER, PAGE, Truth

REPORT_KEYS = {
    *(
        "config",
        "plan",
        "documents",
        "kept",
        "removed",
        "rejected",
        "exact_duplicates",
        "pairs_verified",
    ),
    *("seconds", "bytes_read", "peak_memory_bytes", "stages"),
}
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def run(tmp_path):
    """A run over two files with copies, near-copies, blank and bad rows."""
    documents = corpora.rows(23, 50)
    corpora.write_json_lines(tmp_path / "a.jsonl", [*documents[:20], "{bad", ""])
    corpora.write_rows(tmp_path / "b.parquet", documents[20:])
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.parquet"]
    report = corpora.deduplicate(inputs, tmp_path / "out", pairs=True, **EVERY_PAIR)
    return documents, report, tmp_path / "out"


def test_the_output_holds_the_files_of_the_contract(run):
    _, _, out = run
    tables = {
        "removed.parquet",
        "clusters.parquet",
        "pairs.parquet",
        "order.parquet",
        "rejected.jsonl",
        "report.json",
    }
    tables |= {"kept"}
    assert {path.name for path in out.iterdir()} == tables
    assert {path.name for path in (out / "kept").iterdir()} == {"a.jsonl", "b.parquet"}
    assert not (out.parent / ".out.neardup").exists()


def test_tables_have_the_columns_of_the_contract(run):
    _, _, out = run
    places = ["file", "row", "kept_file", "kept_row"]
    assert pq.read_schema(out / "removed.parquet").names == [
        "doc_id",
        "kept_id",
        "similarity",
        *places,
    ]
    places = ["file_a", "row_a", "file_b", "row_b"]
    assert pq.read_schema(out / "pairs.parquet").names == ["doc_a", "doc_b", "similarity", *places]
    assert pq.read_schema(out / "clusters.parquet").names == [
        "doc_id",
        "cluster_id",
        "cluster_size",
    ]
    assert [
        set(json.loads(line)) for line in (out / "rejected.jsonl").read_text().splitlines()
    ] == [{"file", "row", "reason"}]
    for name in ("removed", "clusters"):
        assert set(pq.read_schema(out / f"{name}.parquet").types) <= {
            pa.string(),
            pa.float64(),
            pa.int64(),
        }


def test_report_has_the_keys_of_the_contract_and_true_counts(run):
    documents, report, out = run
    written = json.loads((out / "report.json").read_text("utf-8"))
    assert set(written) >= REPORT_KEYS
    assert set(written["plan"]) >= {"method", "bands", "rows", "recall_at_threshold"}
    assert written == json.loads(json.dumps(report.as_dict()))
    truth = Truth(corpora.texts_of(documents))
    sets = [oracles.shingles(text, size=2) for text in corpora.texts_of(documents)]
    assert (written["documents"], written["rejected"]) == (51, 1)
    assert (written["kept"], written["removed"]) == (len(truth.kept), len(truth.removed))
    assert written["exact_duplicates"] == oracles.num_exact_duplicates(sets)
    assert written["pairs_verified"] > 0
    assert written["bytes_read"] == sum(len(text.encode()) for text in corpora.texts_of(documents))
    assert written["columns"] == {"text": "text", "id": "id"}
    assert written["config"]["threshold"] == 0.5
    assert [(file["file"], file["rows"]) for file in written["inputs"]] == [
        ("a.jsonl", 22),
        ("b.parquet", 30),
    ]


def test_clusters_cover_every_document_that_was_not_rejected(run):
    documents, report, _ = run
    truth = Truth(corpora.texts_of(documents))
    expected = oracles.clusters(len(documents), truth.removed)
    assert report.clusters.to_pylist() == [
        {
            "doc_id": documents[row]["id"],
            "cluster_id": documents[kept]["id"],
            "cluster_size": expected.count(kept),
        }
        for row, kept in enumerate(expected)
    ]


def test_removed_documents_are_similar_to_their_kept_document(run):
    documents, report, _ = run
    texts = {document["id"]: document["text"] for document in documents}
    for row in report.removed.to_pylist():
        similarity = neardup.compare(texts[row["doc_id"]], texts[row["kept_id"]], size=2).jaccard
        assert similarity == row["similarity"] >= 0.5


def test_kept_documents_of_the_report_have_the_ids_of_the_other_tables(tmp_path):
    path = corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"text": PAGE}, {"text": NEAR}, {"text": OTHER}]
    )
    report = corpora.deduplicate([path], tmp_path / "out")
    kept = [
        row["doc_id"] for row in report.clusters.to_pylist() if row["doc_id"] == row["cluster_id"]
    ]
    assert report.kept.column("doc_id").to_pylist() == kept == ["a.jsonl:1", "a.jsonl:3"]


def test_kept_documents_of_the_report_are_in_input_order(tmp_path):
    paths = [
        corpora.write_json_lines(tmp_path / f"{name}.jsonl", [{"text": f"{name} text"}])
        for name in "zay"
    ]
    report = corpora.deduplicate(paths, tmp_path / "out")
    assert report.kept.column("text").to_pylist() == ["z text", "a text", "y text"]


def test_a_marked_run_has_no_table_of_kept_rows(tmp_path):
    path = corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"text": PAGE}, {"text": NEAR}, {"text": OTHER}]
    )
    report = corpora.deduplicate([path], tmp_path / "out", mark=True)
    assert report.num_kept == 2
    with pytest.raises(NearDupError, match="mark=True"):
        _ = report.kept


def test_the_chosen_columns_are_reported(tmp_path):
    (tmp_path / "a.csv").write_text("url,body,rank,lang\nu,some words,3,en\n")
    report = corpora.deduplicate(
        [tmp_path / "a.csv"], tmp_path / "out", keep="max:rank", group_column="lang"
    )
    assert report.columns == {"text": "body", "id": "url", "keep": "rank", "group": "lang"}


def test_exact_duplicates_are_counted_separately(tmp_path):
    texts = [PAGE, PAGE.upper(), f"{PAGE}!", NEAR, OTHER, "", ""]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    report = corpora.deduplicate([path], tmp_path / "out")
    assert (report.num_removed, report.exact_duplicates) == (3, 2)
    empties = corpora.deduplicate([path], tmp_path / "empties", collapse_empty=True)
    assert (empties.num_removed, empties.exact_duplicates) == (4, 3)


def test_a_corpus_without_pairs_leaves_empty_tables_with_their_columns(tmp_path):
    path = corpora.write_json_lines(tmp_path / "a.jsonl", [{"text": PAGE}])
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True)
    assert (report.removed.num_rows, report.pairs.num_rows, report.rejected.num_rows) == (0, 0, 0)
    assert "kept_row" in report.removed.column_names
    assert (tmp_path / "out/kept/a.jsonl").read_bytes() == path.read_bytes()


def test_a_corpus_without_documents_gives_a_complete_output(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    corpora.write_rows(tmp_path / "b.csv", [{"text": "x"}])
    (tmp_path / "b.csv").write_text("text\n")
    report = corpora.deduplicate(
        [tmp_path / "a.jsonl", tmp_path / "b.csv"], tmp_path / "out", pairs=True
    )
    assert report.documents == 0
    assert (tmp_path / "out/kept/b.csv").read_text() == "text\n"


def test_stored_pairs_of_a_finished_run_can_be_listed(run, tmp_path):
    documents, _, out = run
    report = corpora.find_pairs([out], tmp_path / "again.jsonl", threshold=0.5)
    firsts = {"a.jsonl": 0, "b.parquet": 20}
    assert corpora.pair_rows(report.pairs, firsts) == Truth(corpora.texts_of(documents)).pairs


def test_stored_pairs_of_a_finished_run_can_be_filtered_by_threshold(run, tmp_path):
    _, first, out = run
    report = corpora.find_pairs([out], tmp_path / "again.csv", threshold=0.7)
    assert report.pairs.to_pylist() == [
        row for row in first.pairs.to_pylist() if row["similarity"] >= 0.7
    ]
    with pytest.raises(NearDupError, match=r"0\.5"):
        corpora.find_pairs([out], tmp_path / "below.csv", threshold=0.3)


def test_repeating_a_run_gives_the_same_bytes(run, tmp_path):
    _, _, out = run
    corpora.deduplicate(
        [tmp_path / "a.jsonl", tmp_path / "b.parquet"], tmp_path / "again", pairs=True, **EVERY_PAIR
    )
    assert corpora.contents(tmp_path / "again") == corpora.contents(out)


def commands_of(text):
    """The command lines of a page: lines of code blocks that start with neardup, without comments."""
    commands = []
    is_fenced = False
    for line in text.splitlines():
        is_fenced ^= line.startswith("```")
        command = line.strip().removeprefix("$ ")
        if (is_fenced or line.startswith("    ")) and command.startswith("neardup "):
            commands.append(shlex.split(command, comments=True)[1:])
    return commands


# Not documents: the pairs that `evaluate` compares a run with.
LABELS = "known.csv"


def write_named_inputs(folder, words):
    """Create a small file for every missing input that a command names."""
    documents = [
        {
            "id": f"page-{number}",
            "url": f"u{number}",
            "text": text,
            "body": text,
            "score": number,
            "lang": "en",
            "products": "a b",
        }
        for number, text in enumerate([PAGE, NEAR, OTHER])
    ]
    for word in words:
        name = word.replace("*", "1")
        path = folder / name
        is_file = path.suffix.lstrip(".") in {
            form.partition(".")[0] for form in corpora.FORMATS
        } | {"gz", "zst"}
        if path.exists() or word.startswith("-") or "://" in word:
            continue
        if word == LABELS:
            path.write_text("doc_a,doc_b,same\npage-0,page-1,1\npage-0,page-2,0\n")
        elif is_file:
            corpora.write_rows(path, documents)
        elif path.suffix in (".txt", ".md"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PAGE)
        elif name.endswith("/"):
            corpora.write_json_lines(path / "part.jsonl", documents)


def test_every_command_of_the_readme_works(programs, tmp_path):
    """In the order of the page, in one folder, as a reader would type them."""
    for command in commands_of(README.read_text("utf-8")):
        if command[0] == "serve":  # runs until it is stopped; tested in tests/web
            continue
        outputs = {
            command[at + 1]
            for at, word in enumerate(command[:-1])
            if word in ("-o", "--output", "--plot")
        }
        write_named_inputs(tmp_path, [word for word in command[1:] if word not in outputs])
        finished = programs.run(*command, cwd=tmp_path)
        assert finished.code == 0, (command, finished.stderr)


def test_commands_are_found_in_blocks_of_code():
    text = (
        "Say `neardup x`.\n\n    neardup dedup 'a b.jsonl' -o out   # why\n\n"
        "```sh\n$ neardup plan\nneardup demo\n```\n"
    )
    assert commands_of(text) == [["dedup", "a b.jsonl", "-o", "out"], ["plan"], ["demo"]]


def test_inputs_named_in_commands_are_created(tmp_path):
    write_named_inputs(
        tmp_path, ["pages.jsonl", "part-*.parquet", "crawl/", "a.txt", "old.csv.gz", "-", "clean"]
    )
    names = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert names == {"pages.jsonl", "part-1.parquet", "crawl/part.jsonl", "a.txt", "old.csv.gz"}
