"""Plain text: one document per file, or one per line with lines=True."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.io import records
from neardup.io.columns import gather
from neardup.io.documents.discover import find_files
from neardup.io.formats import lines, text
from neardup.io.formats import registry as formats
from neardup.io.records import Columns, Verdicts

NO_COLUMNS = Columns(text=())


def found(path, content, **settings):
    path.write_bytes(content)
    return find_files([str(path)], Config(**settings))[0]


def batches(path, content, **settings):
    file = found(path, content, **settings)
    module = formats.load(file.format)
    return [
        batch
        for span in module.split(file)
        for batch in module.read(file, span, NO_COLUMNS, Config(**settings))
    ]


def only(path, content, **settings):
    (batch,) = batches(path, content, **settings)
    return batch


def verdicts(is_kept):
    return Verdicts(
        is_kept=np.array(is_kept, np.bool_),
        removed=np.empty(0, np.int64),
        kept_ids=pa.array([], pa.string()),
        similarities=np.empty(0, np.float64),
    )


@pytest.mark.parametrize("content", ["", "one\ntwo\r\n", "ünï\0", "\n"])
def test_a_file_is_one_document(tmp_path, content):
    batch = only(tmp_path / "a.txt", content.encode())
    assert (batch.num_rows, batch.rows.tolist(), batch.texts.to_pylist()) == (1, [0], [content])
    assert batch.texts.type == pa.large_string()
    assert (batch.ids.to_pylist(), batch.ids.type, batch.rejected) == ([None], pa.string(), [])
    assert only(tmp_path / "b.txt", b"\xef\xbb\xbf" + content.encode()).texts.to_pylist() == [
        content
    ]


def test_a_file_that_is_not_utf8_is_rejected_with_the_byte(tmp_path):
    batch = only(tmp_path / "a.txt", b"ab\xffc")
    assert (batch.num_rows, batch.rows.tolist(), len(batch.texts)) == (1, [], 0)
    assert batch.rejected == [(0, "not valid UTF-8: invalid start byte at byte 2")]


def test_html_files_become_text_on_request(tmp_path):
    page = b"<html><head><title>t</title></head><body><p>one</p></body></html>"
    assert only(tmp_path / "a.html", page).texts.to_pylist() == [page.decode()]
    assert only(tmp_path / "a.html", page, html=True).texts.to_pylist() == ["one"]


def test_a_kept_file_is_copied_and_a_removed_one_is_not_written(tmp_path):
    packed = gzip.compress(b"text", mtime=12345)
    file = found(tmp_path / "a.txt.gz", packed)
    target = tmp_path / "kept" / "below" / "a.txt.gz"
    text.write(file, str(target), verdicts([False]), Config())
    assert not target.exists()
    text.write(file, str(target), verdicts([True]), Config())
    assert target.read_bytes() == packed


def test_plain_text_has_no_columns(tmp_path):
    file = found(tmp_path / "a.txt", b"x")
    assert text.column_names(file, Config()) is None
    assert lines.column_names(file, Config()) is None


def test_every_line_is_a_document_and_blank_ones_are_counted(tmp_path):
    batch = only(
        tmp_path / "a.txt", b"\xef\xbb\xbfone\r\n\n  \ntw\xc3\xb6 \nb\xffd\nlast", lines=True
    )
    assert batch.num_rows == 6
    assert batch.rows.tolist() == [0, 3, 5]
    assert batch.texts.to_pylist() == ["one", "twö ", "last"]
    assert batch.ids.to_pylist() == [None] * 3
    assert batch.rejected == [(4, "not valid UTF-8: invalid start byte at byte 1")]
    assert batches(tmp_path / "a.txt", b"", lines=True) == []


def test_lines_of_html_become_text_on_request(tmp_path):
    batch = only(tmp_path / "a.txt", b"<p>one</p>\n\n<b>two</b>\n", lines=True, html=True)
    assert (batch.texts.to_pylist(), batch.rows.tolist()) == (["one", "two"], [0, 2])


def test_lines_come_in_spans_and_bounded_batches(tmp_path, monkeypatch):
    content = b"".join(b"line %d\n" % row for row in range(100))
    monkeypatch.setattr(records, "PART_BYTES", 300)
    monkeypatch.setattr(records, "BATCH_BYTES", 50)
    monkeypatch.setattr(gather, "MAX_ROWS", 4)
    parts = batches(tmp_path / "a.txt", content, lines=True)
    assert [
        line for part in parts for line in part.texts.to_pylist()
    ] == content.decode().splitlines()
    assert max(part.num_rows for part in parts) == 4
    assert len(lines.split(found(tmp_path / "a.txt", content))) == 3


def test_a_span_within_one_long_line_has_no_rows_and_reads_no_further(tmp_path, monkeypatch):
    file = found(tmp_path / "a.txt", b"x" * 1000 + b"\nnext\n")
    monkeypatch.setattr(records, "BATCH_BYTES", 10)
    assert list(lines.line_blocks(file, (100, 200), Config())) == []
    assert list(lines.line_blocks(file, (900, 1001), Config())) == []
    assert list(lines.line_blocks(file, (1001, 1002), Config())) == [b"next\n"]
    assert list(lines.line_blocks(file, (0, 1), Config())) == [b"x" * 1000 + b"\n"]


def test_kept_lines_are_written_byte_for_byte(tmp_path):
    file = found(tmp_path / "a.txt", b"one\r\n\ntwo\nthree", lines=True)
    lines.write(file, str(tmp_path / "b.txt"), verdicts([True, False, False, True]), Config())
    assert (tmp_path / "b.txt").read_bytes() == b"one\r\nthree"
