import dataclasses
import decimal
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.formats import parquet
from neardup.io.records import MARK_COLUMNS, Columns, InputFile, Verdicts
from support.corpora import cut

CONFIG = Config()
TEXT = Columns(text=("text",), id="id")


def input_file(path):
    return InputFile(
        path=os.fspath(path),
        name=path.name,
        format="parquet",
        compression=None,
        size=path.stat().st_size,
        modified="",
    )


def stored(folder, table, **options):
    path = folder / "source.parquet"
    pq.write_table(table, path, **options)
    return input_file(path)


def verdicts(is_kept, removed=()):
    return Verdicts(
        is_kept=np.array(is_kept, np.bool_),
        removed=np.array(removed, np.int64),
        kept_ids=pa.array([f"kept{row}" for row in removed], pa.string()),
        similarities=np.full(len(removed), 0.9),
    )


def read_all(file, columns=TEXT, config=CONFIG):
    return [
        records
        for span in parquet.split(file)
        for records in parquet.read(file, span, columns, config)
    ]


def written(file, folder, is_kept, removed=(), **settings):
    target = folder / "out" / "target.parquet"
    parquet.write(file, os.fspath(target), verdicts(is_kept, removed), Config(**settings))
    return target


def table_of(num_rows):
    return pa.table(
        {
            "id": range(num_rows),
            "text": [f"text {row}" for row in range(num_rows)],
            "other": [1.5] * num_rows,
        }
    )


def test_every_document_is_read_once_and_in_order(tmp_path):
    file = stored(tmp_path, table_of(1000), row_group_size=90)
    got = read_all(file)
    assert [text for records in got for text in records.texts.to_pylist()] == [
        f"text {row}" for row in range(1000)
    ]
    assert [name for records in got for name in records.ids.to_pylist()] == [
        str(row) for row in range(1000)
    ]
    assert sum(records.num_rows for records in got) == 1000
    assert parquet.column_names(file, CONFIG) == ["id", "text", "other"]


def test_small_row_groups_are_one_span_and_large_ones_several(tmp_path, monkeypatch):
    file = stored(tmp_path, table_of(100), row_group_size=10)
    assert parquet.split(file) == [(0, 10)]
    monkeypatch.setattr(
        "neardup.io.columns.arrow_rows.PART_BYTES",
        2 * pq.ParquetFile(file.path).metadata.row_group(0).total_byte_size,
    )
    spans = parquet.split(file)
    assert len(spans) >= 5
    assert [row for span in spans for row in range(*span)] == list(range(10))
    texts = [text for records in read_all(file) for text in records.texts.to_pylist()]
    assert texts == [f"text {row}" for row in range(100)]


def test_batches_hold_about_the_requested_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_BYTES", 10_000)
    table = pa.table({"text": [f"{row:01000d}" for row in range(100)]})
    sizes = [
        records.num_rows for records in read_all(stored(tmp_path, table), Columns(text=("text",)))
    ]
    assert sum(sizes) == 100
    assert 5 <= max(sizes) <= 10


def test_dictionary_encoded_copies_do_not_make_large_batches(tmp_path):
    table = pa.table({"text": ["x" * 10_000] * 5000})
    file = stored(tmp_path, table)
    with pq.ParquetFile(file.path) as source:
        assert source.metadata.row_group(0).total_byte_size < 100_000
        num_rows = parquet._batch_rows(parquet.row_bytes(file, source, [0], ["text"]))
        largest = max(batch.nbytes for batch in parquet._batches(source, [0], ["text"], num_rows))
    assert largest <= 4 * parquet.BATCH_BYTES + 100_000


def test_a_document_longer_than_a_batch_is_a_batch_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_BYTES", 100)
    file = stored(tmp_path, pa.table({"text": ["x" * 1000, "y" * 1000]}))
    assert [records.num_rows for records in read_all(file, Columns(text=("text",)))] == [1, 1]


def test_a_file_without_the_column_rejects_every_row(tmp_path):
    got = read_all(stored(tmp_path, pa.table({"body": ["a", "b"]})))
    assert [records.rejected for records in got] == [
        [(0, "no column 'text'"), (1, "no column 'text'")]
    ]


def test_names_with_dots_are_columns(tmp_path):
    table = pa.table({"a": ["x"], "a.b": ["y"], "s": [{"b": "z"}]})
    file = stored(tmp_path, table)
    assert read_all(file, Columns(text=("a.b",)))[0].texts.to_pylist() == ["y"]
    assert read_all(file, Columns(text=("a",)))[0].texts.to_pylist() == ["x"]
    assert read_all(file, Columns(text=("s.b",)))[0].texts.to_pylist() == ["z"]
    assert read_all(file, Columns(text=("s.c",)))[0].rejected == [(0, "no column 's.c'")]
    assert read_all(file, Columns(text=("a.c",)))[0].rejected == [(0, "no column 'a.c'")]


@pytest.mark.parametrize("row_group_size", [10, None])
def test_a_file_without_rows_is_accepted(tmp_path, row_group_size):
    empty = table_of(0)
    file = stored(tmp_path, empty, row_group_size=row_group_size)
    assert [records for records in read_all(file) if records.num_rows] == []
    assert pq.read_table(written(file, tmp_path, [])).equals(empty)
    marked = pq.read_table(written(file, tmp_path, [], mark=True))
    assert marked.schema.names == [*empty.column_names, *MARK_COLUMNS.names]


# Many removed rows are filtered out; between few of them, rows are written as slices.
@pytest.mark.parametrize("one_in", [3, 40])
def test_kept_rows_are_written_in_order(tmp_path, one_in):
    table = table_of(100)
    is_kept = np.arange(100) % one_in > 0
    target = written(stored(tmp_path, table, row_group_size=9), tmp_path, is_kept)
    assert pq.read_table(target).equals(table.filter(pa.array(is_kept)))


def test_a_file_with_all_rows_kept_is_copied_byte_for_byte(tmp_path):
    file = stored(tmp_path, table_of(10), compression="gzip")
    assert written(file, tmp_path, [True] * 10).read_bytes() == Path(file.path).read_bytes()


def test_equal_verdicts_write_equal_bytes(tmp_path):
    file = stored(tmp_path, table_of(1000), row_group_size=100)
    first = written(file, tmp_path, np.arange(1000) % 2 > 0).read_bytes()
    assert written(file, tmp_path, np.arange(1000) % 2 > 0).read_bytes() == first


def test_marks_are_appended_and_rejected_rows_left_out(tmp_path):
    target = written(
        stored(tmp_path, table_of(4)), tmp_path, [True, False, False, True], removed=[2], mark=True
    )
    got = pq.read_table(target).drop_columns(["text", "other"]).to_pylist()
    assert [tuple(row.values()) for row in got] == [
        (0, True, None, None, 1),
        (2, False, "kept2", 0.9, 1),
        (3, True, None, None, 1),
    ]


def test_marking_a_marked_file_replaces_the_marks(tmp_path):
    once = written(stored(tmp_path, table_of(4)), tmp_path, [True] * 4, mark=True)
    again = once.rename(tmp_path / "again.parquet")
    target = written(input_file(again), tmp_path, [True, True, True, False], removed=[3], mark=True)
    assert pq.read_table(target)["neardup_kept"].to_pylist() == [True, True, True, False]


@pytest.mark.parametrize(
    "num_copies", [1, 20], ids=["one in three removed", "one in sixty removed"]
)
def test_columns_of_every_type_round_trip(tmp_path, num_copies):
    values = {
        "text": pa.array(["a", "b", None], pa.large_string()),
        "view": pa.array(["a", "b", "c"], pa.string_view()),
        "category": pa.array(["x", "y", "x"]).dictionary_encode(),
        "nothing": pa.nulls(3),
        "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("3.50")]),
        "time": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
        "precise": pa.array([1, 2, None], pa.timestamp("ns")),
        "day": pa.array([1, 2, None], pa.date32()),
        "nested": pa.array([[{"a": 1, "b": ["x"]}], [], None]),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
        "unsigned": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "uuid": pa.array([b"0" * 16, b"1" * 16, None], pa.uuid()),
        "tensor": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2]),
            pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        ),
    }
    fields = [pa.field(name, array.type, metadata={"unit": name}) for name, array in values.items()]
    table = pa.table(
        list(values.values()), pa.schema(fields, metadata={"source": "crawl", "pandas": "{}"})
    )
    file = stored(tmp_path, pa.concat_tables([table] * num_copies))
    source = pq.read_table(file.path)
    got = pq.read_table(written(file, tmp_path, [True, False] + [True] * (source.num_rows - 2)))
    assert got.equals(pa.concat_tables([source.slice(0, 1), source.slice(2)]))
    assert got.schema.equals(source.schema, check_metadata=True)


def test_categories_that_differ_between_row_groups_round_trip(tmp_path):
    column = pa.chunked_array(
        [pa.array(names).dictionary_encode() for names in (["a", "b"], ["c", "a"], ["b", "d"])]
    )
    file = stored(tmp_path, pa.table({"category": column}), row_group_size=2)
    got = pq.read_table(written(file, tmp_path, [True, True, False, True, True, True]))
    assert got["category"].to_pylist() == ["a", "b", "a", "b", "d"]
    assert got.schema.field("category").type == column.type


def test_codecs_encodings_and_row_groups_are_preserved(tmp_path):
    table = table_of(1000).append_column("list", pa.array([[1]] * 1000))
    codecs = {"id": "snappy", "text": "zstd", "other": "none", "list.list.element": "gzip"}
    order = [pq.SortingColumn(0)]
    file = stored(
        *(tmp_path, table),
        compression=codecs,
        use_dictionary=["other"],
        write_statistics=["id"],
        row_group_size=100,
        sorting_columns=order,
        write_page_index=True,
    )
    metadata = pq.ParquetFile(written(file, tmp_path, [False] + [True] * 999)).metadata
    chunks = [metadata.row_group(0).column(place) for place in range(4)]
    assert [chunk.compression for chunk in chunks] == ["SNAPPY", "ZSTD", "UNCOMPRESSED", "GZIP"]
    assert [chunk.has_dictionary_page for chunk in chunks] == [False, False, True, False]
    assert [chunk.is_stats_set for chunk in chunks] == [True, False, False, False]
    assert all(chunk.has_offset_index for chunk in chunks)
    assert list(metadata.row_group(0).sorting_columns) == order
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [
        100
    ] * 9 + [99]


def test_old_timestamps_and_the_list_names_of_other_writers_are_written_compressed(tmp_path):
    table = pa.table({"time": pa.array([1, 2], pa.timestamp("ns")), "list": [[1], [2]]})
    options = {
        "use_deprecated_int96_timestamps": True,
        "use_compliant_nested_type": False,
        "compression": "zstd",
    }
    file = stored(tmp_path, table, **options)
    target = written(file, tmp_path, [True, False])
    chunks = [pq.ParquetFile(target).metadata.row_group(0).column(place) for place in range(2)]
    assert [chunk.compression for chunk in chunks] == ["ZSTD", "ZSTD"]
    assert chunks[0].physical_type == "INT96"
    assert pq.read_table(target).to_pylist() == table.to_pylist()[:1]


def test_a_large_row_group_is_written_as_several(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 50_000)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 10_000)
    table = pa.table({"text": [f"{row:01000d}" for row in range(200)]})
    target = written(stored(tmp_path, table), tmp_path, [False] + [True] * 199)
    assert pq.ParquetFile(target).metadata.num_row_groups == 5
    assert pq.read_table(target).equals(table.slice(1))


@pytest.mark.parametrize("names", [("id", "text"), ("text",)])
@pytest.mark.parametrize(("mark", "one_in"), [(False, 3), (False, 50), (True, 3)])
def test_rows_in_memory_and_rows_read_again_give_the_same_bytes(
    tmp_path, monkeypatch, names, mark, one_in
):
    cut(monkeypatch, batch_bytes=500)
    monkeypatch.setattr(
        parquet, "BATCH_BYTES", 3000
    )  # batches are read, then cut, so that they must be joined
    texts = [None if row % 7 == 0 else f"{row:0{row % 90 + 1}d}" for row in range(600)]
    table = pa.table(
        {"other": [["a"] * (row % 3) for row in range(600)], "text": texts, "id": range(600)}
    )
    file = stored(tmp_path, table, row_group_size=150)
    cut(monkeypatch, part_bytes=file.size // 2)
    columns = Columns(text=("text",), id="id" if "id" in names else None)
    held = {
        span: [records.columns for records in parquet.read(file, span, columns, CONFIG)]
        for span in parquet.split(file)
    }
    assert len(held) > 1
    assert max(map(len, held.values())) > 2
    assert all(
        set(batch.schema.names) == set(names) for batches in held.values() for batch in batches
    )
    removed = list(range(0, 600, one_in))
    is_kept = [row % one_in > 0 for row in range(600)]
    again = written(file, tmp_path, is_kept, removed, mark=mark).read_bytes()
    target = tmp_path / "out" / "held.parquet"
    decided = dataclasses.replace(verdicts(is_kept, removed), cached=held)
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        only(pq.ParquetFile.iter_batches, {"other", *names} - {*names}),
    )
    parquet.write(file, os.fspath(target), decided, Config(mark=mark))
    assert target.read_bytes() == again


def only(iter_batches, allowed):
    """Read other columns alone, however many."""

    def checked(self, *args, columns=None, **options):
        assert columns is not None
        assert not {"text"} & set(columns)
        assert allowed & {name.partition(".")[0] for name in columns}
        return iter_batches(self, *args, columns=columns, **options)

    return checked


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"text": pa.array(["a", "b", "a"]).dictionary_encode()}),
        pa.table({"text": ["a"], "s.b": ["b"], "s": [{"b": "c"}]}),
        pa.table([["a"], ["b"], ["c"]], names=["text", "twice", "twice"]),
    ],
)
def test_columns_that_cannot_be_put_beside_others_are_read_again(tmp_path, table):
    (records,) = read_all(stored(tmp_path, table), Columns(text=("text",)))
    assert records.columns is None


def test_a_file_that_changed_since_it_was_read_raises(tmp_path):
    file = stored(tmp_path, table_of(4))
    with pytest.raises(DataError, match="no longer has the 3 rows"):
        written(file, tmp_path, [True, False, True])


def damaged(table, kind):
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=False)
    whole = buffer.getvalue().to_pybytes()
    middle = len(whole) // 2
    return {
        "empty": b"",
        "text": b"not a table at all, but long enough to be one",
        "truncated": whole[:middle],
        "encrypted": whole[:-4] + b"PARE",
        "footer": whole[: middle // 4] + whole[middle // 2 :],
    }[kind]


@pytest.mark.parametrize("kind", ["empty", "text", "truncated", "encrypted", "footer"])
def test_a_damaged_file_raises_with_its_path_and_a_reason_of_one_line(tmp_path, kind):
    path = tmp_path / "bad.parquet"
    path.write_bytes(damaged(table_of(10_000), kind))
    file = input_file(path)
    with pytest.raises(DataError) as caught:
        read_all(file)
    message = str(caught.value).partition("\n\nhint: ")[0]
    assert message.startswith(f"{path} is not a readable Parquet file: ")
    assert "\n" not in message


def test_damage_in_the_middle_raises_on_reading_and_on_writing(tmp_path):
    file = stored(
        tmp_path,
        pa.table({"text": [os.urandom(50).hex() for _ in range(10_000)]}),
        compression="zstd",
    )
    path = Path(file.path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200_000] = bytes(200_000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"source\.parquet is not a readable Parquet file"):
        read_all(file, Columns(text=("text",)))
    with pytest.raises(DataError, match=r"source\.parquet is not a readable Parquet file"):
        written(file, tmp_path, [False] + [True] * 9999)


def test_a_missing_file_is_an_error_with_its_path(tmp_path):
    file = stored(tmp_path, table_of(1))
    Path(file.path).unlink()
    with pytest.raises(DataError, match=r"source\.parquet"):
        parquet.split(file)


def test_remote_files_are_read_and_written(tmp_path):
    import fsspec

    file = stored(tmp_path, table_of(10))
    with fsspec.open("memory://parquet/a.parquet", "wb") as copy:
        copy.write(Path(file.path).read_bytes())
    remote = InputFile(
        path="memory://parquet/a.parquet",
        name="a.parquet",
        format="parquet",
        compression=None,
        size=file.size,
        modified="",
    )
    assert [text for records in read_all(remote) for text in records.texts.to_pylist()][:2] == [
        "text 0",
        "text 1",
    ]
    assert pq.read_table(written(remote, tmp_path, [True] * 9 + [False])).num_rows == 9
    assert pq.read_table(written(remote, tmp_path, [True] * 10)).num_rows == 10
