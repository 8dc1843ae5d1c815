"""Bad input: a bad row is listed with file, row and reason and nothing else is lost; a bad file is an error by name."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import corpora
from support.corpora import OTHER, PAGE

GOOD = json.dumps({"id": "good", "text": PAGE}).encode() + b"\n"
LAST = json.dumps({"id": "last", "text": OTHER}).encode() + b"\n"
DEEP = 100_000


def between(line):
    """A bad line between two good ones."""
    return GOOD + line + b"\n" + LAST


def parquet(**columns):
    return corpora._table_bytes(pa.table(columns), "parquet")


def arrow(**columns):
    return corpora._table_bytes(pa.table(columns), "arrow")


def not_utf8(kind):
    """Strings that are not UTF-8, as a careless writer produces them."""
    return pa.array([PAGE.encode(), b"caf\xe9", OTHER.encode()], pa.binary()).view(kind)


THREE = [PAGE, OTHER, "x"]
# name: (file, content, options, (row, words of the reason) of every rejected row, good documents)
BAD_ROWS = {
    "a line that is not JSON": ("a.jsonl", between(b"hello"), [], [(2, "broken JSON")], 2),
    "an open brace": ("a.jsonl", between(b"{"), [], [(2, "broken JSON")], 2),
    "an open string": ("a.jsonl", between(b'{"text": "abc'), [], [(2, "broken JSON")], 2),
    "a trailing comma": ("a.jsonl", between(b'{"text": "a",}'), [], [(2, "broken JSON")], 2),
    "single quotes": ("a.jsonl", between(b"{'text': 'a'}"), [], [(2, "broken JSON")], 2),
    "two objects in a line": (
        "a.jsonl",
        between(b'{"text": "a"} {"text": "b"}'),
        [],
        [(2, "broken JSON")],
        2,
    ),
    "a control character": ("a.jsonl", between(b'{"text": "a\tb"}'), [], [(2, "broken JSON")], 2),
    "a bare NaN": ("a.jsonl", between(b'{"text": "a", "x": NaN}'), [], [(2, "broken JSON")], 2),
    "a wrong escape": ("a.jsonl", between(rb'{"text": "\x41"}'), [], [(2, "broken JSON")], 2),
    "a NUL byte": ("a.jsonl", between(b"\x00"), [], [(2, "broken JSON")], 2),
    "an array instead of an object": (
        "a.jsonl",
        between(b'["text"]'),
        [],
        [(2, "not an object")],
        2,
    ),
    "a string instead of an object": ("a.jsonl", between(b'"text"'), [], [(2, "not an object")], 2),
    "null instead of an object": ("a.jsonl", between(b"null"), [], [(2, "not an object")], 2),
    "no text": ("a.jsonl", between(b'{"id": "x"}'), [], [(2, "no column 'text'")], 2),
    "a null text": ("a.jsonl", between(b'{"text": null}'), [], [(2, "text is null")], 2),
    "a null text and a second text": (
        "a.jsonl",
        between(b'{"text": null, "text": "b"}'),
        [],
        [(2, "null")],
        2,
    ),
    "a number instead of a text": ("a.jsonl", between(b'{"text": 7}'), [], [(2, "text is int")], 2),
    "a boolean instead of a text": (
        "a.jsonl",
        between(b'{"text": true}'),
        [],
        [(2, "text is bool")],
        2,
    ),
    "a list instead of a text": (
        "a.jsonl",
        between(b'{"text": ["a"]}'),
        [],
        [(2, "text is list")],
        2,
    ),
    "an object instead of a text": (
        "a.jsonl",
        between(b'{"text": {"a": 1}}'),
        [],
        [(2, "text is dict")],
        2,
    ),
    "nested too deeply": (
        "a.jsonl",
        between(b'{"text": "a", "x": ' + b"[" * DEEP),
        [],
        [(2, "deep")],
        2,
    ),
    "nested too deeply, but closed": (
        "a.jsonl",
        between(b'{"text": "a", "x": ' + b"[" * DEEP + b"]" * DEEP + b"}"),
        [],
        [(2, "deep")],
        2,
    ),
    "half a surrogate pair in another field": (
        "a.jsonl",
        between(rb'{"text": "a", "x": "\udc00"}'),
        [],
        [(2, "surrogate")],
        2,
    ),
    "half a surrogate pair": (
        "a.jsonl",
        between(rb'{"text": "\ud800"}'),
        [],
        [(2, "surrogate")],
        2,
    ),
    "a text that is not UTF-8": (
        "a.jsonl",
        between(b'{"text": "caf\xe9"}'),
        [],
        [(2, "not valid UTF-8")],
        2,
    ),
    "another field that is not UTF-8": (
        "a.jsonl",
        between(b'{"text": "a", "x": "\xff"}'),
        [],
        [(2, "not valid UTF-8")],
        2,
    ),
    "an id that is not UTF-8": (
        "a.jsonl",
        between(b'{"text": "a", "id": "\xc3"}'),
        [],
        [(2, "not valid UTF-8")],
        2,
    ),
    "an id that is a list": (
        "a.jsonl",
        between(b'{"text": "a", "id": [1]}'),
        [],
        [(2, "column 'id' is a list")],
        2,
    ),
    "a group that is an object": (
        "a.jsonl",
        between(b'{"text": "a", "site": {}}') + b'{"text": "b", "site": "s"}\n',
        ["--group-column", "site"],
        [(2, "column 'site' is an object")],
        3,
    ),
    "a score that is a list": (
        "a.jsonl",
        between(b'{"text": "a", "score": [1]}') + b'{"text": "b", "score": 3}\n',
        ["--keep", "max:score"],
        [(2, "column 'score' is a list")],
        3,
    ),
    "an item that is null": (
        "a.jsonl",
        b'{"items": ["a"]}\n{"items": [null]}\n{"items": null}\n{"items": {"a": 1}}\n{"items": ["b\\u001f"]}\n',
        ["--items-column", "items"],
        [
            (2, "item is null"),
            (3, "items are null"),
            (4, "items are an object"),
            (5, "the item separator"),
        ],
        1,
    ),
    "a file in UTF-16": (
        "a.jsonl",
        GOOD.decode().encode("utf-16"),
        [],
        [(1, "UTF-8"), (2, "JSON")],
        0,
    ),
    "bad rows at both ends": (
        "a.jsonl",
        b"{\n" + GOOD + b"{",
        [],
        [(1, "broken JSON"), (3, "broken JSON")],
        1,
    ),
    "bad rows in a compressed file": (
        "a.jsonl.gz",
        gzip.compress(between(b"oops")),
        [],
        [(2, "broken JSON")],
        2,
    ),
    "blank rows count": ("a.jsonl", b"\n\r\n  \n" + between(b"oops"), [], [(5, "broken JSON")], 2),
    "only bad rows after blank ones": ("a.jsonl", b"\n\n{\n", [], [(3, "broken JSON")], 0),
    "CSV with a short and a long row": (
        "a.csv",
        b"id,text\n1,a\n2\n3,b,c\n4,d\n",
        [],
        [(2, "1 fields, the header has 2"), (3, "3 fields, the header has 2")],
        2,
    ),
    "CSV with a quote that is never closed": (
        "a.csv",
        b'id,text\n1,a\n2,"open\n3,b\n',
        [],
        [(2, "never closed, so the next line is taken as part of it")],
        1,
    ),
    "CSV with text after a closing quote": (
        "a.csv",
        b'id,text\n1,"a"b\n2,c\n',
        [],
        [(1, "broken CSV")],
        1,
    ),
    "CSV that is not UTF-8": (
        "a.csv",
        b"id,text\n1,caf\xe9\n2,b\n",
        [],
        [(1, "not valid UTF-8")],
        1,
    ),
    "CSV with a lone carriage return": (
        "a.csv",
        b"id,text\n1,a\rb\n2,c\n",
        [],
        [(1, "carriage return")],
        1,
    ),
    "TSV with a short row": ("a.tsv", b"id\ttext\n1\ta\n2\n", [], [(2, "1 fields")], 1),
    "lines that are not UTF-8": (
        "a.txt",
        b"good\n\xff\xfe\ngood too\n",
        ["--lines"],
        [(2, "not valid UTF-8")],
        2,
    ),
    "a text file that is not UTF-8": (
        "a.txt",
        "naïve".encode("latin-1"),
        [],
        [(1, "not valid UTF-8")],
        0,
    ),
    "Parquet with a null text": (
        "a.parquet",
        parquet(text=[PAGE, None, OTHER]),
        [],
        [(2, "text is null")],
        2,
    ),
    "Parquet with numbers instead of texts": (
        "a.parquet",
        parquet(text=[1, 2]),
        [],
        [(1, "not text"), (2, "not text")],
        0,
    ),
    "Parquet with lists instead of texts": (
        "a.parquet",
        parquet(text=[["a"], None]),
        [],
        [(1, "not text"), (2, "null")],
        0,
    ),
    "Parquet with bytes that are not text": (
        "a.parquet",
        parquet(text=[PAGE.encode(), b"\xff"]),
        [],
        [(2, "not valid UTF-8")],
        1,
    ),
    "Parquet with lists instead of ids": (
        "a.parquet",
        parquet(text=THREE, id=[[1], None, [2]]),
        [],
        [(1, "not one value"), (3, "not one value")],
        1,
    ),
    "Parquet with a broken string": (
        "a.parquet",
        parquet(text=not_utf8(pa.string())),
        [],
        [(2, "not valid UTF-8")],
        2,
    ),
    "Arrow with a broken string": (
        "a.arrow",
        arrow(text=not_utf8(pa.string())),
        [],
        [(2, "not valid UTF-8")],
        2,
    ),
    "Arrow with a null item": (
        "a.arrow",
        arrow(basket=[["a", None], ["b"]]),
        ["--items-column", "basket"],
        [(1, "item is null")],
        1,
    ),
}


def rejected_of(folder):
    return [
        json.loads(line) for line in (folder / "rejected.jsonl").read_bytes().split(b"\n") if line
    ]


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_row_is_rejected_with_file_row_and_reason(kind, programs, tmp_path):
    name, content, options, expected, num_good = BAD_ROWS[kind]
    (tmp_path / name).write_bytes(content)
    inputs = [name]
    if not num_good:  # a run without any document would fail
        (tmp_path / "good.txt").write_text("a good one")
        inputs = [name, "good.txt"]
        num_good = 1
    finished = programs.run("dedup", *inputs, "-o", "out", "--json", *options, cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    report = json.loads(finished.stdout)
    rejected = rejected_of(tmp_path / "out")
    assert [(row["file"], row["row"]) for row in rejected] == [(name, row) for row, _ in expected]
    for row, (_, words) in zip(rejected, expected, strict=True):
        assert words in row["reason"]
        assert len(row["reason"]) < 300
    assert report["rejected"] == len(expected)
    assert report["kept"] + report["removed"] == num_good
    assert report["documents"] == report["kept"] + report["removed"] + report["rejected"]
    assert pq.read_table(tmp_path / "out" / "clusters.parquet").num_rows == num_good


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_strict_stops_at_the_first_bad_row(kind, programs, tmp_path):
    name, content, options, expected, _ = BAD_ROWS[kind]
    (tmp_path / name).write_bytes(content)
    finished = programs.run("dedup", name, "-o", "out", "--strict", *options, cwd=tmp_path)
    row, words = expected[0]
    assert finished.code == 1
    assert f"{name}, row {row} " in finished.stderr
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out").exists()


def test_strict_names_the_first_of_many_in_input_order(tmp_path, programs):
    """Even if the bad row of a later file is found sooner."""
    corpora.write_json_lines(tmp_path / "b.jsonl", [{"text": PAGE}] * 20_000 + ["{"])
    corpora.write_json_lines(tmp_path / "a.jsonl", ["{"])
    for threads in ("1", "2"):
        arguments = ["b.jsonl", "a.jsonl", "-o", "out", "--strict", "--threads", threads]
        finished = programs.run("dedup", *arguments, cwd=tmp_path)
        assert "b.jsonl, row 20001 " in finished.stderr


# name: (file, content, good documents); all valid
FINE = {
    "a BOM": ("a.jsonl", b"\xef\xbb\xbf" + GOOD + LAST, 2),
    "a BOM in CSV": ("a.csv", b"\xef\xbb\xbfid,text\n1,a\n", 1),
    "a BOM in a compressed file": ("a.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + GOOD), 1),
    "CRLF": ("a.jsonl", (GOOD + LAST).replace(b"\n", b"\r\n"), 2),
    "CRLF in CSV": ("a.csv", b"id,text\r\n1,a\r\n2,b\r\n", 2),
    "blank lines": ("a.jsonl", b"\n\n" + GOOD + b"\n \n" + LAST + b"\n", 2),
    "no newline at the end": ("a.jsonl", GOOD + LAST.rstrip(), 2),
    "no newline at the end of CSV": ("a.csv", b"id,text\n1,a\n2,b", 2),
    "newlines within CSV": ("a.csv", b'id,text\n1,"a\n\nb"\n2,"c\r\nd"\n', 2),
    "CSV with a header alone": ("a.csv", b"id,text\n", 0),
    "an empty file": ("a.jsonl", b"", 0),
    "an empty CSV file": ("a.csv", b"", 0),
    "an empty text file": ("a.txt", b"", 1),
    "only blanks": ("a.jsonl", b" \n\t\n\r\n", 0),
    "an empty text": ("a.jsonl", b'{"text": ""}\n{"text": ""}\n', 2),
    "an escaped NUL": ("a.jsonl", b'{"text": "a\\u0000b"}\n', 1),
    "a huge line": ("a.jsonl", json.dumps({"text": "word " * 2_000_000}).encode(), 1),
    "escaped surrogate pairs": ("a.jsonl", rb'{"text": "\ud83d\ude00 smile"}', 1),
    "white space around a row": ("a.jsonl", b'  {"text": "a"}  \n', 1),
    "duplicate keys": ("a.jsonl", b'{"text": "a", "text": "b"}\n', 1),
    "duplicate ids": ("a.jsonl", b'{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', 2),
    "huge numbers": (
        "a.jsonl",
        b'{"id": 123456789012345678901234567890, "text": "a", "x": 1e999}\n',
        1,
    ),
    "joined gzip members": ("a.jsonl.gz", gzip.compress(GOOD) + gzip.compress(LAST), 2),
    "joined zstd frames": (
        "a.jsonl.zst",
        corpora.packed(GOOD, ".zst") + corpora.packed(LAST, ".zst"),
        2,
    ),
    "an empty compressed text": ("a.jsonl.gz", gzip.compress(b""), 0),
    "Parquet without rows": ("a.parquet", parquet(text=pa.array([], pa.string())), 0),
    "Arrow without rows": ("a.arrow", arrow(text=pa.array([], pa.string())), 0),
    "TSV with empty fields": ("a.tsv", b"id\ttext\n\t\n1\ta\n", 2),
    "CSV with empty fields": ("a.csv", b"id,text\n,\n1,a\n", 2),
    "capitals in the ending": ("A.JSONL", GOOD + LAST, 2),
}


@pytest.mark.parametrize("kind", FINE)
def test_unusual_input_is_accepted(kind, programs, tmp_path):
    name, content, num_good = FINE[kind]
    (tmp_path / name).write_bytes(content)
    finished = programs.run("dedup", name, "-o", "out", "--json", "--strict", cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    report = json.loads(finished.stdout)
    counts = [report[count] for count in ("documents", "kept", "removed", "rejected")]
    assert counts == [num_good, num_good, 0, 0]
    assert (tmp_path / "out" / "kept" / name).exists()


def test_all_rows_rejected_is_reported_even_if_the_first_file_is_blank(programs, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    (tmp_path / "b.jsonl").write_text("{broken\n")
    finished = programs.run("dedup", "a.jsonl", "b.jsonl", "-o", "out", cwd=tmp_path)
    assert finished.code == 1
    assert "the only row was rejected: b.jsonl row 1: broken JSON" in finished.stderr


def half(content):
    return content[: len(content) // 2]


def noise(num_bytes=20_000):
    rng = random.Random(5)
    return b"".join(
        json.dumps({"text": f"{rng.random()} {rng.random()}"}).encode() + b"\n"
        for _ in range(num_bytes // 50)
    )


NOISE = noise()
TABLE = pa.table({"text": [str(number) for number in range(5000)]})
FLIPPED = bytearray(corpora._table_bytes(TABLE, "parquet"))
FLIPPED[200:400] = bytes(200)
# name: (file, content, options, words of the message)
BAD_FILES = {
    "truncated gzip": ("a.jsonl.gz", half(gzip.compress(NOISE)), [], "truncated or damaged"),
    "gzip without its trailer": (
        "a.jsonl.gz",
        gzip.compress(NOISE)[:-6],
        [],
        "truncated or damaged",
    ),
    "gzip with a wrong checksum": (
        "a.jsonl.gz",
        gzip.compress(NOISE)[:-8] + b"\0" * 8,
        [],
        "truncated or damaged",
    ),
    "truncated zstd": (
        "a.jsonl.zst",
        half(corpora.packed(NOISE, ".zst")),
        [],
        "truncated or damaged",
    ),
    "truncated compressed CSV": (
        "a.csv.gz",
        half(gzip.compress(b"text\n" + NOISE)),
        [],
        "truncated or damaged",
    ),
    "truncated compressed text": (
        "a.txt.gz",
        half(gzip.compress(NOISE)),
        [],
        "truncated or damaged",
    ),
    "an empty gzip file": ("a.jsonl.gz", b"", [], "truncated or damaged"),
    "not a gzip file": ("a.jsonl.gz", GOOD, [], "damaged"),
    "not a zstd file": ("a.jsonl.zst", GOOD, [], "damaged"),
    "truncated Parquet": (
        "a.parquet",
        half(corpora._table_bytes(TABLE, "parquet")),
        [],
        "not a readable Parquet",
    ),
    "Parquet with zeroed bytes": ("a.parquet", bytes(FLIPPED), [], "not a readable Parquet"),
    "not a Parquet file": ("a.parquet", GOOD * 9, [], "not a readable Parquet"),
    "an empty Parquet file": ("a.parquet", b"", [], "not a readable Parquet"),
    "truncated Arrow": (
        "a.arrow",
        half(corpora._table_bytes(TABLE, "arrow")),
        [],
        "not a readable Arrow",
    ),
    "a truncated Arrow stream": (
        "a.arrows",
        half(corpora._table_bytes(TABLE, "arrows")),
        [],
        "not a readable Arrow",
    ),
    "not an Arrow file": ("a.arrow", GOOD, [], "not a readable Arrow"),
    "an empty Arrow file": ("a.arrow", b"", [], "not a readable Arrow"),
    "Feather of version 1": ("a.feather", b"FEA1" + b"\0" * 40 + b"FEA1", [], "version 1"),
    "compressed Parquet": ("a.parquet.gz", gzip.compress(parquet(text=["a"])), [], "decompress"),
    "Parquet without a text column": (
        "a.parquet",
        parquet(other=["a"]),
        [],
        "no column named text, content, body",
    ),
    "JSON Lines without a text column": (
        "a.jsonl",
        b'{"other": "a"}\n',
        [],
        "no column named text, content, body",
    ),
    "CSV without a header": (
        "a.csv",
        b"1,hello there\n2,more\n",
        [],
        "no column named text, content, body",
    ),
    "two columns with the same name": ("a.csv", b"text,text\na,b\n", [], "2 columns named 'text'"),
    "a header that is not UTF-8": ("a.csv", b"text,caf\xe9\na,b\n", [], "header"),
    "a missing text column": ("a.jsonl", GOOD, ["--text-column", "body"], "'body'"),
    "one of two text columns missing": (
        "a.jsonl",
        GOOD,
        ["--text-column", "text", "--text-column", "title"],
        "'title'",
    ),
    "a missing id column": ("a.parquet", parquet(text=["a"]), ["--id-column", "key"], "'key'"),
    "a missing score column": ("a.csv", b"text\na\n", ["--keep", "max:score"], "'score'"),
    "a missing group column": ("a.jsonl", GOOD, ["--group-column", "site"], "'site'"),
    "a missing items column": ("a.jsonl", GOOD, ["--items-column", "basket"], "'basket'"),
    "a column of plain text": ("a.txt", b"a", ["--text-column", "text"], "a.txt is plain text"),
    "marks for plain text": ("a.txt", b"a", ["--mark"], "a.txt is plain text"),
    "a score that cannot be sorted": (
        "a.parquet",
        parquet(text=["a"], score=[[1]]),
        ["--keep", "max:score"],
        "score",
    ),
    "an archive": ("a.zip", b"PK", [], "a.zip"),
    "one JSON array": (
        "a.json",
        b'[\n{"text": "a"}\n]\n',
        ["--format", "jsonl"],
        "a single JSON array",
    ),
    "one JSON object": ("a.json", b'{\n"text": "a"\n}\n', [], "a single JSON object"),
    "a negative length in Arrow": (
        "a.arrows",
        struct.pack("<Ii", 0xFFFFFFFF, -7) + b"x" * 64,
        [],
        "not a readable Arrow",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_an_error_that_names_it(kind, programs, tmp_path):
    name, content, options, words = BAD_FILES[kind]
    (tmp_path / name).write_bytes(content)
    finished = programs.run("dedup", name, "-o", "out", *options, cwd=tmp_path)
    assert finished.code in (1, 2), finished.stdout
    assert name in finished.stderr
    assert words in finished.stderr
    assert finished.stderr.startswith("error: ")
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out").exists()


def make_folder(folder):
    (folder / "x.jsonl").mkdir()


def make_link(folder):
    (folder / "x.jsonl").symlink_to(folder / "gone.jsonl")


def make_loop(folder):
    (folder / "x").mkdir()
    (folder / "x" / "again").symlink_to(folder / "x")


def make_pipe(folder):
    os.mkfifo(folder / "x.jsonl")


def make_file(folder):
    (folder / "x.jsonl").write_bytes(GOOD)


def make_two_names(folder):
    make_file(folder)
    (folder / "y.jsonl").symlink_to(folder / "x.jsonl")


def make_nothing(folder):
    del folder


@pytest.mark.parametrize(
    ("make", "inputs", "words"),
    [
        (make_nothing, ["x.jsonl"], "x.jsonl does not exist"),
        (make_nothing, ["*.jsonl"], "*.jsonl matches no file"),
        (make_nothing, ["none/*.jsonl"], "none/*.jsonl matches no file"),
        (make_nothing, [""], "got ''"),
        (make_nothing, ["nothing://x/y.jsonl"], "nothing://x/y.jsonl"),
        (make_nothing, ["memory://not/there.jsonl"], "memory://not/there.jsonl does not exist"),
        (make_folder, ["x.jsonl"], "x.jsonl has no file of a known format"),
        (make_link, ["x.jsonl"], "x.jsonl is a link to a file that does not exist"),
        (make_loop, ["x"], "x has no file of a known format"),
        (make_pipe, ["x.jsonl"], "x.jsonl is not a regular file"),
        (make_file, ["x.jsonl", "x.jsonl"], "x.jsonl is named twice"),
        (make_file, ["x.jsonl", "./x.jsonl"], "x.jsonl is named twice"),
        (make_file, ["x.jsonl", "gone.jsonl"], "gone.jsonl does not exist"),
        (make_file, ["x.jsonl", "-", "-"], "standard input was named twice"),
        (make_file, ["x.jsonl/y"], "x.jsonl/y"),
    ],
)
def test_an_input_that_cannot_be_found_is_an_error(make, inputs, words, programs, tmp_path):
    make(tmp_path)
    finished = programs.run("dedup", *inputs, "-o", "out", cwd=tmp_path)
    assert finished.code in (1, 2)
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".out.neardup").exists()


def test_bad_rows_of_many_files_are_listed_in_input_order(tmp_path):
    names = ["b.jsonl", "a.csv", "c.parquet"]
    (tmp_path / "b.jsonl").write_bytes(between(b"oops") + b"{\n")
    (tmp_path / "a.csv").write_bytes(b"text\na,b\nc\nd,e\n")
    (tmp_path / "c.parquet").write_bytes(parquet(text=[None, "a"]))
    report = corpora.deduplicate([tmp_path / name for name in names], tmp_path / "out")
    places = [(row["file"], row["row"]) for row in report.rejected.to_pylist()]
    assert places == [("b.jsonl", 2), ("b.jsonl", 4), ("a.csv", 1), ("a.csv", 3), ("c.parquet", 1)]
    assert report.documents == report.num_kept + report.num_removed + 5


def test_rejected_rows_are_in_no_kept_file(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(between(b"oops"))
    corpora.deduplicate([tmp_path / "a.jsonl"], tmp_path / "out")
    corpora.deduplicate([tmp_path / "a.jsonl"], tmp_path / "marked", mark=True)
    assert (tmp_path / "out/kept/a.jsonl").read_bytes() == GOOD + LAST
    marked = (tmp_path / "marked/kept/a.jsonl").read_bytes()
    assert [json.loads(line)["neardup_kept"] for line in marked.splitlines()] == [True, True]


def test_the_majority_of_scores_does_not_depend_on_the_batch(tmp_path, monkeypatch):
    """Scores of two kinds give the same answer, or the same error, for any split of the rows."""
    scores = [1, "x", 2, 3, "y", "z", "w", 4]
    path = corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"text": f"{s} {PAGE}", "s": s} for s in scores]
    )

    def answer(out):
        try:
            return corpora.deduplicate([path], tmp_path / out, keep="max:s").rejected.to_pylist()
        except Exception as error:  # noqa: BLE001 - what is compared
            return str(error)

    at_once = answer("one")
    corpora.cut(monkeypatch, batch_bytes=1)
    assert answer("two") == at_once
