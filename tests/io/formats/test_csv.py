"""CSV and TSV: quotes, broken records, and records written back."""

from __future__ import annotations

import csv as standard
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neardup.config import Config
from neardup.errors import DataError
from neardup.io import records
from neardup.io.columns import gather
from neardup.io.columns.scores import sortable_values
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.formats import csv
from neardup.io.records import Columns, Verdicts

TEXT = Columns(text=("text",), id="id")


def found(path, content):
    path.write_bytes(content)
    return find_files([str(path)], Config())[0]


def batches(path, content, columns=TEXT, **settings):
    file = found(path, content)
    (span,) = csv.split(file)
    return list(csv.read(file, span, columns, Config(**settings)))


def only(path, content, columns=TEXT, **settings):
    (batch,) = batches(path, content, columns, **settings)
    return batch


def verdicts(num_rows, kept, removed=()):
    rows, ids, similarities = zip(*removed, strict=True) if removed else ((), (), ())
    return Verdicts(
        is_kept=np.isin(np.arange(num_rows), kept),
        removed=np.array(rows, np.int64),
        kept_ids=pa.array(ids, pa.string()),
        similarities=np.array(similarities, np.float64),
    )


def written(tmp_path, content, verdict, name="a.csv", **settings):
    file = found(tmp_path / name, content)
    target = tmp_path / "kept" / name
    csv.write(file, str(target), verdict, Config(**settings))
    return target.read_bytes()


def test_records_after_the_header_are_documents(tmp_path):
    batch = only(tmp_path / "a.csv", 'id,text\n1,one\n,"tw""ö"""\n3,\n'.encode())
    assert (batch.num_rows, batch.rows.tolist()) == (3, [0, 1, 2])
    assert batch.texts.to_pylist() == ["one", 'tw"ö"', ""]
    assert batch.texts.type == pa.large_string()
    assert batch.ids.to_pylist() == ["1", None, "3"]
    assert (batch.rejected, batch.found) == ([], {"text", "id"})


def test_bom_crlf_blank_lines_and_newlines_in_quotes_are_accepted(tmp_path):
    content = b'\xef\xbb\xbf"text",id\r\n"one\r\nand\nmore",1\r\n\r\n\ntwo,2\r\n"a,b\n\n",3'
    batch = only(tmp_path / "a.csv", content)
    assert batch.num_rows == 5
    assert batch.rows.tolist() == [0, 3, 4]
    assert batch.texts.to_pylist() == ["one\r\nand\nmore", "two", "a,b\n\n"]
    assert batch.rejected == []


@pytest.mark.parametrize(
    ("name", "delimiter", "between"),
    [
        ("a.csv", ";", ";"),
        ("a.csv", "|", "|"),
        ("a.tsv", None, "\t"),
        ("a.tsv", ",", ","),
        ("a.csv", "\t", "\t"),
    ],
)
def test_the_delimiter_comes_from_the_setting_or_the_extension(tmp_path, name, delimiter, between):
    content = f"id{between}text\n1{between}a; b\n".replace(
        "; ", "" if between == ";" else "; "
    ).encode()
    assert only(tmp_path / name, content, delimiter=delimiter).ids.to_pylist() == ["1"]


@pytest.mark.parametrize(
    "content", [b"", b"id,text\n", b"id,text", b"\xef\xbb\xbf", b"\n\nid,text\r\n"]
)
def test_an_empty_file_or_a_header_alone_has_no_rows(tmp_path, content):
    assert batches(tmp_path / "a.csv", content) == []
    names = csv.column_names(found(tmp_path / "a.csv", content), Config())
    assert names == (["id", "text"] if b"id" in content else [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1", "the row has 1 fields, the header has 2"),
        (b"1,a,b", "the row has 3 fields, the header has 2"),
        (b"1,a\xffb", "not valid UTF-8: invalid start byte at byte 3"),
        (b"\xc3,a", "not valid UTF-8"),
        (b'1,"a"b', "broken CSV: ',' expected after '\"'"),
        (b"1,a\rb", "a carriage return outside quotes"),
    ],
)
def test_only_the_bad_record_is_rejected_with_its_reason(tmp_path, line, reason):
    batch = only(tmp_path / "a.csv", b"id,text\n0,before\n" + line + b"\n2,after\n")
    assert batch.texts.to_pylist() == ["before", "after"]
    assert batch.rows.tolist() == [0, 2]
    ((row, given),) = batch.rejected
    assert row == 1
    assert given.startswith(reason)


def test_a_quote_that_is_never_closed_is_rejected_with_the_lines_it_swallowed(tmp_path):
    batch = only(tmp_path / "a.csv", b'id,text\n0,before\n1,"open\n2,lost\n3,lost\n')
    assert batch.texts.to_pylist() == ["before"]
    assert batch.rejected == [
        (
            1,
            "a quote opened in this row is never closed, so the next 2 lines are taken as part of it",
        )
    ]
    assert batch.num_rows == 2


def test_a_quote_closed_by_that_of_a_later_row_is_rejected_not_joined(tmp_path):
    batch = only(tmp_path / "a.csv", b'id,text\n1,"open\n2,"fine"\n3,after\n')
    assert batch.texts.to_pylist() == ["after"]
    ((row, reason),) = batch.rejected
    assert row == 0
    assert reason.endswith("so the next line is taken as part of it")


def test_huge_fields_and_nul_bytes_are_accepted(tmp_path):
    huge = b"x" * 300_000
    batch = only(tmp_path / "a.csv", b"id,text\n1," + huge + b"\n2,a\x00b\n")
    assert batch.texts.to_pylist() == [huge.decode(), "a\0b"]


def test_a_named_column_that_is_missing_rejects_the_rows_or_is_null(tmp_path):
    columns = Columns(text=("body",), id="key")
    batch = only(tmp_path / "a.csv", b"id,text\n1,a\n", columns)
    assert (batch.rejected, batch.found) == ([(0, "no column 'body'")], frozenset())
    batch = only(
        tmp_path / "a.csv",
        b"id,text\n1,a\n",
        Columns(text=("text",), id="key", group="g", score="s"),
    )
    assert (batch.ids.to_pylist(), batch.groups.to_pylist(), batch.scores.to_pylist()) == (
        [None],
        [None],
        [None],
    )


def test_several_text_columns_items_groups_and_scores_are_read(tmp_path):
    content = b"title,body,bag,lang,likes\nT,B,x  y,en,10\nU,,z,,9\nV,W,,de,\n"
    batch = only(
        tmp_path / "a.csv", content, Columns(text=("title", "body"), group="lang", score="likes")
    )
    assert batch.texts.to_pylist() == ["T\nB", "U\n", "V\nW"]
    assert batch.groups.to_pylist() == ["en", None, "de"]
    assert batch.scores.equals(sortable_values([10, 9, None]))
    bags = only(tmp_path / "a.csv", content, Columns(text=(), items="bag"))
    assert bags.texts.to_pylist() == ["x\x1fy\x1f", "z\x1f", ""]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("1 2.5", [1, 2.5]),
        ("2024-01-02 2023-01-02", ["2024-01-02", "2023-01-02"]),
        ("7 x 8", [7, "x", 8]),
        (f"{2**53 + 1} {2**70} -3.0", [2**53 + 1, 2**70, -3]),
    ],
)
def test_scores_are_numbers_where_they_look_like_numbers(tmp_path, values, expected):
    content = "text,s\n" + "".join(f"t,{value}\n" for value in values.split())
    batch = only(tmp_path / "a.csv", content.encode(), Columns(text=("text",), score="s"))
    assert batch.scores.equals(sortable_values(expected))
    assert batch.rejected == []


def test_html_becomes_text(tmp_path):
    assert only(tmp_path / "a.csv", b"text\n<p>one</p>\n", html=True).texts.to_pylist() == ["one"]


def test_a_repeated_column_name_is_an_error_if_it_is_needed(tmp_path):
    file = found(tmp_path / "a.csv", b"text,id,text\na,1,b\n")
    with pytest.raises(DataError, match=r"a\.csv has 2 columns named 'text'"):
        choose_columns(file, csv.column_names(file, Config()), Config())


@pytest.mark.parametrize("content", [b'"id,text\n1,a\n', b"id,t\xff\n1,a\n", b"id,text\r1,a\r"])
def test_a_header_that_cannot_be_read_is_an_error(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.csv has a header that cannot be used"):
        csv.column_names(found(tmp_path / "a.csv", content), Config())


def test_batches_are_bounded_in_bytes_and_rows(tmp_path, monkeypatch):
    content = b"id,text\n" + b"".join(b"%d,text of some words\n" % row for row in range(50))
    monkeypatch.setattr(records, "BATCH_BYTES", 100)
    parts = batches(tmp_path / "a.csv", content)
    assert [row for part in parts for row in part.ids.to_pylist()] == [
        str(row) for row in range(50)
    ]
    assert max(part.num_rows for part in parts) == 5
    monkeypatch.setattr(gather, "MAX_ROWS", 2)
    assert {part.num_rows for part in batches(tmp_path / "a.csv", content)} == {2}


def test_kept_records_are_written_byte_for_byte_with_the_header(tmp_path):
    content = b'\xef\xbb\xbfid,text\r\n1,"a\nb"\n\n2 ,"x"\r\nbad\n3,"""c"""'
    assert (
        written(tmp_path, content, verdicts(5, [0, 4]))
        == b'\xef\xbb\xbfid,text\r\n1,"a\nb"\n3,"""c"""'
    )
    assert written(tmp_path, content, verdicts(5, [])) == b"\xef\xbb\xbfid,text\r\n"
    assert written(tmp_path, content, verdicts(5, [2])) == b'\xef\xbb\xbfid,text\r\n2 ,"x"\r\n'
    packed = gzip.compress(content)
    assert gzip.decompress(written(tmp_path, packed, verdicts(5, [2]), "a.csv.gz")).endswith(
        b'2 ,"x"\r\n'
    )


def test_a_file_with_all_rows_kept_is_copied(tmp_path):
    packed = gzip.compress(b"id,text\n1,a\n", mtime=12345)
    assert written(tmp_path, packed, verdicts(1, [0]), "a.csv.gz") == packed


def test_marks_add_four_columns(tmp_path):
    content = b'id;text\r\n1;"a\nb"\n\n2;x\r\n3;c'
    answer = written(
        tmp_path,
        content,
        verdicts(4, [0], [(2, 'o;"n"\n', 0.8), (3, None, 1.0)]),
        delimiter=";",
        mark=True,
    )
    assert answer == (
        b"id;text;neardup_kept;neardup_kept_id;neardup_similarity;neardup_cluster_size\r\n"
        b'1;"a\nb";true;;;1\n2;x;false;"o;""n""\n";0.8;1\r\n3;c;false;;1.0;1'
    )
    assert (
        len({len(row) for row in standard.reader(io.StringIO(answer.decode()), delimiter=";")}) == 1
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(alphabet='a,"\r\n é\0', min_size=1, max_size=6), max_size=8),
    line_end=st.sampled_from(["\n", "\r\n"]),
    data=st.data(),
)
def test_output_of_the_csv_module_round_trips(tmp_path, texts, line_end, data):
    # With "\n" the writer of Python 3.11 leaves "\r" unquoted.
    quoting = standard.QUOTE_ALL if line_end == "\n" else standard.QUOTE_MINIMAL
    buffer = io.StringIO()
    writer = standard.writer(buffer, lineterminator=line_end, quoting=quoting)
    writer.writerows([["id", "text"], *([str(row), text] for row, text in enumerate(texts))])
    content = buffer.getvalue().encode()
    parts = batches(tmp_path / "a.csv", content)
    assert [text for part in parts for text in part.texts.to_pylist()] == texts
    is_kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    kept = written(tmp_path, content, verdicts(len(texts), np.flatnonzero(is_kept)))
    rows = list(standard.reader(io.StringIO(kept.decode(), newline="")))
    assert rows == [["id", "text"], *([str(row), texts[row]] for row in np.flatnonzero(is_kept))]
