import json

import pyarrow.parquet as pq
import pytest

BANNER = "we use cookies to improve this site and show you what you like"


@pytest.fixture
def site(tmp_path):
    """Three pages with a banner, and a row that cannot be used."""
    rows = [{"id": f"p{at}", "text": f"page {at} own{at}. {BANNER}"} for at in range(3)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "site.jsonl").write_text("\n".join([*lines, "{bad"]) + "\n", "utf-8")
    return tmp_path


def test_passages_prints_what_is_repeated_and_writes_the_tables(run, site):
    finished = run("passages", "site.jsonl", "-o", "parts", "--min-words", "10")
    assert finished.returncode == 0, finished.stderr
    first, second, third = finished.stdout.splitlines()
    assert first == (
        "4 documents: 1 passage of at least 10 words, in 2 further places; 1 rejected."
    )
    assert second.startswith("Repeated: 26 of 48 words (54.2%). Read ")
    assert third == (
        "Written to parts: passages.parquet, rejected.jsonl, repeated.parquet, report.json"
    )
    table = pq.read_table(site / "parts" / "passages.parquet")
    assert table.column("doc_id").to_pylist() == ["p1", "p2"]
    assert table.column("source_file").to_pylist() == ["site.jsonl"] * 2


@pytest.mark.usefixtures("site")
def test_one_word_is_not_called_words(run):
    finished = run("passages", "site.jsonl", "-o", "parts", "--min-words", "1")
    assert "of at least 1 word, in" in finished.stdout


def test_cut_and_keep_none_write_documents_without_the_passage(run, site):
    options = ("--min-words", "10", "--cut", "--keep", "none", "--json")
    finished = run("passages", "site.jsonl", "-o", "clean", *options)
    report = json.loads(finished.stdout)
    assert report["passages"]["repeated_words"] == 39
    assert (report["config"]["cut"], report["config"]["keep"]) == (True, "none")
    assert (report["kept"], report["removed"], report["rejected"]) == (3, 0, 1)
    lines = (site / "clean" / "kept" / "site.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [
        f"page {at} own{at}." for at in range(3)
    ]


def test_a_check_fails_if_a_passage_is_found_and_not_otherwise(run, site):
    found = run("passages", "site.jsonl", "-o", "a", "--min-words", "10", "--fail-if-found", "-q")
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
    assert (site / "a" / "passages.parquet").exists()
    none = run("passages", "site.jsonl", "-o", "b", "--min-words", "30", "--fail-if-found", "-q")
    assert none.returncode == 0


def test_a_dry_run_lists_what_would_be_removed_and_writes_no_rows(run, site):
    finished = run(
        "passages",
        "site.jsonl",
        "-o",
        "look",
        "--min-words",
        "8",
        "--cut",
        "--dry-run",
        "--min-left",
        "5",
    )
    assert finished.returncode == 0, finished.stderr
    assert "; 2 removed; 1 rejected." in finished.stdout
    assert not (site / "look" / "kept").exists()
    assert pq.read_table(site / "look" / "removed.parquet").num_rows == 2


def test_mistakes_name_the_option(run, site):
    finished = run("passages", "site.jsonl", "-o", "out", "--keep", "longest")
    assert finished.returncode == 2
    assert "--keep must be 'first' or 'none' for passages" in finished.stderr
    finished = run("passages", "site.jsonl", "-o", "out", "--cut", "--mark")
    assert finished.returncode == 2
    assert "--mark and --cut cannot be combined" in finished.stderr
    assert not (site / "out").exists()
