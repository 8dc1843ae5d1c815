"""Input that a run cannot use as it is: the message, and that its advice works."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import neardup
from neardup.errors import DataError
from support import corpora
from support.corpora import NEAR, OTHER, PAGE

SEMICOLONS = f"nr;comment;site\n1;{PAGE};x\n2;{NEAR};x\n3;{OTHER};x\n"


def test_a_semicolon_delimiter_is_reported_and_the_advice_works(run, tmp_path):
    (tmp_path / "rows.csv").write_text(SEMICOLONS.replace("comment", "text"))
    done = run("dedup", "rows.csv", "-o", "out", "-t", "0.7")
    assert done.code == 1
    assert done.stderr == (
        "error: rows.csv has no column named text, content, body\n\n"
        "hint: the header looks separated by ';': pass --delimiter ';'\n"
    )
    named = run("dedup", "rows.csv", "-o", "out", "-t", "0.7", "--text-column", "text")
    assert "pass --delimiter ';'" in named.stderr
    done = run("dedup", "rows.csv", "-o", "out", "-t", "0.7", "--delimiter", ";")
    assert (done.code, "3 documents: 2 kept, 1 removed" in done.stdout) == (0, True)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow", "json"])
def test_a_missing_text_column_names_the_likeliest_by_content(form, run, tmp_path):
    rows = [
        {
            "nr": str(at),
            "link": f"https://example.org/{'long/' * 40}{at}",
            "comment": text,
            "site": "a b",
        }
        for at, text in enumerate([PAGE, NEAR, OTHER])
    ]
    content = json.dumps(rows).encode() if form == "json" else corpora.encoded(rows, form)
    (tmp_path / f"rows.{form}").write_bytes(content)
    done = run("dedup", f"rows.{form}", "-o", "out")
    assert done.code == 1
    assert f"rows.{form} has no column named text, content, body" in done.stderr
    assert "hint: name the one with the text: --text-column comment" in done.stderr
    assert "(the columns are nr, link, comment, site)" in done.stderr
    with pytest.raises(
        DataError, match=r"text_column='comment' \(the columns are nr, link, comment, site\)"
    ):
        neardup.deduplicate(pa.Table.from_pylist(rows))


def test_a_misspelt_column_is_reported_with_the_likely_one(run, tmp_path):
    corpora.write_json_lines(tmp_path / "rows.jsonl", [{"comment": PAGE, "nr": 1}])
    done = run("dedup", "rows.jsonl", "-o", "out", "--text-column", "coment")
    assert done.code == 1
    assert "hint: did you mean 'comment'? (the columns are comment, nr)" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "settings", "reason", "hint"),
    [
        ("a.txt", "été".encode("latin-1"), (), "not valid UTF-8", "--encoding auto"),
        (
            "a.jsonl",
            '{"text": "été"}'.encode("latin-1"),
            (),
            "not valid UTF-8",
            "--encoding auto",
        ),
        ("a.jsonl", b'{"text": null}\n{"text": 7}\n', (), "text is null", "--text-column"),
        ("a.jsonl", b"text\nmore text\n", (), "broken JSON", "--format"),
        (
            "a.csv",
            b"text,n\na;1\nb;2\n",
            (),
            "the row has 1 fields, the header has 2",
            "--delimiter",
        ),
        ("a.txt", b"x" * 50, ("--max-document", "10"), "50 bytes long", "--max-document"),
        (
            "a.txt",
            "été".encode("cp1252"),
            ("--encoding", "utf-16"),
            "not valid utf-16",
            "another --encoding",
        ),
        (
            "a.jsonl",
            b'{"vector": "x"}',
            ("--measure", "hamming"),
            "vector is text",
            "--vector-column",
        ),
        (
            "a.jsonl",
            b'{"basket": 7}',
            ("--items-column", "basket"),
            "items are a number",
            "--items-column",
        ),
    ],
)
@pytest.mark.parametrize("command", ["dedup", "pairs"])
def test_all_rows_rejected_is_a_failure_with_reason_and_hint(
    command, name, content, settings, reason, hint, run, tmp_path
):
    (tmp_path / name).write_bytes(content)
    out = "out" if command == "dedup" else "out.csv"
    done = run(command, name, "-o", out, *settings)
    assert done.code == 1
    assert " rejected" in done.stderr
    assert f"{name} row 1: {reason}" in done.stderr
    assert hint in done.stderr.partition("hint: ")[2]
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_the_advice_about_an_encoding_works(run, tmp_path):
    (tmp_path / "a.txt").write_bytes("été\n".encode("latin-1"))
    assert run("dedup", "a.txt", "-o", "out").code == 1
    assert run("dedup", "a.txt", "-o", "out", "--encoding", "latin-1").code == 0


def test_an_empty_input_succeeds(run, tmp_path):
    for name in ("a.jsonl", "a.csv", "a.json"):
        (tmp_path / name).write_text("[]" if name == "a.json" else "")
        done = run("dedup", name, "-o", f"out-{name}")
        assert (done.code, done.stderr) == (0, "")


def test_more_than_half_rejected_is_an_urgent_warning(run, tmp_path):
    lines = [{"text": PAGE}, {"text": None}, {"text": None}]
    corpora.write_json_lines(tmp_path / "a.jsonl", lines)
    done = run("dedup", "a.jsonl", "-o", "out")
    assert done.code == 0
    said = (
        "2 of 3 rows were rejected; the first is a.jsonl row 2: text is null. Hint: name the column"
    )
    assert f"WARNING: {said}" in done.stderr
    assert any(
        warning.startswith(said)
        for warning in json.loads((tmp_path / "out/report.json").read_text())["warnings"]
    )
    corpora.write_json_lines(tmp_path / "b.jsonl", lines[:2])
    assert "WARNING" not in run("dedup", "b.jsonl", "-o", "half").stderr
