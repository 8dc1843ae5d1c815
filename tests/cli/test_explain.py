import json

import pytest

import neardup

# An explanation as the library gives it, so that what is printed can be tested without a run.
STUB = """
import dataclasses
import neardup.api as api
from neardup.jobs.compare import Comparison

@dataclasses.dataclass
class Explanation:
    doc_id: str = "b"
    kept_id: str | None = "a"
    similarity: float | None = 0.75
    measure: str = "jaccard"
    text: str = "one two three four five six seven eight"
    kept_text: str = "one two three four five six seven nine"
    comparison: object = None
    file: str = "pages.jsonl"
    row: int = 2
    kept_file: str | None = "pages.jsonl"
    kept_row: int | None = 1
    members: list = dataclasses.field(default_factory=list)
    reason: str = "It is not similar to any document before it"

comparison = Comparison(
    jaccard=0.75, estimate=0.7, containment_a=6 / 7, containment_b=6 / 7, chance=0.9, shingles_a=7,
    shingles_b=7, shared=6
)
api.explain = lambda out, doc_id, file=None, row=None: Explanation(comparison=comparison, CHANGES)
"""


def stub(changes=""):
    return STUB.replace(", CHANGES", f", {changes}" if changes else "")


def test_a_removed_document_is_explained_with_the_kept_one_and_a_diff(run):
    finished = run("explain", "out", "b", before=stub())
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [
        "b (pages.jsonl:2) was removed: it has a similarity of 0.7500 to a (pages.jsonl:1), which was kept.",
        "They share 6 of 8 distinct shingles: 85.7 % of the removed document (A), 85.7 % of the kept document (B).",
        "",
        "1 place differs: 1 word only in A, 1 only in B.",
        "--- A  b",
        "+++ B  a",
        "  one two three four five six seven",
        "- eight",
        "+ nine",
    ]


def test_quiet_leaves_the_texts_out(run):
    assert run("explain", "out", "b", "--quiet", before=stub()).stdout.count("\n") == 2


def test_a_kept_document_lists_the_documents_removed_for_it(run):
    finished = run(
        "explain",
        "out",
        "a",
        before=stub("doc_id='a', kept_id=None, members=[('b', 0.75), ('d', 1.0)]"),
    )
    assert finished.stdout.splitlines() == [
        "a (pages.jsonl:2) was kept. 2 documents were removed in its favour:",
        "  0.7500  b",
        "  1.0000  d",
    ]


def test_a_kept_document_without_duplicates_says_so(run):
    finished = run("explain", "out", "a", before=stub("doc_id='pages.jsonl:2', kept_id=None"))
    assert finished.stdout.startswith(
        "pages.jsonl:2 was kept. It is not similar to any document before it"
    )


def test_json_holds_the_whole_explanation(run):
    answer = json.loads(run("explain", "out", "b", "--json", before=stub()).stdout)
    assert (answer["kept_id"], answer["comparison"]["shared"], answer["row"]) == ("a", 6, 2)


@pytest.mark.parametrize(
    ("doc_id", "words"),
    [
        ("b", "it has a similarity of"),
        ("a", "2 documents were removed in its favour:"),
        ("c", "was kept"),
    ],
)
def test_documents_of_a_real_run_are_explained(run, pages, doc_id, words):
    assert run("dedup", pages.name, "-o", "out").returncode == 0
    finished = run("explain", "out", doc_id)
    assert finished.returncode == 0, finished.stderr
    assert words in finished.stdout


@pytest.mark.parametrize(
    ("place", "error", "hint"),
    [
        (("--row", "9"), "no document 'b' of out is in this place", "it is in pages.jsonl row 2"),
        (("--file", "no.jsonl"), "out has no input 'no.jsonl'", "its inputs are pages.jsonl"),
    ],
)
def test_a_removed_document_is_not_called_kept_for_a_wrong_place(run, pages, place, error, hint):
    assert run("dedup", pages.name, "-o", "out").returncode == 0
    finished = run("explain", "out", "b", *place)
    assert (finished.returncode, finished.stderr) == (1, f"error: {error}\n\nhint: {hint}\n")


def test_an_unknown_document_is_an_error_with_near_names(run, tmp_path):
    lines = [json.dumps({"id": f"page-{number}", "text": f"text {number}"}) for number in range(20)]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines), "utf-8")
    assert run("dedup", "pages.jsonl", "-o", "out").returncode == 0
    finished = run("explain", "out", "pagee-17")
    assert finished.returncode in {1, 2}
    assert "page-17" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_folder_that_is_not_a_run_is_an_error_that_names_it(run, tmp_path):
    (tmp_path / "empty").mkdir()
    finished = run("explain", "empty", "b")
    assert finished.returncode in {1, 2}
    assert "empty" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_the_output_of_pairs_is_explained_too(run, pages, ending):
    out = f"pairs.{ending}"
    assert run("pairs", pages.name, "-o", out, "--quiet").returncode == 0
    assert run("explain", out, "b").stdout.splitlines() == [
        "b (pages.jsonl:2) is in 2 pairs:",
        "  0.8750  a (pages.jsonl:1)",
        "  0.8750  d (pages.jsonl:4)",
    ]
    for first, second in ("ab", "ba"):
        printed = run("explain", out, first, second).stdout.splitlines()
        places = {"a": "a (pages.jsonl:1)", "b": "b (pages.jsonl:2)"}
        assert printed[0] == f"{places[first]} and {places[second]} have a similarity of 0.8750."
        assert printed[1].startswith(
            "They share 14 of 16 distinct shingles: 93.3 % of the first (A)"
        )
        assert printed[-2:] == (
            ["- house", "+ station"] if first == "a" else ["- station", "+ house"]
        )
    listed = json.loads(run("explain", out, "b", "--json").stdout)["pairs"]
    assert [(pair["doc_a"], pair["doc_b"], pair["row_b"]) for pair in listed] == [
        ("b", "a", 1),
        ("b", "d", 4),
    ]


def test_a_pair_of_a_run_of_dedup_is_explained(run, pages):
    run("dedup", pages.name, "-o", "clean", "--quiet")
    assert (
        "a (pages.jsonl:1) and b (pages.jsonl:2) have a similarity of 0.8750"
        in run("explain", "clean", "a", "b").stdout
    )


@pytest.mark.parametrize(
    ("ids", "error", "hint"),
    [
        (
            ["c"],
            "no pair in pairs.parquet contains the document 'c'",
            "only documents that have a partner are listed",
        ),
        (["bb", "a"], "no pair in pairs.parquet contains the document 'bb'", "did you mean b?"),
    ],
)
def test_a_document_without_a_pair_is_reported(run, pages, ids, error, hint):
    run("pairs", pages.name, "-o", "pairs.parquet", "--quiet")
    finished = run("explain", "pairs.parquet", *ids)
    assert (finished.returncode, finished.stderr) == (1, f"error: {error}\n\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "It is not similar to any document before it"),
        (
            {"against": "old.jsonl", "only_against": True},
            "It is not similar to any reference document",
        ),
        (
            {"against": "old.jsonl", "measure": "containment"},
            "It contains no reference document",
        ),
        ({"per_cluster": 2}, "It is one of up to 2 documents kept per cluster"),
        ({"group_column": "site"}, "It is not similar to any document of its group before it"),
    ],
)
def test_the_reason_to_keep_a_document_is_true_of_the_settings(
    run, tmp_path, monkeypatch, settings, reason
):
    monkeypatch.chdir(tmp_path)
    page = "one page of a site that has one twin, and no more than that"
    rows = [{"id": number, "text": page, "site": str(number)} for number in range(2)]
    (tmp_path / "new.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows[: 1 + bool(settings)])
    )
    (tmp_path / "old.jsonl").write_text(
        json.dumps({"text": "another text, unlike any page of the site"})
    )
    neardup.deduplicate("new.jsonl", out="out", **settings)
    printed = run("explain", "out", str(int(bool(settings))))
    assert (
        printed.stdout
        == f"{int(bool(settings))} was kept. {reason}, and nothing was removed in its favour.\n"
    )


def test_a_removed_document_without_stored_text_is_reported_as_removed(run, tmp_path):
    rows = [{"id": name, "vector": [1.0, 2.0, 3.0]} for name in "ab"]
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    neardup.deduplicate(tmp_path / "v.jsonl", out=tmp_path / "out", measure="cosine")
    printed = run("explain", str(tmp_path / "out"), "b")
    assert (
        printed.stdout
        == "b (v.jsonl:2) was removed: it has a similarity of 1.0000 to a (v.jsonl:1), which was kept.\n"
    )
