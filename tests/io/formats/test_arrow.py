import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.formats import arrow
from neardup.io.records import MARK_COLUMNS, Columns, InputFile, Verdicts
from support.corpora import cut

CONFIG = Config()
TEXT = Columns(text=("text",), id="id")
OPENERS = {
    "file": (pa.ipc.new_file, pa.ipc.open_file),
    "stream": (pa.ipc.new_stream, pa.ipc.open_stream),
}
both = pytest.mark.parametrize("kind", ["file", "stream"])


def input_file(path):
    return InputFile(
        path=os.fspath(path),
        name=path.name,
        format="arrow",
        compression=None,
        size=path.stat().st_size,
        modified="",
    )


def stored(folder, kind, batches, compression=None, **options):
    path = folder / "source.arrow"
    write_options = pa.ipc.IpcWriteOptions(compression=compression, **options)
    with OPENERS[kind][0](os.fspath(path), batches[0].schema, options=write_options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return input_file(path)


def table_in(path, kind):
    with pa.OSFile(os.fspath(path)) as source, OPENERS[kind][1](source) as reader:
        return reader.read_all()


def batches_of(num_batches, num_rows=10):
    return [
        pa.record_batch(
            {
                "id": range(first, first + num_rows),
                "text": [f"text {row}" for row in range(first, first + num_rows)],
                "other": [["x"]] * num_rows,
            }
        ).replace_schema_metadata({"source": "crawl"})
        for first in range(0, num_batches * num_rows, num_rows)
    ]


def verdicts(is_kept, removed=()):
    return Verdicts(
        is_kept=np.array(is_kept, np.bool_),
        removed=np.array(removed, np.int64),
        kept_ids=pa.array([f"kept{row}" for row in removed], pa.string()),
        similarities=np.full(len(removed), 0.9),
    )


def read_all(file, columns=TEXT):
    return [
        records for span in arrow.split(file) for records in arrow.read(file, span, columns, CONFIG)
    ]


def written(file, folder, is_kept, removed=(), **settings):
    target = folder / "out" / "target.arrow"
    arrow.write(file, os.fspath(target), verdicts(is_kept, removed), Config(**settings))
    return target


@both
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_every_document_is_read_once_and_in_order(tmp_path, kind, compression):
    file = stored(tmp_path, kind, batches_of(5), compression)
    got = read_all(file)
    assert [text for records in got for text in records.texts.to_pylist()] == [
        f"text {row}" for row in range(50)
    ]
    assert [name for records in got for name in records.ids.to_pylist()] == [
        str(row) for row in range(50)
    ]
    assert got[0].found == {"text", "id"}
    assert arrow.column_names(file, CONFIG) == ["id", "text", "other"]


def test_a_file_is_cut_by_batches_and_a_stream_is_one_span(tmp_path, monkeypatch):
    file = stored(tmp_path, "file", batches_of(6))
    assert arrow.split(file) == [(0, 6)]
    cut(monkeypatch, part_bytes=file.size // 3 + 1)
    assert arrow.split(file) == [(0, 2), (2, 4), (4, 6)]
    assert sum(records.num_rows for records in read_all(file)) == 60
    assert len(arrow.split(stored(tmp_path, "stream", batches_of(6)))) == 1


@both
def test_a_large_batch_is_read_in_pieces(tmp_path, kind):
    batch = pa.record_batch({"text": ["x" * 1_000_000] * 10})
    sizes = [
        records.num_rows
        for records in read_all(stored(tmp_path, kind, [batch]), Columns(text=("text",)))
    ]
    assert sum(sizes) == 10
    assert max(sizes) == 4


def test_a_batch_too_large_for_memory_is_memory_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "PART_BYTES", 100_000)
    batch = pa.record_batch(
        {"other": ["x" * 1000] * 500, "text": [f"text {row}" for row in range(500)]}
    )
    file = stored(tmp_path, "file", [batch])
    before = pa.total_allocated_bytes()
    with arrow._open(file, ["text"]) as (reader, _):
        held = reader.get_batch(0)
        assert pa.total_allocated_bytes() - before < 50_000
        assert held.num_rows == 500
    assert [text for records in read_all(file) for text in records.texts.to_pylist()] == batch[
        "text"
    ].to_pylist()
    is_kept = np.arange(500) % 2 > 0
    got = table_in(written(file, tmp_path, is_kept), "file")
    assert got.equals(pa.Table.from_batches([batch]).filter(pa.array(is_kept)))


@both
def test_a_missing_column_rejects_every_row(tmp_path, kind):
    got = read_all(stored(tmp_path, kind, [pa.record_batch({"body": ["a"]})]))
    assert [records.rejected for records in got] == [[(0, "no column 'text'")]]


@both
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_kept_rows_stay_in_the_format_with_schema(tmp_path, kind, compression):
    file = stored(tmp_path, kind, batches_of(5), compression)
    is_kept = np.arange(50) % 3 > 0
    target = written(file, tmp_path, is_kept)
    got = table_in(target, kind)
    source = table_in(file.path, kind)
    assert got.equals(source.filter(pa.array(is_kept)))
    assert got.schema.equals(source.schema, check_metadata=True)


@both
def test_kept_rows_are_compressed(tmp_path, kind):
    file = stored(tmp_path, kind, [pa.record_batch({"text": ["same " * 1000] * 100})])
    assert written(file, tmp_path, [True] * 99 + [False]).stat().st_size < file.size / 10


@both
def test_a_file_with_all_rows_kept_is_copied_byte_for_byte(tmp_path, kind):
    file = stored(tmp_path, kind, batches_of(2), "zstd")
    assert written(file, tmp_path, [True] * 20).read_bytes() == Path(file.path).read_bytes()


@both
def test_marks_are_appended_and_rejected_rows_left_out(tmp_path, kind):
    file = stored(tmp_path, kind, batches_of(2, 2))
    got = table_in(
        written(file, tmp_path, [True, False, False, True], removed=[2], mark=True), kind
    )
    assert got.schema.names == ["id", "text", "other", *MARK_COLUMNS.names]
    assert got.schema.metadata == {b"source": b"crawl"}
    assert [tuple(row.values())[3:] for row in got.to_pylist()] == [
        (True, None, None, 1),
        (False, "kept2", 0.9, 1),
        (True, None, None, 1),
    ]


@both
def test_files_without_rows_or_batches_are_accepted(tmp_path, kind):
    empty = batches_of(1)[0].slice(0, 0)
    for file in (stored(tmp_path, kind, [empty]), no_batches(tmp_path, kind, empty.schema)):
        assert [records for records in read_all(file) if records.num_rows] == []
        assert table_in(written(file, tmp_path, []), kind).num_rows == 0
        assert table_in(written(file, tmp_path, [], mark=True), kind).num_columns == 7


def no_batches(folder, kind, schema):
    OPENERS[kind][0](os.fspath(folder / "none.arrow"), schema).close()
    return input_file(folder / "none.arrow")


def test_a_feather_file_is_an_arrow_file(tmp_path):
    feather.write_feather(
        pa.Table.from_batches(batches_of(2)), os.fspath(tmp_path / "a.feather"), compression="lz4"
    )
    file = input_file(tmp_path / "a.feather")
    assert sum(records.num_rows for records in read_all(file)) == 20
    target = written(file, tmp_path, [True] * 19 + [False])
    assert feather.read_table(os.fspath(target)).num_rows == 19


@both
def test_dictionaries_that_grow_are_read_and_written(tmp_path, kind):
    names = ["a", "b", "c", "d"]
    batches = [
        pa.record_batch(
            {
                "text": pa.DictionaryArray.from_arrays(
                    pa.array([0, stop - 1]), pa.array(names[:stop])
                )
            }
        )
        for stop in (2, 3, 4)
    ]
    file = stored(tmp_path, kind, batches, emit_dictionary_deltas=True)
    assert [
        text
        for records in read_all(file, Columns(text=("text",)))
        for text in records.texts.to_pylist()
    ] == list("abacad")
    got = table_in(written(file, tmp_path, [True, True, False, True, True, True]), kind)
    assert got["text"].to_pylist() == ["a", "b", "c", "a", "d"]
    assert got.schema == batches[0].schema


def test_replaced_dictionaries_of_a_stream_are_preserved(tmp_path):
    batches = [
        pa.record_batch({"text": pa.array(names).dictionary_encode()})
        for names in (["a", "b"], ["c", "d"])
    ]
    file = stored(tmp_path, "stream", batches)
    got = table_in(written(file, tmp_path, [True, False, False, True]), "stream")
    assert got["text"].to_pylist() == ["a", "d"]


@both
def test_columns_that_arrow_cannot_filter_round_trip(tmp_path, kind):
    batch = pa.record_batch(
        {
            "view": pa.array(["a", None, "a text longer than twelve bytes"], pa.string_view()),
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), ["x", "y"]),
            "uuid": pa.array([b"0" * 16, None, b"2" * 16], pa.uuid()),
            "union": pa.UnionArray.from_sparse(
                pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]
            ),
        }
    )
    got = table_in(written(stored(tmp_path, kind, [batch]), tmp_path, [True, False, True]), kind)
    assert got.schema == batch.schema
    assert got.to_pylist() == [batch.to_pylist()[0], batch.to_pylist()[2]]


@both
def test_a_file_that_changed_since_it_was_read_raises(tmp_path, kind):
    with pytest.raises(DataError, match="no longer has the 3 rows"):
        written(stored(tmp_path, kind, batches_of(1)), tmp_path, [True, False, True])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a readable Arrow file: "),
        (b"ARROW1", "is not a readable Arrow file: "),
        (b"plain text, not a table, and some more of it", "is not a readable Arrow file: "),
        (b"FEA1 and so on", "is a Feather version 1 file"),
    ],
)
def test_a_file_of_another_kind_raises_with_its_path(tmp_path, content, reason):
    path = tmp_path / "bad.arrow"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_all(input_file(path))
    message = str(caught.value).partition("\n\nhint: ")[0]
    assert message.startswith(f"{path} {reason}")
    assert "\n" not in message


@both
@pytest.mark.parametrize("share", [0.3, 0.7, 0.98])
def test_a_truncated_file_raises(tmp_path, kind, share):
    path = Path(stored(tmp_path, kind, batches_of(1, 1000)).path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    file = input_file(path)
    with pytest.raises(DataError, match=r"source\.arrow is not a readable Arrow file"):
        read_all(file)
    with pytest.raises(DataError, match=r"source\.arrow is not a readable Arrow file"):
        written(file, tmp_path, [False] + [True] * 999)


@both
def test_remote_files_are_read_and_written(tmp_path, kind):
    import fsspec

    file = stored(tmp_path, kind, batches_of(2), "zstd")
    with fsspec.open("memory://arrow/a.arrow", "wb") as copy:
        copy.write(Path(file.path).read_bytes())
    remote = InputFile(
        path="memory://arrow/a.arrow",
        name="a.arrow",
        format="arrow",
        compression=None,
        size=file.size,
        modified="",
    )
    assert sum(len(records.texts) for records in read_all(remote)) == 20
    assert table_in(written(remote, tmp_path, [True] * 19 + [False]), kind).num_rows == 19
