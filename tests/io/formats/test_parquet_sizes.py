import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.io.formats import parquet_sizes
from neardup.io.formats.parquet_pages import Dictionary, find_dictionary
from neardup.io.records import BATCH_BYTES, InputFile


def stored(folder, values, **options):
    path = folder / "source.parquet"
    pq.write_table(pa.table({"text": values}), path, **options)
    return path


def found(path, group=0, data=None):
    parquet = pq.ParquetFile(path)
    chunk = parquet.metadata.row_group(group).column(0)
    with pa.BufferReader(path.read_bytes() if data is None else data) as source:
        return find_dictionary(source, chunk)


def row_bytes(path, names=("text",)):
    seen = str(path.stat().st_mtime_ns)
    file = InputFile(
        path=str(path), name="a", format="parquet", compression=None, size=1, modified=seen
    )
    with pq.ParquetFile(path) as source:
        return parquet_sizes.row_bytes(file, source, [0], list(names))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "lz4"])
def test_the_encoded_values_and_the_size_of_the_dictionary_are_found(tmp_path, version, codec):
    # pyarrow looks at the size of the dictionary every 1,024 rows: the first ones are in it, the
    # rest is not.
    values = [f"{row:02000d}" for row in range(3000)]
    path = stored(tmp_path, values, data_page_version=version, compression=codec)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page
    assert "PLAIN" in chunk.encodings
    assert found(path) == Dictionary(num_encoded=1024, num_bytes=1024 * 2004, comes_first=True)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("kinds", [1, 2, 300, 9000])
def test_nulls_and_several_pages_are_counted(tmp_path, version, kinds):
    draw = random.Random(kinds)
    values = [f"value {draw.randrange(kinds)}" for _ in range(20_000)]
    values = [None if draw.random() < 0.3 else value for value in values]
    path = stored(tmp_path, values, data_page_version=version, data_page_size=1000)
    distinct = set(values) - {None}
    num_bytes = sum(4 + len(value) for value in distinct)
    assert found(path) == Dictionary(num_encoded=20_000, num_bytes=num_bytes, comes_first=True)


def test_pages_that_hold_fewer_values_than_the_column_or_a_negative_number_are_unknown(tmp_path):
    path = stored(tmp_path, ["a", "b", "a"], compression="none")
    data = path.read_bytes()
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    at = data.index(
        b"\x06", chunk.data_page_offset
    )  # three values, as a signed number of variable length
    assert found(path) is not None
    assert found(path, data=data[:at] + b"\x04" + data[at + 1 :]) is None
    assert found(path, data=data[:at] + b"\x05" + data[at + 1 :]) is None  # minus three


def test_headers_with_long_statistics_are_read(tmp_path):
    values = [f"{letter}" * 4000 for letter in "abcdefgh"] * 2
    path = stored(tmp_path, values, compression="none", data_page_size=1, write_batch_size=1)
    assert found(path) == Dictionary(num_encoded=16, num_bytes=8 * 4004, comes_first=True)


def test_any_damage_to_a_chunk_is_unknown_or_a_number(tmp_path):
    path = stored(tmp_path, ["a" * 300, "b", "a" * 300], compression="none")
    offset = pq.ParquetFile(path).metadata.row_group(0).column(0).dictionary_page_offset
    data = path.read_bytes()
    draw = random.Random(1)
    assert found(path, data=data[:offset] + bytes(8) + data[offset + 8 :]) is None
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(offset, offset + 420)] = draw.choice(
                (0, 0x1C, 0x19, 0x7F, 0x80, 0xFF)
            )
        assert isinstance(found(path, data=bytes(damaged)), Dictionary | None)


def test_a_page_of_negative_size_is_unknown(tmp_path):
    path = stored(tmp_path, ["a", "b", "a"], compression="none")
    data = path.read_bytes()
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    offset = chunk.dictionary_page_offset
    assert data[offset + 4] == 0x15  # field 3, the compressed size, follows in one byte
    assert found(path, data=data[: offset + 5] + b"\x01" + data[offset + 6 :]) is None


def test_dictionary_values_after_plain_ones_count_as_the_longest(tmp_path, monkeypatch):
    path = stored(tmp_path, [f"{row:05000d}" for row in range(1500)])
    assert row_bytes(path) < 6000
    monkeypatch.setattr(parquet_sizes, "_known", {})
    monkeypatch.setattr(
        parquet_sizes, "find_dictionary", lambda *_: Dictionary(1024, 1 << 20, comes_first=False)
    )
    assert row_bytes(path) == pytest.approx(5000, rel=0.1)


def test_distinct_long_texts_are_not_taken_for_repeated_ones(tmp_path):
    values = [f"{row:0{1_000_000 if row == 7 else 3000}d}" for row in range(1500)]
    path = stored(tmp_path, values, compression="none")
    assert found(path).most_decoded > 4 * BATCH_BYTES
    assert row_bytes(path) == pytest.approx(
        pq.ParquetFile(path).metadata.row_group(0).total_byte_size / 1500, rel=0.01
    )


def test_a_row_takes_what_the_longest_value_of_a_repeating_dictionary_takes(tmp_path):
    rows = pa.DictionaryArray.from_arrays(
        pa.array([0] * 3000 + [1] * 10, pa.int32()), pa.array(["x" * 1_000_000, "y"])
    )
    path = stored(tmp_path, rows)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size < 2_000_000
    assert row_bytes(path) == 1_000_000 / 4
    assert row_bytes(path, names=()) == 1


def test_unused_values_do_not_hide_a_repeated_one(tmp_path):
    # As many different values as rows, but every row has the longest.
    for length in (500_000, 100_000):
        dictionary = pa.array(["x" * length, *map(str, range(2000))])
        rows = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), dictionary)
        path = stored(tmp_path, rows, compression="none")
        assert b"1999" in path.read_bytes()
        assert row_bytes(path) == length / 4
        assert 2000 * length > 4 * BATCH_BYTES
