"""Rows longer than `max_document`: rejected with their size and skipped, in every format."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.config import Config
from neardup.errors import DataError
from neardup.io import records
from neardup.io.columns import oversize
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.formats import csv, lines
from neardup.io.formats import registry as formats
from neardup.io.records import InputFile, Verdicts

LONG = "l" * 5000
LIMIT = 1000


def found(tmp_path, name, content, **settings):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return find_files([str(path)], Config(**settings))[0]


def read(file, **settings):
    """The texts by row, and the reasons by row, of a whole file, all spans in turn."""
    config = Config(**settings)
    form = formats.load(file.format)
    columns = choose_columns(file, form.column_names(file, config), config)
    texts = {}
    rejected = {}
    first = 0
    for span in form.split(file):
        for batch in form.read(file, span, columns, config):
            texts |= dict(zip((batch.rows + first).tolist(), batch.texts.to_pylist(), strict=True))
            rejected |= {first + row: reason for row, reason in batch.rejected}
            first += batch.num_rows
    return texts, rejected, first


def as_jsonl(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def as_csv(texts):
    return ("text\n" + "".join(f'"{text}"\n' for text in texts)).encode()


def as_lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def as_parquet(texts):
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), sink)
    return sink.getvalue()


def as_arrow(texts):
    table = pa.table({"text": texts})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


FORMATS = [
    ("a.jsonl", as_jsonl, {}, 14),
    ("a.jsonl.gz", as_jsonl, {}, 14),
    ("a.csv", as_csv, {}, 2),
    ("a.csv.gz", as_csv, {}, 2),
    ("a.tsv", as_csv, {}, 2),
    ("a.txt", as_lines, {"lines": True}, 0),
    ("a.txt.gz", as_lines, {"lines": True}, 0),
    ("a.parquet", as_parquet, {}, 0),
    ("a.arrow", as_arrow, {}, 0),
]


@pytest.mark.parametrize("batch_bytes", [10, 1 << 22])
@pytest.mark.parametrize(
    ("name", "content", "settings", "around"), FORMATS, ids=[form[0] for form in FORMATS]
)
def test_only_the_oversized_row_is_rejected_with_its_size(
    tmp_path, monkeypatch, name, content, settings, around, batch_bytes
):
    monkeypatch.setattr(records, "BATCH_BYTES", batch_bytes)
    texts = [LONG, "one", LONG, LONG, "two", "three", LONG]
    file = found(tmp_path, name, content(texts), **settings)

    kept, rejected, num_rows = read(file, max_document=LIMIT, **settings)

    assert (kept, num_rows) == ({1: "one", 4: "two", 5: "three"}, 7)
    reason = f"{len(LONG) + around - 2 * (around == 14):,} bytes long, more than the 1,000 that max_document allows"
    assert rejected == dict.fromkeys([0, 2, 3, 6], reason)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.html"])
@pytest.mark.parametrize(
    ("size", "is_rejected"), [(LIMIT, False), (LIMIT + 1, True), (2_000_000, True)]
)
def test_text_file_longer_than_the_limit_is_rejected(tmp_path, name, size, is_rejected):
    file = found(tmp_path, name, b"x" * size, html=name.endswith("html"))
    texts, rejected, _ = read(file, max_document=LIMIT, html=name.endswith("html"))
    assert (len(texts), len(rejected)) == (not is_rejected, is_rejected)
    assert not is_rejected or rejected[0].startswith(f"{size:,} bytes long")


@pytest.mark.parametrize("ending", [b"\n", b""])
@pytest.mark.parametrize("batch_bytes", [1, 7, 64, 1 << 22])
def test_row_as_long_as_the_limit_is_a_document(tmp_path, monkeypatch, ending, batch_bytes):
    monkeypatch.setattr(records, "BATCH_BYTES", batch_bytes)
    content = b"\xef\xbb\xbf" + b"a" * 20 + b"\n" + b"b" * 21 + b"\n" + b"c" * 20 + ending
    file = found(tmp_path, "a.txt", content, lines=True)
    texts, rejected, num_rows = read(file, lines=True, max_document=20)
    assert (texts, list(rejected), num_rows) == ({0: "a" * 20, 2: "c" * 20}, [1], 3)


@pytest.mark.parametrize("part_bytes", [7, 50, 1000])
def test_oversized_lines_are_counted_once_for_any_split_of_the_file(
    tmp_path, monkeypatch, part_bytes
):
    monkeypatch.setattr(records, "PART_BYTES", part_bytes)
    monkeypatch.setattr(lines, "SKIPPED_AT_ONCE", 5)
    monkeypatch.setattr(oversize, "SKIPPED_AT_ONCE", 5)
    file = found(
        tmp_path, "a.txt", b"one\n" + b"x" * 200 + b"\ntwo\n" + b"y" * 120 + b"\n", lines=True
    )
    texts, rejected, num_rows = read(file, lines=True, max_document=10)
    assert (texts, num_rows) == ({0: "one", 2: "two"}, 4)
    assert [reason.split()[0] for reason in rejected.values()] == ["200", "120"]


@pytest.mark.parametrize(
    ("name", "content", "settings", "around"), FORMATS, ids=[form[0] for form in FORMATS]
)
def test_kept_rows_after_oversized_ones_are_written(tmp_path, name, content, settings, around):
    del around
    file = found(tmp_path, name, content([LONG, "one", "two", LONG]), **settings)
    config = Config(max_document=LIMIT, **settings)
    is_kept = np.array([False, False, True, False])
    none = Verdicts(
        is_kept=is_kept,
        removed=np.array([1]),
        kept_ids=pa.array(["x"]),
        similarities=np.array([1.0]),
    )
    (tmp_path / "out").mkdir()
    formats.load(file.format).write(file, str(tmp_path / "out" / name), none, config)
    written = find_files([str(tmp_path / "out" / name)], config)[0]
    assert read(written, **settings)[0] == {0: "two"}


CSV = st.lists(
    st.sampled_from([b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"a", b"bcd", b"e" * 20]),
    max_size=40,
)


@given(CSV, st.integers(1, 30), st.integers(1, 9))
@example([b'"', b"a", b"\n", b'"', b'"', b"\n", b"a", b'"', b"\n", b"bcd"], 3, 1)
def test_records_after_an_oversized_one_are_read(pieces, limit, skipped):
    content = b"".join(pieces)
    file = InputFile(
        path="a.csv", name="a.csv", format="csv", compression=None, size=len(content), modified=""
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(csv, "SKIPPED_AT_ONCE", skipped)
    with patch.context():
        every = [row.raw for row in csv._rows(io.BytesIO(content), file, Config())]
        few = list(csv._rows(io.BytesIO(content), file, Config(max_document=limit)))
    patch.undo()
    sizes = [len(raw) - raw.endswith(b"\n") for raw in every]
    assert [row.raw for row in few] == [
        raw if size <= limit else b"" for raw, size in zip(every, sizes, strict=True)
    ]
    reported = [row.reason.split()[0] for row in few if row.reason and "max_document" in row.reason]
    assert reported == [str(size) for size in sizes if size > limit]


@pytest.mark.parametrize(
    ("name", "content", "settings", "around"), FORMATS[:7], ids=[form[0] for form in FORMATS[:7]]
)
def test_a_document_that_does_not_fit_in_memory_is_an_error_that_names_the_memory_needed(
    tmp_path, monkeypatch, name, content, settings, around
):
    del around
    monkeypatch.setattr(oversize, "max_row_bytes", lambda _: 100)
    monkeypatch.setattr(lines, "max_row_bytes", lambda _: 100)
    monkeypatch.setattr(csv, "max_row_bytes", lambda _: 100)
    monkeypatch.setattr(records, "BATCH_BYTES", 100)
    file = found(tmp_path, name, content(["one", LONG]), **settings)
    with pytest.raises(
        DataError, match=r"holds a document of 5,0\d\d bytes, which needs 250 MB[^-]*memory='251MB'"
    ):
        read(file, **settings)
    # One that is longer than max_document is still rejected.
    assert list(read(file, max_document=LIMIT, **settings)[1]) == [1]


def test_more_memory_holds_longer_documents():
    held = [
        oversize.max_row_bytes(Config(memory=memory)) for memory in ("400MB", "1GB", "8GB", None)
    ]
    assert held == sorted(held)
    assert held[-2:] == [Config().max_document] * 2
