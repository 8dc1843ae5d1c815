"""`neardup index`, from an empty folder to a snapshot."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

LINE = json.dumps({"id": "x", "text": "a line that nobody has written before in this very place"})


@pytest.fixture
def made(run, pages):  # noqa: ARG001
    """An index of the pages, without those that are near-copies of others."""
    assert run("index", "create", "pages.index", "--threshold", "0.6").returncode == 0
    answer = run(
        "index", "insert", "pages.index", "pages.jsonl", "--on-duplicate", "skip", "--json"
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_insert_reports_the_new_documents(made):
    assert (made["new"], made["known"], made["total"], len(made["rejected"])) == (2, 2, 2, 1)
    assert {row["doc_id"]: row["match_id"] for row in made["documents"]} == {
        "a": None,
        "b": "a",
        "c": None,
        "d": "a",
    }


@pytest.mark.usefixtures("pages")
def test_insert_stores_all_or_none_and_counts_rejected_rows(run):
    run("index", "create", "i", "-q")
    answer = run("index", "insert", "i", "pages.jsonl")
    assert answer.stdout.splitlines()[0] == "Stored 4 documents. i holds 4."
    assert "1 row was rejected: pages.jsonl:" in answer.stdout
    again = run("index", "insert", "i", "pages.jsonl")
    assert (again.returncode, "the id 'a' already exists in the index" in again.stderr) == (1, True)
    assert "4 documents" in run("index", "info", "i").stdout


@pytest.mark.usefixtures("made")
def test_query_prints_or_writes_matches(run, tmp_path):
    answer = run("index", "query", "pages.index", "pages.jsonl", "--k", "1", "--json")
    found = json.loads(answer.stdout)["matches"]
    assert [(row["query_id"], row["doc_id"], row["rank"]) for row in found] == [
        *(("a", "a", 1), ("b", "a", 1), ("c", "c", 1), ("d", "a", 1))
    ]
    assert (
        run("index", "query", "pages.index", "pages.jsonl", "-o", "found.parquet").returncode == 0
    )
    assert pq.read_table(tmp_path / "found.parquet").to_pylist() == found
    shown = run("index", "query", "pages.index", "pages.jsonl", "--least", "0.99")
    assert shown.stdout.splitlines()[1:] == [
        "    1.0000     1  a  a",
        "    1.0000     1  c  c",
        "    1.0000     1  d  a",
    ]
    assert shown.stderr.startswith("warning: 1 row was rejected: pages.jsonl:5: ")
    low = run("index", "query", "pages.index", "pages.jsonl", "--least", "0.1")
    assert (low.returncode, "below that of the index" in low.stderr) == (2, True)


def test_query_by_containment_prints_both_containments(run, tmp_path):
    run("index", "create", "parts", "--containment", "--size", "1", "-q")
    (tmp_path / "whole.jsonl").write_text('{"id": "whole", "text": "one two three four"}\n')
    (tmp_path / "part.jsonl").write_text('{"id": "part", "text": "two three five"}\n')
    run("index", "insert", "parts", "whole.jsonl", "-q")
    answer = run("index", "query", "parts", "part.jsonl", "--containment", "0.5")
    assert [line.split() for line in answer.stdout.splitlines()] == [
        ["similarity", "rank", "containment_query", "containment_doc", "document", "match"],
        ["0.6667", "1", "0.6667", "0.5000", "part", "whole"],
    ]


@pytest.mark.usefixtures("made")
def test_documents_can_come_from_standard_input(run):
    answer = run("index", "insert", "pages.index", "-", stdin=LINE + "\n")
    assert answer.stdout.splitlines() == ["Stored 1 document. pages.index holds 3."]


@pytest.mark.usefixtures("made")
def test_json_lines_are_answered_one_by_one(run):
    lines = [
        json.dumps(
            {
                "id": "n",
                "text": "some new words that nobody has written so far",
                "payload": {"lang": "en"},
            }
        ),
        json.dumps({"id": "m", "text": "some new words that nobody has written so far"}),
        json.dumps({"id": "a", "text": "taken"}),
        "no json",
        json.dumps({"id": "b", "txt": "misspelt"}),
    ]
    answer = run(
        "index",
        "insert",
        "pages.index",
        "--jsonl",
        "--on-duplicate",
        "link",
        stdin="\n".join(lines),
    )
    answers = [json.loads(line) for line in answer.stdout.splitlines()]
    assert (answers[0]["is_new"], answers[1]["is_new"], answers[1]["match"]["doc_id"]) == (
        True,
        False,
        "n",
    )
    assert [line["line"] for line in answers[2:]] == [3, 4, 5]
    assert "already exists" in answers[2]["error"]
    assert answer.returncode == 1
    asked = json.dumps({"id": "q", "text": "some new words that nobody has written so far"})
    for condition, ids in (("lang=en", ["n"]), ('{"lang": ["de", "fr"]}', [])):
        found = run("index", "query", "pages.index", "--jsonl", "--where", condition, stdin=asked)
        answers = json.loads(found.stdout)
        assert (answers["id"], [match["doc_id"] for match in answers["matches"]]) == ("q", ids)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


ROWS = [
    {
        "id": "x",
        "text": "a line that nobody has written before",
        "payload": {"lang": "en"},
        "expires": "2100-01-31",
    },
    {
        "id": "y",
        "text": "another one about the harbour and its boats",
        "meta": {"lang": "de"},
        "until": 4102444800,
    },
]


@pytest.mark.usefixtures("made")
def test_insert_stores_payloads_and_times_from_columns(run):
    run("index", "insert", "pages.index", "-", stdin=lines(*ROWS))
    assert run("index", "count", "pages.index", "--where", "lang=en").stdout == "1 document\n"
    answer = run(
        "index",
        "insert",
        "pages.index",
        "-",
        "--replace",
        "--payload-column",
        "meta",
        stdin=lines(*ROWS),
    )
    assert answer.stdout == "0 new documents, 2 replaced. pages.index holds 4.\n"
    assert json.loads(
        run("index", "count", "pages.index", "--where", "lang=de", "--json").stdout
    ) == {"documents": 1}
    for option, column in (("--payload-column", "mata"), ("--expires-column", "untill")):
        wrong = run(
            "index", "insert", "pages.index", "-", "--replace", option, column, stdin=lines(*ROWS)
        )
        assert wrong.returncode == 1
        assert f"{option} names '{column}', a column that no row of the source has" in wrong.stderr


@pytest.mark.usefixtures("made")
def test_insert_replaces_known_ids(run):
    changed = {"id": "a", "text": "this page has been written again from the start"}
    answer = run(
        "index",
        "insert",
        "pages.index",
        "-",
        "--replace",
        "--json",
        stdin=lines(changed, ROWS[0], {"id": "z"}),
    )
    facts = json.loads(answer.stdout)
    assert (facts["inserted"], facts["replaced"], facts["total"], len(facts["rejected"])) == (
        1,
        1,
        3,
        1,
    )
    assert facts["documents"] == [
        {"doc_id": "a", "outcome": "replaced"},
        {"doc_id": "x", "outcome": "inserted"},
    ]
    piped = run(
        "index",
        "insert",
        "pages.index",
        "--jsonl",
        "--replace",
        stdin=lines(changed, {"id": "n", "text": "new"}),
    )
    assert [json.loads(line) for line in piped.stdout.splitlines()] == [
        {"id": "a", "outcome": "replaced"},
        {"id": "n", "outcome": "inserted"},
    ]
    both = run(
        "index",
        "insert",
        "pages.index",
        "-",
        "--replace",
        "--on-duplicate",
        "skip",
        stdin=lines(changed),
    )
    assert (both.returncode, "--replace and --on-duplicate cannot be combined" in both.stderr) == (
        2,
        True,
    )


@pytest.mark.usefixtures("made")
def test_documents_are_counted_and_removed_by_their_payloads(run):
    run("index", "insert", "pages.index", "-", stdin=lines(*ROWS))
    assert run("index", "count", "pages.index").stdout == "4 documents\n"
    removed = run("index", "remove", "pages.index", "--where", "lang=en")
    assert removed.stdout == "Removed 1 document. pages.index holds 3 documents.\n"
    assert json.loads(
        run("index", "remove", "pages.index", "--where", "lang=en", "--json").stdout
    ) == {
        "removed": 0,
        "total": 3,
    }
    for arguments in ((), ("a", "--where", "lang=en"), ("--where", "{}")):
        answer = run("index", "remove", "pages.index", *arguments)
        assert (answer.returncode, "takes ids or --where" in answer.stderr) == (2, True)


@pytest.mark.usefixtures("made")
def test_remove_check_compact_snapshot_and_export(run, tmp_path):
    removed = json.loads(run("index", "remove", "pages.index", "a", "never", "--json").stdout)
    assert removed == {"removed": 1, "absent": 1, "total": 1}
    assert run("index", "remove", "pages.index", "-", stdin="c\n").stdout.startswith(
        "Removed 1 of 1 id. pages.index holds 0 documents."
    )
    run("index", "insert", "pages.index", "-", stdin=LINE)
    assert run("index", "compact", "pages.index").returncode == 0
    assert run("index", "snapshot", "pages.index", "copy").stdout == "Copied pages.index to copy.\n"
    assert run("index", "check", "copy").stdout == "copy is intact.\n"
    assert json.loads(run("index", "info", "copy", "--json").stdout)["documents"] == 1
    assert run("index", "export", "copy", "all.jsonl").returncode == 0
    assert json.loads((tmp_path / "all.jsonl").read_text())["doc_id"] == "x"
    segment = next((tmp_path / "copy" / "runs").iterdir())
    data = bytearray(segment.read_bytes())
    data[4100] ^= 1
    segment.unlink()
    segment.write_bytes(data)
    damaged = run("index", "check", "copy")
    assert (damaged.returncode, "has a wrong checksum" in damaged.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("index", "query", "nowhere", "pages.jsonl"),
            1,
            "the index nowhere does not exist\n\nhint: check the spelling",
        ),
        (("index", "info", "nowhere"), 1, "or create it with `neardup index create nowhere`"),
        (("index", "create", "i", "--recall", "1"), 2, "by banding"),
        (("index", "query", "pages.index", "pages.jsonl", "--where", "lang"), 2, "NAME=VALUE"),
        (
            ("index", "query", "pages.index", "pages.jsonl", "--jsonl"),
            2,
            "--jsonl reads standard input",
        ),
        (("index", "create", "pages.index"), 2, "already exists"),
    ],
)
@pytest.mark.usefixtures("made")
def test_mistakes_are_messages(run, arguments, code, message):
    answer = run(*arguments)
    assert answer.returncode == code
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.usefixtures("made")
def test_an_input_without_a_usable_row_is_an_error(run):
    for command in ("insert", "query"):
        answer = run("index", command, "pages.index", "pages.jsonl", "--text-column", "story")
        error = "all 5 rows were rejected; the first is pages.jsonl:1: no column 'story'"
        assert (answer.returncode, answer.stdout, error in answer.stderr) == (1, "", True), (
            answer.stderr
        )
    assert "2 documents" in run("index", "info", "pages.index").stdout


@pytest.mark.usefixtures("made")
def test_an_index_of_texts_refuses_items(run, tmp_path):
    (tmp_path / "baskets.jsonl").write_text(
        json.dumps({"id": "k", "items": ["tea", "milk"]}) + "\n"
    )
    for command in ("insert", "query"):
        answer = run("index", command, "pages.index", "baskets.jsonl", "--items-column", "items")
        error = "--items-column 'items' does not suit this index, which was created for texts"
        assert (answer.returncode, error in answer.stderr) == (2, True), answer.stderr


@pytest.mark.usefixtures("made")
def test_a_threshold_below_that_of_the_index_is_named_by_its_option(run):
    low = run("index", "query", "pages.index", "pages.jsonl", "--least", "0.1")
    assert low.stderr.startswith("error: --least 0.1 is below that of the index, 0.6")
    assert "hint: create an index with --threshold 0.1" in low.stderr


def test_repair_lists_what_was_given_up_and_the_lost_ids(run, tmp_path):
    run("index", "create", "pages.index", "--quiet")
    many = "".join(
        json.dumps({"id": f"d{at}", "text": f"text {at} with words of its own"}) + "\n"
        for at in range(2100)
    )
    (tmp_path / "pages.jsonl").write_text(many)
    run("index", "insert", "pages.index", "pages.jsonl", "--quiet")
    assert run("index", "repair", "pages.index").stdout == "pages.index needs no repair.\n"
    (lost,) = (tmp_path / "pages.index" / "runs").iterdir()
    lost.unlink()
    assert run("index", "check", "pages.index").stdout == f"the segment {lost.name} is missing\n"
    said = run("index", "repair", "pages.index").stdout.splitlines()
    assert said[0] == f"the segment {lost.name} is missing"
    assert said[1:3] == ["lost: d0", "lost: d1"]
    assert (
        said[-1]
        == "Repaired pages.index: 2,100 documents lost, 0 documents stored again from their texts."
    )
    assert run("index", "check", "pages.index").stdout == "pages.index is intact.\n"
